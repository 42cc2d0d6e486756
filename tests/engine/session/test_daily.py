"""The daily run: once per session, killed at any write, and never late."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.agents.ask import Asker
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.domain.decision import Action
from engine.domain.model_call import ModelRequest
from engine.domain.order import OrderState
from engine.domain.run import ExecutionRules, RunOutcome, TradingMode
from engine.errors import InvariantBroken, MissingData, StaleData, UsageError
from engine.journal.reader import JournalReader
from engine.journal.store import RowStore
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.messages.events import Event, OrderFilled, RunFinished, SessionSettled
from engine.preset import Preset
from engine.session.context import DeskRun, DeskRunResult, run_id
from engine.session.cost_meter import CostMeter
from engine.session.recorder import DeskRecorder
from engine.session.run import run_after_close
from engine.session.simulated_venue import DeskVenue
from tests.engine.desks import (
    DECISION_ONLY,
    FREE,
    WEEKDAYS,
    Script,
    ScriptedModel,
    bars,
    dividend,
    hold,
    market_of,
    play,
    split,
    trade,
)

DAYS = WEEKDAYS.sessions(date(2024, 3, 1), date(2024, 3, 29))
CASH = Decimal(100_000)
PRICES = {
    "AAA": [100, (100, 110), (55, 56), (55, "55.5"), (60, 58), (58, 61), (61, 60)],
    "BBB": [20, (21, 22), (22, 19), (19, 25), (24, 24), (24, 26), (26, 26)],
}
MARKET = market_of(
    {s: bars(s, DAYS[:7], p) for s, p in PRICES.items()},
    {"AAA": [split("AAA", DAYS[2], "2")], "BBB": [dividend("BBB", DAYS[3], "0.25")]},
)
PLAN: Mapping[tuple[date, str], tuple[str, int, str]] = {
    (DAYS[0], "AAA"): ("BUY", 10, "strong uptrend"),
    (DAYS[1], "BBB"): ("BUY", 5, "dip in an uptrend"),
    (DAYS[2], "AAA"): ("SELL", 4, "reversal"),
    (DAYS[3], "AAA"): ("BUY", 7, "strong uptrend"),
    (DAYS[3], "BBB"): ("SELL", 10, "reversal"),
    (DAYS[4], "BBB"): ("BUY", 3, "dip in an uptrend"),
}
COSTS = ExecutionRules(slippage_bp=Decimal(5), commission_per_order=Decimal(1))


def planned(request: ModelRequest) -> Any:
    wish = PLAN.get((request.session, request.symbol))
    return hold(request) if wish is None else trade(request, *wish)


class Wall:
    """Noon of a day, for ever."""

    def __init__(self, day: date) -> None:
        self.day = day

    def now(self) -> datetime:
        return datetime(self.day.year, self.day.month, self.day.day, 23, tzinfo=UTC)


class Daily:
    """A desk's journal and what its runs say and ask."""

    def __init__(
        self,
        path: Path,
        market: Market = MARKET,
        rules: ExecutionRules = COSTS,
        *,
        preset: Preset = DECISION_ONLY,
        script: Script = planned,
        mode: TradingMode = TradingMode.AUTO,
    ) -> None:
        self.path, self.market, self.rules, self.preset, self.mode = path, market, rules, preset, mode
        self.model = ScriptedModel(script)
        self.events: list[Event] = []

    def run(self, session: date, only: str | None = None) -> DeskRunResult:
        with JournalWriter(self.path) as journal, JournalReader(self.path) as reader:
            wall, identity = Wall(session), run_id("desk", session, only=only)
            meter = CostMeter("scripted")
            recorder = DeskRecorder(
                journal,
                identity,
                "desk",
                wall,
                reader=reader,
                market=self.market,
                bars=self.preset.windows.chart + INDICATOR_ROWS,
            )

            def tell(event: Event) -> None:
                journal.event(event)
                self.events.append(event)

            def heard(record: Any) -> None:
                meter.count(record)
                recorder.answered(record)

            asker = Asker({"default": self.model}, {}, heard, lambda asked, text: None)
            cycle = Cycle(self.preset, asker, self.market.calendars, tell)
            venue = DeskVenue(
                self.rules,
                self.market.histories,
                self.market.actions,
                calendar=WEEKDAYS,
                recorder=recorder,
                reader=reader,
                clock=wall,
                cash=CASH,
            )
            desk = DeskRun(
                run=identity,
                desk="desk",
                session=session,
                only=only,
                symbols=tuple(self.market.histories),
                market=self.market,
                calendar=WEEKDAYS,
                cycle=cycle,
                name="finvision",
                label="a script",
                meter=meter,
                journal=journal,
                venue=venue,
                reader=reader,
                recorder=recorder,
                clock=wall,
                publish=tell,
                pause=asyncio.sleep,
                mode=self.mode,
            )
            return asyncio.run(run_after_close(desk))


def books(path: Path) -> dict[str, Any]:
    """All of a journal that trading rests on; times and how often something was said are left out."""
    with JournalReader(path) as reader:
        orders = reader.orders()
        return {
            "runs": [(r.id, r.session, r.outcome, r.value) for r in reader.runs()],
            "decisions": reader.decisions(),
            "orders": [(o.run, o.order) for o in orders],
            "lives": {o.order.id: [m.state for m in reader.order_moves(o.order.id)] for o in orders},
            "fills": reader.fills(),
            "cash flows": reader.cash_flows(),
            "equity": reader.equity(),
            "outcomes": reader.outcomes(),
        }


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "desk.db"


def test_days_in_a_row_come_to_what_a_backtest_comes_to(journal: Path) -> None:
    desk = Daily(journal)
    for day in DAYS[:6]:
        desk.run(day)

    kept = books(journal)
    beside = asyncio.run(play(MARKET, DAYS[1], DAYS[5], planned, rules=COSTS))
    test = beside.result.test
    # The desk has decided on the last session too; a backtest has no use for that.
    decided = [replace(d, key=replace(d.key, run="run")) for d in kept["decisions"]]
    assert decided[: len(test.decisions)] == list(test.decisions)
    fills = [replace(f, order_id="", time=None) for f in kept["fills"]]
    assert fills == [replace(f, order_id="") for f in test.fills]
    assert [f.time for f in kept["fills"]] == [WEEKDAYS.opens_at(f.session) for f in fills]
    assert kept["cash flows"] == test.cash_flows
    assert len(test.fills) == 6
    assert [(p.session, p.value, p.portfolio) for p in kept["equity"][1:]] == [
        (p.session, p.value, p.portfolio) for p in test.equity
    ]
    assert list(kept["outcomes"]) == beside.kept.outcomes
    assert {(row.cycle, row.horizon) for row in kept["outcomes"]} == {(1, 1)}
    assert [r[2] for r in kept["runs"]] == ["done"] * 6


def test_outcomes_tell_the_close_also_of_what_is_not_held(journal: Path) -> None:
    desk = Daily(journal)
    for day in DAYS[:3]:
        desk.run(day)

    closes = [(o.symbol, o.session, o.close) for o in books(journal)["outcomes"]]
    assert closes == [("AAA", DAYS[1], 110), ("BBB", DAYS[1], 22), ("AAA", DAYS[2], 56), ("BBB", DAYS[2], 19)]


def test_outcomes_reckoned_over_a_split_and_a_dividend(journal: Path) -> None:
    desk = Daily(journal, rules=FREE)
    for day in DAYS[:4]:
        desk.run(day)

    rows = {(o.symbol, o.session): (o.reward, o.cumulative) for o in books(journal)["outcomes"]}
    # AAA: 100 shares bought at 100 close at 110: +1,000 on 100,000. Split 2 for 1, 200 at 56: +200 on 101,000.
    assert rows["AAA", DAYS[1]] == (Decimal("0.01"), Decimal("0.01"))
    assert rows["AAA", DAYS[2]] == (Decimal("0.00198020"), Decimal("0.012"))
    # BBB: 5 % of 101,000 buy 229.545454545 shares at 22, which close at 19: -688.636363635 on 101,000.
    assert rows["BBB", DAYS[2]][0] == Decimal("-0.00681818")
    # They close at 25 and pay 57.39: +1,377.27272727 + 57.39 on 100,511.36.
    assert rows["BBB", DAYS[3]][0] == Decimal("0.01427364")


def test_a_second_run_of_a_session_decides_and_orders_nothing_more(journal: Path) -> None:
    desk = Daily(journal)
    desk.run(DAYS[0])
    before, asked = books(journal), len(desk.model.requests)

    with pytest.raises(InvariantBroken, match="done"):
        desk.run(DAYS[0])

    assert books(journal) == before
    assert len(desk.model.requests) == asked


def test_order_ids_are_stable_and_each_intention_has_one(journal: Path) -> None:
    desk = Daily(journal)
    result = desk.run(DAYS[0])

    assert [o.id for o in result.orders] == [f"desk-{DAYS[0]:%Y%m%d}-1-AAA-B-1"]
    assert [o.state for o in result.orders] == [OrderState.ACKNOWLEDGED]


def test_missed_sessions_are_written_down_and_never_traded_late(journal: Path) -> None:
    desk = Daily(journal)
    desk.run(DAYS[0])
    result = desk.run(DAYS[3])

    assert result.skipped == (DAYS[1], DAYS[2])
    kept = books(journal)
    assert [(r[1], r[2]) for r in kept["runs"]] == [
        (DAYS[0], "done"),
        (DAYS[1], "skipped"),
        (DAYS[2], "skipped"),
        (DAYS[3], "done"),
    ]
    # What the first run ordered filled at the next open, whoever was awake.
    assert [(f.session, f.symbol) for f in kept["fills"]] == [(DAYS[1], "AAA")]
    assert [p.session for p in kept["equity"]] == list(DAYS[:4])
    assert {d.key.session for d in kept["decisions"]} == {DAYS[0], DAYS[3]}
    # What the first decision earned is what the next session brought, not the three.
    assert [(o.symbol, o.decision_session, o.session) for o in kept["outcomes"]] == [
        ("AAA", DAYS[0], DAYS[1]),
        ("BBB", DAYS[0], DAYS[1]),
    ]


def test_a_session_that_the_books_have_passed_is_refused_and_nothing_is_written(journal: Path) -> None:
    desk = Daily(journal)
    desk.run(DAYS[1])
    before = books(journal)

    with pytest.raises(UsageError, match=str(DAYS[1])):
        desk.run(DAYS[0])

    assert books(journal) == before


def test_bars_that_end_before_the_session_are_stale(journal: Path) -> None:
    short = market_of({"AAA": MARKET.histories["AAA"], "BBB": MARKET.histories["BBB"].slice(0, 2)})

    with pytest.raises(StaleData, match=f"BBB.*{DAYS[1]}.*{DAYS[2]}"):
        Daily(journal, short).run(DAYS[2])
    with JournalReader(journal) as reader:
        assert reader.runs() == ()


def test_what_happened_is_said(journal: Path) -> None:
    desk = Daily(journal)
    desk.run(DAYS[0])
    desk.events.clear()
    result = desk.run(DAYS[1])

    assert [(e.fill.session, e.fill.symbol) for e in desk.events if isinstance(e, OrderFilled)] == [(DAYS[1], "AAA")]
    (settled,) = [e for e in desk.events if isinstance(e, SessionSettled)]
    assert settled.books == result.books and settled.books.session == DAYS[1]
    assert [e.outcome for e in desk.events if isinstance(e, RunFinished)] == ["done"]
    with JournalReader(journal) as reader:
        assert [e for _, e in reader.events_after(run=run_id("desk", DAYS[1]))] == desk.events


# Killed


class Killed(BaseException):
    """The process is gone: nothing else of it happens."""


@contextmanager
def killed_before(commit: int) -> Iterator[list[int]]:
    """Nothing is committed from the given commit on, counted from 1; yields the count so far."""
    transaction, count = RowStore._transaction, [0]

    @contextmanager
    def dying(self: RowStore) -> Iterator[None]:
        count[0] += 1
        if count[0] >= commit:
            raise Killed
        with transaction(self):
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowStore, "_transaction", dying)
        yield count


def commits_of(prepare: Callable[[], Daily], session: date) -> int:
    with killed_before(10**9) as count:
        prepare().run(session)
    return count[0]


@pytest.fixture
def copies(tmp_path: Path) -> Callable[[Path], Path]:
    made = iter(range(10**6))

    def copy(path: Path) -> Path:
        target = tmp_path / f"copy-{next(made)}.db"
        if path.exists():
            shutil.copy(path, target)
        return target

    return copy


@pytest.mark.parametrize(
    "sessions", [(0, 1, 2, 3), *(pytest.param(of, marks=pytest.mark.slow) for of in ((0,), (0, 3)))], ids=str
)
def test_killed_before_any_commit_and_run_again_it_is_the_undisturbed_run(
    sessions: tuple[int, ...], journal: Path, copies: Callable[[Path], Path]
) -> None:
    *earlier, last = [DAYS[n] for n in sessions]
    for day in earlier:
        Daily(journal).run(day)
    undisturbed = copies(journal)
    Daily(undisturbed).run(last)
    expected = books(undisturbed)
    commits = commits_of(lambda: Daily(copies(journal)), last)
    assert commits > 10

    for kill in range(1, commits + 1):
        path = copies(journal)
        with killed_before(kill), pytest.raises(Killed):
            Daily(path).run(last)
        if not is_done(path, last):
            # Killed once more, sooner or later than before.
            with killed_before(commits - kill + 1), suppress(Killed):
                Daily(path).run(last)
        again = Daily(path)
        if not is_done(path, last):
            again.run(last)
        assert books(path) == expected, f"killed before commit {kill} of {commits}"
        # Decisions that stand are not asked for again.
        assert len(again.model.requests) in (0, 2)


def is_done(path: Path, session: date) -> bool:
    """What whoever starts a daily run asks first."""
    try:
        with JournalReader(path) as reader:
            return reader.finished_run(session) is not None
    except MissingData:
        return False  # killed before anything was written


def test_killed_and_not_gone_on_with_its_intentions_expire(journal: Path, copies: Callable[[Path], Path]) -> None:
    Daily(journal).run(DAYS[0])
    commits = commits_of(lambda: Daily(copies(journal)), DAYS[1])

    for kill in range(1, commits + 1):
        path = copies(journal)
        with killed_before(kill), pytest.raises(Killed):
            Daily(path).run(DAYS[1])
        Daily(path).run(DAYS[2])
        kept = books(path)
        assert [r[1] for r in kept["runs"]] == list(DAYS[:3])
        assert kept["runs"][1][2] in ("failed", "skipped", "done")
        late = [o for _, o in kept["orders"] if o.session == DAYS[1]]
        for order in late:
            # Handed over before the kill it filled in its own session, else it expired.
            assert order.state in (OrderState.FILLED, OrderState.EXPIRED)
            filled = [f.session for f in kept["fills"] if f.order_id == order.id]
            assert filled == ([DAYS[2]] if order.state is OrderState.FILLED else [])
        decided = [(d.key.session, d.key.symbol) for d in kept["decisions"]]
        assert len(decided) == len(set(decided))
        known = [(o.decision_session, o.symbol) for o in kept["outcomes"]]
        assert known == [pair for pair in decided if pair[0] < DAYS[2]]


@pytest.mark.parametrize("outcome", [RunOutcome.FAILED, None])
def test_what_an_unfinished_run_meant_to_trade_does_not_stay_open(outcome: RunOutcome | None, journal: Path) -> None:
    """A run that ended with an error is as abandoned as one that was killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeskVenue, "place", _refuse)
        with pytest.raises(Killed):
            Daily(journal).run(DAYS[0])
    if outcome is not None:
        with JournalWriter(journal) as writer:
            writer.run_finished(run_id("desk", DAYS[0]), outcome, Wall(DAYS[0]).now(), detail="the disk is full")

    Daily(journal).run(DAYS[1])

    with JournalReader(journal) as reader:
        assert [o.order.state for o in reader.orders(session=DAYS[0])] == [OrderState.EXPIRED]
        assert not [f for f in reader.fills() if f.session == DAYS[1]]
        assert reader.runs()[0].outcome == "failed"


async def _refuse(self: DeskVenue, order: object) -> None:
    raise Killed


def test_a_failed_run_goes_on_in_its_own_session(journal: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeskVenue, "place", _refuse)
        with pytest.raises(Killed):
            Daily(journal).run(DAYS[0])
    with JournalWriter(journal) as writer:
        writer.run_finished(run_id("desk", DAYS[0]), RunOutcome.FAILED, Wall(DAYS[0]).now(), detail="no route")

    again = Daily(journal)
    result = again.run(DAYS[0])

    assert [o.state for o in result.orders] == [OrderState.ACKNOWLEDGED]
    assert [d.action for d in result.decisions] == [Action.BUY, Action.HOLD]
    assert again.model.requests == []
    assert [r[2] for r in books(journal)["runs"]] == ["done"]
