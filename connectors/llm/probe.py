"""Probe of a model's capabilities: two small questions for `paperdesk models --check`."""

from __future__ import annotations

from datetime import date

from engine.domain.chart import Candles, ChartSpec
from engine.domain.model_call import Capabilities, FailureKind, Message, ModelFailure, ModelRequest, ModelSettings
from engine.ports import LanguageModel

_SYMBOL = "QZXW"
_SESSIONS = ("2024-01-02", "2024-01-03", "2024-01-04")
_CHART = ChartSpec(
    kind="kline",
    title=f"{_SYMBOL}, last 3 sessions",
    symbol=_SYMBOL,
    sessions=_SESSIONS,
    candles=Candles((10.0, 11.0, 12.0), (11.5, 12.5, 13.5), (9.5, 10.5, 11.5), (11.0, 12.0, 13.0)),
)


async def probe(model: LanguageModel) -> Capabilities:
    """Ask for one word, streamed, and, with vision, for the symbol in a chart.

    Raises CredentialsRefused where the key is refused.
    """
    pieces: list[str] = []
    first = await model.answer(_question("word", "Answer with the word ready.", ()), pieces.append)
    failure = first.failure
    if first.answer is not None and not isinstance(first.answer.get("word"), str):
        failure = ModelFailure(FailureKind.MALFORMED, f"asked for a word under `word`, it answered {first.text[:80]!r}")
    if failure is not None:
        return Capabilities(latency=first.latency, failure=failure)
    sees = False
    if model.sees:
        shown = await model.answer(_question("symbol", "Which symbol is in the chart's title?", (_CHART,)))
        sees = shown.answer is not None and str(shown.answer.get("symbol", "")).strip().upper() == _SYMBOL
    return Capabilities(
        enforces_schema=not any(note.startswith("schema asked for in words") for note in first.notes),
        sees=sees,
        streams=len(pieces) > 1,
        reports_usage=first.usage.output_tokens > 0,
        latency=first.latency,
    )


def _question(key: str, text: str, charts: tuple[ChartSpec, ...]) -> ModelRequest:
    return ModelRequest(
        purpose="probe",
        symbol=_SYMBOL,
        session=date.fromisoformat(_SESSIONS[-1]),
        owner="desk",
        system="You answer with JSON.",
        messages=(Message("user", text, charts),),
        view=None,
        schema_name="probe",
        schema={
            "type": "object",
            "properties": {key: {"type": "string"}},
            "required": [key],
            "additionalProperties": False,
        },
        settings=ModelSettings(max_output_tokens=200, timeout=60.0),
    )
