"""Models that speak OpenAI's Chat Completions: OpenAI's own and those of compatible endpoints."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Literal

from connectors.llm.call_gate import CallGate
from connectors.llm.failures import StreamCut, names_parameter
from connectors.llm.remote_model import OnDelta, Pictures, RemoteModel, Reply, note_retry_after
from connectors.llm.schemas import in_words, openai_strict
from engine.domain.model_call import Message, ModelRequest, Usage
from engine.domain.model_price import PriceTable
from engine.ports import ChartPainter

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_VENDOR = "openai"


class OpenAIModel(RemoteModel):
    """A model of OpenAI's, or of the endpoint that `provider` names, through the official package.

    What an endpoint turns out not to take (temperature, an enforced schema, the newer name of the token
    limit, usage in streams) is learned from its first refusal, left out from then on, and noted where it
    changes the answer.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None,
        prices: PriceTable,
        painter: ChartPainter | None = None,
        gate: CallGate | None = None,
        provider: str = _VENDOR,
        key_variable: str = "OPENAI_API_KEY",
        base_url: str | None = None,
        sees: bool = True,
        needs_key: bool = True,
        thinking_allowance: int | None = None,
    ) -> None:
        """`base_url` None means OPENAI_BASE_URL, else OpenAI's own address. `needs_key` False is for local
        servers.

        `thinking_allowance` is added to the request's token limit: reasoning counts against it, but the
        request limits the answer alone. By default 6144 at OpenAI, 0 elsewhere. Raises CredentialsRefused
        without a key and ConfigError for a base URL that is none.
        """
        super().__init__(
            provider=provider,
            model=model,
            api_key=api_key,
            key_variable=key_variable,
            needs_key=needs_key,
            base_url=base_url,
            painter=painter,
            prices=prices,
            gate=gate,
            sees=sees,
        )
        at_vendor = provider == _VENDOR
        self._thinking = thinking_allowance if thinking_allowance is not None else (6144 if at_vendor else 0)
        self._takes_temperature = True
        self._takes_stream_usage = True
        self._format: Literal["json_schema", "json_object", "none"] = "json_schema"
        # Endpoints that ignore a format that they do not know are told of the schema in words as well.
        self._schema_in_words = not at_vendor
        self._limit_name = "max_completion_tokens" if at_vendor else "max_tokens"
        self._other_limit_names = ["max_tokens" if at_vendor else "max_completion_tokens"]
        self._client: AsyncOpenAI | None = None

    def _open(self) -> None:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self._client = AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._base_url,
            http_client=DefaultAsyncHttpxClient(event_hooks={"response": [note_retry_after]}),
        )

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _ask(
        self, request: ModelRequest, pictures: Pictures, on_delta: OnDelta | None, notes: list[str]
    ) -> Reply:
        while True:
            call_notes: list[str] = []
            parameters = self._parameters(request, pictures, call_notes)
            try:
                if on_delta is None:
                    reply = await self._complete(parameters, request.settings.timeout)
                else:
                    reply = await self._stream(parameters, request.settings.timeout, on_delta)
            except Exception as error:
                if not self._learn(error, parameters):
                    raise
                continue
            notes.extend(call_notes)
            return reply

    def _learn(self, error: Exception, parameters: dict[str, Any]) -> bool:
        """Whether the refusal named something that can be left out; it is left out from then on."""
        if "temperature" in parameters and names_parameter(error, "temperature"):
            self._takes_temperature = False
        elif "response_format" in parameters and names_parameter(error, "response_format", "json_schema"):
            self._format = "json_object" if self._format == "json_schema" else "none"
            self._schema_in_words = True
        elif "stream_options" in parameters and names_parameter(error, "stream_options", "include_usage"):
            self._takes_stream_usage = False
        elif self._limit_name in parameters and names_parameter(error, self._limit_name):
            if not self._other_limit_names:
                return False
            self._limit_name = self._other_limit_names.pop()
        else:
            return False
        return True

    def _parameters(self, request: ModelRequest, pictures: Pictures, notes: list[str]) -> dict[str, Any]:
        system = request.system
        if self._schema_in_words:
            system = f"{system}\n\n{in_words(request.schema)}"
        parameters: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}]
            + [{"role": turn.role, "content": _content(turn, pictures)} for turn in request.messages],
            self._limit_name: request.settings.max_output_tokens + self._thinking,
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
            notes.append(f"schema asked for in words: {self.provider} does not enforce it")
        return parameters

    async def _complete(self, parameters: dict[str, Any], timeout: float) -> Reply:
        assert self._client is not None
        completion = await self._client.chat.completions.create(**parameters, timeout=timeout)
        choice = completion.choices[0]
        return _reply(choice.message.content, choice.message.refusal, choice.finish_reason, completion.usage)

    async def _stream(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        assert self._client is not None
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


def _content(turn: Message, pictures: Pictures) -> str | list[dict[str, Any]]:
    # Pictures go with the user's turns only; no vendor takes them from the assistant.
    shown = [chart for chart in turn.charts if chart in pictures] if turn.role == "user" else []
    if not shown:
        return turn.text
    parts: list[dict[str, Any]] = []
    for chart in shown:
        data = base64.b64encode(pictures[chart]).decode("ascii")
        parts.append({"type": "text", "text": f"Chart: {chart.title}"})
        parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", "detail": "high"}})
    return [*parts, {"type": "text", "text": turn.text}]


def _reply(text: str | None, refusal: str | None, stop_reason: str | None, usage: Any) -> Reply:
    if stop_reason is None:
        raise StreamCut("the reply ended without a stop reason")
    # Cached tokens stand inside prompt_tokens.
    details = getattr(usage, "prompt_tokens_details", None)
    spent = Usage(
        input_tokens=getattr(usage, "prompt_tokens", None) or 0,
        cached_input_tokens=getattr(details, "cached_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
    )
    written = getattr(details, "cache_write_tokens", None) or 0
    if refusal or stop_reason == "content_filter":
        return Reply(refusal or text or "", "refused", stop_reason, spent, written)
    return Reply(text or "", "cut off" if stop_reason == "length" else "whole", stop_reason, spent, written)
