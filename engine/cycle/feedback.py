"""The rule of a memory's constants by which an opinion pays or charges what it cited, once enough sessions have passed.

- `direction`: a purchase is right when the price rose, a sale when it fell, whatever the position earned: direction
  times the move of the close over the horizon, net of the cost of a trade. A move within the noise says nothing.
- `large`: the same, for moves beyond two daily deviations alone.
- `profit`: the profit of the symbol in the sessions of the horizon, whatever the opinion was.

HOLD takes no direction, and an abstention is no opinion. The move goes from the last close that the decision read to
the one that many sessions of its symbol later, splits in between undone. It rests on closes and on what was decided
alone: it is the same for owners who were overruled, in a backtest and a daily run, and after a run that was cut short.
Source: InvestorBench A [I4]; TradingGPT §4.1.1 [G1]; `profit` is that of FinMem's program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from math import sqrt
from statistics import stdev

from engine.cycle.turn import TradingHistory
from engine.domain.decision import DIRECTIONS, Opinion
from engine.domain.market import PriceHistory, Symbol
from engine.domain.portfolio import ZERO
from engine.market.point_in_time import MarketAsOf
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from memory.presets import FeedbackRule, MemoryPreset

LOOKBACK = 60
"""Sessions in which opinions are looked for: a desk that rested longer than that learns nothing of those before."""

DEVIATION_SESSIONS = 20
"""Returns up to the decision that its daily deviation is taken of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Judgement of the opinions of a trading history, as far as a market knows what followed.

    constants: name the rule, the horizon in sessions, and what is noise or large.
    calendar: the sessions that were decided on.
    calendars: trading calendar by symbol.
    costs: of a trade, as a fraction of its amount.
    """

    constants: MemoryPreset
    calendar: Calendar
    calendars: Mapping[Symbol, Calendar]
    history: TradingHistory
    market: MarketAsOf
    costs: Decimal
    _bars: dict[Symbol, PriceHistory] = field(default_factory=dict, init=False)

    def signs(self) -> Iterator[tuple[Opinion, int]]:
        """The opinions that paid (1) or cost (-1), oldest first."""
        now = self.calendar.number(self.calendar.last_closed(self.market.now))
        citing = [
            one
            for one in self.history.opinions.values()
            if one.evidence and one.key.symbol in self.market.symbols and self._age(one, now) <= LOOKBACK
        ]
        for opinion in sorted(citing, key=lambda one: (one.key.session, one.key.symbol, one.key.owner)):
            value = self._profit(opinion, now) if self._by_profit else self._net_move(opinion)
            if value:
                yield opinion, 1 if value > 0 else -1

    def counts(self, opinion: Opinion, rewarded: Iterable[date]) -> bool:
        """True where an opinion may reward a memory that opinions of these sessions have rewarded: one per horizon, the
        first; under `profit` each session's own."""
        if self._by_profit:
            return opinion.key.session not in rewarded
        symbol = opinion.key.symbol
        seen = self._seen(symbol, opinion.key.session)
        return all(seen - self._seen(symbol, day) >= self.constants.feedback_horizon for day in rewarded)

    @property
    def _by_profit(self) -> bool:
        return self.constants.feedback is FeedbackRule.PROFIT

    def _age(self, opinion: Opinion, now: int) -> int:
        return now - self.calendar.number(opinion.key.session)

    def _profit(self, opinion: Opinion, now: int) -> Decimal:
        """The profit of an owner's symbol from an opinion on, in the sessions of the horizon; zero until they are
        over."""
        key, horizon = opinion.key, self.constants.feedback_horizon
        if self._age(opinion, now) < horizon:
            return ZERO
        # The profit of crypto is known once its own day is over, after the exchange has closed.
        last, ends = (self.calendar.session_at(self.calendar.number(key.session) + horizon - n) for n in (1, 0))
        if self.calendars[key.symbol].last_closed(self.market.now) < ends:
            return ZERO
        rows = self.history.outcomes.get((key.symbol, key.owner), ())
        return sum((row.reward for row in rows if key.session <= row.decision_session <= last), ZERO)

    def _net_move(self, opinion: Opinion) -> float:
        """Direction times move, net of costs; zero for a move that is not known yet or says nothing."""
        key, direction = opinion.key, DIRECTIONS.get(opinion.action, 0)
        closes, row = self._window(key.symbol).close, self._seen(key.symbol, key.session) - 1
        after = row + self.constants.feedback_horizon
        if not direction or row < 0 or after >= len(closes):
            return 0.0
        before = closes[max(0, row - DEVIATION_SESSIONS) : row + 1]
        move = closes[after] / closes[row] - 1
        if abs(move) <= self._least_move([later / close - 1 for close, later in pairwise(before)]):
            return 0.0
        return direction * move - float(self.costs)

    def _least_move(self, returns: list[float]) -> float:
        """The move that is still noise, or not yet large, after these daily returns."""
        deviation = stdev(returns) if len(returns) > 1 else 0.0
        if self.constants.feedback is FeedbackRule.LARGE:
            return self.constants.feedback_large * deviation
        return self.constants.feedback_noise * deviation * sqrt(self.constants.feedback_horizon)

    def _window(self, symbol: Symbol) -> PriceHistory:
        if symbol not in self._bars:
            # A coin has sessions on weekends too: two of its own for each of the desk's are enough.
            wanted = 2 * LOOKBACK + DEVIATION_SESSIONS
            seen = self.market.count(symbol) > 0
            self._bars[symbol] = self.market.bars(symbol, wanted) if seen else PriceHistory.of(symbol, ())
        return self._bars[symbol]

    def _seen(self, symbol: Symbol, session: date) -> int:
        """The number of the window's bars that a session's decision could see."""
        closed = self.calendars[symbol].last_closed(decision_time(self.calendar, session))
        return self._window(symbol).rows_through(closed)
