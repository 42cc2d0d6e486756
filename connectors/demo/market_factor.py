"""The market factor: the market's own move by session, in which every company takes part, in long regimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.demo.seeded_random import bell, shorts, stream


@dataclass(frozen=True, slots=True)
class Regime:
    """A market regime that lasts for months.

    `drift` of a day in parts per million, `volatility` in parts per million (of the market) or per thousand of the
    usual (of a company), `weight` its share of new regimes out of 256.
    """

    name: str
    drift: int
    volatility: int
    weight: int


_MARKET = (
    Regime("bull", 850, 6800, 98),
    Regime("calm", 340, 4300, 86),
    Regime("bear", -1050, 11500, 42),
    Regime("volatile", -150, 16000, 30),
)
_MEAN_LENGTH = 75  # sessions, on average


def next_regime(regimes: Sequence[Regime], now: Regime, change: int, choice: int, mean_length: int) -> Regime:
    """The regime of the next session, from two uniform numbers below 65536."""
    if change >= 65536 // mean_length:
        return now
    point = choice >> 8
    for regime in regimes:
        point -= regime.weight
        if point < 0:
            return regime
    return regimes[-1]


@dataclass(frozen=True, slots=True)
class FactorMove:
    """One session's move of the market in parts per million: before the open, and from open to close."""

    overnight: int
    intraday: int


def factor_moves(seed: int, sessions: Sequence[int]) -> list[FactorMove]:
    """The market's moves over sessions given as ordinals, the first of them the epoch."""
    name = stream(seed, "tide")  # the name of the draws: every seed's market depends on it
    regime = _MARKET[1]
    moves: list[FactorMove] = []
    for session in sessions:
        draw = shorts(name, session)
        regime = next_regime(_MARKET, regime, draw[8], draw[9], _MEAN_LENGTH)
        overnight = regime.volatility * bell(*draw[0:4]) // 2000
        intraday = regime.drift + regime.volatility * bell(*draw[4:8]) // 1150
        moves.append(FactorMove(overnight, intraday))
    return moves
