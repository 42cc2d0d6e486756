"""Orders are handed over one by one, and every reason not to is looked for again before each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.domain.brokerage import Asset
from engine.domain.order import OrderState
from engine.domain.run import TradingMode
from engine.errors import UsageError
from engine.execution import controls
from engine.journal.reader import JournalReader
from engine.messages.commands import Approve, Veto
from tests.engine.account.accounts import DAYS, BrokerClockOf, Desk, assert_equal
from tests.engine.desks import hold, trade

D = Decimal


def both(request: Any) -> Any:
    return trade(request, "BUY", 8, "strong uptrend")


class Watching:
    """A broker that has something happen just before the Nth request of a name."""

    def __init__(self, desk: Desk, name: str, number: int, happens: Callable[[], Any]) -> None:
        self._desk, self._name, self._number, self._happens = desk, name, number, happens
        self.seen = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._desk.account, name)

        async def asked(*args: Any) -> Any:
            if name == self._name:
                self.seen += 1
                if self.seen == self._number:
                    self._happens()
            return await method(*args)

        return asked


def states(desk: Desk, session: date = DAYS[0]) -> dict[str, OrderState]:
    with JournalReader(desk.journal) as reader:
        return {entry.order.symbol: entry.order.state for entry in reader.orders(session=session)}


def why(desk: Desk, symbol: str) -> str:
    with JournalReader(desk.journal) as reader:
        (entry,) = reader.orders(symbol=symbol, session=DAYS[0])
        return reader.order_moves(entry.order.id)[-1].detail


def posted(desk: Desk) -> list[str]:
    return [order["symbol"] for order in desk.local.state()["orders"]]


def now(desk: Desk) -> Any:
    return BrokerClockOf(desk.local).now()


# The kill switch


def test_halted_before_it_began_a_run_settles_and_decides_nothing(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    controls.halt(desk.journal, now(desk), "earnings tonight")

    result = desk.run()

    assert (result.outcome, result.decisions, result.orders) == ("halted", (), ())
    assert result.halted is not None and result.halted.reason == "earnings tonight"
    assert result.books.session == DAYS[0]
    assert desk.model.requests == []
    with JournalReader(desk.journal) as reader:
        assert reader.runs()[0].outcome == "halted"

    controls.resume(desk.journal, now(desk))
    assert desk.run().outcome == "done"
    assert posted(desk) == ["AAA", "BBB"]


def test_halted_in_the_middle_the_rest_stays_meant_and_a_resumed_run_asks_nobody_again(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    # The person's word comes while the first order is on its way.
    desk.wrap = lambda inner: watching
    watching = Watching(desk, "place", 1, lambda: controls.halt(desk.journal, now(desk)))

    result = desk.run()

    assert result.outcome == "halted"
    assert states(desk) == {"AAA": OrderState.ACKNOWLEDGED, "BBB": OrderState.INTENDED}
    asked = len(desk.model.requests)
    assert desk.run().outcome == "halted"
    assert posted(desk) == ["AAA"]
    controls.resume(desk.journal, now(desk))
    again = desk.run()
    assert again.outcome == "done"
    assert len(desk.model.requests) == asked
    assert states(desk) == {"AAA": OrderState.ACKNOWLEDGED, "BBB": OrderState.ACKNOWLEDGED}


def test_a_veto_while_the_last_question_is_asked_still_counts(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.wrap = lambda inner: watching
    # settle: account twice, open orders once; every gate: account once, open orders once.
    watching = Watching(desk, "open_orders", 2, lambda: controls.halt(desk.journal, now(desk)))
    assert desk.run().outcome == "halted"
    assert posted(desk) == []


# Modes


def test_observe_sends_nothing_and_says_so(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both, mode=TradingMode.OBSERVE)
    result = desk.run()
    assert result.outcome == "done"
    assert len(result.orders) == 2
    assert set(states(desk).values()) == {OrderState.CANCELED}
    assert posted(desk) == []


def test_ask_sends_what_is_approved_cancels_what_is_vetoed_and_lets_the_rest_wait(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both, mode=TradingMode.ASK)
    first = desk.run()
    assert first.outcome == "waiting"
    assert [order.symbol for order in first.waiting] == ["AAA", "BBB"]
    assert posted(desk) == []
    asked = len(desk.model.requests)

    controls.give(desk.journal, map(Approve, [first.orders[0].id]), now(desk))
    second = desk.run()
    assert (second.outcome, [order.symbol for order in second.waiting]) == ("waiting", ["BBB"])
    assert posted(desk) == ["AAA"]

    controls.give(desk.journal, [Veto(first.orders[1].id, "too much of it")], now(desk))
    third = desk.run()
    assert (third.outcome, third.waiting) == ("done", ())
    assert states(desk) == {"AAA": OrderState.ACKNOWLEDGED, "BBB": OrderState.CANCELED}
    assert "too much of it" in why(desk, "BBB")
    assert posted(desk) == ["AAA"]
    assert len(desk.model.requests) == asked


def test_what_waits_expires_with_its_session_approved_too_late_or_not(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both, mode=TradingMode.ASK)
    first = desk.run()
    desk.next_close()
    controls.give(desk.journal, map(Approve, [first.orders[0].id]), now(desk))
    desk.run()
    assert set(states(desk).values()) == {OrderState.EXPIRED}
    assert posted(desk) == []


def test_an_approved_order_that_the_cash_no_longer_allows_is_canceled(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both, mode=TradingMode.ASK)
    first = desk.run()
    controls.give(desk.journal, map(Approve, [order.id for order in first.orders]), now(desk))
    # The run settles the withdrawal, and its floor is a share of what is left.
    desk.local.control_request("POST", "/sandbox/transfers", {"amount": "-91000"})
    result = desk.run()
    assert result.outcome == "done"
    assert states(desk) == {"AAA": OrderState.ACKNOWLEDGED, "BBB": OrderState.CANCELED}
    assert posted(desk) == ["AAA"]
    assert {"-7,000.00", "900.00"} <= set(why(desk, "BBB").split())


# The account, at the moment


def test_cash_that_left_after_deciding_keeps_the_floor(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    gone = Watching(
        desk, "place", 1, lambda: desk.local.control_request("POST", "/sandbox/transfers", {"amount": "-95000"})
    )
    desk.wrap = lambda inner: gone
    result = desk.run()
    assert result.outcome == "done"
    assert states(desk) == {"AAA": OrderState.ACKNOWLEDGED, "BBB": OrderState.CANCELED}
    assert posted(desk) == ["AAA"]


def test_shares_that_are_gone_are_not_sold(tmp_path: Path) -> None:
    def script(request: Any) -> Any:
        buys = request.session == DAYS[0]
        if request.symbol == "BBB":
            return hold(request)
        return both(request) if buys else trade(request, "SELL", 8, "reversal")

    desk = Desk(folder=tmp_path, script=script)
    desk.run()
    desk.next_close()

    def sold_by_hand() -> None:
        book = desk.local.exchange.book
        held = {s: p for s, p in book.portfolio.positions.items() if s != "AAA"}
        book.portfolio = replace(book.portfolio, positions=held)

    # settle reads the account twice; the third time is before the order.
    watching = Watching(desk, "account", 3, sold_by_hand)
    desk.wrap = lambda inner: watching
    desk.run()
    with JournalReader(desk.journal) as reader:
        (entry,) = reader.orders(session=DAYS[1])
    assert entry.order.state is OrderState.CANCELED
    assert len(posted(desk)) == 1


def test_a_session_that_passes_while_the_desk_thinks_is_not_traded_late(tmp_path: Path) -> None:
    def slow(request: Any) -> Any:
        if request.symbol == "BBB" and request.session == DAYS[0]:
            desk.next_close()
        return both(request)

    desk = Desk(folder=tmp_path, script=slow)
    result = desk.run()
    assert result.session == DAYS[0]
    assert set(states(desk).values()) == {OrderState.EXPIRED}
    assert posted(desk) == []
    assert desk.run().session == DAYS[1]
    assert posted(desk) == ["AAA", "BBB"]


def test_a_session_that_passes_while_the_broker_is_asked_is_not_traded_late(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    # settle: account twice, open orders once; the gate before the first order: account, then open orders.
    watching = Watching(desk, "open_orders", 2, desk.next_close)
    desk.wrap = lambda inner: watching
    desk.run()
    assert set(states(desk).values()) == {OrderState.EXPIRED}
    assert posted(desk) == []


def test_an_order_that_might_arrive_after_the_close_is_not_sent(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.local.advance("close")
    closes = desk.local.exchange.now
    early, late = tmp_path / "early", tmp_path / "late"
    for folder, before, sent in ((early, 61, 2), (late, 59, 0)):
        folder.mkdir()
        desk = Desk(folder=folder, script=both)
        desk.local.advance(closes - timedelta(seconds=before))
        desk.run()
        assert len(posted(desk)) == sent
    assert set(states(desk).values()) == {OrderState.EXPIRED}


def test_a_veto_while_the_broker_is_asked_still_counts(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both, mode=TradingMode.ASK)
    orders = desk.run().orders
    controls.give(desk.journal, map(Approve, [order.id for order in orders]), now(desk))
    vetoing = Watching(
        desk, "open_orders", 2, lambda: controls.give(desk.journal, [Veto(orders[0].id, "no")], now(desk))
    )
    desk.wrap = lambda inner: vetoing
    assert desk.run().outcome == "done"
    assert posted(desk) == ["BBB"]
    assert states(desk)["AAA"] is OrderState.CANCELED


def test_a_session_that_has_passed_at_the_broker_cannot_be_asked_for(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.next_close()
    with pytest.raises(UsageError, match=str(DAYS[1])):
        desk.run(DAYS[0])
    assert posted(desk) == []


def test_missed_sessions_are_skipped_and_what_was_ordered_before_them_is_in_their_books(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.run()
    for _ in range(3):
        desk.next_close()
    result = desk.run()
    assert result.skipped == (DAYS[1], DAYS[2])
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        assert [p.session for p in reader.equity()] == list(DAYS[:4])
        assert {fill.session for fill in reader.fills()} == {DAYS[1]}
    assert len(posted(desk)) == 4


# What is traded there, and how


def test_what_nobody_can_trade_is_canceled_and_never_posted(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.local.fault("untradable", symbol="AAA")
    desk.run()
    assert states(desk) == {"AAA": OrderState.CANCELED, "BBB": OrderState.ACKNOWLEDGED}
    assert posted(desk) == ["BBB"]


class Indivisible:
    """A broker that lists no XXX and splits no share of some symbols."""

    def __init__(self, inner: Any, whole: set[str], unlisted: set[str]) -> None:
        self._inner, self._whole, self._unlisted = inner, whole, unlisted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def asset(self, symbol: str) -> Asset | None:
        found = await self._inner.asset(symbol)
        if symbol in self._unlisted:
            return None
        return replace(found, fractionable=symbol not in self._whole)


def test_what_is_not_fractionable_is_meant_and_sent_in_whole_shares(tmp_path: Path) -> None:
    def script(request: Any) -> Any:
        return both(request) if request.session == DAYS[0] else trade(request, "SELL", 3, "reversal")

    desk = Desk(folder=tmp_path, script=script)
    desk.wrap = lambda inner: Indivisible(inner, {"AAA"}, set())
    bought = {order.symbol: order for order in desk.run().orders}
    # 8 % of 100,000 over the close of 31.5 with 5 % for the night.
    close = desk.data.histories["AAA"].bar(desk.data.histories["AAA"].rows_through(DAYS[0]) - 1).close
    whole = int(8000 / (close * D("1.05")))
    assert (bought["AAA"].quantity, bought["AAA"].notional) == (whole, None)
    assert bought["BBB"].notional == 8000
    with JournalReader(desk.journal) as reader:
        (decision,) = [d for d in reader.decisions() if d.key.symbol == "AAA"]
    assert [cut.rule for cut in decision.cuts] == ["whole shares"]
    desk.next_close()
    sold = {order.symbol: order for order in desk.run().orders}
    assert sold["AAA"].quantity == sold["AAA"].quantity.to_integral_value()
    assert sold["BBB"].quantity != sold["BBB"].quantity.to_integral_value()
    desk.next_close()
    desk.run()
    assert_equal(desk)


def test_what_the_broker_does_not_list_is_canceled(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.wrap = lambda inner: Indivisible(inner, set(), {"BBB"})
    desk.run()
    assert states(desk)["BBB"] is OrderState.CANCELED


def test_a_refusal_is_final_in_the_brokers_words(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=both)
    desk.local.fault("refuse", symbol="BBB", message="insufficient everything")
    desk.run()
    assert states(desk) == {"AAA": OrderState.ACKNOWLEDGED, "BBB": OrderState.REJECTED}
    assert why(desk, "BBB") == "insufficient everything"
    desk.next_close()
    assert desk.run().outcome == "done"
    assert_equal(desk)
