"""The portfolio as an agent that decides on all symbols at once sees it: prices, positions, results, and strategies.

The strategy that a decision followed is told in its reason: the record of decisions is the library.
Source: Agent Trading Arena §4.2, §5.2 [R5, R8].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from math import isnan
from statistics import fmean

from engine.agents.portfolio import StockFigures
from engine.agents.rendering import done, signed_percent
from engine.agents.tools import TriedStrategy, without_strategy
from engine.cycle.turn import Turn
from engine.domain.chart import ChartSpec, Line
from engine.domain.decision import DIRECTIONS, Action, Outcome
from engine.domain.market import PriceHistory, Symbol, from_nano
from engine.domain.order import ZERO, PositionContext
from engine.market.chart_specs import by_day_numbers, candle_chart, record_chart, signal_chart
from engine.preset import Preset

SESSIONS = 250
"""Sessions back to which strategies are scored: the bars that a desk keeps of a turn reach as far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioFacts:
    """The portfolio as its agent sees it after a session.

    stocks: with their figures, those that have a price.
    cash, value: free cash and value of the book, in the quote currency.
    strategy: in force so far.
    decisions: the last ones that traded, that a limit changed or that earned something, a line each.
    day_return, market_return: of the portfolio and of all stocks on average from these decisions to the close after
        them; None where nothing was decided yet.
    library: the strategies that were followed, oldest first.
    record: chart of all trades and of what they earned; None before the first decision.
    absent: stocks without a price.
    """

    stocks: tuple[StockFigures, ...]
    cash: Decimal
    value: Decimal
    strategy: str
    decisions: tuple[str, ...]
    day_return: float | None
    market_return: float
    library: tuple[TriedStrategy, ...]
    record: ChartSpec | None
    absent: tuple[str, ...]


def portfolio_facts(
    turn: Turn,
    owner: str,
    preset: Preset,
    bars: Mapping[Symbol, PriceHistory],
    positions: Mapping[Symbol, PositionContext],
) -> PortfolioFacts:
    """The facts of an owner's portfolio. `bars` are those of the symbols that have a bar of the last session; positions
    are the owner's."""
    past = _past(turn, owner)
    known = {symbol: rows for symbol, rows in bars.items() if len(rows) > 1}
    library = _library(turn, owner, known)
    decided = max((one.decision_session for one in past), default=None)
    last = [one for one in past if one.decision_session == decided]
    position = next(iter(positions.values()))
    return PortfolioFacts(
        stocks=tuple(_figures(turn, rows, positions[symbol], preset, past) for symbol, rows in known.items()),
        cash=position.cash,
        value=position.value,
        strategy=library[-1].text if library else preset.portfolio.strategy,
        decisions=tuple(_decision_line(turn, one) for one in last if one.reward or _done(turn, one) not in set(Action)),
        day_return=float(sum((one.reward for one in last), ZERO)) if last else None,
        market_return=_market_return(known, last[-1].decision_session, last[-1].session) if last else 0.0,
        library=library,
        record=by_day_numbers(_record(known, preset.portfolio.window, past)) if past else None,
        absent=tuple(f"{symbol}: no price" for symbol in turn.universe if symbol not in known),
    )


def _figures(
    turn: Turn, bars: PriceHistory, position: PositionContext, preset: Preset, past: Sequence[Outcome]
) -> StockFigures:
    window, symbol, price = preset.portfolio.window, bars.symbol, position.price
    before = from_nano(bars.close[-1 if turn.within_session else -2])
    trades = [(one.decision_session, one.action, one.size) for one in past if one.symbol == symbol]
    high, low, volume = from_nano(bars.high[-1]), from_nano(bars.low[-1]), bars.volume[-1]
    return StockFigures(
        symbol=symbol,
        about=preset.about(symbol),
        price=price,
        change=price / before - 1,
        high=high,
        low=low,
        mean=(high + low + from_nano(bars.close[-1])) / 3,
        volume=None if isnan(volume) else volume,
        closes=tuple(map(from_nano, bars.close[-window:])),
        shares=position.shares,
        cost=position.average_cost,
        weight=position.weight,
        chart=by_day_numbers(signal_chart(symbol, bars, window, [trade[:2] for trade in trades])),
        candles=by_day_numbers(candle_chart(symbol, bars, window, trades)),
    )


def _record(bars: Mapping[Symbol, PriceHistory], window: int, past: Sequence[Outcome]) -> ChartSpec:
    """The trades of all symbols in percent of the portfolio, and the return that compounded over the sessions shown:
    `past` need not reach back to the first one."""
    days = sorted({day for rows in bars.values() for day in rows.sessions[-window:]})[-window:]
    sessions = [date.fromordinal(day) for day in days]
    total, returns = 1.0, dict[date, float]()
    for session, rows in groupby((one for one in past if one.session in sessions), key=lambda one: one.session):
        total *= 1 + float(sum(one.reward for one in rows))
        returns[session] = round((total - 1) * 100, 9)
    bought, sold = (
        tuple(
            float(sign * sum(one.size for one in past if (one.decision_session, one.action) == (session, action)))
            for session in sessions
        )
        for action, sign in DIRECTIONS.items()
    )
    return record_chart(
        tuple(session.isoformat() for session in sessions),
        Line("return over them in %", tuple(map(returns.get, sessions))),
        bought,
        sold,
        "% of the portfolio",
    )


def _past(turn: Turn, owner: str) -> list[Outcome]:
    """The owner's outcomes in all symbols of the run, oldest first."""
    own = (turn.history.of(symbol, owner, SESSIONS) for symbol in turn.universe)
    return sorted((one for outcomes in own for one in outcomes), key=lambda one: one.session)


def _decision_line(turn: Turn, outcome: Outcome) -> str:
    """A decision that traded, that code changed, or whose position earned something, with its reason where it
    traded."""
    made = turn.history.opinion(outcome) if outcome.size else None
    reason = "" if made is None else f": {without_strategy(made.reason)[0]}"
    traded = f"{_done(turn, outcome)}{' % of the portfolio' if outcome.size else ''}"
    return f"{outcome.symbol}: {traded}, earned {signed_percent(outcome.reward)} of the portfolio{reason}"


def _done(turn: Turn, outcome: Outcome) -> str:
    return done(outcome, turn.history.decision(outcome))


def _library(turn: Turn, owner: str, bars: Mapping[Symbol, PriceHistory]) -> tuple[TriedStrategy, ...]:
    """The strategies that decisions of the owner followed, each with the mean of its sessions' scores."""
    followed: dict[date, str] = {}
    for (_, who, session), made in turn.history.opinions.items():
        strategy = without_strategy(made.reason)[1] if who == owner and not made.abstained else ""
        if strategy:
            followed[session] = strategy
    scores = _scores(turn, owner, bars)
    tried: list[tuple[date, str, list[float]]] = []
    for session in sorted(followed)[-SESSIONS:]:
        if not tried or tried[-1][1] != followed[session]:
            tried.append((session, followed[session], []))
        if session in scores:
            tried[-1][2].append(scores[session])
    return tuple(TriedStrategy(since, text, fmean(found) if found else None) for since, text, found in tried)


def _scores(turn: Turn, owner: str, bars: Mapping[Symbol, PriceHistory]) -> dict[date, float]:
    """By decision session, the portfolio's return until the close after it less the mean of all stocks, in percent."""
    earned: dict[tuple[date, date], Decimal] = {}
    for one in _past(turn, owner):
        key = one.decision_session, one.session
        earned[key] = earned.get(key, ZERO) + one.reward
    return {
        decided: (float(reward) - _market_return(bars, decided, closed)) * 100
        for (decided, closed), reward in earned.items()
    }


def _market_return(bars: Mapping[Symbol, PriceHistory], decided: date, closed: date) -> float:
    """The mean change of all stocks from one close to another; 0 where none is known."""
    changes = list(_changes(bars, decided, closed))
    return fmean(changes) if changes else 0.0


def _changes(bars: Mapping[Symbol, PriceHistory], decided: date, closed: date) -> Iterator[float]:
    for rows in bars.values():
        before, after = rows.index(decided), rows.index(closed)
        if before is not None and after is not None:
            yield rows.close[after] / rows.close[before] - 1
