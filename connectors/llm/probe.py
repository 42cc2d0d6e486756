"""Probe of a model's capabilities: two small questions for `paperdesk models --check`, longer ones for one model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal

from connectors.llm.remote_model import TOOL_CALL, RemoteModel
from engine.domain.chart import Candles, ChartSpec
from engine.domain.model_call import (
    Capabilities,
    FailureKind,
    Message,
    ModelFailure,
    ModelRequest,
    ModelResult,
    ModelSettings,
    Trial,
)
from engine.ports import LanguageModel

CONTEXTS = (4_000, 12_000, 32_000)
"""Tokens, about, of the prompts whose first line is asked about; presets send up to 10,000."""
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


async def trial(model: RemoteModel) -> Capabilities:
    """Probe a model, and find out whether it thinks and calls tools, how long a prompt it reads, and its limits. Raises
    as `probe`."""
    found = await probe(model)
    if found.failure is not None:
        return found
    results = [await model.answer(_question("word", "What is 17 times 23, less 90? Answer with the number.", ()))]
    thinks = results[0].usage.reasoning_tokens > 0 or "</think" in results[0].text.lower()
    model.by_tool = True
    results.append(await model.answer(_question("word", "Answer with the word ready.", ())))
    model.by_tool = False
    calls_tools = any(TOOL_CALL in note for note in results[-1].notes)
    context, counted = 0, None
    for size in CONTEXTS:
        request = _question("word", "\n".join(_haystack(size)), ())
        results.append(await model.answer(request))
        if not _found(results[-1], size):
            break
        context = size
        if results[-1].usage.counted:
            counted = results[-1].usage.input_tokens / model.estimated_tokens(request)
    costs = [result.cost for result in results]
    cost = None if None in costs else sum((one for one in costs if one is not None), Decimal(0))
    told = Trial(
        thinks=thinks,
        calls_tools=calls_tools,
        context=context,
        counted=counted,
        limits=dict(model.limits),
        cost=cost,
    )
    return replace(found, tried=told)


def _haystack(size: int) -> Iterator[str]:
    """The lines of a prompt of a number of tokens, about, whose first one holds a word to be found."""
    yield f"The word is {_needle(size)}."
    yield from (f"Line {number} is about nothing." for number in range(size // 7))
    yield "Which word does the first line name?"


def _needle(size: int) -> str:
    return f"quarz{size}"


def _found(result: ModelResult, size: int) -> bool:
    said = "" if result.answer is None else str(result.answer.get("word", ""))
    return re.sub(r"\W", "", said).lower() == _needle(size)


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
