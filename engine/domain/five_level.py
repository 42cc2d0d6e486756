"""Advice in five levels, each with a trade value: its action and its size."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.domain.decision import Action
from engine.errors import ConfigError


class Advice(StrEnum):
    """Recommendation for a position. Source: TradingGPT §4.1.2 [G4]."""

    SIGNIFICANTLY_INCREASE = "significantly increase"
    SLIGHTLY_INCREASE = "slightly increase"
    HOLD = "hold"
    SLIGHTLY_DECREASE = "slightly decrease"
    SIGNIFICANTLY_DECREASE = "significantly decrease"

    @property
    def level(self) -> int:
        """Its place on the scale, from -2 to 2."""
        return 2 - tuple(Advice).index(self)

    @classmethod
    def of_level(cls, level: int) -> Advice:
        """The advice of a place on the scale; beyond its ends the last one."""
        return tuple(cls)[2 - max(-2, min(2, level))]


@dataclass(frozen=True, slots=True)
class TradeValues:
    """Trade value of each level that trades, in percent of the portfolio. The paper prints none.

    Whole numbers from 1 to 100, the significant one of a side not below the slight one. Raises ConfigError for others.
    """

    significantly_increase: int = 8
    slightly_increase: int = 3
    slightly_decrease: int = 3
    significantly_decrease: int = 8

    def __post_init__(self) -> None:
        for side in ("increase", "decrease"):
            slight, significant = getattr(self, f"slightly_{side}"), getattr(self, f"significantly_{side}")
            if not 1 <= slight <= significant <= 100:
                raise ConfigError(
                    f"trade values: slightly_{side} is {slight} and significantly_{side} {significant}; give whole "
                    "percents of the portfolio from 1 to 100, the slight one not above the significant one"
                )


def trade_of(advice: Advice, values: TradeValues) -> tuple[Action, int]:
    """Action and size in percent of the portfolio, 0 for a hold."""
    trades = {
        Advice.SIGNIFICANTLY_INCREASE: (Action.BUY, values.significantly_increase),
        Advice.SLIGHTLY_INCREASE: (Action.BUY, values.slightly_increase),
        Advice.HOLD: (Action.HOLD, 0),
        Advice.SLIGHTLY_DECREASE: (Action.SELL, values.slightly_decrease),
        Advice.SIGNIFICANTLY_DECREASE: (Action.SELL, values.significantly_decrease),
    }
    return trades[advice]
