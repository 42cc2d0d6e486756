"""The moments at which the film of a desk's history stops: a purchase, and a loss on the same symbol, each with why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from engine.domain.decision import Action
from engine.domain.market import Symbol
from engine.journal.reader import JournalReader


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop once a session was decided, at a symbol, with what is to be read there."""

    session: date
    symbol: Symbol
    text: str


def film_stops(reader: JournalReader, first: date) -> tuple[Stop, ...]:
    """The last sale below cost that was decided from session `first` on, and before it the largest purchase of that
    symbol; none without both. Raises what JournalReader raises."""
    points = {point.session: point for point in reader.equity(book=None)}
    decisions = reader.decisions(first=first)
    for sold in reversed(decisions):
        session, symbol, point = sold.key.session, sold.key.symbol, points.get(sold.key.session)
        held = None if point is None else point.portfolio.positions.get(symbol)
        if point is None or held is None or held.average_cost is None or sold.opinion.action is not Action.SELL:
            continue
        price, paid = point.prices[symbol], held.average_cost
        bought = [
            made
            for made in decisions
            if made.key.symbol == symbol and made.key.session < session and made.opinion.action is Action.BUY
        ]
        if bought and price < paid:
            purchase = max(bought, key=lambda made: made.opinion.size)
            loss = f"{symbol} is sold at a loss: {paid:,.2f} paid, {price:,.2f} now ({price / paid - 1:.1%})"
            return (
                Stop(purchase.key.session, symbol, f"{symbol} is bought. {_why(purchase.opinion.reason)}"),
                Stop(session, symbol, f"{loss}. {_why(sold.opinion.reason)}"),
            )
    return ()


def _why(reason: str) -> str:
    return reason.partition("\n")[0]
