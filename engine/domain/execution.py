"""How orders turn into trades: the rules of a market, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from engine.domain.portfolio import CENT


class FillAt(StrEnum):
    """The price that an order decided after the close of t trades at."""

    NEXT_OPEN = "next open"
    NEXT_CLOSE = "next close"
    SAME_CLOSE = "same close"
    """The close that it was decided on: no one can trade so; some papers do."""


class PriceBasis(StrEnum):
    """Which prices a run trades and values at."""

    RAW = "raw"
    ADJUSTED = "adjusted"
    """adj_close, with the bar's other prices scaled alike."""
    REBASED = "rebased"
    """adj_close scaled to equal close on the last session of the window's data (or a date the convention names)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRules:
    """Fills, costs and limits of a simulated market.

    `slippage_bp` in basis points against the trader; `commission_rate` as a fraction of the amount,
    `commission_per_order` and `commission_per_share` in the quote currency; `volume_cap` the largest fraction of a
    bar's volume that one order may take (None: no cap). Costs are on by default.
    """

    fill_at: FillAt = FillAt.NEXT_OPEN
    slippage_bp: Decimal = Decimal(5)
    commission_rate: Decimal = Decimal(0)
    commission_per_order: Decimal = Decimal(0)
    commission_per_share: Decimal = Decimal(0)
    volume_cap: Decimal | None = None
    fractional: bool = True
    allow_short: bool = False
    money_step: Decimal = CENT
