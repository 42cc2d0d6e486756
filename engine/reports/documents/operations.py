"""The operation of a desk as values: its latest runs, what its models were asked, and what they cost in a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.journal.entries import CallCost, RunEntry
from engine.reports.documents.records import Records

LATEST = 60
"""Runs that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalls:
    """Calls of one model by one agent.

    calls: without those that were taken from the recorded answers.
    recorded: answers that were taken from those.
    failed: calls without an answer.
    abstained: answers that no decision could be made of.
    tokens: in and out.
    cost: USD; None as soon as that of one call is not known.
    latency: seconds a call, on average.
    """

    model: str
    agent: str
    calls: int
    recorded: int
    failed: int
    abstained: int
    tokens: int
    cost: Decimal | None
    latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRun:
    """One run of a desk.

    id, kind: as in the journal.
    session: the decision session; None for a backtest.
    started: UTC.
    took: None while it is at work, or where it was killed.
    outcome: empty as long.
    cost: of its models, USD; None where it is not known.
    detail: why it ended so.
    """

    id: str
    kind: str
    session: date | None
    started: datetime
    took: timedelta | None
    outcome: str
    cost: Decimal | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """A desk's operation up to a moment.

    runs: the latest first.
    today: calls since the midnight (UTC) before the moment.
    total: all calls.
    """

    runs: Sequence[DeskRun] = ()
    today: Sequence[ModelCalls] = ()
    total: Sequence[ModelCalls] = ()

    @property
    def spent_today(self) -> Decimal | None:
        """USD; None where a price is not known."""
        costs = [one.cost for one in self.today]
        return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


def operations_of(records: Records, now: datetime) -> Operations:
    """Read a desk's operation. Raises what JournalReader raises."""
    reader = records.reader
    if reader is None:
        return Operations()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return Operations(
        runs=[_run(entry) for entry in reader.runs()[-LATEST:][::-1]],
        today=_by_agent(reader.calls(records.world, since=midnight)),
        total=_by_agent(reader.calls(records.world)),
    )


def _run(entry: RunEntry) -> DeskRun:
    return DeskRun(
        id=entry.id,
        kind=entry.kind.value,
        session=entry.session,
        started=entry.started,
        took=None if entry.ended is None else entry.ended - entry.started,
        outcome="" if entry.outcome is None else entry.outcome.value,
        cost=None if entry.model is None else entry.model.cost,
        detail=entry.detail,
    )


def _by_agent(calls: Sequence[CallCost]) -> list[ModelCalls]:
    groups: dict[tuple[str, str], list[CallCost]] = {}
    for call in calls:
        groups.setdefault((call.model, call.agent), []).append(call)
    return [_summed(model, agent, group) for (model, agent), group in groups.items()]


def _summed(model: str, agent: str, calls: Sequence[CallCost]) -> ModelCalls:
    asked = [call for call in calls if not call.cached]
    costs = [call.cost for call in asked]
    return ModelCalls(
        model=model,
        agent=agent,
        calls=len(asked),
        recorded=len(calls) - len(asked),
        failed=sum(bool(call.kind) for call in asked),
        abstained=sum(call.abstained for call in asked),
        tokens=sum(call.input_tokens + call.output_tokens for call in asked),
        cost=None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        latency=sum(call.latency for call in asked) / len(asked) if asked else 0.0,
    )
