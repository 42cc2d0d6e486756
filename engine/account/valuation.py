"""The value of the same shares at the same close, by the journal's prices and by the broker's.

Reconciliation compares cash and quantities; prices that are wrong on one side pass it. Two measures of the broker's
have to agree before one is said: the account's value at the close, in which a late entry of cash counts, and its
prices of now, which move after the close.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from engine.account.disagreement import disagreement
from engine.domain.brokerage import BrokerAccount, Difference
from engine.domain.market import Symbol, is_crypto
from engine.domain.portfolio import CENT, ZERO
from engine.domain.run import EquityPoint

WARNED, HALTED = Decimal("0.005"), Decimal("0.05")
"""Fractions of the shares' value beyond which a difference is a warning, and halts the desk."""


def value_warnings(desk: str, books: EquityPoint, account: BrokerAccount, at_close: Decimal | None) -> tuple[str, ...]:
    """Warnings of a difference between a close's books and the broker, whose value of the account `at_close` is None
    where it does not say. Raises BooksDisagree, with both values by symbol, for one that is too large."""
    held = books.portfolio.positions.items()
    known = account.prices.keys()
    shares = {symbol: position.quantity for symbol, position in held if symbol in known and not is_crypto(symbol)}
    ours = {symbol: (quantity * books.prices[symbol]).quantize(CENT) for symbol, quantity in shares.items()}
    theirs = {symbol: (quantity * account.prices[symbol]).quantize(CENT) for symbol, quantity in shares.items()}
    worth = sum(map(abs, ours.values()), ZERO)
    if not worth:
        return ()
    gap = _smaller(_by_prices(ours, theirs), None if at_close is None else at_close - books.value) / worth
    if abs(gap) <= WARNED:
        return ()
    said = f"at the close of {books.session} the broker values the same shares {100 * gap:+.1f} % otherwise"
    if abs(gap) <= HALTED:
        return (f"{said}: compare the prices with `paperdesk fetch bars`",)
    differing = [
        Difference(f"value of {symbol}", ours[symbol], value)
        for symbol, value in theirs.items()
        if abs(value - ours[symbol]) > WARNED * abs(ours[symbol])
    ]
    advice = f"{said}: fetch the bars again (`paperdesk fetch bars --again`), or correct those of the data folder"
    raise disagreement(desk, differing, advice)


def _by_prices(ours: Mapping[Symbol, Decimal], theirs: Mapping[Symbol, Decimal]) -> Decimal:
    return sum((value - ours[symbol] for symbol, value in theirs.items()), ZERO)


def _smaller(first: Decimal, second: Decimal | None) -> Decimal:
    return first if second is None else min(first, second, key=abs)
