"""Probe of a model's capabilities: two small questions for `paperdesk models --check`, longer ones for one model."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

from connectors.llm.remote_model import TOOL_CALL, RemoteModel
from engine.domain.chart import SAMPLE, ChartSpec
from engine.domain.model_call import (
    Capabilities,
    FailureKind,
    Message,
    ModelFailure,
    ModelRequest,
    ModelSettings,
    one_word,
)
from engine.domain.run import total_cost
from engine.ports import LanguageModel

CONTEXTS = (4_000, 12_000, 32_000)
"""Tokens, about, of the prompts whose first line is asked about; presets send up to 10,000."""
_READY = "Answer with the word ready."
_SYMBOL = "QZXW"
_CHART = replace(SAMPLE, title=f"{_SYMBOL}, last 3 sessions", symbol=_SYMBOL)


async def probe(model: LanguageModel) -> Capabilities:
    """Ask for one word, streamed, and, with vision, for the symbol in a chart.

    Raises CredentialsRefused where the key is refused.
    """
    pieces: list[str] = []
    first = await model.answer(_question("word", _READY), pieces.append)
    failure = first.failure
    if first.answer is not None and not isinstance(first.answer.get("word"), str):
        failure = ModelFailure(FailureKind.MALFORMED, f"asked for a word under `word`, it answered {first.text[:80]!r}")
    if failure is not None:
        return Capabilities(latency=first.latency, problem=f"{failure.kind.value}: {failure.detail}")
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
    if found.problem:
        return found
    product = await model.answer(_question("word", "What is 17 times 23, less 90? Answer with the number."))
    model.by_tool = True
    tool = await model.answer(_question("word", _READY))
    model.by_tool = False
    results, context, counted = [product, tool], 0, None
    for size in CONTEXTS:
        needle, lines = f"quarz{size}", [f"Line {number} is about nothing." for number in range(size // 7)]
        text = "\n".join([f"The word is {needle}.", *lines, "Which word does the first line name?"])
        request = _question("word", text)
        results.append(await model.answer(request))
        if re.sub(r"\W", "", str((results[-1].answer or {}).get("word", ""))).lower() != needle:
            break
        context = size
        if results[-1].usage.counted:
            counted = results[-1].usage.input_tokens / model.estimated_tokens(request)
    return replace(
        found,
        thinks=product.usage.reasoning_tokens > 0 or "</think" in product.text.lower(),
        calls_tools=any(TOOL_CALL in note for note in tool.notes),
        context=context,
        counted=counted,
        limits=dict(model.limits),
        cost=total_cost(result.cost for result in results),
    )


def _question(key: str, text: str, charts: tuple[ChartSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(
        purpose="probe",
        symbol=_SYMBOL,
        session=date.fromisoformat(SAMPLE.sessions[-1]),
        owner="desk",
        system="You answer with JSON.",
        messages=(Message("user", text, charts),),
        view=None,
        schema_name="probe",
        schema=one_word(key),
        settings=ModelSettings(max_output_tokens=200, timeout=60.0),
    )
