"""Execution rules of a market as a value: how orders become trades.

The treatment of a desk's orders: its configuration says which of three.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from engine.domain.portfolio import CENT


class FillAt(StrEnum):
    """Price of an order that was decided after the close of t."""

    NEXT_OPEN = "next open"
    SAME_CLOSE = "same close"
    """The close that it was decided on: nobody can trade so; some papers do."""


class PriceBasis(StrEnum):
    """Basis of the prices at which a run trades and values."""

    RAW = "raw"
    ADJUSTED = "adjusted"
    """adj_close, with the bar's other prices scaled alike."""
    REBASED = "rebased"
    """adj_close scaled to equal close on the last session of the window's data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRules:
    """Fills, costs and limits of a simulated market. Costs are on by default.

    slippage_bp: basis points against the trader.
    commission_rate: fraction of the amount.
    commission_per_order, commission_per_share: in the quote currency.
    volume_cap: the largest fraction of a bar's volume for one order; None: no cap.
    borrow_rate: yearly cost of shares that are sold short, as a fraction of their value.
    money_step: the unit to which amounts are rounded, in the quote currency.
    """

    fill_at: FillAt = FillAt.NEXT_OPEN
    slippage_bp: Decimal = Decimal(5)
    commission_rate: Decimal = Decimal(0)
    commission_per_order: Decimal = Decimal(0)
    commission_per_share: Decimal = Decimal(0)
    volume_cap: Decimal | None = None
    fractional: bool = True
    allow_short: bool = False
    borrow_rate: Decimal = Decimal(0)
    money_step: Decimal = CENT

    @property
    def cost_rate(self) -> Decimal:
        """Slippage and commission of a trade as a fraction of its amount, without what is charged per order or
        share."""
        return self.commission_rate + self.slippage_bp / 10_000


class TradingMode(StrEnum):
    """The configured treatment of a desk's orders: AUTO sends them, ASK waits for approval, OBSERVE sends none."""

    AUTO = "auto"
    ASK = "ask"
    OBSERVE = "observe"
