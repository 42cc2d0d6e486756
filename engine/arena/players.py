"""Players at the table of an arena: rules, and personas that ask a model.

The chat pool and the strategy library: what agents tell each other, and what they tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Literal, Protocol, TypeVar

from engine.agents.agent import Agent
from engine.agents.ask import Asker
from engine.agents.rendering import money
from engine.agents.tools import best_and_worst
from engine.arena.agents import (
    ANALYSIS,
    CHAT,
    MARKET_SYMBOL,
    ORDERS,
    REFLECTION,
    AnalysisView,
    Charted,
    ChatView,
    OrdersView,
    ReflectionView,
    TraderView,
    date_of,
    named_day,
)
from engine.arena.market import Market
from engine.arena.traders import Rule
from engine.arena.values import Refusal, Trade
from engine.arena.view import MarketView, StockView, Wish, view_of
from engine.domain.chart import ChartSpec, Line
from engine.domain.order import Side
from engine.market.chart_specs import record_chart

V = TypeVar("V", bound=TraderView)


class Player(Protocol):
    """An agent at the table. A day calls chat, prepare, orders and answered for every round, and reflect.

    window: days of closes that it sees.
    """

    @property
    def window(self) -> int:
        """Days of closes in its view."""

    async def chat(self, market: Market) -> tuple[str, bool | None]:
        """The message of the morning and its truth; an empty text for none."""

    async def prepare(self, market: Market, messages: Sequence[ChatMessage]) -> None:
        """Read the messages of the others and analyse the market."""

    async def orders(self, view: MarketView) -> Iterable[Wish]:
        """The orders of a round, gone through once when they arrive."""

    def answered(self, wish: Wish, refusal: Refusal | None) -> None:
        """Learn of an order that was sent: accepted, or refused and why."""

    async def reflect(self, market: Market, day_return: Decimal, average: Decimal) -> None:
        """Look back on the day, with the own and the mean change of wealth."""


@dataclass(slots=True)
class RulePlayer:
    """A player that follows a rule; it neither talks nor learns."""

    rule: Rule
    random: Random
    window: int = 20

    async def chat(self, market: Market) -> tuple[str, bool | None]:
        """Nothing."""
        return "", None

    async def prepare(self, market: Market, messages: Sequence[ChatMessage]) -> None:
        """Nothing."""

    async def orders(self, view: MarketView) -> Sequence[Wish]:
        """The rule's orders."""
        return self.rule(view, self.random)

    def answered(self, wish: Wish, refusal: Refusal | None) -> None:
        """Nothing."""

    async def reflect(self, market: Market, day_return: Decimal, average: Decimal) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """A trader's character and what it is shown.

    horizon: years.
    input: of prices: figures, charts or both.
    window: days of closes.
    reflects: writes a new strategy at the end of each day.
    strategy: of the beginning.

    Source: Agent Trading Arena, Table 1 [R4, R6].
    """

    name: str
    profession: str
    horizon: int = 1
    input: Literal["text", "charts", "both"] = "text"
    window: int = 10
    reflects: bool = True
    strategy: str = "Try to make as much profit as possible."


@dataclass(slots=True)
class PersonaPlayer:
    """A persona whose questions a model answers. An abstention costs it the step, and nobody else.

    asker: the way to its model.
    library: its strategies, oldest first.
    abstained: counts by question.
    worth: its wealth by day, of the beginning (0) and of every close.
    """

    persona: Persona
    asker: Asker
    library: list[Strategy] = field(default_factory=list)
    abstained: dict[str, int] = field(default_factory=dict)
    worth: dict[int, Decimal] = field(default_factory=dict)
    _findings: tuple[str, ...] = ()
    _notes: list[str] = field(default_factory=list)
    _market: Market | None = None
    _returns: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.library.append(Strategy(day=0, text=self.persona.strategy))

    @property
    def window(self) -> int:
        """Days of closes in its view."""
        return self.persona.window

    async def chat(self, market: Market) -> tuple[str, bool | None]:
        """A message from yesterday's analysis."""
        self._market, self._notes = market, []
        self.worth.setdefault(market.day - 1, market.wealth(self.persona.name))
        view = ChatView(**self._shared(market), findings=self._findings)
        answer = await self._answer(CHAT, view)
        return ("", None) if answer is None else (answer.message, not answer.invented)

    async def prepare(self, market: Market, messages: Sequence[ChatMessage]) -> None:
        """The analysis of the day; without an answer there is none."""
        lines = tuple(f"{one.agent}: {one.text}" for one in messages)
        answer = await self._answer(ANALYSIS, AnalysisView(**self._shared(market), messages=lines))
        self._findings = () if answer is None else answer.findings_lines()

    async def orders(self, view: MarketView) -> Sequence[Wish]:
        """The orders of a round; none without an answer."""
        assert self._market is not None
        shared = self._shared(self._market)
        notes = (*self._notes, *self._traded(self._market, view.day))
        asked = OrdersView(**shared | {"market": view}, findings=self._findings, notes=notes)
        answer = await self._answer(ORDERS, asked)
        if answer is None:
            return ()
        self._notes.append(f"round {view.round}: {answer.reason}")
        return tuple(answer.wishes(asked))

    def answered(self, wish: Wish, refusal: Refusal | None) -> None:
        """Note the order and its result for the rest of the day."""
        limit = "any price" if wish.limit is None else money(wish.limit)
        result = "accepted" if refusal is None else f"refused: {refusal}"
        self._notes.append(f"{wish.side} {wish.quantity} {wish.stock} at {limit}: {result}")

    async def reflect(self, market: Market, day_return: Decimal, average: Decimal) -> None:
        """Score the strategy, and write the next one where the persona reflects."""
        self.worth[market.day - 1] = market.wealth(self.persona.name)
        self._returns.append(float(day_return - average) * 100)
        current = self.library[-1]
        score = sum(self._returns) / len(self._returns)
        self.library[-1] = Strategy(day=current.day, text=current.text, parent=current.parent, score=score)
        if not self.persona.reflects or market.day > market.rules.days:
            return
        best, worst = best_and_worst(self.library)
        view = ReflectionView(
            **self._shared(market),
            findings=self._findings,
            notes=(*self._notes, *self._traded(market, market.day - 1)),
            day_return=day_return,
            average_return=average,
            best=tuple(f"score {one.score:+.2f}: {one.text}" for one in best),
            worst=tuple(f"score {one.score:+.2f}: {one.text}" for one in worst),
        )
        answer = await self._answer(REFLECTION, view)
        if answer is not None and answer.strategy != current.text:
            self.library.append(Strategy(day=market.day - 1, text=answer.strategy, parent=current.day))
            self._returns = []

    def _traded(self, market: Market, day: int) -> Sequence[str]:
        name = self.persona.name
        return tuple(
            f"{'bought' if one.buyer == name else 'sold'} {one.quantity} {one.stock} at {money(one.price)}"
            for one in market.trades
            if one.day == day and name in (one.buyer, one.seller)
        )

    async def _answer(self, agent: Agent[V, Any], view: V) -> Any:
        reply = await self.asker.ask(agent, view)
        if reply.answer is None:
            self.abstained[agent.name] = self.abstained.get(agent.name, 0) + 1
        return reply.answer

    def _shared(self, market: Market) -> dict[str, Any]:
        persona = self.persona
        view = view_of(market, persona.name, persona.window)
        changes = [one.change for one in view.stocks]
        shown = persona.input != "text"
        return {
            "symbol": MARKET_SYMBOL,
            "session": date_of(view.day),
            "owner": persona.name,
            "name": persona.name,
            "profession": persona.profession,
            "horizon": persona.horizon,
            "traders": len(market.agents),
            "market": view,
            "rules": market.rules,
            "index_change": sum(changes, Decimal(0)) / len(changes),
            "input": persona.input,
            "charted": self._charted(market, view) if shown else (),
            "record": self._record(market) if shown and market.day > 1 else None,
            "strategy": self.library[-1].text,
        }

    def _record(self, market: Market) -> ChartSpec:
        """The wealth of the days that are over, and the money of the trades in all stocks."""
        days = range(max(0, market.day - self.persona.window), market.day)
        bought, sold = dict.fromkeys(days, 0.0), dict.fromkeys(days, 0.0)
        for one in self._own_trades(market):
            money_by_day, sign = (bought, 1) if one.buyer == self.persona.name else (sold, -1)
            if one.day in days:
                money_by_day[one.day] += sign * float(one.price * one.quantity)
        worth = Line("wealth", tuple(float(self.worth[day]) for day in days))
        return record_chart(tuple(map(named_day, days)), worth, tuple(bought.values()), tuple(sold.values()), "money")

    def _own_trades(self, market: Market) -> Sequence[Trade]:
        return [one for one in market.trades if self.persona.name in (one.buyer, one.seller)]

    def _charted(self, market: Market, view: MarketView) -> tuple[Charted, ...]:
        trades = self._own_trades(market)
        return tuple(
            Charted(
                name=stock.name,
                closes=tuple(stock.closes),
                first_day=market.day - len(stock.closes),
                trades=tuple(
                    (one.day, Side.BUY if one.buyer == self.persona.name else Side.SELL, one.price, one.quantity)
                    for one in trades
                    if one.stock == stock.name
                ),
                # Candles and volumes are for looking back [R6].
                bars=_bars(market, stock, market.day - len(stock.closes)) if market.closed else (),
            )
            for stock in view.stocks
        )


def _bars(market: Market, stock: StockView, first_day: int) -> tuple[tuple[Decimal, Decimal, Decimal, int], ...]:
    """Open, high, low and volume of the days of a stock's closes; a day without trades has its close alone."""
    trades: dict[int, list[Trade]] = {}
    for one in market.trades:
        if one.stock == stock.name:
            trades.setdefault(one.day, []).append(one)
    bars = []
    for day, close in enumerate(stock.closes, first_day):
        done = trades.get(day, [])
        prices = [*(one.price for one in done), close]
        bars.append((prices[0], max(prices), min(prices), sum(one.quantity for one in done)))
    return tuple(bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message of the chat pool.

    id: DAY-AGENT, by which a run can be repeated without it.
    to: the agents that read it.
    truth: what its author knows of it: True, False for an invention, None where it does not say. For whoever runs the
      arena; no agent is told.
    """

    id: str
    day: int
    agent: str
    to: tuple[str, ...]
    text: str
    truth: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A strategy of an agent and what came of it.

    day: the day after which it was written, 0 for the one of the beginning.
    parent: day of the strategy that it was written from; None at the beginning.
    score: mean over its days of the agent's return less the mean return of all agents, in percent; None before it was
      used.
    """

    day: int
    text: str
    parent: int | None = None
    score: float | None = None
