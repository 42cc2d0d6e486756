"""Models with OpenAI's Chat Completions interface: OpenAI's own and those of compatible endpoints."""

from __future__ import annotations

from typing import Any, Literal

from connectors.llm.answer_json import as_instruction, openai_strict
from connectors.llm.endpoint import StreamCut, names_parameter
from connectors.llm.remote_model import Images, OnDelta, RemoteModel, Reply
from engine.domain.model_call import ModelRequest, Usage


class OpenAIModel(RemoteModel):
    """A model of OpenAI's, or of the endpoint that `provider` names, through the official package.

    A parameter that an endpoint refuses (temperature, an enforced schema, the newer name of the token limit, usage in
    streams) is left out from then on, and noted where that changes the answer.
    """

    _takes_temperature = True
    _takes_stream_usage = True
    _takes_limit_name = True
    _format: Literal["json_schema", "json_object", "none"] = "json_schema"

    @property
    def _at_vendor(self) -> bool:
        return self._endpoint.provider == "openai"

    @property
    def _limit_name(self) -> str:
        """The name of the token limit: OpenAI's newer one there, the older elsewhere, until it is refused."""
        return "max_completion_tokens" if self._at_vendor is self._takes_limit_name else "max_tokens"

    def _make_client(self) -> Any:
        from openai import AsyncOpenAI

        return self._endpoint.client(self.spec, AsyncOpenAI)

    def _image(self, data: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", "detail": "high"}}

    def _leave_out(self, error: Exception, parameters: dict[str, Any]) -> bool:
        if "temperature" in parameters and names_parameter(error, "temperature"):
            self._takes_temperature = False
        elif "response_format" in parameters and names_parameter(error, "response_format", "json_schema"):
            self._format = "json_object" if self._format == "json_schema" else "none"
        elif "stream_options" in parameters and names_parameter(error, "stream_options", "include_usage"):
            self._takes_stream_usage = False
        elif self._takes_limit_name and names_parameter(error, self._limit_name):
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
            self._limit_name: self._limit(request),
        }
        if request.settings.temperature is not None:
            if self._takes_temperature:
                parameters["temperature"] = request.settings.temperature
            else:
                self._refuse_or_drop_temperature(request, notes)
        if self._format == "json_schema":
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

    async def _complete(self, parameters: dict[str, Any], timeout: float) -> Reply:
        completion = await self._client.chat.completions.create(**parameters, timeout=timeout)
        choice = completion.choices[0]
        return _reply(choice.message.content, choice.message.refusal, choice.finish_reason, completion.usage)

    async def _stream(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        if self._takes_stream_usage:
            parameters["stream_options"] = {"include_usage": True}
        stream = await self._client.chat.completions.create(**parameters, stream=True, timeout=timeout)
        text: list[str] = []
        refusal: list[str] = []
        stop_reason: str | None = None
        usage: Any = None
        async with stream:
            async for chunk in stream:
                usage = chunk.usage or usage
                if not chunk.choices:
                    continue
                choice = chunk.choices[0]
                if choice.delta.content:
                    text.append(choice.delta.content)
                    on_delta(choice.delta.content)
                if choice.delta.refusal:
                    refusal.append(choice.delta.refusal)
                stop_reason = choice.finish_reason or stop_reason
        return _reply("".join(text), "".join(refusal), stop_reason, usage)


def _reply(text: str | None, refusal: str | None, stop_reason: str | None, usage: Any) -> Reply:
    if stop_reason is None:
        raise StreamCut("the reply ended without a stop reason")
    # Cached tokens stand inside prompt_tokens.
    details = getattr(usage, "prompt_tokens_details", None)
    made = getattr(usage, "completion_tokens_details", None)
    spent = Usage(
        input_tokens=getattr(usage, "prompt_tokens", None) or 0,
        cached_input_tokens=getattr(details, "cached_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
        reasoning_tokens=getattr(made, "reasoning_tokens", None) or 0,
    )
    written = getattr(details, "cache_write_tokens", None) or 0
    if refusal or stop_reason == "content_filter":
        return Reply(refusal or text or "", "refused", stop_reason, spent, written)
    return Reply(text or "", "cut off" if stop_reason == "length" else "whole", stop_reason, spent, written)
