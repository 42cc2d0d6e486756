"""What holds for every broker behind the port Broker; a new adapter adds one line to BROKERS.

A subject brings a broker over the market of sandbox_markets (AAA opens a dollar higher every session, BBB splits and
pays a dividend, BTC-USD is a coin) after the close of 2024-01-31, and a way to let the next session pass.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import pytest

from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.order import ZERO, Order, OrderState, OrderUpdate, Portfolio, Side, is_final, order_id
from engine.domain.run import EquityPoint
from engine.market.trading_hours import exchange_calendar
from engine.ports import Broker
from engine.simulation.simulated_broker import SimulatedBroker
from tests.connectors.alpaca.sandbox_markets import DIVIDEND_ON, FREE, SPLIT_ON, START, market_data, sandbox
from tests.extending_page import own_broker

CASH = Decimal("10000.00")
DECIDED = date(2024, 1, 31)
NEXT = date(2024, 2, 1)
BEGAN = START - timedelta(days=1)
"""A moment before anything was placed."""


@dataclass
class Subject:
    """A broker under test. `decided` is the session that orders placed now rest on; `pass_session` lets the next one
    open, trade and close."""

    broker: Broker
    pass_session: Callable[[], None]
    decided: date = DECIDED

    def next_session(self) -> date:
        """Lets the next session pass and returns it."""
        calendar = exchange_calendar()
        self.decided = calendar.session_at(calendar.number(self.decided) + 1)
        self.pass_session()
        return self.decided

    def until(self, session: date) -> None:
        """Lets sessions pass up to one of them, which passes too."""
        while self.decided < session:
            self.next_session()


@asynccontextmanager
async def alpaca() -> AsyncIterator[Subject]:
    with sandbox(cash=CASH, pay_dividends=True) as server:
        settings = AlpacaSettings(
            key=server.settings.key, secret=server.settings.secret, trading_url=server.url, data_url=server.url
        )
        broker = AlpacaBroker(settings, first_pause=0.01)
        yield Subject(broker, lambda: server.advance("close"))
        await broker.aclose()


@asynccontextmanager
async def in_memory() -> AsyncIterator[Subject]:
    """The broker of docs/extending.md."""
    with own_broker():
        adapter = importlib.import_module("connectors.inmemory.broker").InMemoryBroker
    data, books = market_data(), Portfolio(CASH)
    core = SimulatedBroker(FREE, books, data.histories, data.actions, closed=DECIDED)
    broker = adapter(core, data.exchange, EquityPoint(DECIDED, CASH, books, {}))
    yield Subject(broker, lambda: broker.play())


BROKERS: dict[str, Callable[[], AbstractAsyncContextManager[Subject]]] = {"alpaca": alpaca, "in memory": in_memory}


@pytest.fixture(params=BROKERS)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    async with BROKERS[request.param]() as made:
        yield made


def a_buy(subject: Subject, notional: str = "500.00", symbol: str = "AAA") -> Order:
    name = order_id("contract", subject.decided, 1, symbol, Side.BUY)
    order = Order(id=name, symbol=symbol, side=Side.BUY, session=subject.decided, notional=Decimal(notional))
    return order.moved(OrderState.SUBMITTING)


def a_sell(subject: Subject, quantity: Decimal, symbol: str = "AAA") -> Order:
    name = order_id("contract", subject.decided, 1, symbol, Side.SELL)
    order = Order(id=name, symbol=symbol, side=Side.SELL, session=subject.decided, quantity=quantity)
    return order.moved(OrderState.SUBMITTING)


def rebuilt(lines: list[Activity]) -> tuple[Decimal, dict[str, Decimal]]:
    """Cash and shares as the account's history leads to them, from the cash at the beginning."""
    cash, shares = CASH, dict[str, Decimal]()
    for one in lines:
        change = -one.quantity if one.side is Side.SELL else one.quantity
        if one.kind is ActivityKind.FILL:
            assert one.price is not None and one.side is not None and one.quantity > 0 and not one.amount
            cash -= Portfolio(ZERO).money(change * one.price)
        if one.symbol is not None and change:
            shares[one.symbol] = shares.get(one.symbol, ZERO) + change
        cash += one.amount
    return cash, {symbol: held for symbol, held in shares.items() if held}


async def outcome(subject: Subject, order: Order, placed: OrderUpdate) -> OrderUpdate:
    """How an order ended: as it stands, or as placing it was answered where the broker never took it."""
    found = await subject.broker.lookup(order.id)
    return placed if found is None else OrderUpdate(order.id, found.state, found.filled_quantity, found.detail)


async def test_a_fresh_account_has_its_cash_and_nothing_else(subject: Subject) -> None:
    account = await subject.broker.account()

    assert (account.cash, account.equity, account.currency) == (CASH, CASH, "USD")
    assert account.id and account.status and not account.blocked
    assert dict(account.positions) == {}
    assert list(await subject.broker.activities(BEGAN)) == []
    assert list(await subject.broker.open_orders()) == []


async def test_an_id_that_was_never_placed_is_not_known(subject: Subject) -> None:
    assert await subject.broker.lookup("never-placed") is None


async def test_a_placed_order_can_be_looked_up(subject: Subject) -> None:
    order = a_buy(subject)

    placed = await subject.broker.place(order)

    assert placed == OrderUpdate(order.id, OrderState.ACKNOWLEDGED)
    found = await subject.broker.lookup(order.id)
    assert found is not None
    assert (found.order_id, found.symbol, found.side, found.state) == (order.id, "AAA", Side.BUY, placed.state)
    assert (found.quantity, found.notional, found.filled_quantity) == (None, order.notional, ZERO)
    assert found.broker_id and found.filled_average_price is None
    assert found.submitted_at == (await subject.broker.clock()).now
    assert list(await subject.broker.open_orders()) == [found]
    assert (await subject.broker.account()).cash == CASH


async def test_an_order_is_done_after_the_next_session_and_the_books_follow_its_fills(subject: Subject) -> None:
    order = a_buy(subject)
    await subject.broker.place(order)

    session = subject.next_session()

    found = await subject.broker.lookup(order.id)
    assert found is not None and found.state is OrderState.FILLED
    fills = await subject.broker.activities(BEGAN)
    assert {(f.kind, f.broker_id, f.symbol, f.side) for f in fills} == {
        (ActivityKind.FILL, found.broker_id, "AAA", Side.BUY)
    }
    assert {f.time for f in fills} == {exchange_calendar().opens_at(session)}
    account = await subject.broker.account()
    held = account.positions["AAA"]
    assert sum(f.quantity for f in fills) == found.filled_quantity == held.quantity > 0
    assert {f.price for f in fills} == {found.filled_average_price, held.average_cost} == {Decimal(31)}
    assert account.cash == CASH - Decimal("500.00")
    assert list(await subject.broker.open_orders()) == []


async def test_equity_is_known_by_session(subject: Subject) -> None:
    await subject.broker.place(a_buy(subject))
    first, second = subject.next_session(), subject.next_session()

    values = await subject.broker.equity_history(first, second)

    assert list(values) == [first, second]
    assert values[second] == (await subject.broker.account()).equity
    assert values[first] < values[second]
    assert list(await subject.broker.equity_history(second, second)) == [second]


async def test_placing_an_order_twice_buys_once(subject: Subject) -> None:
    order = a_buy(subject)
    await subject.broker.place(order)
    second = await subject.broker.place(order)
    assert second == OrderUpdate(order.id, OrderState.ACKNOWLEDGED)

    subject.next_session()
    once = await subject.broker.account()
    again = await subject.broker.place(order)
    subject.next_session()

    assert again.state is OrderState.FILLED and again.filled_quantity == once.positions["AAA"].quantity
    later = await subject.broker.account()
    assert (later.cash, later.positions) == (once.cash, once.positions)
    assert len(await subject.broker.activities(BEGAN)) == 1


async def test_what_was_bought_can_be_sold(subject: Subject) -> None:
    await subject.broker.place(a_buy(subject))
    subject.next_session()
    held = (await subject.broker.account()).positions["AAA"].quantity

    order = a_sell(subject, held)
    await subject.broker.place(order)
    subject.next_session()

    found = await subject.broker.lookup(order.id)
    assert found is not None and (found.quantity, found.filled_quantity) == (held, held)
    assert [one.side for one in await subject.broker.activities(BEGAN)] == [Side.BUY, Side.SELL]
    assert "AAA" not in (await subject.broker.account()).positions


async def test_an_order_that_the_account_cannot_pay_is_refused_with_a_reason(subject: Subject) -> None:
    order = a_buy(subject, "25000.00")
    placed = await subject.broker.place(order)
    subject.next_session()

    ended = await outcome(subject, order, placed)

    assert ended.state is OrderState.REJECTED and ended.detail
    assert (await subject.broker.account()).cash == CASH


async def test_selling_what_is_not_held_is_refused_with_a_reason(subject: Subject) -> None:
    order = a_sell(subject, Decimal("1.5"))
    placed = await subject.broker.place(order)
    subject.next_session()

    ended = await outcome(subject, order, placed)

    assert ended.state is OrderState.REJECTED and ended.detail
    assert dict((await subject.broker.account()).positions) == {}


async def test_an_unknown_symbol_is_refused_with_a_reason(subject: Subject) -> None:
    placed = await subject.broker.place(a_buy(subject, symbol="NONE"))

    assert placed.state is OrderState.REJECTED and placed.detail


async def test_a_canceled_order_does_not_trade(subject: Subject) -> None:
    order = a_buy(subject)
    await subject.broker.place(order)

    await subject.broker.cancel(order.id)
    await subject.broker.cancel(order.id)
    await subject.broker.cancel("never-placed")
    subject.next_session()

    found = await subject.broker.lookup(order.id)
    assert found is not None and (found.state, found.filled_quantity) == (OrderState.CANCELED, ZERO)
    assert list(await subject.broker.open_orders()) == []
    assert (await subject.broker.account()).cash == CASH


async def test_every_order_is_listed_whatever_has_become_of_it(subject: Subject) -> None:
    first, second = a_buy(subject), a_buy(subject, "700.00", "BBB")
    await subject.broker.place(first)
    subject.next_session()
    await subject.broker.place(second)
    await subject.broker.cancel(second.id)

    every = await subject.broker.orders_since(BEGAN)

    assert {(one.order_id, one.state) for one in every} == {
        (first.id, OrderState.FILLED),
        (second.id, OrderState.CANCELED),
    }
    assert [await subject.broker.lookup(one.order_id, one.broker_id) for one in every] == list(every)


async def test_what_has_filled_is_not_canceled(subject: Subject) -> None:
    order = a_buy(subject)
    await subject.broker.place(order)
    subject.next_session()

    await subject.broker.cancel(order.id)

    found = await subject.broker.lookup(order.id)
    assert found is not None and found.state is OrderState.FILLED and is_final(found.state)


async def test_history_leads_to_the_books_through_split_and_dividend(subject: Subject) -> None:
    await subject.broker.place(a_buy(subject, "1000.00", "BBB"))
    subject.next_session()
    await subject.broker.place(a_buy(subject, "700.00"))
    subject.until(DIVIDEND_ON)

    lines = list(await subject.broker.activities(BEGAN))

    account = await subject.broker.account()
    assert rebuilt(lines) == (account.cash, {s: p.quantity for s, p in account.positions.items()})
    assert [one.kind for one in lines].count(ActivityKind.FILL) == 2
    split = next(one for one in lines if one.kind is ActivityKind.SPLIT)
    assert (split.symbol, split.time.date(), split.quantity * 2) == ("BBB", SPLIT_ON, account.positions["BBB"].quantity)
    (paid,) = (one for one in lines if one.kind is ActivityKind.DIVIDEND)
    assert (paid.symbol, paid.time.date(), paid.quantity) == ("BBB", DIVIDEND_ON, ZERO)
    assert paid.amount == Portfolio(ZERO).money(account.positions["BBB"].quantity * Decimal("0.25"))


async def test_history_is_oldest_first_and_a_line_keeps_its_id(subject: Subject) -> None:
    for _ in range(3):
        await subject.broker.place(a_buy(subject))
        subject.next_session()

    every = list(await subject.broker.activities(BEGAN))
    later = list(await subject.broker.activities(every[1].time))

    assert [one.time for one in every] == sorted(one.time for one in every)
    assert len({one.id for one in every}) == len(every) == 3
    assert every[2] in later and all(one in every for one in later)


async def test_time_passes_at_the_broker(subject: Subject) -> None:
    calendar = exchange_calendar()
    before = await subject.broker.clock()
    assert not before.is_open and before.now <= before.next_open < before.next_close
    assert (before.next_open, before.next_close) == (calendar.opens_at(NEXT), calendar.closes_at(NEXT))

    subject.next_session()

    after = await subject.broker.clock()
    assert after.now == before.next_close and not after.is_open


async def test_the_brokers_calendar_is_the_exchanges(subject: Subject) -> None:
    calendar = exchange_calendar()
    first, last = date(2024, 2, 14), date(2024, 2, 23)

    hours = await subject.broker.session_hours(first, last)

    assert [one.session for one in hours] == list(calendar.sessions(first, last))
    assert date(2024, 2, 19) not in [one.session for one in hours], "a holiday"
    assert [(one.opens_at, one.closes_at) for one in hours] == [
        (calendar.opens_at(one.session), calendar.closes_at(one.session)) for one in hours
    ]
    short = await subject.broker.session_hours(date(2024, 7, 3), date(2024, 7, 3))
    assert [one.closes_at for one in short] == [calendar.closes_at(date(2024, 7, 3))], "an early close"


@pytest.mark.parametrize("symbol", ["AAA", "BTC-USD"])
async def test_an_instrument_is_named_as_the_desk_names_it(subject: Subject, symbol: str) -> None:
    found = await subject.broker.asset(symbol)

    assert found is not None and (found.symbol, found.tradable, found.fractionable) == (symbol, True, True)
    assert await subject.broker.asset("NONE") is None
