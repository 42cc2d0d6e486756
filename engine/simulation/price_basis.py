"""Put a price history on the basis that a run trades and values at: as traded, adjusted, or adjusted and rebased.

Everything is whole-number arithmetic on nano-units, rounded half to even once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise

from engine.domain.market import NANO, UNKNOWN, ActionKind, CorporateAction, PriceHistory, without_adjusted
from engine.domain.run import PriceBasis
from engine.errors import MissingData


def on_basis(history: PriceHistory, basis: PriceBasis) -> PriceHistory:
    """A history whose close is the basis's close, with open, high and low scaled alike; `adj_close` and volume stay.

    Rebased prices are adjusted ones scaled to equal the close as traded on the last bar. Raises MissingData, naming
    symbol and date, where a bar's adj_close is unknown: give only the bars that are needed (see `known_adjusted`).
    """
    if basis is PriceBasis.RAW or not len(history):
        return history
    for row, adjusted in enumerate(history.adj_close):
        if adjusted == UNKNOWN:
            raise MissingData(
                f"{history.symbol} {history.session(row)}: adj_close is unknown, and {basis} prices need it; "
                "add it or choose a convention on raw prices"
            )
    above, below = 1, 1
    if basis is PriceBasis.REBASED:
        above, below = history.close[-1], history.adj_close[-1]

    def scaled(price: int, row: int) -> int:
        return _rounded(price * history.adj_close[row] * above, history.close[row] * below)

    return history.repriced(scaled)


def known_adjusted(history: PriceHistory, first: date) -> PriceHistory:
    """The bars from `first` on, with those before it back to the first whose adj_close is unknown: what an adjusted
    basis needs, and what of the past it can have."""
    row = history.rows_through(first)
    while row > 0 and (history.adj_close[row - 1] != UNKNOWN or history.sessions[row - 1] >= first.toordinal()):
        row -= 1
    return history.slice(row, len(history))


def adjusted_by_actions(
    history: PriceHistory, actions: Iterable[CorporateAction] | None, through: date
) -> PriceHistory:
    """The bars through a day with every unknown adj_close made from the close and the corporate actions after it, as
    its vendor would: a dividend scales what was before by 1 - dividend / last close, a split by 1 / ratio. Nothing
    changes where the actions are not known."""
    history = history.slice(0, history.rows_through(through))
    if actions is None or UNKNOWN not in history.adj_close:
        return history
    due: dict[int, list[CorporateAction]] = {}
    for action in actions:
        due.setdefault(bisect_left(history.sessions, action.ex_date.toordinal()), []).append(action)
    adjusted, factor = array("q", history.adj_close), Fraction(1)
    for row in range(len(history) - 1, -1, -1):
        if adjusted[row] == UNKNOWN:
            adjusted[row] = _rounded(history.close[row] * factor.numerator, factor.denominator)
        else:
            factor = Fraction(adjusted[row], history.close[row])
        for action in due.get(row, ()) if row else ():
            last_close = Fraction(history.close[row - 1], NANO)
            split = action.kind is ActionKind.SPLIT
            factor *= 1 / Fraction(action.value) if split else 1 - Fraction(action.value) / last_close
    return replace(history, adj_close=adjusted)


def on_first_basis(history: PriceHistory, actions: Iterable[CorporateAction] | None) -> PriceHistory:
    """Prices as traded with those from each split on multiplied by its ratio: one scale throughout, on which a later
    split changes no earlier figure. adj_close is unknown. Rules read this; nobody trades at it."""
    history = without_adjusted(history)
    splits: dict[int, Fraction] = {}
    for action in actions or ():
        start = bisect_left(history.sessions, action.ex_date.toordinal())
        if action.kind is ActionKind.SPLIT and 0 < start < len(history):
            splits[start] = splits.get(start, Fraction(1)) * Fraction(action.value)
    if not splits:
        return history
    factor, above, below = Fraction(1), list[int](), list[int]()
    for start, stop in pairwise((0, *sorted(splits), len(history))):
        factor *= splits.get(start, 1)
        above.extend([factor.numerator] * (stop - start))
        below.extend([factor.denominator] * (stop - start))
    return replace(
        history.repriced(lambda price, row: _rounded(price * above[row], below[row])),
        volume=array("d", (v / (a / b) for v, a, b in zip(history.volume, above, below, strict=True))),
    )


def _rounded(above: int, below: int) -> int:
    """A quotient of positive whole numbers, rounded half to even."""
    quotient, rest = divmod(above, below)
    return quotient + (2 * rest > below or (2 * rest == below and quotient % 2 == 1))
