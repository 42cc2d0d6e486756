"""A rule strategy of backtests at the table: its signals or weights on the arena's daily prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from engine.arena.public_data import PublicData, session_of
from engine.arena.seat_account import SeatAccount
from engine.arena.targets import SeatDecision
from engine.domain.decision import Action
from engine.domain.market import Symbol
from engine.market.point_in_time import MarketAsOf
from engine.market.trading_hours import decision_time
from engine.strategies.answers import signals_of, weights_of
from engine.strategies.catalog import in_file
from engine.strategies.strategy import Signal, SignalStrategy, Strategy, StrategyView, WeightStrategy


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
