"""The cost and the size of trades: slippage, fees, share steps and the volume cap of a market's rules."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from math import isnan

from engine.domain.execution import ExecutionRules
from engine.domain.market import PriceHistory
from engine.domain.order import Side
from engine.domain.portfolio import EXACT, SHARE_STEP, ZERO
from engine.errors import MissingData, UsageError

ONE = Decimal(1)
PRICE_STEP = Decimal("0.000000001")
"""Prices after slippage are rounded to this step, half to even, as all prices are kept."""
_BASIS_POINTS = Decimal(10_000)


class FillModel:
    """The costs and steps of a set of rules, computed once. Amounts and fees come back rounded to the money step,
    as the portfolio books them. Raises UsageError for rules that no market could have."""

    __slots__ = ("_buy_factor", "_free", "_rules", "_sell_factor", "_unit_rate", "share_step")

    def __init__(self, rules: ExecutionRules) -> None:
        if not 0 <= rules.slippage_bp < _BASIS_POINTS:
            raise UsageError(f"slippage of {rules.slippage_bp} bp: it lies from 0 to below 10000")
        if min(rules.commission_rate, rules.commission_per_order, rules.commission_per_share) < 0:
            raise UsageError("a commission below zero: it is a cost, give it as a positive number")
        if rules.commission_rate >= 1:
            raise UsageError(f"a commission of {rules.commission_rate}: it is a fraction (0.001 is 0.1 %)")
        if rules.volume_cap is not None and not 0 < rules.volume_cap <= 1:
            raise UsageError(f"a volume cap of {rules.volume_cap}: it is a fraction of the bar's volume")
        self._rules = rules
        slip = rules.slippage_bp / _BASIS_POINTS
        self._buy_factor, self._sell_factor = ONE + slip, ONE - slip
        self._unit_rate = ONE + rules.commission_rate
        self._free = not (rules.commission_rate or rules.commission_per_order or rules.commission_per_share)
        self.share_step = SHARE_STEP if rules.fractional else ONE
        """The smallest quantity that trades."""

    def price(self, quoted: Decimal, side: Side) -> Decimal:
        """The price per share after slippage, which is always against the trader."""
        factor = self._buy_factor if side is Side.BUY else self._sell_factor
        if factor is ONE or factor == ONE:
            return quoted
        return EXACT.multiply(quoted, factor).quantize(PRICE_STEP, ROUND_HALF_EVEN, EXACT)

    def amount(self, quantity: Decimal, price: Decimal) -> Decimal:
        """The amount of a trade without its fees."""
        return self._money(EXACT.multiply(quantity, price))

    def fee(self, quantity: Decimal, price: Decimal) -> Decimal:
        """The fee of a trade."""
        if self._free:
            return ZERO
        rules = self._rules
        by_amount = EXACT.multiply(EXACT.multiply(quantity, price), rules.commission_rate)
        by_share = EXACT.fma(quantity, rules.commission_per_share, rules.commission_per_order)
        return self._money(EXACT.add(by_amount, by_share))

    def rounded_down(self, quantity: Decimal) -> Decimal:
        """A quantity in whole share steps, never more than given."""
        return quantity.quantize(self.share_step, ROUND_DOWN, EXACT)

    def affordable(self, notional: Decimal, price: Decimal) -> Decimal:
        """The quantity (in share steps, zero where there is none) that a notional buys at `price`, which is the price
        after slippage: it never costs more than the notional, fees and every rounding included."""
        rules = self._rules
        unit = EXACT.fma(price, self._unit_rate, rules.commission_per_share)
        quantity = self._floor_of(EXACT.subtract(notional, rules.commission_per_order), unit)
        while quantity > 0:
            excess = self.amount(quantity, price) + self.fee(quantity, price) - notional
            if excess <= 0:
                return quantity
            # Amount and fee were each rounded up: give back what that is worth in shares.
            quantity = self._floor_of(EXACT.subtract(EXACT.multiply(quantity, unit), excess), unit)
        return ZERO

    def volume_limit(self, history: PriceHistory, row: int) -> Decimal | None:
        """The most shares that one order may take of a bar, or None without a cap. Raises MissingData where the cap
        needs a volume that is unknown."""
        cap = self._rules.volume_cap
        if cap is None:
            return None
        volume = history.volume[row]
        if isnan(volume):
            raise MissingData(
                f"{history.symbol} {history.session(row)}: volume is unknown, and the volume cap needs it; "
                "fill it in or trade without a cap"
            )
        return self.rounded_down(EXACT.multiply(Decimal(repr(volume)), cap))

    def _floor_of(self, budget: Decimal, unit: Decimal) -> Decimal:
        if budget <= 0:
            return ZERO
        return EXACT.divide(budget, unit).quantize(self.share_step, ROUND_DOWN, EXACT)

    def _money(self, amount: Decimal) -> Decimal:
        return amount.quantize(self._rules.money_step, ROUND_HALF_EVEN, EXACT)
