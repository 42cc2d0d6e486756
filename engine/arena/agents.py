"""The agents of the arena: what a trader that asks a model sees and answers, from the chat to the reflection.

Source: Agent Trading Arena §4.2, appendix A [R3, R4, R5, R6].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from engine.agents.agent import Agent, Answer, Part, Reads, Sentence, View, plain
from engine.agents.rendering import money, signed_percent
from engine.arena.rules import ArenaRules
from engine.arena.view import MarketView, StockView, Wish
from engine.domain.chart import Candles, ChartSpec, Line, Marker, Panel
from engine.domain.order import Side
from engine.market.chart_specs import own_trades

PROMPTS = Path(__file__).parent / "prompts"
MARKET_SYMBOL = "ARENA"
"""Symbol under which questions about the whole market are recorded."""
MOST_ORDERS = 12
BOUNDS = (Decimal("0.5"), Decimal(2))
"""Limits of an order that common sense allows, as parts of the price."""


def date_of(day: int) -> date:
    """The date under which a day of the arena is recorded; days have none of their own."""
    return date(1999, 12, 31) + timedelta(days=day)


def named_day(day: int) -> str:
    """A day of the arena as charts write it."""
    return f"day {day}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charted:
    """Closes of a stock with the trader's own trades: `closes` oldest first, trades by day (0: before the first) with
    price and shares.

    bars: open, high, low and volume of each day, where candles are shown in place of a line.
    """

    name: str
    closes: tuple[Decimal, ...]
    first_day: int
    trades: tuple[tuple[int, Side, Decimal, int], ...] = ()
    bars: tuple[tuple[Decimal, Decimal, Decimal, int], ...] = ()

    def spec(self) -> ChartSpec:
        """The chart as a value. Its sessions are days of the arena: a date would bring up a market that a model
        knows. Source: Agent Trading Arena §4.2 [R6]."""
        days = range(self.first_day, self.first_day + len(self.closes))
        markers = (
            Marker(day - self.first_day, side.value, float(price)) for day, side, price, _ in self.trades if day in days
        )
        closes = tuple(map(float, self.closes))
        line = ChartSpec(
            kind="signals",
            title=f"{self.name}, closes of {len(closes)} days",
            symbol=self.name,
            sessions=tuple(map(named_day, days)),
            lines=(Line("close", closes, "close"),),
            markers=tuple(markers),
        )
        if not self.bars:
            return line
        opened, high, low, volume = (tuple(map(float, column)) for column in zip(*self.bars, strict=True))
        own = dict.fromkeys(days, 0.0)
        for day, side, _, quantity in self.trades:
            if day in days:
                own[day] += quantity if side is Side.BUY else -quantity
        return replace(
            line,
            title=f"{self.name}, candles, volume and own trades of {len(closes)} days",
            candles=Candles(opened, high, low, closes),
            lines=(),
            panels=(Panel("Volume", bars=volume), own_trades("shares", tuple(own.values()))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraderView(View):
    """The part of a question that all of a trader's questions share.

    name, profession, horizon: of its persona; the horizon in years.
    traders: at the table.
    market: the market and the own account.
    rules: of the market.
    index_change: mean change of all stocks since the last close.
    input: what the model is shown of prices: figures, charts or both.
    charted, record: a chart of every stock, and of the own trades and wealth, where charts are shown.
    strategy: in force.
    """

    name: str
    profession: str
    horizon: int
    traders: int
    market: MarketView
    rules: ArenaRules
    index_change: Decimal
    input: Literal["text", "charts", "both"]
    charted: tuple[Charted, ...]
    record: ChartSpec | None
    strategy: str

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """A chart of every stock, then the record; none where figures alone are shown."""
        return (*(one.spec() for one in self.charted), *(() if self.record is None else (self.record,)))

    @property
    def day(self) -> int:
        """Day of the arena, from 1."""
        return self.market.day

    @property
    def days(self) -> int:
        """Length of the arena."""
        return self.market.days

    @property
    def round(self) -> int:
        """Round of the day, from 1."""
        return self.market.round

    @property
    def wealth(self) -> Decimal:
        """Cash and shares at the prices now."""
        return self.market.wealth

    @property
    def cash(self) -> Decimal:
        """All cash of the account."""
        return self.market.cash

    @property
    def holdings(self) -> tuple[str, ...]:
        """A line per stock that is held: shares, value, cost and gain."""
        return tuple(self._holdings())

    def market_lines(self, sees: bool) -> tuple[str, ...]:
        """A line per stock; the closes only where the model is not shown them in a chart alone."""
        figures = self.input != "charts" or not sees
        return tuple(_stock_line(stock, figures) for stock in self.market.stocks)

    def summary(self) -> str:
        """The day and the round, for the record."""
        return f"day {self.day}, round {self.round}"

    def _holdings(self) -> Iterator[str]:
        for stock in self.market.stocks:
            held, cost = self.market.shares[stock.name], self.market.costs[stock.name]
            if held:
                gain = stock.price / cost - 1 if cost else Decimal(0)
                yield (
                    f"{stock.name}: {held} shares worth {money(held * stock.price)}, average cost {money(cost)}, "
                    f"gain {signed_percent(gain)}"
                )


def _stock_line(stock: StockView, figures: bool) -> str:
    parts = [f"{stock.name}: price {money(stock.price)} ({signed_percent(stock.change)} today)"]
    if stock.today:
        prices, volume = [price for price, _ in stock.today], sum(count for _, count in stock.today)
        mean = sum(prices, Decimal(0)) / len(prices)
        high, low = money(max(prices)), money(min(prices))
        parts.append(f"{volume} shares traded today, high {high}, low {low}, mean {money(mean)}")
    else:
        parts.append("no shares traded today")
    if stock.bid is not None or stock.ask is not None:
        sides = (("bid", stock.bid), ("ask", stock.ask))
        parts.append(", ".join(f"best {name} {money(price)}" for name, price in sides if price is not None))
    parts.append(f"expected dividend {money(stock.dividend)} a share and day")
    if stock.fundamental is not None:
        parts.append(f"expected value of all that it still pays {money(stock.fundamental)}")
    if figures:
        closes = ", ".join(map(money, stock.closes))
        parts.append(f"closes of the last {len(stock.closes)} days, oldest first: {closes}")
    return "; ".join(parts)


# Chat.


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatView(TraderView):
    """The view before the open: `findings` are of yesterday's analysis."""

    findings: tuple[str, ...]


class ChatAnswer(Answer):
    """A message to all, or none."""

    message: Annotated[str, StringConstraints(max_length=600)]
    """The message, at most 60 words; empty if you would rather say nothing."""
    invented: bool
    """true if you know that what it says is not so; nobody else is told."""


# Analysis.


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisView(TraderView):
    """The view for the day's analysis: `messages` of the other traders, each with its author."""

    messages: tuple[str, ...]


class Finding(Part):
    """A finding and its use."""

    finding: Sentence
    """The finding, with its figures."""
    bearing: Sentence
    """The meaning of it for your strategy."""


class AnalysisAnswer(Answer):
    """Findings and a ranking."""

    findings: list[Finding] = Field(min_length=1, max_length=6)
    """The three findings that are worth most."""
    ranking: list[str]
    """The names of all stocks, the one that you want most first."""

    def check(self, view: AnalysisView) -> None:
        """Every stock is ranked once."""
        names = sorted(stock.name for stock in view.market.stocks)
        if sorted(self.ranking) != names:
            raise ValueError(f"ranking: rank each of {', '.join(names)} once")

    def findings_lines(self) -> tuple[str, ...]:
        """The ranking and the findings for the trader's later questions."""
        listed = (f"{one.finding} For the strategy: {one.bearing}" for one in self.findings)
        return (f"Ranking: {', '.join(self.ranking)}", *listed)


# Orders.


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdersView(TraderView):
    """The view of a round: `findings` of the day's analysis, `notes` of its earlier rounds."""

    findings: tuple[str, ...]
    notes: tuple[str, ...]
    bounds: ClassVar = BOUNDS
    most_orders: ClassVar = MOST_ORDERS


class OrderAnswer(Part):
    """An order as a model writes it."""

    stock: str
    """The stock's name."""
    action: Literal["BUY", "SELL"]
    """BUY or SELL."""
    quantity: int = Field(gt=0, le=1_000_000)
    """Shares, a whole number."""
    limit: Decimal | None = Field(None, gt=0, max_digits=12)
    """The worst price that you accept; null for any."""


class OrdersAnswer(Answer):
    """The orders of a round."""

    reason: Sentence
    """The reasons, in at most 60 words."""
    orders: list[OrderAnswer] = Field(max_length=MOST_ORDERS)
    """Your orders; an empty list for none."""

    def check(self, view: OrdersView) -> None:
        """Known stocks, covered by cash and shares, limits that common sense allows."""
        prices = {stock.name: stock.price for stock in view.market.stocks}
        cash, sold = view.market.cash, dict.fromkeys(prices, 0)
        for order in self.orders:
            if order.stock not in prices:
                raise ValueError(f"orders: there is no stock {plain(order.stock, 20)}; there are {', '.join(prices)}")
            price = prices[order.stock]
            if order.limit is not None and not BOUNDS[0] * price <= order.limit <= BOUNDS[1] * price:
                raise ValueError(f"orders: a limit of {order.limit} for {order.stock} is far from its {money(price)}")
            if order.action == "SELL":
                sold[order.stock] += order.quantity
            else:
                cash -= order.quantity * (order.limit or price)
        if cash < 0:
            raise ValueError(f"orders: the purchases cost {money(-cash)} more than your cash {money(view.market.cash)}")
        short = [name for name, count in sold.items() if count > view.market.shares[name]]
        if short:
            raise ValueError(f"orders: you hold {view.market.shares[short[0]]} {short[0]} and sell {sold[short[0]]}")

    def wishes(self, view: OrdersView) -> tuple[Wish, ...]:
        """The orders in ticks."""
        tick = view.market.tick
        return tuple(
            Wish(
                one.stock, Side(one.action), one.quantity, one.limit and (one.limit / tick).quantize(Decimal(1)) * tick
            )
            for one in self.orders
        )


# Reflection.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionView(TraderView):
    """The view after the close.

    findings: of the day's analysis.
    notes: orders of the day and what became of them.
    day_return, average_return: the trader's and all traders' change of wealth.
    best, worst: strategies with their scores.
    """

    findings: tuple[str, ...]
    notes: tuple[str, ...]
    day_return: Decimal
    average_return: Decimal
    best: tuple[str, ...]
    worst: tuple[str, ...]


class ReflectionAnswer(Answer):
    """A judgement and the next strategy."""

    evaluation: Sentence
    """A judgement of how the strategy did today, with the reasons."""
    strategy: Annotated[Sentence, StringConstraints(max_length=1_200)]
    """The strategy for the coming days, concrete enough to follow; at most 120 words."""


_MEMORY = frozenset({Reads.MARKET, Reads.HISTORY})

CHAT = Agent(
    name="arena-chat",
    view=ChatView,
    answer=ChatAnswer,
    prompt=PROMPTS / "arena-chat.md",
    rule="engine.arena.offline:chat",
    reads=_MEMORY,
)
ANALYSIS = Agent(
    name="arena-analysis",
    view=AnalysisView,
    answer=AnalysisAnswer,
    prompt=PROMPTS / "arena-analysis.md",
    rule="engine.arena.offline:analyse",
    reads=_MEMORY,
)
ORDERS = Agent(
    name="arena-orders",
    view=OrdersView,
    answer=OrdersAnswer,
    prompt=PROMPTS / "arena-orders.md",
    rule="engine.arena.offline:order",
    reads=_MEMORY,
)
REFLECTION = Agent(
    name="arena-reflection",
    view=ReflectionView,
    answer=ReflectionAnswer,
    prompt=PROMPTS / "arena-reflection.md",
    rule="engine.arena.offline:reflect",
    reads=_MEMORY,
)
