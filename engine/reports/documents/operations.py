"""The operation of a desk as values: its latest runs, what its models were asked, and what they cost in a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.domain.model_call import AHEAD, PREFLIGHT, FailureKind, Usage
from engine.domain.run import RunKind, RunOutcome, RunTrigger, total_cost
from engine.domain.text import counted
from engine.errors import DeskHalted, Interrupted
from engine.journal.entries import CallCost, RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row

MINUTE = timedelta(minutes=1)
LATEST = 60
"""Runs that are listed."""
SUPERSEDED = "superseded"
"""The end of a run of one symbol that was stopped, and whose session the daily run has decided since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalls:
    """Calls of one model by one agent.

    calls: without those that were taken from the recorded answers.
    recorded: answers that were taken from those.
    failed: calls without an answer.
    abstained: answers that no decision could be made of.
    tokens: in and out.
    cached: the part of the input that the vendor read from its cache; None where nothing was counted.
    tier: the vendor's tiers that answered, empty where it names none.
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
    cached: float | None
    tier: str
    cost: Decimal | None
    latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRun:
    """One run of a desk.

    id, kind: as in the journal.
    session: the decision session; None for a backtest.
    started: UTC.
    took: None while it is at work, or where it was killed.
    outcome: empty as long; may be SUPERSEDED.
    cost: of its models, USD; None where it is not known.
    detail: why it ended so; of one that is done, the number of its decisions, orders and fills.
    exit_code: of the command; None where the journal does not tell it.
    trigger: what started it; empty where the journal does not tell it.
    """

    id: str
    kind: str
    session: date | None
    started: datetime
    took: timedelta | None
    outcome: str
    cost: Decimal | None
    detail: str
    exit_code: int | None
    trigger: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRate:
    """The load of one model's endpoint.

    model: its spec.
    requests: those that ended within the last minute.
    tokens: theirs, in and out.
    limited: requests of today that were refused for their rate (HTTP 429).
    paid: for today's, USD; None where a price is not known.
    paid_month: for those since the first of the month (UTC).
    """

    model: str
    requests: int
    tokens: int
    limited: int
    paid: Decimal | None
    paid_month: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """A desk's operation up to a moment.

    runs: the latest first.
    by_cron: the latest that cron started, however long ago; None without one.
    today: calls since the midnight (UTC) before the moment.
    total: all calls.
    rates: of every model that was asked this month.
    """

    runs: Sequence[DeskRun] = ()
    by_cron: DeskRun | None = None
    rates: Sequence[ModelRate] = ()
    today: Sequence[ModelCalls] = ()
    total: Sequence[ModelCalls] = ()

    @property
    def spent_today(self) -> Decimal | None:
        """USD; None where a price is not known."""
        return total_cost(one.cost for one in self.today)


def is_decided(session: date, runs: Sequence[DeskRun]) -> bool:
    """True where a daily run has decided a session, also where its orders wait for approval."""
    return any(one.session == session and one.kind == RunKind.DAILY and one.outcome in _DECIDED for one in runs)


def operations_of(records: Records, now: datetime) -> Operations:
    """Read a desk's operation. Raises what JournalReader raises."""
    reader = records.reader
    if reader is None:
        return Operations()
    today, runs = reader.calls(records.world, since=_midnight(now)), reader.runs()
    ends = outcomes(runs)
    by_cron = next((entry for entry in reversed(runs) if entry.extra.get("trigger") == RunTrigger.CRON), None)
    return Operations(
        by_cron=None if by_cron is None else _run(by_cron, reader, ends[by_cron.id]),
        runs=[_run(entry, reader, ends[entry.id]) for entry in runs[-LATEST:][::-1]],
        rates=_rates(*(reader.calls(records.world, since=since) for since in _ago(now))),
        today=_by_agent(today),
        total=_by_agent(reader.calls(records.world)),
    )


def outcomes(runs: Sequence[RunEntry]) -> dict[str, str | None]:
    """The end of each run, by id, as a reader is to know it; None while it is at work, or where it was killed."""
    decided = {one.session for one in runs if one.kind is RunKind.DAILY and one.outcome in _DECIDED}
    return {
        one.id: SUPERSEDED
        if one.kind is RunKind.SYMBOL and one.session in decided and one.outcome in _STOPPED
        else one.outcome and one.outcome.value
        for one in runs
    }


_DECIDED = (RunOutcome.DONE, RunOutcome.WAITING)
_STOPPED = (RunOutcome.PAUSED, RunOutcome.HALTED, RunOutcome.INTERRUPTED, RunOutcome.FAILED)
EXIT_CODES = {
    RunOutcome.DONE: 0,
    RunOutcome.WAITING: 0,
    RunOutcome.HALTED: 0,
    RunOutcome.PAUSED: 0,
    RunOutcome.INTERRUPTED: Interrupted.exit_code,
}
"""Exit codes that follow from the end of a run, where its error has left no other in the journal."""


def operation_rows(reader: JournalReader, world: str | None, now: datetime) -> Row:
    """The load at a moment (UTC) of every model's endpoint that was asked that day, and the latest runs with their exit
    codes, latest first."""
    today, minute = (reader.calls(world, since=since) for since in _ago(now)[1:])
    runs = reader.runs()
    ends = outcomes(runs)
    return {
        "rates": [
            row_json.fields(one, "model", "requests", "tokens", "limited") for one in _rates(today, today, minute)
        ],
        "runs": [
            {
                **row_json.fields(one, "id", "kind", "session"),
                "outcome": ends[one.id],
                "exit_code": exit_code(one),
                "trigger": one.extra.get("trigger"),
            }
            for one in runs[-LATEST:][::-1]
        ],
    }


def rate_words(rate: Row) -> str:
    """`openai:gpt-4o: 12 requests, 3,400 tokens in the last minute; 2 refused for their rate (429) today`."""
    limited = f"; {rate['limited']:,} refused for their rate (429) today" if rate["limited"] else ""
    load = ", ".join(counted(rate[f"{name}s"], name) for name in ("request", "token"))
    return f"{rate['model']}: {load} in the last minute{limited}"


def exit_code(entry: RunEntry) -> int | None:
    """The exit code of the command that a run was; None where it is at work, was killed, or is of before its error was
    journalled with its code."""
    if entry.outcome is None:
        return None
    if entry.outcome is RunOutcome.HALTED and "differences" in entry.extra:
        return DeskHalted.exit_code
    code: int | None = entry.extra.get("exit_code", EXIT_CODES.get(entry.outcome))
    return code


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _ago(now: datetime) -> tuple[datetime, datetime, datetime]:
    """The beginnings of the month, the day and the last minute (UTC)."""
    return _midnight(now).replace(day=1), _midnight(now), now - MINUTE


def _rates(month: Sequence[CallCost], today: Sequence[CallCost], minute: Sequence[CallCost]) -> list[ModelRate]:
    """The load of every model that was asked this month; recorded answers ask nobody."""
    asked = [call for call in minute if not call.cached]
    return [
        ModelRate(
            model=model,
            requests=sum(call.model == model for call in asked),
            tokens=sum(call.usage.total for call in asked if call.model == model),
            limited=sum(call.model == model and call.kind == FailureKind.RATE_LIMITED for call in today),
            paid=total_cost(call.cost for call in today if call.model == model and not call.cached),
            paid_month=total_cost(call.cost for call in month if call.model == model and not call.cached),
        )
        for model in dict.fromkeys(call.model for call in month)
    ]


def _run(entry: RunEntry, reader: JournalReader, outcome: str | None) -> DeskRun:
    detail = entry.detail
    if not detail and entry.outcome is RunOutcome.DONE:
        counts = reader.counts(entry.id)
        detail = ", ".join(counted(counts[f"{name}s"], name) for name in ("decision", "order", "fill"))
    return DeskRun(
        id=entry.id,
        kind=entry.kind.value,
        session=entry.session,
        started=entry.started,
        took=None if entry.ended is None else entry.ended - entry.started,
        outcome=outcome or "",
        cost=None if entry.model is None else entry.model.cost,
        detail=detail,
        exit_code=exit_code(entry),
        trigger=entry.extra.get("trigger", ""),
    )


def _by_agent(calls: Sequence[CallCost]) -> list[ModelCalls]:
    groups: dict[tuple[str, str], list[CallCost]] = {}
    for call in calls:
        groups.setdefault((call.model, call.line), []).append(call)
    return [_summed(model, agent, group) for (model, agent), group in groups.items()]


def _summed(model: str, agent: str, calls: Sequence[CallCost]) -> ModelCalls:
    asked = [call for call in calls if not call.cached]
    used = sum((call.usage for call in asked), Usage())
    return ModelCalls(
        model=model,
        agent=agent,
        calls=len(asked),
        recorded=len(calls) - len(asked),
        failed=sum(call.kind not in ("", PREFLIGHT, AHEAD) for call in asked),
        abstained=sum(call.abstained for call in asked),
        tokens=used.total,
        cached=used.cached_input_tokens / used.input_tokens if used.input_tokens else None,
        tier=", ".join(sorted({call.tier for call in asked} - {""})),
        cost=total_cost(call.cost for call in asked),
        latency=sum(call.latency for call in asked) / len(asked) if asked else 0.0,
    )
