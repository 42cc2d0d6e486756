"""Fills booked between runs: the journal comes to what it would have come to had the next run booked them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.account.disagreement import BooksDisagree
from engine.domain.model_call import ModelRequest
from engine.domain.order import OrderState
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.messages.events import OrderFilled, OrderMoved
from engine.reports.documents.session import session_document
from engine.settings.owners import Owner
from tests.connectors.alpaca.sandbox_markets import market_data
from tests.engine.account.accounts import DAYS, Desk, assert_equal, by_plan
from tests.engine.account.test_account_reconciling import by_hand
from tests.engine.account.test_account_runs import copied
from tests.engine.desks import DECISION_ONLY, hold, trade
from tests.engine.session.test_daily import Killed, books, killed_before

DATA = market_data()
OWNERS = {"bull": Owner(weight=Decimal("1.7")), "bear": Owner(weight=Decimal("0.9"))}
OF_OWNERS = DECISION_ONLY.model_copy(update={"owners": OWNERS, "combine": "books"})
"""Each owner has a book of its own."""
ENDINGS = ("fill", "cancel", "expire")


def comes_to(desk: Desk) -> dict[str, Any]:
    """All of a journal that trading rests on, but for how often the states of orders were looked at, and the cents of
    rounding, which the account has the sum of."""
    kept = books(desk.journal)
    kept["lives"] = {order: states[-1] for order, states in kept["lives"].items()}
    kept["cash flows"] = [flow for flow in kept["cash flows"] if flow.kind != "rounding"]
    return kept


def apart(request: ModelRequest) -> Any:
    """The plan, of which one owner buys while the other sells or holds."""
    turn = DAYS.index(request.session) + (request.owner == "bear")
    wish = "BSH"[(turn + (request.symbol == "BBB")) % 3]
    if wish == "H":
        return hold(request)
    return trade(request, "BUY", 8, "strong uptrend") if wish == "B" else trade(request, "SELL", 3, "reversal")


def disturbed(desk: Desk, draw: Random) -> None:
    """Some orders of the next session fill in part, and some are refused."""
    desk.local.clear_faults()
    if draw.random() < 0.6:
        desk.local.fault("partial_fill", fraction="0.4", then=draw.choice(ENDINGS), count=draw.choice((1, 2)))
    if draw.random() < 0.2:
        desk.local.fault("reject", count=1)


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, *range(3, 30)))])
def test_booked_at_any_moments_the_desk_comes_to_what_it_would_have_come_to(seed: int, tmp_path: Path) -> None:
    desks = []
    for booking in (False, True):
        (tmp_path / str(booking)).mkdir()
        preset, script = (OF_OWNERS, apart) if seed % 3 == 2 else (DECISION_ONLY, by_plan)
        desk = Desk(folder=tmp_path / str(booking), data=DATA, preset=preset, script=script)
        faults, moments, new = Random(seed), Random(seed), 0
        for number in range(7):
            if number:
                for to in ("open", *moments.choices(("1m", "10m", "3h"), k=2), "close", "5m"):
                    desk.local.advance(to)
                    if moments.random() < 0.5 and booking:
                        new += desk.book()
                        assert_equal(desk)
                        before = desk.journal.read_bytes()
                        assert not desk.book()
                        assert desk.journal.read_bytes() == before
            disturbed(desk, faults)
            desk.run()
            assert_equal(desk)
        assert quick_check(desk.journal) == ()
        desks.append(desk)
    assert new > 2  # nothing would hold as well where nothing was booked
    plain, ahead = desks
    assert comes_to(ahead) == comes_to(plain)
    assert set(ahead.local.state()["posts"].values()) == {1}
    # Each run says in its report what it would have said, and every trade is told once.
    fills = [[one.fill for one in desk.events if isinstance(one, OrderFilled)] for desk in (ahead, plain)]
    told, expected = (sorted((fill.order_id, fill.quantity) for fill in some) for some in fills)
    assert told == expected
    with JournalReader(plain.journal) as expected, JournalReader(ahead.journal) as reader:
        assert reader.fills(book=None) == expected.fills(book=None)
        assert reader.equity(book=None) == expected.equity(book=None)
        assert {point.book for point in reader.equity(book=None)} == {"", *(OWNERS if seed % 3 == 2 else ())}
        for run in reader.runs():
            found, due = (session_document(one, "desk", run.id)["fills"] for one in (reader, expected))
            assert found == due


@pytest.fixture
def placed(tmp_path: Path) -> Callable[[], Desk]:
    """Gives a desk whose orders have just filled, and in part canceled, each time anew."""
    (tmp_path / "base").mkdir()
    desk = Desk(folder=tmp_path / "base", data=DATA)
    desk.local.fault("partial_fill", fraction="0.4", then="cancel", count=1)
    desk.run()
    desk.local.advance("open")
    desk.local.advance("10m")
    numbers = iter(range(10**6))
    return lambda: copied(desk, tmp_path / f"copy-{next(numbers)}", data=DATA)


def after_close(desk: Desk) -> dict[str, Any]:
    """What a desk comes to with its next run."""
    desk.next_close()
    desk.run()
    assert_equal(desk)
    assert quick_check(desk.journal) == ()
    return comes_to(desk)


def test_orders_fills_and_cash_follow_within_the_session_and_the_close_is_the_runs(placed: Callable[[], Desk]) -> None:
    desk = placed()
    assert desk.book()
    assert_equal(desk)
    assert not desk.book()
    with JournalReader(desk.journal) as reader:
        assert len(reader.equity()) == 1 and len(reader.runs()) == 1
        assert {fill.session for fill in reader.fills()} == {DAYS[1]}
        states = {entry.order.id: entry.order.state for entry in reader.orders()}
    assert sorted(states.values()) == [OrderState.CANCELED, OrderState.FILLED]
    ended = [one for one in desk.events if isinstance(one, OrderMoved) and one.order.state is OrderState.CANCELED]
    assert [one.order.id for one in ended] == [name for name, state in states.items() if state is OrderState.CANCELED]
    assert [one.run for one in desk.events if isinstance(one, OrderFilled)] == ["daily-desk-20240131"] * 2
    assert after_close(desk) == after_close(placed())


def test_an_order_that_ends_before_its_session_is_not_said_to_have_been_halted_in_it(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, data=DATA)
    desk.run()
    with JournalReader(desk.journal) as reader:
        first = reader.orders()[0].order.id
    asyncio.run(desk.account.cancel(first))
    assert desk.book() and not desk.book()
    with JournalReader(desk.journal) as reader:
        last = reader.order_moves(first)[-1]
    assert last.state is OrderState.CANCELED and "halted" not in last.detail
    assert [one.detail for one in desk.events if isinstance(one, OrderMoved)][-1] == last.detail


def test_killed_before_every_commit_nothing_is_lost_and_nothing_booked_twice(placed: Callable[[], Desk]) -> None:
    expected = after_close(placed())
    with killed_before(10**9) as count:
        placed().book()
    assert count[0] > 3
    for kill in range(1, count[0] + 1):
        desk = placed()
        with killed_before(kill), pytest.raises(Killed):
            desk.book()
        again = copied(desk, desk.folder.with_name(f"{desk.folder.name}-again"), data=DATA)
        if kill % 2:  # whoever comes next: another booking, or the run
            again.book()
            assert_equal(again)
        assert after_close(again) == expected, f"killed before commit {kill} of {count[0]}"


def test_what_the_desks_orders_do_not_explain_is_left_to_the_next_run(placed: Callable[[], Desk]) -> None:
    desk = placed()
    by_hand(desk, "GONE", qty="5")
    before = desk.journal.read_bytes()
    with pytest.raises(BooksDisagree, match="GONE"):
        desk.book()
    assert desk.journal.read_bytes() == before
    desk.next_close()
    with pytest.raises(BooksDisagree, match="GONE"):
        desk.run()
