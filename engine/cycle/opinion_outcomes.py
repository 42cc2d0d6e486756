"""Outcomes of opinions that were combined with others: the reward that each would have earned by itself.

A decision's reward is what its symbol earned in the books. An opinion that was combined moved no money of its own, so
its reward is its direction times the size that it asked for times the move of the close: a purchase of 8 % earns 8 % of
a rise, a sale of 8 % earns 8 % of a fall, HOLD and ABSTAIN earn nothing. Costs, dividends and limits are left out. The
rule is the same for owners who were overruled and owners who won, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from engine.domain.decision import Action, Opinion, Outcome
from engine.domain.market import Symbol
from engine.domain.portfolio import ZERO
from engine.market.point_in_time import MarketAsOf

STEP = Decimal("0.00000001")
HUNDRED = Decimal(100)
DIRECTIONS = {Action.BUY: 1, Action.SELL: -1}
LOOKBACK = 60
"""Bars in which the last close before the opinion is looked for; a desk that rested longer than that learns nothing."""


def opinion_outcomes(
    opinions: Iterable[Opinion],
    before: MarketAsOf,
    after: MarketAsOf,
    session: date,
    earlier: Mapping[tuple[Symbol, str], Sequence[Outcome]],
) -> list[Outcome]:
    """One row per opinion. `before` is the market that the opinions rest on, `after` the market as it was known once
    `session` was closed; `earlier` gives the rows so far by symbol and owner, for the cumulative return."""
    return [_outcome(opinion, before, after, session, earlier) for opinion in opinions]


def _outcome(
    opinion: Opinion,
    before: MarketAsOf,
    after: MarketAsOf,
    session: date,
    earlier: Mapping[tuple[Symbol, str], Sequence[Outcome]],
) -> Outcome:
    key = opinion.key
    past = earlier.get((key.symbol, key.owner), ())
    so_far = past[-1].cumulative if past else ZERO
    direction = DIRECTIONS.get(opinion.action, 0)
    moved = _move(before, after, key.symbol) if direction else ZERO
    reward = (direction * opinion.size / HUNDRED * moved).quantize(STEP)
    return Outcome(
        decision_session=key.session,
        session=session,
        symbol=key.symbol,
        owner=key.owner,
        action=opinion.action,
        size=opinion.size,
        close=after.close(key.symbol) if after.count(key.symbol) else ZERO,
        reward=reward,
        cumulative=((1 + so_far) * (1 + reward) - 1).quantize(STEP),
        key_factors=opinion.key_factors,
    )


def _move(before: MarketAsOf, after: MarketAsOf, symbol: Symbol) -> Decimal:
    """The change of the last visible close as a fraction, splits in between undone; zero where it is not known."""
    if not before.count(symbol):
        return ZERO
    bars = after.bars(symbol, LOOKBACK)
    row = bars.index(before.last_session(symbol))
    return ZERO if row is None else Decimal(bars.close[-1]) / Decimal(bars.close[row]) - 1
