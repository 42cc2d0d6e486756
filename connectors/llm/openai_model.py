"""Models with OpenAI's Chat Completions interface: OpenAI's own and those of compatible endpoints."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from connectors.llm.answer_json import as_instruction, openai_strict
from connectors.llm.endpoint import names_parameter, refuses_schema
from connectors.llm.paid_results import StoredBatch
from connectors.llm.remote_model import (
    CLOCKS_APART,
    TIER,
    BatchRefused,
    Images,
    OnDelta,
    Received,
    RemoteModel,
    Reply,
    used,
)
from connectors.llm.service_reply import ErrorReply, StreamCut, names_error, one_line, read_reply, text_of, token_count
from connectors.llm.warm_prefixes import prefix_key
from engine.domain.model_call import ModelRequest
from engine.errors import ConfigError

_COMPLETIONS = "/v1/chat/completions"
_KEY = "paperdesk"
"""The key of a batch's metadata under which it has our name."""
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class OpenAIModel(RemoteModel):
    """A model of OpenAI's, or of the endpoint that `provider` names, through the official package.

    A parameter that an endpoint refuses (temperature, an enforced schema, the newer name of the token limit, usage in
    streams) is left out from then on, and noted where that changes the answer.
    """

    OPTIONS = {"effort": "reasoning_effort", "verbosity": "verbosity", "tier": TIER}
    _takes_temperature = True
    _takes_stream_usage = True
    _takes_limit_name = True
    _format: Literal["json_schema", "json_object", "none"] = "json_schema"

    @property
    def _at_vendor(self) -> bool:
        return self._endpoint.provider == "openai"

    @property
    def _limit_names(self) -> tuple[str, str]:
        """The names of the token limit: OpenAI's newer one first there, the older first elsewhere."""
        names = ("max_tokens", "max_completion_tokens")
        return names[::-1] if self._at_vendor else names

    def _make_client(self) -> Any:
        from openai import AsyncOpenAI

        return self._endpoint.client(self.spec, AsyncOpenAI)

    def _image(self, data: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", "detail": "high"}}

    def _leave_out(self, error: Exception, parameters: dict[str, Any]) -> bool:
        if "temperature" in parameters and names_parameter(error, "temperature"):
            self._takes_temperature = False
        elif "stream_options" in parameters and names_parameter(error, "stream_options", "include_usage"):
            self._takes_stream_usage = False
        elif "response_format" in parameters and refuses_schema(error):
            # As it was sent: of calls under way together, each is refused.
            self._format = "json_object" if parameters["response_format"]["type"] == "json_schema" else "none"
        elif (first := self._limit_names[0]) in parameters and names_parameter(error, first):
            self._takes_limit_name = False
        else:
            return False
        return True

    def _parameters(self, request: ModelRequest, images: Images, notes: list[str]) -> dict[str, Any]:
        system = request.system
        if not self._at_vendor or self._format != "json_schema":
            # Endpoints that ignore an unknown format get the schema as an instruction as well.
            system = f"{system}\n\n{as_instruction(request.schema)}"
        parameters: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, *self._turns(request, images)],
            self._limit_names[not self._takes_limit_name]: self.output_limit(request),
            **self._option_parameters(request),
            **self._cache_parameters(request),
        }
        if request.settings.temperature is not None:
            if self._takes_temperature:
                parameters["temperature"] = request.settings.temperature
            else:
                self._refuse_or_drop_temperature(request, notes)
        if self.by_tool:
            function = {"name": request.schema_name, "parameters": dict(request.schema)}
            parameters |= {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
        elif self._format == "json_schema":
            strict = openai_strict(request.schema)
            schema = dict(request.schema) if strict is None else strict
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": request.schema_name, "schema": schema, "strict": strict is not None},
            }
        elif self._format == "json_object":
            parameters["response_format"] = {"type": "json_object"}
        if self._format != "json_schema":
            notes.append(f"schema asked for in words: {self._endpoint.provider} does not enforce it")
        return parameters

    def _option_parameters(self, request: ModelRequest) -> dict[str, Any]:
        if request.options.thinking is not None:
            raise ConfigError(f"{self.spec} has no setting thinking: set its effort")
        values = {parameter: getattr(request.options, name) for name, parameter in self.OPTIONS.items()}
        return {parameter: value for parameter, value in values.items() if value is not None}

    def _cache_parameters(self, request: ModelRequest) -> dict[str, Any]:
        """The key by which questions with the same beginning go to the machine that has it in its cache."""
        key = prefix_key(request.system) if self._at_vendor else None
        return {} if key is None else {"prompt_cache_key": key}

    @property
    def _streamed(self) -> Mapping[str, Any]:
        usage = {"stream_options": {"include_usage": True}} if self._takes_stream_usage else {}
        return {"stream": True, **usage}

    async def send_batch(self, key: str, lines: Mapping[str, Mapping[str, Any]]) -> str:
        """Upload the calls as a file, and make a batch of it."""
        frame = {"method": "POST", "url": _COMPLETIONS}
        content = "\n".join(json.dumps({"custom_id": name, **frame, "body": line}) for name, line in lines.items())
        file = await self._client.files.create(file=("questions.jsonl", content.encode()), purpose="batch")
        made = await self._client.batches.create(
            input_file_id=file.id, endpoint=_COMPLETIONS, completion_window="24h", metadata={_KEY: key}
        )
        return str(made.id)

    async def find_batch(self, batch: StoredBatch, known_ids: Collection[str | None]) -> str | None:
        """Look for our name."""
        since = (batch.sent - CLOCKS_APART).timestamp()
        async for one in self._client.batches.list(limit=100):
            if one.created_at < since:
                break
            if (one.metadata or {}).get(_KEY) == batch.key:
                return str(one.id)
        return None

    async def batch_replies(self, name: str) -> dict[str, Reply] | None:
        """Read the file of answers; the other one has the lines without any."""
        batch = await self._client.batches.retrieve(name)
        if batch.status not in _ENDED:
            return None
        if batch.status == "failed":
            why = "; ".join(str(one.message) for one in (batch.errors and batch.errors.data) or ())
            words = f"{self.spec}, asked for a batch: {one_line(why) or 'it failed'}; nothing was paid"
            raise BatchRefused(f"{words}: try again later, or start a new run without --batch")
        replies: dict[str, Reply] = {}
        if batch.output_file_id:
            for line in (await self._client.files.content(batch.output_file_id)).text.splitlines():
                with suppress(ErrorReply, StreamCut, ValueError, KeyError, TypeError):
                    said, got = json.loads(line), _Received(lambda text: None)
                    got.add(said["response"]["body"])
                    replies[said["custom_id"]] = got.reply()
        return replies

    async def _received(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        got = _Received(on_delta)
        completions = self._client.chat.completions.with_streaming_response
        async with completions.create(**parameters, timeout=timeout) as response:
            self._endpoint.limiter.heed(response.headers)
            body = await read_reply(response, got.add)
            if body is not None:
                choices = body.get("choices") if isinstance(body, Mapping) else None
                if names_error(body) or not isinstance(choices, list) or not choices:
                    raise ErrorReply(response.status_code, body, response.headers)
                got.add(body)
        return got.reply()


@dataclass(slots=True)
class _Received(Received):
    refusal: str = ""
    usage: Any = None
    tier: str = ""

    def add(self, body: Mapping[str, Any]) -> None:
        """Add a whole completion or a chunk of one. Raises ErrorReply for a choice that is an error."""
        self.usage = body.get("usage") or self.usage
        self.tier = text_of(body.get(TIER)) or self.tier
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        if names_error(choice):
            raise ErrorReply(200, choice)
        part = choice.get("delta") or choice.get("message")
        if isinstance(part, Mapping):
            self.add_text(text_of(part.get("content")))
            self._add_calls(part.get("tool_calls"))
            self.refusal += text_of(part.get("refusal"))
        stopped = choice.get("finish_reason")
        self.stop_reason = str(stopped) if stopped else self.stop_reason

    def _add_calls(self, calls: Any) -> None:
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            function, index = (call.get("function"), call.get("index")) if isinstance(call, Mapping) else (None, None)
            if isinstance(function, Mapping) and (said := text_of(function.get("arguments"))):
                self.add_call(index if isinstance(index, int) else place, said)

    def reply(self) -> Reply:
        """The whole reply. Raises StreamCut where it has no end."""
        stop_reason = self.stop_reason
        if stop_reason is None:
            raise StreamCut("the reply ended without a stop reason")
        count = partial(token_count, self.usage)
        usage, written = used(
            count("prompt_tokens"),
            count("completion_tokens"),
            # Cached tokens stand inside prompt_tokens.
            cached=count("prompt_tokens_details", "cached_tokens"),
            written=count("prompt_tokens_details", "cache_write_tokens"),
            reasoned=count("completion_tokens_details", "reasoning_tokens"),
        )
        if self.refusal or stop_reason == "content_filter":
            return Reply(self.refusal or self.text, "refused", stop_reason, usage, written, self.tier)
        ending: Literal["cut off", "whole"] = "cut off" if stop_reason == "length" else "whole"
        text, called = self.whole()
        return Reply(text, ending, stop_reason, usage, written, self.tier, called)
