"""The limit of a day's spending: what is reserved and settled, and what of the day counts as spent."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.app.records.spending import day_limit, within_day
from engine.clock import BacktestClock
from engine.domain.model_call import AnswerRecord, ModelResult, UnansweredCall, Usage
from engine.domain.run import RunKind
from engine.errors import BudgetReached
from engine.journal.entries import RunEntry, UnansweredEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.services import Services, SpendingLimit, Spent
from engine.settings.config import BudgetConfig
from tests.engine.journal.full_journal import KEY, answer

NOON = datetime(2024, 3, 5, 12, tzinfo=UTC)
NOTHING = Spent()


def usd(amount: str) -> Spent:
    return Spent(Decimal(amount))


def limited(usd_per_day: str = "1", spent: Spent = NOTHING) -> SpendingLimit:
    return SpendingLimit(BudgetConfig(usd_per_day=Decimal(usd_per_day), tokens_per_day=1000), spent)


@pytest.mark.parametrize(
    ("spent", "most", "fits"),
    [
        (usd("0.9"), usd("0.1"), True),
        (usd("0.9"), usd("0.11"), False),
        (Spent(tokens=900), Spent(tokens=100), True),
        (Spent(tokens=900), Spent(tokens=101), False),
        # A free call and one by tokens need no dollars.
        (usd("2"), usd("0"), True),
        (usd("2"), Spent(tokens=1), True),
    ],
)
def test_a_call_has_to_fit_beside_what_is_spent(spent: Spent, most: Spent, fits: bool) -> None:
    granted = limited(spent=spent).reserve(most)
    assert granted == most if fits else isinstance(granted, BudgetReached)


def test_what_is_in_flight_counts_until_it_is_settled_by_what_it_cost() -> None:
    limit = limited()
    assert limit.reserve(usd("0.7")) == usd("0.7")
    assert isinstance(limit.reserve(usd("0.4")), BudgetReached)
    assert (limit.in_flight, limit.spent) == (1, NOTHING)
    limit.settle(usd("0.7"), usd("0.2"))
    assert (limit.in_flight, limit.reserved, limit.spent) == (0, NOTHING, usd("0.2"))
    assert limit.reserve(usd("0.8")) == usd("0.8")


def test_a_call_makes_do_with_the_rest_where_that_is_enough() -> None:
    limit = limited(spent=usd("0.4"))
    assert isinstance(limit.reserve(usd("2"), usd("0.61")), BudgetReached)
    assert limit.reserve(usd("2"), usd("0.6")) == usd("0.6")


@dataclass(frozen=True)
class OfDesk:
    """The part of a desk's services that its spending needs."""

    clock: BacktestClock
    desk: str = "demo"
    config: Any = field(default_factory=lambda: SimpleNamespace(budget=BudgetConfig()))
    limit: SpendingLimit | None = None


def of_desk(now: datetime = NOON) -> Services:
    return cast(Services, OfDesk(BacktestClock(now)))


def test_the_day_counts_its_own_paid_calls_answered_or_not_and_no_recorded_ones(tmp_path: Path) -> None:
    def asked(agent: str, time: datetime, cost: str | None, *, cached: bool = False) -> AnswerRecord:
        paid = None if cost is None else Decimal(cost)
        result = ModelResult(model="m", cost=paid, usage=Usage(100, 0, 20), cached=cached)
        return answer(time=time, agent=agent, result=result)

    path, midnight = tmp_path / "desk.db", NOON.replace(hour=0)
    with JournalWriter(path) as journal:
        journal.run_started(RunEntry(id="r", kind=RunKind.DAILY, name="n", started=midnight, session=KEY.session))
        journal.answer(asked("yesterday", midnight - timedelta(seconds=1), "1"))
        journal.answer(asked("today", midnight, "0.25"))
        journal.answer(asked("recorded", NOON, "0.5", cached=True))
        journal.answer(asked("without a price", NOON, None))
        lost = UnansweredCall(model="m", kind="unavailable", cost=Decimal("0.05"))
        journal.unanswered(UnansweredEntry(key=KEY, time=NOON, agent="lost", call=lost))
    with JournalReader(path) as reader:
        limit = day_limit(of_desk(), reader, NOON)
    assert limit.spent == Spent(Decimal("0.30"), 120)
    assert limit.longest == 20


def test_what_a_command_has_used_counts_for_the_next_one_of_the_day() -> None:
    def spent(now: datetime, more: Spent = NOTHING) -> Spent:
        with within_day(of_desk(now)) as services:
            assert services.limit is not None
            before = services.limit.spent
            services.limit.settle(NOTHING, more)
        return before

    assert spent(NOON, usd("0.3")) == NOTHING
    assert spent(NOON, Spent(tokens=7)) == usd("0.3")
    assert spent(NOON + timedelta(hours=11)) == Spent(Decimal("0.3"), 7)
    assert spent(NOON + timedelta(hours=12)) == NOTHING
