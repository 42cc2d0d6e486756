"""Input sensitivity of a run: how often its decisions move when an input of theirs is another one.

A decision that follows neither the news nor the prices was not made of them: it was recalled, or is always the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.app.records.desk_journal import run_lock
from engine.app.redecision.decider import RecordedTurns
from engine.app.redecision.redecision import Decisions, redecide_all, sample
from engine.domain.json_text import to_json
from engine.errors import UsageError
from engine.journal.writer import JournalWriter
from engine.lab.altered_inputs import ALTERED, NEWS, TICKERS, has_altered_news
from engine.lab.decision_changes import Changes, input_sensitivity
from engine.reports.documents import row_json
from engine.reports.documents.records import open_records
from engine.reports.stored import SENSITIVITY
from engine.services import Services
from engine.session.cost_meter import use_of
from engine.settings import places

SAMPLE = 20
"""Decisions that are drawn from a run."""


def keep_sensitivity(
    services: Services, run: str, report: Callable[[str], None] = lambda text: None, seed: int = 0
) -> None:
    """Decide a sample of a backtest's decisions again, each with every input altered that it has, and keep what that
    tells in the run's journal, unless it is there; tickers that a mask hides are left out. `verdict` is `made` where
    news or prices move any of them, `recalled` where they move none, null where none could be compared. Raises
    UsageError for a rule strategy, MissingData where nothing was decided, and as `redecide_all` does."""
    with open_records(services.desk, run) as records:
        reader = records.required
        if reader.document(run, SENSITIVITY) is not None:
            return
        spec = reader.run(run).spec
        if spec is None or spec.preset is None:
            raise UsageError("--sensitivity asks what decisions of agents follow: a rule strategy has none")
        occasions = sample(records, None, SAMPLE, seed)
        chosen = {what: occasions for what in ALTERED if what != TICKERS or not spec.options.mask}
        chosen[NEWS] = asyncio.run(_with_news(RecordedTurns(services, reader), occasions))
        questions = [(decisions, Changes(altered=what)) for what, own in chosen.items() for decisions in own]
        done = redecide_all(services, reader, questions, report)
    rows = [input_sensitivity(what, [one for one in done if one.changes.altered == what]) for what in chosen]
    asked = [answer for arm in done for one in arm.comparisons if one.now is not None for answer in one.now.answers]
    moved = [row["changed"]["mean"] for row in rows if row["without"] != TICKERS and row["changed"]["count"]]
    told = {
        "run": run,
        "label": done[-1].label,
        "sample": len(occasions),
        "seed": seed,
        "inputs": [
            {"input": row["without"], "moved": row["changed"], "mean_change": row["mean_change"]} for row in rows
        ],
        "verdict": None if not moved else "made" if any(moved) else "recalled",
        "model": row_json.fields(use_of(asked), "calls", "cached_calls", "cost"),
    }
    with run_lock(run), JournalWriter(places.run_journal(run)) as journal:
        journal.document(run, SENSITIVITY, to_json(told))


async def _with_news(turns: RecordedTurns, occasions: list[Decisions]) -> list[Decisions]:
    """The decisions that had news to be flipped."""
    keys = [decisions[0].key for decisions in occasions]
    found = [has_altered_news(await turns.of(key), key.symbol) for key in keys]
    return [decisions for decisions, has in zip(occasions, found, strict=True) if has]
