"""The value of the same holdings at the same close, by the journal's prices and by the broker's.

Reconciliation compares cash and quantities; prices that are wrong on one side pass it. Of shares two measures of the
broker's have to agree before one is said: the account's value at the close, in which a late entry of cash counts, and
its prices of now, which move after the close. Crypto is compared at the close of the same UTC day.
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
    """Warnings of a difference between the shares of a close's books and the broker, whose value of the account
    `at_close` is None where it does not say. Raises BooksDisagree, with both values by symbol, for one that is too
    large."""
    prices = {symbol: price for symbol, price in account.prices.items() if not is_crypto(symbol)}
    values = _values(books, prices)
    gap = _smaller(_gap(values), None if at_close is None else at_close - books.value)
    return _judged(desk, values, gap, f"at the close of {books.session} the broker values the same shares")


def crypto_warnings(desk: str, books: EquityPoint, closes: Mapping[Symbol, Decimal]) -> tuple[str, ...]:
    """Warnings of a difference between the crypto of a close's books and the broker's `closes` of that UTC day. Raises
    BooksDisagree as `value_warnings` does."""
    values = _values(books, closes)
    said = f"at the end of the UTC day {books.session} the broker values the same crypto"
    return _judged(desk, values, _gap(values), said)


def _values(books: EquityPoint, prices: Mapping[Symbol, Decimal]) -> dict[Symbol, tuple[Decimal, Decimal]]:
    """Our value and the broker's of every holding that it has a price of."""
    held = books.portfolio.positions
    return {
        symbol: ((one.quantity * books.prices[symbol]).quantize(CENT), (one.quantity * prices[symbol]).quantize(CENT))
        for symbol, one in held.items()
        if symbol in prices
    }


def _judged(desk: str, values: Mapping[Symbol, tuple[Decimal, Decimal]], gap: Decimal, said: str) -> tuple[str, ...]:
    worth = sum((abs(ours) for ours, _ in values.values()), ZERO)
    if not worth or abs(gap) <= WARNED * worth:
        return ()
    said = f"{said} {100 * gap / worth:+.1f} % otherwise"
    if abs(gap) <= HALTED * worth:
        return (f"{said}: compare the prices with `paperdesk fetch bars`",)
    differing = [
        Difference(f"value of {symbol}", ours, theirs)
        for symbol, (ours, theirs) in values.items()
        if abs(theirs - ours) > WARNED * abs(ours)
    ]
    advice = f"{said}: fetch the bars again (`paperdesk fetch bars --again`), or correct those of the data folder"
    raise disagreement(desk, differing, advice)


def _gap(values: Mapping[Symbol, tuple[Decimal, Decimal]]) -> Decimal:
    return sum((theirs - ours for ours, theirs in values.values()), ZERO)


def _smaller(first: Decimal, second: Decimal | None) -> Decimal:
    return first if second is None else min(first, second, key=abs)
