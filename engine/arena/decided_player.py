"""A player that decides once a morning, as a desk does, and sends in every round of the day what is still missing.

A preset of the cycle at the table: every morning is a session of its desk, on the arena's public record.

A rule strategy of backtests at the table: its signals or weights on the arena's daily prices.

A seat's account at the table as the venue of a session: its books at each close, and what moved them.

Orders toward the shares that a seat wants to hold, and the record of why it wants them.

The arena's public record as market data of the cycle: prices as bars, chat and notices as news.

A day of the arena is a session of a calendar without weekends, under a date of its own. Nothing of a day is visible
before its close but what is told in its morning: notices, and the messages that the seat may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Protocol

from engine.account.time_weighted import EXTERNAL
from engine.agents.rendering import money
from engine.arena.book import CENT
from engine.arena.market import Listing, Market
from engine.arena.players import ChatMessage
from engine.arena.traders import MARGIN, in_ticks
from engine.arena.values import FlowKind, Refusal
from engine.arena.view import MarketView, StockView, Wish
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, TradingHistory
from engine.domain.decision import DESK, Action, Decision
from engine.domain.market import COLUMNS, ActionKind, Bar, CorporateAction, NewsItem, PriceHistory, Symbol
from engine.domain.model_call import AnswerRecord
from engine.domain.order import Fill, Portfolio, Position, Side
from engine.domain.run import CashFlow, EquityPoint
from engine.execution.venue import BuyingPower, OrderTerms, SettledSession, Settlement
from engine.market import as_of
from engine.market.as_of import MarketAsOf
from engine.market.trading_hours import FIRST_SESSION, AroundTheClock, decision_time
from engine.messages.answer_text import answer_text
from engine.preset import Preset
from engine.session.context import Moment, RunState, SessionContext
from engine.session.loop import run_session
from engine.strategies.catalog import in_file, signals_of, weights_of
from engine.strategies.strategy import Signal, SignalStrategy, Strategy, StrategyView, WeightStrategy


class Decider(Protocol):
    """The part of a seat that decides: a preset of the cycle, or a rule strategy of backtests."""

    async def decide(self, day: int, data: PublicData, account: SeatAccount) -> Sequence[SeatDecision]:
        """Decide on the stocks of a morning; one that is left out stays as it is."""


@dataclass(slots=True)
class DecidedPlayer:
    """A player whose orders lead to the shares that its decider wants (Player). It does not talk.

    decided: its decisions, oldest first.
    """

    name: str
    decider: Decider
    window: int = 2
    decided: list[SeatDecision] = field(default_factory=list)
    _targets: Mapping[str, int] = field(default_factory=dict)
    _market: Market | None = None
    _record: tuple[PublicData, SeatAccount] | None = None

    async def chat(self, market: Market) -> tuple[str, bool | None]:
        """Nothing."""
        return "", None

    async def prepare(self, market: Market, messages: Sequence[ChatMessage]) -> None:
        """Read what the morning brought, and decide."""
        if self._record is None:
            self._record = PublicData(market), SeatAccount(market, self.name)
            self._market = market
        data, account = self._record
        data.add_morning(market, messages)
        made = await self.decider.decide(market.day, data, account)
        self.decided += made
        self._targets = {one.stock: market.ledger.shares(self.name, one.stock) + one.shares for one in made}

    async def orders(self, view: MarketView) -> Iterable[Wish]:
        """The orders that lead to what was decided."""
        return self._missing(view)

    def _missing(self, view: MarketView) -> Iterator[Wish]:
        """The orders on the view's prices, counted when they arrive: those of the round before may have traded until
        then, and nothing is ordered twice."""
        assert self._market is not None
        ledger = self._market.ledger
        shares = {stock.name: ledger.shares(self.name, stock.name) for stock in view.stocks}
        now = replace(view, shares=shares, cash=ledger.cash(self.name))
        yield from toward(now, self._targets, self._market.rules.cost_rate)

    def answered(self, wish: Wish, refusal: Refusal | None) -> None:
        """Nothing: what did not trade is sent again in the next round."""

    async def reflect(self, market: Market, day_return: Decimal, average: Decimal) -> None:
        """Close the books of the day."""
        if self._record is not None and market.day <= market.rules.days:
            data, account = self._record
            data.add_close(market)
            account.close(market)


UNFED = {
    "filing-summary": "filings",
    "macro": "macro series",
    "commentary": "commentary of funds",
}
"""Steps that read what an arena does not have."""


_BEGIN = datetime.combine(FIRST_SESSION, datetime.min.time(), tzinfo=UTC)


def unfed(preset: Preset) -> str:
    """The steps of a preset that find nothing to read in an arena, in one line; empty where there are none."""
    steps = [step for step in preset.steps if step in UNFED]
    lacks = ", ".join(UNFED[step] for step in steps)
    return f"an arena has no {lacks}: nothing to read for {', '.join(steps)}" if steps else ""


@dataclass(slots=True, kw_only=True)
class CycleDecider:
    """The desk of a preset at the table (Decider).

    run: id of the arena.
    name: of the seat.
    cycle: the preset's round of decisions.
    answers: what its models have answered since the last decision.
    """

    run: str
    name: str
    cycle: Cycle
    answers: list[AnswerRecord]
    _clock: BacktestClock = field(default_factory=lambda: BacktestClock(_BEGIN))
    _state: RunState = field(default_factory=lambda: RunState(TradingHistory()))

    async def decide(self, day: int, data: PublicData, account: SeatAccount) -> Sequence[SeatDecision]:
        """Settle the day before, learn from it, and decide on every stock. Raises what the models raise."""
        calendar, read = data.calendar, session_of(day - 1)
        now, before = decision_time(calendar, read), decision_time(calendar, session_of(day - 2))
        self._clock.advance(now)
        context = SessionContext(
            run=self.run,
            desk=self.name,
            symbols=tuple(data.market.histories),
            market=data.market,
            calendar=calendar,
            cycle=self.cycle,
            venue=account,
            clock=self._clock,
        )
        done = await run_session(context, Moment(session=read, now=now, news_after=before), self._state)
        self._state = done.state
        answers, self.answers[:] = tuple(self.answers), ()
        return tuple(_decisions(day, done.result, answers))


def _decisions(day: int, result: CycleResult, answers: Sequence[AnswerRecord]) -> Iterator[SeatDecision]:
    ordered = {one.symbol: int(one.quantity or 0) * (1 if one.side is Side.BUY else -1) for one in result.orders}
    for made in result.decisions:
        yield SeatDecision(
            day=day,
            stock=made.key.symbol,
            owner=made.key.owner,
            action=made.action,
            size=made.size,
            shares=ordered.get(made.key.symbol, 0),
            reason=made.reason,
            cut=made.cut,
            answers=tuple(_answers(made, answers)),
        )


def _answers(made: Decision, answers: Sequence[AnswerRecord]) -> Iterator[SeatAnswer]:
    """The answers that a decision rests on: its owner's, and everybody's where opinions were combined."""
    for one in answers:
        key = one.key
        if key.symbol == made.key.symbol and made.key.owner in (key.owner, DESK) and one.outcome != "sent back":
            text = one.reason if one.answer is None else answer_text(one.answer)
            yield SeatAnswer(one.step, key.owner, text)


@dataclass(frozen=True, slots=True)
class StrategyDecider:
    """The rule of a seat (Decider)."""

    strategy: Strategy

    async def decide(self, day: int, data: PublicData, account: SeatAccount) -> Sequence[SeatDecision]:
        """Decide on every stock that the rule names. Raises MalformedData where a user's strategy fails."""
        session, books = session_of(day - 1), account.portfolio
        market = data.market.at(decision_time(data.calendar, session))
        prices = {symbol: market.close(symbol) for symbol in market.symbols}
        value = books.value(prices)
        if value <= 0:
            return []
        held = {symbol: int(books.quantity(symbol)) for symbol in prices}
        if isinstance(self.strategy, WeightStrategy):
            shares = {symbol: float(held[symbol] * price / value) for symbol, price in prices.items() if held[symbol]}
            view = StrategyView(session=session, market=market, symbols=market.symbols, value=value, held=shares)
            wanted = _weighed(self.strategy, view, prices)
        else:
            wanted = _signalled(self.strategy, market, value / len(prices), held)
        return [
            _decision(day, symbol, target - held[symbol], prices[symbol] / value * 100, reason)
            for symbol, target, reason in wanted
        ]


def _weighed(
    strategy: WeightStrategy, view: StrategyView, prices: dict[Symbol, Decimal]
) -> Iterator[tuple[Symbol, int, str]]:
    """The shares that a strategy with state wants, each with the reason."""
    for symbol, weight in weights_of(strategy, view).items():
        yield symbol, int(view.value * weight.numerator / weight.denominator / prices[symbol]), f"{float(weight):.1%}"


def _signalled(
    rule: SignalStrategy, market: MarketAsOf, share: Decimal, held: dict[Symbol, int]
) -> Iterator[tuple[Symbol, int, str]]:
    """The shares that a rule wants by its signal of the last close; each stock has the same `share` of the wealth."""
    for symbol, before in held.items():
        bars = market.bars(symbol, market.count(symbol))
        signal = Signal(int(signals_of(rule, bars)[-1]))
        with in_file(type(rule)):
            reason = rule.explain(bars, -1) if hasattr(rule, "explain") else signal.name.lower()
        yield symbol, _wanted(signal, int(share / market.close(symbol)), before), reason


def _wanted(signal: Signal, share: int, held: int) -> int:
    """Shares of a stock by a signal, where `share` are the stock's part of the wealth."""
    if signal is Signal.OUT:
        return 0
    if signal is Signal.KEEP or (signal is Signal.ENTER and held):
        return held
    return share if signal is Signal.REBALANCE else max(share, held)


def _decision(day: int, symbol: Symbol, shares: int, percent: Decimal, reason: str) -> SeatDecision:
    action = Action.BUY if shares > 0 else Action.SELL if shares < 0 else Action.HOLD
    size = (abs(shares) * percent).quantize(Decimal("0.01"))
    return SeatDecision(day=day, stock=symbol, action=action, size=size, shares=shares, reason=reason)


_KINDS = {FlowKind.INCOME: EXTERNAL, FlowKind.SHOCK: EXTERNAL}
"""Flows that no trade has earned; the others keep their name."""


class SeatAccount:
    """The account of one seat (SessionVenue). Its books are those of the last close: what came this morning counts
    from the next one."""

    def __init__(self, arena: Market, agent: str) -> None:
        self._agent = agent
        begun = {flow.stock: flow for flow in arena.flows if flow.agent == agent and flow.kind is FlowKind.INITIAL}
        positions = {
            stock: Position(Decimal(flow.shares), arena.listings[stock].rules.first_price)
            for stock, flow in begun.items()
            if stock is not None and flow.shares
        }
        prices = {name: listing.rules.first_price for name, listing in arena.listings.items()}
        books = Portfolio(begun[None].amount, positions)
        self._point = EquityPoint(session_of(0), books.value(prices), books, prices)
        self._closed: SettledSession | None = None

    @property
    def portfolio(self) -> Portfolio:
        """Cash and shares at the last close."""
        return self._point.portfolio

    @property
    def buying_power(self) -> BuyingPower:
        """All of it: open orders are cancelled at the close."""
        held = {symbol: position.quantity for symbol, position in self.portfolio.positions.items()}
        return BuyingPower(self.portfolio.cash, held=held)

    async def settle(self, session: date) -> Settlement:
        """The day that has closed since the last decision."""
        return Settlement() if self._closed is None else Settlement.of((self._closed,))

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """All: the arena trades no part of a share."""
        return frozenset(symbols)

    async def terms(self, symbols: Iterable[Symbol]) -> Mapping[Symbol, OrderTerms]:
        """None: any order is taken."""
        return {}

    def close(self, arena: Market) -> None:
        """Keep the books of a day that has closed, with its trades and flows."""
        before, day = self._point, arena.day - 1
        positions = {
            name: Position(Decimal(held), arena.average_cost(self._agent, name))
            for name in arena.listings
            if (held := arena.ledger.shares(self._agent, name))
        }
        prices = {name: listing.closes[-1] for name, listing in arena.listings.items()}
        books = Portfolio(arena.ledger.cash(self._agent), positions)
        self._point = EquityPoint(session_of(day), books.value(prices), books, prices)
        self._closed = SettledSession(before, self._point, self._fills(arena, day), self._flows(arena, day))

    def _fills(self, arena: Market, day: int) -> tuple[Fill, ...]:
        return tuple(
            Fill(
                order_id=f"day-{day}",
                symbol=one.stock,
                side=Side.BUY if one.buyer == self._agent else Side.SELL,
                session=session_of(day),
                quantity=Decimal(one.quantity),
                price=one.price,
                fee=one.cost_buyer if one.buyer == self._agent else one.cost_seller,
            )
            for one in arena.trades
            if one.day == day and self._agent in (one.buyer, one.seller)
        )

    def _flows(self, arena: Market, day: int) -> tuple[CashFlow, ...]:
        return tuple(
            CashFlow(
                session=session_of(day),
                symbol=flow.stock or "",
                kind=_KINDS.get(flow.kind, flow.kind.value),
                amount=flow.amount,
            )
            for flow in arena.flows
            if flow.day == day and flow.agent == self._agent and flow.kind is not FlowKind.INITIAL
        )


@dataclass(frozen=True, slots=True)
class SeatAnswer:
    """An answer that led to a decision: the question's name, the owner in whose name it was asked, and its text."""

    step: str
    owner: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatDecision:
    """A decision of a preset or a strategy at the table.

    day: on whose morning it was made.
    owner: the one who decided, or the default owner where opinions were combined; empty for a strategy.
    size: percent of the seat's wealth, after all limits.
    shares: of the seat's order in the stock, all its books together; negative for a sale.
    reason: the explanation, or the reason of an abstention.
    cut: what rules and limits changed, empty where they changed nothing.
    answers: that it rests on, in the order of the questions.
    """

    day: int
    stock: str
    owner: str = ""
    action: Action
    size: Decimal
    shares: int
    reason: str
    cut: str = ""
    answers: tuple[SeatAnswer, ...] = ()


def toward(view: MarketView, targets: Mapping[str, int], cost_rate: Decimal) -> Iterator[Wish]:
    """Limit orders a little through the price that lead from what is held to what is wanted: sales first, then
    purchases as far as the cash goes. A limit bounds the price that an empty book would give."""
    for stock in view.stocks:
        held = view.shares[stock.name]
        if (excess := held - targets.get(stock.name, held)) > 0:
            yield Wish(stock.name, Side.SELL, excess, _limit(view, stock, Side.SELL))
    cash = view.cash - CENT
    for stock in view.stocks:
        limit = _limit(view, stock, Side.BUY)
        each = limit * (1 + cost_rate)
        missing = targets.get(stock.name, 0) - view.shares[stock.name]
        quantity = min(missing, int(cash / each))
        if quantity > 0:
            cash -= quantity * each
            yield Wish(stock.name, Side.BUY, quantity, limit)


def _limit(view: MarketView, stock: StockView, side: Side) -> Decimal:
    through = 1 + MARGIN if side is Side.BUY else 1 - MARGIN
    return max(view.tick, in_ticks(view, stock.price * through, side))


FIRST_DAY = date(2001, 1, 1)
"""The date of day 1. Days from before the arena have dates before it, and steps of memory are not negative."""


def session_of(day: int) -> date:
    """The session under which a day of the arena is read."""
    return FIRST_DAY + timedelta(days=day - 1)


class PublicData:
    """Market data of one seat, which grow with the days of the arena.

    market: bars, dividends and news so far.
    """

    def __init__(self, arena: Market) -> None:
        self.calendar = AroundTheClock()
        self._histories = {name: _past(name, listing) for name, listing in arena.listings.items()}
        self._actions: dict[Symbol, list[CorporateAction]] = {name: [] for name in self._histories}
        self._news: dict[Symbol, list[NewsItem]] = {name: [] for name in self._histories}
        self.market = as_of.Market(
            histories=self._histories,
            actions=self._actions,
            news=self._news,
            filings=dict.fromkeys(self._histories, ()),
            calendars=dict.fromkeys(self._histories, self.calendar),
        )

    def add_morning(self, arena: Market, messages: Iterable[ChatMessage]) -> None:
        """Add the notices of the day and the messages that the seat reads."""
        for name, listing in arena.listings.items():
            for source, text in (*_notices(arena, listing), *((one.agent, one.text) for one in messages)):
                self._news[name].append(self._item(arena.day, name, source, text))

    def add_close(self, arena: Market) -> None:
        """Add the bars and the dividends of the day that has closed."""
        day = arena.day - 1
        for name, listing in arena.listings.items():
            _append(self._histories[name], _bar(day, listing))
        for flow in arena.flows:
            if flow.kind is FlowKind.DIVIDEND and flow.day == day and flow.stock is not None:
                self._add_dividend(day, flow.stock, flow.amount / arena.ledger.shares(flow.agent, flow.stock))

    def _add_dividend(self, day: int, stock: Symbol, amount: Decimal) -> None:
        known = self._actions[stock]
        if not known or known[-1].ex_date != session_of(day + 1):
            known.append(CorporateAction(stock, session_of(day + 1), ActionKind.DIVIDEND, amount))

    def _item(self, day: int, stock: Symbol, source: str, text: str) -> NewsItem:
        return NewsItem(
            id=f"{stock}-{day}-{len(self._news[stock])}",
            symbol=stock,
            date=session_of(day),
            available_at=decision_time(self.calendar, session_of(day - 1)),
            summary=text,
            source=source,
        )


def _notices(arena: Market, listing: Listing) -> Iterator[tuple[str, str]]:
    """The notices of a morning about a stock, each with its source."""
    dividend = sum(listing.dividends, Decimal(0)) / len(listing.dividends)
    text = f"{listing.rules.name} is expected to pay {money(dividend)} a share at the close of every day."
    value = arena.rules.fundamental_value(listing.rules, arena.day)
    if value is not None:
        text += f" All that a share still pays is expected to be worth {money(value)}."
    yield "the market", text
    yield from (("the market", one) for one in arena.rules.news(arena.day))


def _past(name: Symbol, listing: Listing) -> PriceHistory:
    """Bars of the days before the arena, whose closes alone are known."""
    bars, before = [], listing.past[0]
    for number, close in enumerate(listing.past):
        session = session_of(number + 1 - len(listing.past))
        high, low = max(before, close), min(before, close)
        bars.append(Bar(session=session, open=before, high=high, low=low, close=close, volume=Decimal(0)))
        before = close
    return PriceHistory.of(name, bars)


def _bar(day: int, listing: Listing) -> Bar:
    """The bar of a day that has closed; one without trades is its reference price."""
    prices = [*(price for price, _ in listing.today), listing.closes[-1]]
    volume = Decimal(sum(quantity for _, quantity in listing.today))
    return Bar(
        session=session_of(day),
        open=prices[0],
        high=max(prices),
        low=min(prices),
        close=prices[-1],
        volume=volume,
    )


def _append(history: PriceHistory, bar: Bar) -> None:
    row = PriceHistory.of(history.symbol, (bar,))
    for column in COLUMNS:
        getattr(history, column).extend(getattr(row, column))
