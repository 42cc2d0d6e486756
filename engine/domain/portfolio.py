"""Cash and positions in Decimal; applying a fill, a split or a dividend returns a new portfolio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal

from engine.domain.market import Symbol
from engine.domain.order import Fill, Side
from engine.errors import InvariantBroken

ZERO = Decimal(0)
CENT = Decimal("0.01")
SHARE_STEP = Decimal("0.000000001")
"""Smallest part of a share: nine decimals, as brokers count them."""
EXACT = Context(prec=60)
"""Context for products and sums of money.

A share count of nine decimals times a price of nine decimals has more digits than the default context keeps, and would
be rounded twice.
"""


@dataclass(frozen=True, slots=True)
class Position:
    """Shares held (negative: short) and their average cost per share, fees excluded."""

    quantity: Decimal
    average_cost: Decimal


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Cash in the quote currency and positions by symbol; a flat position is absent.

    `money_step` is the unit to which every amount of cash is rounded: a cent, or finer where a paper's convention
    computes without rounding.
    """

    cash: Decimal
    positions: Mapping[Symbol, Position] = field(default_factory=dict)
    money_step: Decimal = CENT

    def quantity(self, symbol: Symbol) -> Decimal:
        """Shares held of a symbol; zero where none."""
        position = self.positions.get(symbol)
        return ZERO if position is None else position.quantity

    def money(self, amount: Decimal) -> Decimal:
        """An amount rounded to the money step, half to even."""
        return amount.quantize(self.money_step, ROUND_HALF_EVEN, EXACT)

    def market_value(self, prices: Mapping[Symbol, Decimal]) -> Decimal:
        """Value of all positions at given prices, rounded once."""
        total = ZERO
        for symbol, position in self.positions.items():
            total = EXACT.fma(position.quantity, prices[symbol], total)
        return self.money(total)

    def short_value(self, prices: Mapping[Symbol, Decimal]) -> Decimal:
        """Value of the shares that are sold short at given prices, above zero where there are any."""
        short = [(symbol, held.quantity) for symbol, held in self.positions.items() if held.quantity < 0]
        return self.money(sum((EXACT.multiply(-quantity, prices[symbol]) for symbol, quantity in short), ZERO))

    def value(self, prices: Mapping[Symbol, Decimal]) -> Decimal:
        """Cash plus positions at given prices."""
        return self.cash + self.market_value(prices)

    def filled(self, fill: Fill) -> Portfolio:
        """The portfolio after a trade: cash moves by the amount and the fee, each rounded to the money step."""
        amount, fee = self.money(EXACT.multiply(fill.quantity, fill.price)), self.money(fill.fee)
        if fill.side is Side.BUY:
            return self._with(fill.symbol, fill.quantity, fill.price, self.cash - amount - fee)
        return self._with(fill.symbol, -fill.quantity, fill.price, self.cash + amount - fee)

    def split(
        self, symbol: Symbol, ratio: Decimal, price: Decimal, step: Decimal = SHARE_STEP
    ) -> tuple[Portfolio, Decimal]:
        """The portfolio after a split of `ratio` new shares per old one, and the cash in lieu of fractions.

        Parts below the share step are paid in cash at `price` (the first price after the split), by us where the
        position is short. A position of which no share is left is removed.
        """
        position = self.positions.get(symbol)
        if position is None:
            return self, ZERO
        if ratio <= 0:
            raise InvariantBroken(f"a split of {symbol} by {ratio} is impossible")
        exact = EXACT.multiply(position.quantity, ratio)
        whole = exact.quantize(step, ROUND_DOWN, EXACT)
        paid = self.money(EXACT.multiply(EXACT.subtract(exact, whole), price))
        held = dict(self.positions)
        if whole:
            held[symbol] = Position(whole, position.average_cost / ratio)
        else:
            del held[symbol]
        return Portfolio(self.cash + paid, held, self.money_step), paid

    def dividend(self, symbol: Symbol, per_share: Decimal) -> tuple[Portfolio, Decimal]:
        """The portfolio after a cash dividend (a short position pays it), and the amount."""
        amount = self.money(EXACT.multiply(self.quantity(symbol), per_share))
        return Portfolio(self.cash + amount, self.positions, self.money_step), amount

    def _with(self, symbol: Symbol, change: Decimal, price: Decimal, cash: Decimal) -> Portfolio:
        held = dict(self.positions)
        before = held.get(symbol)
        if before is None:
            held[symbol] = Position(change, price)
            return Portfolio(cash, held, self.money_step)
        after = before.quantity + change
        if after == 0:
            del held[symbol]
        elif before.quantity * change > 0:
            cost = before.average_cost * before.quantity + price * change
            held[symbol] = Position(after, cost / after)
        elif after * before.quantity > 0:
            held[symbol] = Position(after, before.average_cost)
        else:
            held[symbol] = Position(after, price)
        return Portfolio(cash, held, self.money_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionContext:
    """A book's position in a symbol at the moment of the decision, in the quote currency.

    shares: held, negative when short.
    price: of the moment, or the last close.
    average_cost: per share; zero where nothing is held.
    cash: net of what open buys may still take, and of the value of short positions, whose proceeds are no money to
        spend.
    value: of the whole book.
    gains_in_a_row: sessions in a row, up to the last, that closed higher.
    shorts: value of all shares of the book that are sold short, or that open sales may sell short.
    """

    shares: Decimal
    price: Decimal
    average_cost: Decimal
    cash: Decimal
    value: Decimal
    gains_in_a_row: int = 0
    shorts: Decimal = ZERO

    @property
    def cash_fraction(self) -> Decimal:
        """Cash over the portfolio's value; zero where the value is."""
        return self.cash / self.value if self.value > 0 else ZERO

    @property
    def weight(self) -> Decimal:
        """Value of the shares over the portfolio's; zero where that is."""
        return self.shares * self.price / self.value if self.value > 0 else ZERO

    @property
    def unrealized(self) -> Decimal:
        """Profit that is not realized yet, in the quote currency."""
        return (self.price - self.average_cost) * self.shares

    @property
    def unrealized_fraction(self) -> Decimal:
        """Unrealized gain over average cost, as a fraction; zero where nothing is held."""
        return self.price / self.average_cost - 1 if self.shares and self.average_cost > 0 else ZERO
