"""What an account says of coins is booked to the cent and the last decimal, whatever the size of its numbers.

The broker here counts as a broker may: cash with every part of a cent, fees in cash or in the coin itself, fills in
pieces at any hour, lines that are read twice. The journal's books must come to the same after every look.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.account.booking import ROUNDING, Booking
from engine.account.reconciliation import Reconciler
from engine.domain.brokerage import Activity, ActivityKind, BrokerAccount, BrokerOrder
from engine.domain.market import Bar, PriceHistory
from engine.domain.order import CENT, EXACT, SHARE_STEP, ZERO, Order, OrderState, Position, Side
from engine.domain.run import RunKind
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock, exchange_calendar
from engine.ports import Calendar
from tests.examples import examples
from tests.snapshots import snapshot

COIN, SMALL = "BTC-USD", "SHIB-USD"
BEGIN = datetime(2024, 3, 28, 0, 1, tzinfo=UTC)
"""A Thursday before Good Friday."""
PRICES = {COIN: Decimal("70123.456789012"), SMALL: Decimal("0.000028417")}
RUN = "daily-coins-20240328"
_SHARED_MEMORY = Path("/dev/shm")
FOLDER = str(_SHARED_MEMORY) if _SHARED_MEMORY.is_dir() else None


@dataclass(frozen=True, kw_only=True)
class Trade:
    """A part of the means in millionths, in so many pieces at prices that differ, at a minute of the day; what it costs
    in basis points and whether the coin pays."""

    symbol: str
    buys: bool
    part: int
    pieces: int
    drift: int
    minute: int
    fee_bp: int
    in_coin: bool


TRADES = st.builds(
    Trade,
    symbol=st.sampled_from((COIN, SMALL)),
    buys=st.booleans(),
    part=st.integers(1, 400_000),
    pieces=st.integers(1, 4),
    drift=st.integers(-9999, 9999),
    minute=st.integers(1, 1439),
    fee_bp=st.integers(0, 40),
    in_coin=st.booleans(),
)


@dataclass
class Account:
    """A broker that counts exactly, and says everything twice."""

    cash: Decimal = Decimal("25000.00")
    held: dict[str, Decimal] = field(default_factory=dict)
    lines: list[Activity] = field(default_factory=list)
    orders: dict[str, BrokerOrder] = field(default_factory=dict)
    now: datetime = BEGIN

    async def account(self) -> BrokerAccount:
        positions = {symbol: Position(quantity, Decimal(1)) for symbol, quantity in self.held.items() if quantity}
        return BrokerAccount(
            id="one", status="ACTIVE", blocked="", currency="USD", cash=self.cash, equity=self.cash, positions=positions
        )

    async def activities(self, after: datetime) -> Sequence[Activity]:
        known = [line for line in self.lines if line.time > after]
        return [*known, *known[-2:]]

    async def lookup(self, order_id: str, broker_id: str = "") -> BrokerOrder | None:
        return self.orders.get(order_id)

    async def orders_since(self, after: datetime) -> Sequence[BrokerOrder]:
        return [order for order in self.orders.values() if order.submitted_at and order.submitted_at > after]

    async def open_orders(self) -> Sequence[BrokerOrder]:
        return [order for order in self.orders.values() if order.state is OrderState.PARTIALLY_FILLED]

    def trades(self, order: Order, trade: Trade) -> None:
        price = PRICES[trade.symbol] * (1 + Decimal(trade.drift) / 100_000)
        price = price.quantize(SHARE_STEP, ROUND_HALF_EVEN, EXACT)
        means = self.cash / price if trade.buys else self.held.get(trade.symbol, ZERO)
        left = (means * trade.part / 1_000_000).quantize(SHARE_STEP, ROUND_DOWN, EXACT)
        done = ZERO
        for number in range(trade.pieces):
            piece = left if number == trade.pieces - 1 else (left / 3).quantize(SHARE_STEP, ROUND_DOWN, EXACT)
            if piece <= 0:
                continue
            left, done = left - piece, done + piece
            self._fills(order, trade, piece, price + number * SHARE_STEP)
        partly = bool(trade.minute % 5 == 0 and done)
        state = OrderState.PARTIALLY_FILLED if partly else OrderState.FILLED if done else OrderState.CANCELED
        self.orders[order.id] = BrokerOrder(
            order_id=order.id,
            broker_id=f"b-{order.id}",
            symbol=order.symbol,
            side=order.side,
            state=state,
            quantity=done,
            notional=None,
            filled_quantity=done,
            filled_average_price=price,
            submitted_at=self.now,
        )

    def ends(self) -> None:
        """What is partly filled is canceled."""
        for name, order in self.orders.items():
            if order.state is OrderState.PARTIALLY_FILLED:
                self.orders[name] = BrokerOrder(
                    order_id=order.order_id,
                    broker_id=order.broker_id,
                    symbol=order.symbol,
                    side=order.side,
                    state=OrderState.CANCELED,
                    quantity=order.quantity,
                    notional=None,
                    filled_quantity=order.filled_quantity,
                    filled_average_price=order.filled_average_price,
                    submitted_at=order.submitted_at,
                )

    def _fills(self, order: Order, trade: Trade, quantity: Decimal, price: Decimal) -> None:
        sign = 1 if trade.buys else -1
        amount = EXACT.multiply(quantity, price)
        self.held[trade.symbol] = self.held.get(trade.symbol, ZERO) + sign * quantity
        self.cash = EXACT.subtract(self.cash, sign * amount)
        at, number = self.now + timedelta(seconds=len(self.lines) % 50), len(self.lines)
        self.lines.append(
            Activity(
                id=f"f{number}",
                kind=ActivityKind.FILL,
                time=at,
                symbol=trade.symbol,
                broker_id=f"b-{order.id}",
                side=order.side,
                quantity=quantity,
                price=price,
            )
        )
        rate = Decimal(trade.fee_bp) / 10_000
        if not rate:
            return
        day = datetime(at.year, at.month, at.day, tzinfo=UTC)
        if trade.in_coin and trade.buys:
            fee = (quantity * rate).quantize(SHARE_STEP, ROUND_DOWN, EXACT)
            self.held[trade.symbol] -= fee
            line = Activity(
                id=f"c{number}", kind=ActivityKind.FEE, time=day, symbol=trade.symbol, quantity=-fee, description="CFEE"
            )
        else:
            fee = EXACT.multiply(amount, rate)
            self.cash = EXACT.subtract(self.cash, fee)
            line = Activity(
                id=f"c{number}", kind=ActivityKind.FEE, time=day, symbol=trade.symbol, amount=-fee, description="CFEE"
            )
        self.lines.append(line)


class Clock:
    def __init__(self, account: Account) -> None:
        self._account = account

    def now(self) -> datetime:
        return self._account.now


def market() -> Market:
    days = AroundTheClock().sessions(date(2024, 3, 1), date(2024, 5, 1))
    held = {
        symbol: PriceHistory.of(
            symbol,
            [
                Bar(session=day, open=price, high=price, low=price, close=price, adj_close=None, volume=None)
                for day in days
            ],
        )
        for symbol, price in PRICES.items()
    }
    return Market(
        histories=held,
        actions=dict.fromkeys(held),
        news={},
        filings={},
        calendars=dict.fromkeys(held, AroundTheClock()),
    )


MARKET = market()


async def no_pause(seconds: float) -> None:
    """Takes no time."""


@pytest.mark.parametrize("calendar", [exchange_calendar(), AroundTheClock()], ids=["beside shares", "alone"])
@examples(30)
@given(days=st.lists(st.lists(TRADES, max_size=4), min_size=2, max_size=7))
def test_books_of_coins_are_the_brokers_to_the_last_decimal(calendar: Calendar, days: list[list[Trade]]) -> None:
    folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="paperdesk-coins-"))
    try:
        _lives(folder / "coins.db", calendar, days)
    finally:
        shutil.rmtree(folder)


def _lives(journal: Path, calendar: Calendar, days: list[list[Trade]]) -> None:
    account, rounding = Account(), ZERO
    with JournalWriter(journal) as writer, JournalReader(journal) as reader:
        looking = Reconciler(account, reader, desk="coins", calendar=calendar, clock=Clock(account), pause=no_pause)
        writer.run_started(
            RunEntry(
                id=RUN,
                kind=RunKind.DAILY,
                name="desk",
                started=BEGIN,
                label="",
                spec=None,
                symbols=(COIN, SMALL),
                session=date(2024, 3, 27),
                cycle=1,
            )
        )
        booking = Booking(
            writer, reader, run=RUN, kind="alpaca", market=MARKET, calendar=calendar, clock=Clock(account)
        )
        for number, trades in enumerate([[], *days]):
            session = calendar.last_closed(account.now)
            found = asyncio.run(looking.reconcile())
            assert found.differences == ()
            booking.orders(found, session)
            if found.journal.bound is None:
                booking.opened(found, session)
            else:
                booking.book(found)
                rounding += found.rounding
                booking.close(booking.due(found.journal.books, session))  # type: ignore[arg-type]
            kept = snapshot(journal)
            assert kept.books is not None and kept.books.session == session
            ours = kept.portfolio()
            assert ours.cash == account.cash.quantize(CENT, ROUND_HALF_EVEN)
            assert {s: p.quantity for s, p in ours.positions.items()} == {s: q for s, q in account.held.items() if q}
            again = asyncio.run(looking.reconcile())
            assert (again.differences, again.activity.all, again.rounding) == ((), (), 0)
            account.ends()
            for place, trade in enumerate(sorted(trades, key=lambda one: one.minute)):
                account.now = BEGIN + timedelta(days=number, minutes=trade.minute)
                order = Order(
                    id=f"coins-{number}-{place}",
                    symbol=trade.symbol,
                    side=Side.BUY if trade.buys else Side.SELL,
                    session=session,
                    quantity=Decimal(1),
                )
                writer.order_intended(OrderEntry(order=order, run=RUN, desk="coins", cycle=1, time=account.now))
                for state in (OrderState.SUBMITTING, OrderState.ACKNOWLEDGED):
                    order = order.moved(state)
                    writer.order_moved(order, account.now)
                account.trades(order, trade)
                writer.broker_order(order.id, f"b-{order.id}")
            account.now = BEGIN + timedelta(days=number + 1)
    with JournalReader(journal) as reader:
        booked = [flow.amount for flow in reader.cash_flows() if flow.kind == ROUNDING]
    assert sum(booked, ZERO) == rounding
    assert quick_check(journal) == ()
