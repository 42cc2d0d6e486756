"""Anthropic's models, through the official package and its Messages interface."""

from __future__ import annotations

from typing import Any

from connectors.llm.answer_json import as_instruction, is_closed
from connectors.llm.endpoint import StreamCut, names_parameter
from connectors.llm.remote_model import Images, OnDelta, RemoteModel, Reply
from engine.domain.model_call import ModelRequest, Usage

_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


class AnthropicModel(RemoteModel):
    """A model of Anthropic's. It takes no sampling values at all, so a preset's temperature is dropped with a note.

    The schema is enforced by the structured output of the interface: current models refuse the older way, a
    forced tool. A schema that cannot be enforced is an instruction in the prompt.
    """

    _enforces_schema = True

    def _make_client(self) -> Any:
        from anthropic import AsyncAnthropic

        return self._endpoint.client(self.spec, AsyncAnthropic)

    def _image(self, data: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    def _leave_out(self, error: Exception, parameters: dict[str, Any]) -> bool:
        if "output_config" in parameters and names_parameter(error, "output_config", "output_format", "json_schema"):
            self._enforces_schema = False
            return True
        return False

    def _parameters(self, request: ModelRequest, images: Images, notes: list[str]) -> dict[str, Any]:
        if request.settings.temperature is not None:
            self._refuse_or_drop_temperature(request, notes)
        enforced = self._enforces_schema and is_closed(request.schema)
        parameters: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self._limit(request),
            "system": request.system if enforced else f"{request.system}\n\n{as_instruction(request.schema)}",
            "messages": self._turns(request, images),
        }
        if enforced:
            from anthropic import transform_schema

            schema = transform_schema(dict(request.schema))
            parameters["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        else:
            notes.append(f"schema asked for in words: {self.model} does not enforce it")
        return parameters

    async def _complete(self, parameters: dict[str, Any], timeout: float) -> Reply:
        message = await self._client.messages.create(**parameters, timeout=timeout)
        text = "".join(block.text for block in message.content if block.type == "text")
        return _reply(text, message.stop_reason, message.stop_details, _tokens(message.usage))

    async def _stream(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        stream = await self._client.messages.create(**parameters, stream=True, timeout=timeout)
        text: list[str] = []
        stop_reason: str | None = None
        stop_details: Any = None
        tokens: dict[str, int] = {}
        async with stream:
            async for event in stream:
                if event.type == "message_start":
                    tokens.update(_tokens(event.message.usage))
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    text.append(event.delta.text)
                    on_delta(event.delta.text)
                elif event.type == "message_delta":
                    stop_reason = event.delta.stop_reason or stop_reason
                    stop_details = event.delta.stop_details or stop_details
                    tokens.update(_tokens(event.usage))
        return _reply("".join(text), stop_reason, stop_details, tokens)


def _tokens(usage: Any) -> dict[str, int]:
    """The counts that a message or an event of its stream reports; later events overwrite earlier ones."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = {name: getattr(usage, name, None) for name in names}
    counts["thinking_tokens"] = getattr(getattr(usage, "output_tokens_details", None), "thinking_tokens", None)
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def _reply(text: str, stop_reason: str | None, stop_details: Any, tokens: dict[str, int]) -> Reply:
    if stop_reason is None:
        raise StreamCut("the reply ended without a stop reason")
    # What is read from and written to the cache stands outside input_tokens.
    read = tokens.get("cache_read_input_tokens", 0)
    written = tokens.get("cache_creation_input_tokens", 0)
    usage = Usage(
        input_tokens=tokens.get("input_tokens", 0) + read + written,
        cached_input_tokens=read,
        output_tokens=tokens.get("output_tokens", 0),
        reasoning_tokens=tokens.get("thinking_tokens", 0),
    )
    if stop_reason == "refusal":
        why = getattr(stop_details, "explanation", None) or text
        return Reply(why, "refused", stop_reason, usage, written)
    return Reply(text, "cut off" if stop_reason in _CUT else "whole", stop_reason, usage, written)
