"""Fees of crypto trades that a broker takes at once and enters in the account's history a day later.

Until its entry is due such a fee is expected: it is no difference, and decisions rest on what the account has.
Source: https://docs.alpaca.markets/docs/crypto-fees (charged in what a trade brings, posted at the end of the day).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from engine.account.disagreement import CASH
from engine.domain.brokerage import Difference
from engine.domain.market import is_crypto
from engine.domain.order import Fill, Side
from engine.domain.portfolio import CENT, EXACT, ZERO, Portfolio

LARGEST_FEE = Decimal("0.005")
"""Largest fee of a trade that is expected, as a fraction of it: twice the highest that is published."""
DUE_WITHIN = timedelta(days=2)
"""Days after a trade by which its fee is entered."""


def expected_fees(
    differences: Iterable[Difference], fills: Iterable[Fill], today: date
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """The differences without those that fees of recent crypto trades explain, and these. `today` is the UTC day."""
    recent = [one for one in fills if is_crypto(one.symbol) and one.session >= today - DUE_WITHIN]
    rest, expected = list[Difference](), list[Difference]()
    for one in differences:
        missing = -(one.amount or ZERO)
        (expected if ZERO < missing <= _largest(one.what, recent) else rest).append(one)
    return tuple(rest), tuple(expected)


def less_fees(portfolio: Portfolio, expected: Sequence[Difference]) -> Portfolio:
    """A portfolio without the fees that are taken and not entered yet."""
    cash, held = portfolio.cash, dict(portfolio.positions)
    for one in expected:
        if one.what == CASH:
            cash += one.amount or ZERO
        else:
            held[one.what] = replace(held[one.what], quantity=one.broker or ZERO)
    return Portfolio(cash, {symbol: position for symbol, position in held.items() if position.quantity})


def _largest(what: str, fills: Sequence[Fill]) -> Decimal:
    """The largest fee of some trades in cash, or in one of their coins, which purchases alone cost."""
    if what == CASH:
        amounts = [EXACT.multiply(one.quantity, one.price) for one in fills]
        return EXACT.multiply(sum(amounts, ZERO), LARGEST_FEE) + (CENT if amounts else ZERO)
    bought = [one.quantity for one in fills if one.symbol == what and one.side is Side.BUY]
    return EXACT.multiply(sum(bought, ZERO), LARGEST_FEE)
