"""A desk for the app's tests: hand-made prices, a scripted cycle, a clock that stands still."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Never

from engine.app.models.models import Gate
from engine.app.open_desk import Publish, TakeTurn
from engine.app.research.run_spec import new_run_id
from engine.domain.decision import Cut
from engine.domain.live import FeedMessage
from engine.domain.market import Bar, KnownSymbol, PriceHistory
from engine.domain.model_call import Usage
from engine.domain.order import YOU, Order, OrderSize, OrderState, Portfolio, Position, Side, order_id, own_order_id
from engine.domain.run import RunKind, RunOutcome, RunSpec, TradingMode
from engine.errors import MissingData, StaleData, UsageError
from engine.execution.controls import approvals, halted, not_sent
from engine.execution.limits import cost, edit_of, own_order, own_refusal
from engine.execution.venue import BuyingPower
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market, MarketAsOf
from engine.market.trading_hours import AroundTheClock
from engine.messages.commands import Edit, PlaceOrder
from engine.messages.events import (
    AgentAnswered,
    AgentSaid,
    DecisionMade,
    OrderMoved,
    RunFinished,
    RunStarted,
    SessionSettled,
    StepStarted,
)
from engine.ports import LiveFeed
from engine.preset import load_preset
from engine.reports.documents.order_effect import Ticket, order_effect
from engine.reports.documents.records import Records
from engine.reports.documents.set_up import Finding
from tests.decided import decided, settled

NOW = datetime(2024, 5, 1, 0, 0, 1, tzinfo=UTC)
SESSION = date(2024, 4, 30)
SYMBOLS = ("AAA-USD", "BBB-USD", "CCC-USD")
LABEL = "rules, not a language model"


def meant(n: int, side: Side) -> Order:
    """An order of the session for the n-th symbol."""
    ours = order_id("test", SESSION, 1, SYMBOLS[n], side)
    notional, quantity = (Decimal(7000), None) if side is Side.BUY else (None, Decimal("12.3456"))
    return Order(
        id=ours,
        symbol=SYMBOLS[n],
        side=side,
        session=SESSION,
        quantity=quantity,
        notional=notional,
        reason="[b]it rises[/b] on volume",
    )


BOUGHT, SOLD, SENT = meant(0, Side.BUY), meant(1, Side.SELL), meant(2, Side.BUY)


class StandingClock:
    """Always the same moment."""

    def now(self) -> datetime:
        """NOW."""
        return NOW


def history(symbol: str, base: float, days: int = 90) -> PriceHistory:
    """A gentle wave around a base price, one bar a day, the last on SESSION."""
    bars = []
    close = base
    for n in range(days):
        start = close
        close = base * (1 + 0.08 * math.sin(n / 7 + base)) + n * 0.05
        high, low = max(start, close) * 1.01, min(start, close) * 0.99
        day = SESSION - timedelta(days=days - 1 - n)
        named = {"open": start, "high": high, "low": low, "close": close}
        prices = {name: Decimal(f"{price:.2f}") for name, price in named.items()}
        bars.append(Bar(session=day, **prices, volume=Decimal(1_000_000 + 40_000 * (n % 9))))
    return PriceHistory.of(symbol, bars)


class FakeDesk:
    """An OpenDesk over hand-made data; its cycle streams a little and decides. `pause`: seconds after each word."""

    def __init__(
        self, folder: Path, *, symbols: Sequence[str] = SYMBOLS, pause: float = 0.0, breaks: bool = False
    ) -> None:
        self.desk = "test"
        self.symbols = tuple(symbols)
        self.knows_prices = True
        self.label, self.lacks_key, self.steps = LABEL, "", load_preset("finvision").questions
        self.journal = folder / "test.db"
        self.mode = TradingMode.AUTO
        self.submissions = 0
        self.clock = StandingClock()
        self.default_backtest = RunSpec(
            symbols=tuple(symbols[:2]), first=date(2024, 1, 2), last=SESSION, preset="finvision"
        )
        self.feed: LiveFeed | None = None
        self.costs = self.default_costs = "next open, 5 bp slippage, 0 % commission"
        self.rehearsal = SimpleNamespace(reason="")
        self.watches = self.is_demo = self.moves_on = self.books_fills = self.real_time = False
        self.booked: list[datetime] = []
        self.undo_seconds, self.notify = 0.0, True
        self.changed: Callable[[], str] = lambda: ""
        self.usd_per_day = Decimal(5)
        self.schedule = None
        known = [KnownSymbol(symbol, sources=("desk",)) for symbol in symbols]
        self.symbol_index = SimpleNamespace(all=lambda: known, market=lambda symbols, now: asyncio.run(self.market()))
        self.benchmark: str | None = None
        self.session_minutes = SimpleNamespace(available=False)
        self.cycles = 0
        self.asked: list[str | None] = []
        self.pause = pause
        self.cost = Decimal(0)
        self._breaks = breaks

    async def book(self, publish: Publish) -> bool:
        """Nothing is new."""
        self.booked.append(self.clock.now())
        return False

    def backtest_id(self) -> str:
        return new_run_id("backtest", self.clock.now())

    def costs_of(self, spec: RunSpec) -> str:
        """The costs of a backtest."""
        return f"fills at the next open, slippage 5 bp, commission 0 %, cash {spec.cash or 100_000:,.2f}"

    def cash_of(self, spec: RunSpec) -> Decimal:
        """The money that a backtest begins with."""
        return spec.cash or Decimal(100_000)

    def memories(self, run: str | None, session: date | None, *, undecided: bool = False) -> Never:
        """It remembers nothing."""
        raise MissingData("no memories yet")

    def findings(self) -> tuple[Finding, ...]:
        """All is well."""
        return (Finding("Desk", "fake", "ok", "made for tests"),)

    async def sync(self) -> None:
        """A clock that stands still is never moved."""

    async def market(self) -> Market:
        """Ninety days of every symbol."""
        histories = {symbol: history(symbol, 40.0 + 60 * n) for n, symbol in enumerate(self.symbols)}
        nothing: dict[str, tuple[()]] = dict.fromkeys(self.symbols, ())
        return Market(
            histories=histories,
            actions=nothing,
            news=nothing,
            filings=nothing,
            calendars=dict.fromkeys(self.symbols, AroundTheClock()),
        )

    async def bring_closes(self) -> int | None:
        """All closes are there."""
        return None

    def bring_watched(self, symbols: Sequence[str], now: datetime) -> bool:
        """There is nothing to fetch."""
        return False

    def closes(self, records: Records, symbols: Sequence[str]) -> MarketAsOf:
        """Its own market, whatever the records."""
        return asyncio.run(self.market()).at(NOW)

    async def watch(self, publish: Publish, on_message: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Runs one cycle on its own account, then listens to its feed."""
        await take_turn(lambda gate: self.run_cycle(publish, gate))
        if self.feed is not None:
            await self.feed.follow(self.symbols, on_message)

    def edit(self, order_id: str, size: OrderSize) -> Edit:
        """At a price of 50, up to 10,000 dollars."""
        with JournalReader(self.journal) as reader:
            orders = {entry.order.id: entry.order for entry in reader.orders()}
        if (order := orders.get(order_id)) is None:
            raise UsageError(f"there is no order {order_id}")
        edit = edit_of(order, size, Decimal(50))
        if cost(edit.applied(order), Decimal(50)) > 10_000:
            raise UsageError("too much")
        return edit

    def ticket(self, wanted: PlaceOrder, live: Decimal | None) -> Ticket:
        """At a live price, else one of 50, with 10,000 of cash of which 1,000 has to stay, and nothing held."""
        if wanted.symbol not in self.symbols:
            raise UsageError(f"{wanted.symbol} is none of the desk's symbols")
        price, cash = live or Decimal(50), Decimal(10_000)
        order = own_order(own_order_id("test", SESSION, wanted.symbol, wanted.side, 1), wanted, price, SESSION)
        refused = own_refusal(order, BuyingPower(cash), price, floor=Decimal(1000))
        time = None if live is None else NOW
        effect = order_effect(order, lambda one: price, SESSION, portfolio=Portfolio(cash), value=cash, time=time)
        return Ticket(order=order, effect=effect, refused=refused)

    async def place(self, wanted: PlaceOrder, publish: Publish) -> Ticket:
        """Writes the order down, and sends it."""
        ticket = self.ticket(wanted, None)
        if ticket.refused:
            return ticket
        order = ticket.order
        with JournalWriter(self.journal) as writer:
            writer.order_intended(OrderEntry(order=order, run="", desk="test", cycle=0, time=NOW, owner=YOU))
            for state in (OrderState.SUBMITTING, OrderState.ACKNOWLEDGED):
                writer.order_moved(order := order.moved(state), NOW)
        return replace(ticket, order=order)

    async def cancel(self, order_id: str, publish: Publish) -> str:
        """Ends an order that was sent."""
        with JournalReader(self.journal) as reader:
            order = next(entry.order for entry in reader.orders() if entry.order.id == order_id)
        with JournalWriter(self.journal) as writer:
            writer.order_moved(order.moved(OrderState.CANCELED), NOW)
        return f"{order.side} {order.symbol}: canceled by you"

    async def submit(self, publish: Publish) -> None:
        """Sends what is approved, ends what is vetoed, as the words in the journal say."""
        self.submissions += 1
        with JournalReader(self.journal) as reader:
            words, stopped = approvals(reader), halted(reader) is not None
            waiting = not_sent(reader)
        with JournalWriter(self.journal) as writer:
            for order in (entry.order for entry in waiting if entry.order.id in words):
                if words[order.id].approved and stopped:
                    continue
                if words[order.id].approved:
                    writer.order_moved(order.moved(OrderState.SUBMITTING), NOW)
                    order = order.moved(OrderState.SUBMITTING).moved(OrderState.ACKNOWLEDGED)
                else:
                    order = order.moved(OrderState.CANCELED)
                writer.order_moved(order, NOW)
                publish(OrderMoved("", NOW, order))

    async def run_cycle(self, publish: Publish, gate: Gate, only: str | None = None) -> None:
        """Each symbol, or one alone, reads its chart and decides."""
        self.cycles += 1
        self.asked.append(only)
        symbols = self.symbols if only is None else (only,)
        if self._breaks:
            raise StaleData("the bars end on 2024-04-01, before 2024-04-30: fetch newer ones")
        run = f"daily-{self.cycles}"
        publish(
            RunStarted(
                run=run,
                time=NOW,
                kind=RunKind.DAILY if only is None else RunKind.SYMBOL,
                name="test",
                label=LABEL,
                symbols=symbols,
                first=SESSION,
                last=SESSION,
                sessions=1,
            )
        )
        for symbol in symbols:
            for step in ("chart", "decision"):
                publish(StepStarted(run=run, time=NOW, session=SESSION, symbol=symbol, owner="desk", step=step))
                await gate()
                for word in (f"{symbol} rises ", "[b]steadily[/b] ", "and on volume"):
                    publish(
                        AgentSaid(run=run, time=NOW, session=SESSION, symbol=symbol, owner="desk", step=step, text=word)
                    )
                    await asyncio.sleep(self.pause)
                said = f"trend: {symbol} rises [b]steadily[/b] and on volume"
                publish(
                    AgentAnswered(
                        run=run,
                        time=NOW,
                        session=SESSION,
                        symbol=symbol,
                        owner="desk",
                        step=step,
                        text=said,
                        model="offline",
                        abstained=False,
                        cached=False,
                        usage=Usage(300, 0, 12),
                        cost=self.cost,
                        seconds=0.1,
                    )
                )
        for n, symbol in enumerate(symbols):
            action, size = (("BUY", 7), ("SELL", 5), ("HOLD", 0))[n % 3]
            cuts = (Cut("band", Decimal(9), Decimal(5), "the band"),) if action == "SELL" else ()
            made = decided(symbol, action, size, SESSION, run=run, reason=f"{symbol}: it rises", cuts=cuts)
            publish(DecisionMade(run, NOW, made))
            if size:
                sent = Order(id=f"o{n}", symbol=symbol, side=Side(action), session=SESSION, quantity=Decimal(1))
                publish(OrderMoved(run, NOW, replace(sent, state=OrderState.ACKNOWLEDGED)))
        held, price = Position(Decimal(120), Decimal("44.50")), Decimal("44.50")
        positions, prices = {self.symbols[0]: held}, {self.symbols[0]: price}
        books = settled(SESSION, Decimal("101340.00"), Decimal("96000.00"), positions, prices)
        publish(SessionSettled(run, NOW, books))
        publish(RunFinished(run, NOW, RunOutcome.DONE, Decimal("101340.00"), ""))


def opens(desk: FakeDesk) -> Callable[[], FakeDesk]:
    """What an app is given to open a desk."""
    return lambda: desk


def asking_desk(folder: Path) -> FakeDesk:
    """A desk in mode ask with two orders that wait and one that was sent."""
    desk = FakeDesk(folder)
    desk.mode = TradingMode.ASK
    with JournalWriter(desk.journal) as writer:
        for order in (SENT, BOUGHT, SOLD):
            writer.order_intended(OrderEntry(order=order, run="r", desk="test", cycle=1, time=NOW))
        submitting = SENT.moved(OrderState.SUBMITTING)
        writer.order_moved(submitting, NOW)
        writer.order_moved(submitting.moved(OrderState.ACKNOWLEDGED), NOW)
    return desk
