"""Runs of one symbol after a close: the daily run leaves out what they have decided, and nothing is done twice."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.model_call import ModelRequest
from engine.domain.order import OrderState, Side
from engine.domain.run import TradingMode
from engine.journal.reader import JournalReader
from engine.messages.events import Noticed, RunStarted
from engine.preset import load_preset
from engine.session.context import run_id
from tests.engine.desks import DECISION_ONLY, FREE, bars, market_of, trade
from tests.engine.session.test_daily import CASH, DAYS, Daily, Killed, books, killed_before

SYMBOLS = tuple(f"S{n}" for n in range(10))
WIDE = market_of({symbol: bars(symbol, DAYS[:3], [50, 51, 50]) for symbol in SYMBOLS})
"""Ten symbols, each of which wants a tenth of the portfolio: the cash floor keeps the last from it."""


def greedy(request: ModelRequest) -> Any:
    return trade(request, "BUY", 10, "strong uptrend")


@given(
    parts=st.lists(st.lists(st.sampled_from(SYMBOLS), unique=True, max_size=3), min_size=2, max_size=2),
    mode=st.sampled_from((TradingMode.AUTO, TradingMode.ASK)),
)
@settings(max_examples=6, deadline=None)
def test_in_any_order_nothing_is_decided_twice_and_the_cash_floor_holds(
    tmp_path_factory: pytest.TempPathFactory, parts: Sequence[Sequence[str]], mode: TradingMode
) -> None:
    desk, most = Daily(tmp_path_factory.mktemp("wide") / "desk.db", WIDE, FREE, script=greedy, mode=mode), Decimal(0)
    for day, alone in zip(DAYS, parts, strict=False):
        for only in (*alone, None):
            desk.run(day, only)
            kept = books(desk.path)
            point = kept["equity"][-1]
            open_buys = [
                order
                for _, order in kept["orders"]
                if order.session == day and order.side is Side.BUY and order.state is not OrderState.FILLED
            ]
            reserved = sum((order.notional or Decimal(0) for order in open_buys), Decimal(0))
            most = max(most, reserved)
            assert point.portfolio.cash - reserved >= point.value * DECISION_ONLY.sizing.cash_floor
        made = [(made.key.run, made.key.symbol) for made in kept["decisions"] if made.key.session == day]
        assert sorted(symbol for _, symbol in made) == sorted(SYMBOLS)
        assert {symbol for run, symbol in made if run != run_id("desk", day)} == set(alone)
    assert len(desk.model.requests) == 2 * len(SYMBOLS)
    ids = [order.id for _, order in kept["orders"]]
    assert len(ids) == len(set(ids)) and most == CASH * Decimal("0.9")
    assert [point.session for point in kept["equity"]] == list(DAYS[:2])
    learned = [(row.decision_session, row.symbol) for row in kept["outcomes"]]
    assert sorted(learned) == sorted((DAYS[0], symbol) for symbol in SYMBOLS)


def test_killed_before_any_commit_and_run_again_it_is_the_undisturbed_run(tmp_path: Path) -> None:
    base = tmp_path / "base.db"
    Daily(base).run(DAYS[0])

    def copy(name: str) -> Path:
        return Path(shutil.copy(base, tmp_path / name))

    undisturbed = Daily(copy("undisturbed.db"))
    undisturbed.run(DAYS[1], "BBB")
    expected = books(undisturbed.path)
    assert [run for run, _ in expected["orders"]][-1] == run_id("desk", DAYS[1], only="BBB")
    with killed_before(10**9) as counted:
        Daily(copy("counted.db")).run(DAYS[1], "BBB")
    (commits,) = counted
    assert commits > 10
    for kill in range(1, commits + 1, 2):
        path = copy("killed.db")
        with killed_before(kill), suppress(Killed):
            Daily(path).run(DAYS[1], "BBB")
        if books(path) != expected:
            Daily(path).run(DAYS[1], "BBB")
        assert books(path) == expected, f"killed before commit {kill} of {commits}"


def test_the_daily_run_says_what_it_leaves_out_and_closes_the_session_where_nothing_is_left(tmp_path: Path) -> None:
    desk = Daily(tmp_path / "desk.db")
    desk.run(DAYS[0], "AAA")
    result = desk.run(DAYS[0])

    assert [made.key.symbol for made in result.decisions] == ["BBB"]
    begun = [event for event in desk.events if isinstance(event, RunStarted)]
    assert [(event.kind, event.symbols) for event in begun] == [("symbol", ("AAA",)), ("daily", ("BBB",))]
    (said,) = [event.text for event in desk.events if isinstance(event, Noticed)]
    assert "AAA" in said and "BBB" not in said

    for only in ("BBB", "AAA"):
        desk.run(DAYS[1], only)
    asked = len(desk.model.requests)
    assert (result := desk.run(DAYS[1])).decisions == () and result.outcome == "done"
    assert len(desk.model.requests) == asked == 4
    with JournalReader(desk.path) as reader:
        assert reader.finished_run(DAYS[1]) == run_id("desk", DAYS[1])
        assert reader.decided_event(DAYS[1]) == reader.last_event()


def test_a_session_in_which_one_symbol_was_decided_is_skipped_by_name(tmp_path: Path) -> None:
    desk = Daily(tmp_path / "desk.db")
    desk.run(DAYS[0], "AAA")
    with JournalReader(desk.path) as reader:
        assert reader.decided_event(DAYS[0]) == reader.last_event()
    result = desk.run(DAYS[1])

    assert result.skipped == (DAYS[0],)
    with JournalReader(desk.path) as reader:
        detail = next(run.detail for run in reader.runs() if run.id == run_id("desk", DAYS[0]))
        assert "AAA" in detail and "BBB" not in detail
        assert [(one.decision_session, one.symbol) for one in reader.outcomes()] == [(DAYS[0], "AAA")]
        assert [(fill.session, fill.symbol) for fill in reader.fills()] == [(DAYS[1], "AAA")]


def test_a_killed_run_that_decided_nothing_is_ended_and_the_daily_run_decides(tmp_path: Path) -> None:
    desk = Daily(tmp_path / "desk.db")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(desk.model, "script", _killed)
        desk.run(DAYS[0], "AAA")
    result = desk.run(DAYS[0])

    assert [made.key.symbol for made in result.decisions] == ["AAA", "BBB"]
    with JournalReader(desk.path) as reader:
        assert [run.outcome for run in reader.runs()] == ["failed", "done"]


def _killed(request: ModelRequest) -> Any:
    raise Killed


BOOKS = """
extends = "finvision"
name = "two-books"
combine = "books"
[owners.bull]
[owners.bear]
weight = 2
"""


def test_the_books_of_owners_carry_the_orders_of_all_runs_of_a_session(tmp_path: Path) -> None:
    (tmp_path / "books.toml").write_text(BOOKS)
    preset = load_preset(str(tmp_path / "books.toml")).without(
        ("news", "chart", "performance-reflection", "signal-reflection")
    )
    closes = []
    for name, runs in (("whole", (None,)), ("parts", ("S0", "S1", None))):
        desk = Daily(tmp_path / f"{name}.db", WIDE, FREE, script=greedy, preset=preset)
        for only in runs:
            desk.run(DAYS[0], only)
        desk.run(DAYS[1])
        with JournalReader(desk.path) as reader:
            closes.append(reader.equity(book=None))
    assert closes[0] == closes[1]
    assert {point.book: set(point.portfolio.positions) for point in closes[1] if point.session == DAYS[1]} == {
        "": set(SYMBOLS[:9]),
        "bull": set(SYMBOLS[:9]),
        "bear": set(SYMBOLS[:9]),
    }
