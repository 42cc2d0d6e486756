"""The books of this moment: those of the last close with everything that was booked since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from decimal import Decimal

from engine.account.time_weighted import SPLITS, net_deposits
from engine.domain.ledger import carried_forward
from engine.domain.market import Symbol
from engine.domain.order import Fill
from engine.domain.portfolio import ZERO
from engine.domain.run import Adoption, CashFlow, EquityPoint


@dataclass(frozen=True, slots=True)
class Since:
    """Everything that was booked after a close.

    books: carried forward, dated with the latest session in which something was booked, and valued at the last price
        that the journal knows: of a trade since, else the close.
    fills: the number of trades.
    deposits: less withdrawals, which are no profit.
    """

    books: EquityPoint
    _: KW_ONLY
    fills: int
    deposits: Decimal


def since_close(
    last: EquityPoint, fills: Iterable[Fill], flows: Iterable[CashFlow], adoptions: Iterable[Adoption] = ()
) -> Since | None:
    """Everything that was booked in the account after the close of `last`; None where nothing was."""
    fills = [one for one in fills if one.session > last.session]
    flows = [one for one in flows if one.session > last.session]
    adoptions = [one for one in adoptions if one.session > last.session]
    everything: list[Fill | CashFlow | Adoption] = [*fills, *flows, *adoptions]
    sessions: list[date] = [one.session for one in everything]
    if not sessions:
        return None
    portfolio = carried_forward(last.portfolio, fills, flows, adoptions)
    known = _restated(last, flows) | {one.symbol: one.price for one in adoptions if one.symbol}
    known |= {one.symbol: one.price for one in fills}
    prices = {symbol: known.get(symbol, ZERO) for symbol in portfolio.positions}
    books = EquityPoint(max(sessions), portfolio.value(prices), portfolio, prices)
    deposits = sum((one.amount for one in net_deposits((last, books), flows, adoptions)), ZERO)
    return Since(books, fills=len(fills), deposits=deposits)


def _restated(last: EquityPoint, flows: Sequence[CashFlow]) -> dict[Symbol, Decimal]:
    """The closes in the shares of now: a split changes what a share is."""
    prices = dict(last.prices)
    for symbol, held in last.portfolio.positions.items():
        split = sum((one.quantity for one in flows if one.symbol == symbol and one.kind in SPLITS), ZERO)
        if split and held.quantity + split and symbol in prices:
            prices[symbol] = prices[symbol] * held.quantity / (held.quantity + split)
    return prices
