"""Anthropic's models, through the official package and its Messages interface."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from connectors.llm.answer_json import as_instruction, is_closed
from connectors.llm.endpoint import refuses_schema
from connectors.llm.paid_results import StoredBatch
from connectors.llm.remote_model import CLOCKS_APART, TIER, Images, OnDelta, Received, RemoteModel, Reply, used
from connectors.llm.service_reply import ErrorReply, StreamCut, names_error, read_reply, text_of, token_count
from engine.domain.model_call import ModelRequest, beginning
from engine.errors import ConfigError

_TIERS = {"auto": "auto", "default": "standard_only", "priority": "auto"}
"""The vendor's names of tiers: what was bought in advance is used under `auto` alone."""
_MARKED_FROM = 2_048
"""Characters from which the system part is marked: below a model's own minimum, 512 tokens at least, the vendor skips
the mark."""
_LEAST_THINKING = 1024
"""Tokens of thinking that the vendor takes at least."""
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


class AnthropicModel(RemoteModel):
    """A model of Anthropic's. It takes no sampling values at all, so a preset's temperature is dropped with a note.

    The schema is enforced by the structured output of the interface: current models refuse the older way, a
    forced tool. A schema that cannot be enforced is an instruction in the prompt.
    """

    OPTIONS = {"effort": "effort", "thinking": "thinking", "tier": TIER}
    _enforces_schema = True

    def _make_client(self) -> Any:
        from anthropic import AsyncAnthropic

        return self._endpoint.client(self.spec, AsyncAnthropic)

    def _image(self, data: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    def _leave_out(self, error: Exception, parameters: dict[str, Any]) -> bool:
        if "format" in parameters.get("output_config", {}) and refuses_schema(error):
            self._enforces_schema = False
            return True
        return False

    def _parameters(self, request: ModelRequest, images: Images, notes: list[str]) -> dict[str, Any]:
        if request.settings.temperature is not None:
            self._refuse_or_drop_temperature(request, notes)
        enforced = self._enforces_schema and is_closed(request.schema)
        parameters: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.output_limit(request),
            "system": _marked(request.system if enforced else f"{request.system}\n\n{as_instruction(request.schema)}"),
            "messages": self._turns(request, images),
        }
        self._set_options(request, parameters, notes)
        if self.by_tool:
            parameters["tools"] = [{"name": request.schema_name, "input_schema": dict(request.schema)}]
            parameters["tool_choice"] = {"type": "any"}
        elif enforced:
            from anthropic import transform_schema

            schema = transform_schema(dict(request.schema))
            parameters.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": schema}
        else:
            notes.append(f"schema asked for in words: {self.model} does not enforce it")
        return parameters

    def _set_options(self, request: ModelRequest, parameters: dict[str, Any], notes: list[str]) -> None:
        options = request.options
        if options.verbosity is not None:
            raise ConfigError(f"{self.spec} has no setting verbosity: set its effort")
        if options.effort is not None:
            parameters["output_config"] = {"effort": options.effort}
        if options.thinking is not None:
            parameters["thinking"] = {"type": options.thinking}
        if options.thinking == "enabled":
            budget = max(_LEAST_THINKING, self._endpoint.thinking_tokens)
            parameters["thinking"]["budget_tokens"] = budget
            # Thinking counts against the limit, which has room for the endpoint's allowance of it alone.
            parameters["max_tokens"] += budget - self._endpoint.thinking_tokens
        if (tier := options.tier) is not None and (named := _TIERS.get(tier)) is not None:
            parameters[TIER] = named
        elif tier is not None:
            notes.append(f"tier {tier} not sent: {self._endpoint.provider} has none of that name")

    async def send_batch(self, key: str, lines: Mapping[str, Mapping[str, Any]]) -> str:
        """Send the calls."""
        requests = [{"custom_id": name, "params": line} for name, line in lines.items()]
        return str((await self._client.messages.batches.create(requests=requests)).id)

    async def find_batch(self, batch: StoredBatch, known_ids: Collection[str | None]) -> str | None:
        """The vendor keeps no name of ours: a batch of as many calls from that moment on, which its lines then tell."""
        found = None
        async for one in self._client.messages.batches.list(limit=100):
            if one.created_at < batch.sent - CLOCKS_APART:
                break
            counts = one.request_counts
            lines = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
            if lines == len(batch.questions) and one.id not in known_ids:
                found = str(one.id)
        return found

    async def batch_replies(self, name: str) -> dict[str, Reply] | None:
        """Read the lines that succeeded."""
        if (await self._client.messages.batches.retrieve(name)).processing_status != "ended":
            return None
        replies: dict[str, Reply] = {}
        async for line in await self._client.messages.batches.results(name):
            if line.result.type == "succeeded":
                with suppress(StreamCut):
                    got, body = _Received(lambda text: None), line.result.message.to_dict()
                    got.add_whole(body)
                    replies[line.custom_id] = got.reply()
        return replies

    async def _received(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        got = _Received(on_delta)
        async with self._client.messages.with_streaming_response.create(**parameters, timeout=timeout) as response:
            self._endpoint.limiter.heed(response.headers)
            body = await read_reply(response, got.add)
            if body is not None:
                if names_error(body) or not isinstance(body, Mapping) or not isinstance(body.get("content"), list):
                    raise ErrorReply(response.status_code, body, response.headers)
                got.add_whole(body)
        return got.reply()


def _marked(system: str) -> list[dict[str, Any]]:
    """The system part, whose beginning is marked for the vendor's cache where it is long enough for any model's."""
    stable = beginning(system)
    mark = {"cache_control": {"type": "ephemeral"}} if len(stable) >= _MARKED_FROM else {}
    rest = system[len(stable) :]
    return [{"type": "text", "text": stable, **mark}, *([{"type": "text", "text": rest}] if rest.strip() else [])]


@dataclass(slots=True)
class _Received(Received):
    stop_details: Any = None
    usage: dict[str, Any] = field(default_factory=dict)

    def add_whole(self, body: Mapping[str, Any]) -> None:
        """Add a whole reply."""
        for index, block in enumerate(body["content"]):
            self.add_block(index, block)
        self.add_end(body, body.get("usage"))

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event of a stream."""
        match event:
            case {"type": "message_start", "message": {"usage": usage}}:
                self.add_end({}, usage)
            case {"type": "content_block_start", "index": int(index), "content_block": block}:
                self.add_block(index, block)
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}:
                self.add_text(text_of(text))
            case {"type": "content_block_delta", "index": int(index), "delta": {"partial_json": str(said)}}:
                self.add_call(index, said)
            case {"type": "message_delta", "delta": Mapping() as delta}:
                self.add_end(delta, event.get("usage"))

    def add_block(self, index: int, block: Any) -> None:
        """Add a part of the reply: text, or the input of a tool, which comes empty where it follows in pieces."""
        match block:
            case {"type": "tool_use", "input": Mapping() as given} if given:
                self.add_call(index, text_of(given))
            case Mapping():
                self.add_text(text_of([block]))

    def add_end(self, part: Mapping[str, Any], usage: Any) -> None:
        """Add why it ended, and counts; later counts overwrite earlier ones."""
        self.stop_reason = part.get("stop_reason") or self.stop_reason
        self.stop_details = part.get("stop_details") or self.stop_details
        if isinstance(usage, Mapping):
            self.usage |= {name: count for name, count in usage.items() if count is not None}

    def reply(self) -> Reply:
        """The whole reply. Raises StreamCut where it has no end."""
        if self.stop_reason is None:
            raise StreamCut("the reply ended without a stop reason")
        stop_reason, count = str(self.stop_reason), partial(token_count, self.usage)
        tier = text_of(self.usage.get(TIER))
        asked = count("input_tokens")
        # What is read from and written to the cache stands outside input_tokens.
        read, written = (count(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
        usage, written = used(
            None if asked is None else asked + read + written,
            count("output_tokens"),
            cached=read,
            written=written,
            reasoned=count("output_tokens_details", "thinking_tokens"),
        )
        if stop_reason == "refusal":
            why = self.stop_details.get("explanation") if isinstance(self.stop_details, Mapping) else None
            return Reply(text_of(why) or self.text, "refused", stop_reason, usage, written, tier)
        text, called = self.whole()
        return Reply(text, "cut off" if stop_reason in _CUT else "whole", stop_reason, usage, written, tier, called)
