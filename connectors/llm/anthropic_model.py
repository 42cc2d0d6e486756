"""Anthropic's models, through the official package and its Messages interface."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from connectors.llm.call_gate import CallGate
from connectors.llm.failures import StreamCut, names_parameter
from connectors.llm.remote_model import OnDelta, Pictures, RemoteModel, Reply, note_retry_after
from connectors.llm.schemas import in_words, is_closed
from engine.domain.model_call import Message, ModelRequest, Usage
from engine.domain.model_price import PriceTable
from engine.ports import ChartPainter

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


class AnthropicModel(RemoteModel):
    """A model of Anthropic's. It takes no sampling values at all, so a preset's temperature is dropped with a
    note.

    The schema is enforced by the structured output of the interface: current models refuse the older way, a
    forced tool. Where it cannot be enforced it is asked for in words.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None,
        prices: PriceTable,
        painter: ChartPainter | None = None,
        gate: CallGate | None = None,
        key_variable: str = "ANTHROPIC_API_KEY",
        base_url: str | None = None,
        sees: bool = True,
        thinking_allowance: int = 6144,
    ) -> None:
        """`base_url` None means ANTHROPIC_BASE_URL, else Anthropic's own address. `thinking_allowance` is
        added to the request's token limit: thinking counts against it, but the request limits the answer
        alone.

        Raises CredentialsRefused without a key and ConfigError for a base URL that is none.
        """
        super().__init__(
            provider="anthropic",
            model=model,
            api_key=api_key,
            key_variable=key_variable,
            needs_key=True,
            base_url=base_url,
            painter=painter,
            prices=prices,
            gate=gate,
            sees=sees,
        )
        self._thinking = thinking_allowance
        self._enforces_schema = True
        self._client: AsyncAnthropic | None = None

    def _open(self) -> None:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        self._client = AsyncAnthropic(
            api_key=self._key,
            base_url=self._base_url,
            http_client=DefaultAsyncHttpxClient(event_hooks={"response": [note_retry_after]}),
        )

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _ask(
        self, request: ModelRequest, pictures: Pictures, on_delta: OnDelta | None, notes: list[str]
    ) -> Reply:
        if request.settings.temperature is not None:
            self._refuse_or_drop_temperature(request, notes)
        while True:
            enforced = self._enforces_schema and is_closed(request.schema)
            parameters = self._parameters(request, pictures, enforced)
            try:
                if on_delta is None:
                    reply = await self._complete(parameters, request.settings.timeout)
                else:
                    reply = await self._stream(parameters, request.settings.timeout, on_delta)
            except Exception as error:
                if not (enforced and names_parameter(error, "output_config", "output_format", "json_schema")):
                    raise
                self._enforces_schema = False
                continue
            if not enforced:
                notes.append(f"schema asked for in words: {self.model} does not enforce it")
            return reply

    def _parameters(self, request: ModelRequest, pictures: Pictures, enforced: bool) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.settings.max_output_tokens + self._thinking,
            "system": request.system if enforced else f"{request.system}\n\n{in_words(request.schema)}",
            "messages": [{"role": turn.role, "content": _content(turn, pictures)} for turn in request.messages],
        }
        if enforced:
            from anthropic import transform_schema

            schema = transform_schema(dict(request.schema))
            parameters["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return parameters

    async def _complete(self, parameters: dict[str, Any], timeout: float) -> Reply:
        assert self._client is not None
        message = await self._client.messages.create(**parameters, timeout=timeout)
        text = "".join(block.text for block in message.content if block.type == "text")
        return _reply(text, message.stop_reason, message.stop_details, _tokens(message.usage))

    async def _stream(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        assert self._client is not None
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


def _content(turn: Message, pictures: Pictures) -> str | list[dict[str, Any]]:
    # Pictures go with the user's turns only; no vendor takes them from the assistant.
    shown = [chart for chart in turn.charts if chart in pictures] if turn.role == "user" else []
    if not shown:
        return turn.text
    parts: list[dict[str, Any]] = []
    for chart in shown:
        data = base64.b64encode(pictures[chart]).decode("ascii")
        parts.append({"type": "text", "text": f"Chart: {chart.title}"})
        parts.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
    return [*parts, {"type": "text", "text": turn.text}]


def _tokens(usage: Any) -> dict[str, int]:
    """The counts that a message or an event of its stream reports; later events overwrite earlier ones."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return {name: value for name in names if isinstance(value := getattr(usage, name, None), int)}


def _reply(text: str, stop_reason: str | None, stop_details: Any, tokens: dict[str, int]) -> Reply:
    if stop_reason is None:
        raise StreamCut("the reply ended without a stop reason")
    # What is read from and written to the cache stands outside input_tokens.
    read = tokens.get("cache_read_input_tokens", 0)
    written = tokens.get("cache_creation_input_tokens", 0)
    usage = Usage(tokens.get("input_tokens", 0) + read + written, read, tokens.get("output_tokens", 0))
    if stop_reason == "refusal":
        why = getattr(stop_details, "explanation", None) or text
        return Reply(why, "refused", stop_reason, usage, written)
    return Reply(text, "cut off" if stop_reason in _CUT else "whole", stop_reason, usage, written)
