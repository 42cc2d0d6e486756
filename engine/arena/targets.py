"""Orders toward the shares that a seat wants to hold, and the record of why it wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from engine.arena.ledger import CENT
from engine.arena.traders import MARGIN, in_ticks
from engine.arena.view import MarketView, StockView, Wish
from engine.domain.decision import Action
from engine.domain.order import Side


@dataclass(frozen=True, slots=True)
class SeatAnswer:
    """An answer that led to a decision: the question's name, the owner in whose name it was asked, and its text."""

    step: str
    owner: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatDecision:
    """A decision of a preset or a strategy at the table.

    day: on whose morning it was made.
    owner: the one who decided, or the default owner where opinions were combined; empty for a strategy.
    size: percent of the seat's wealth, after all limits.
    shares: of the seat's order in the stock, all its books together; negative for a sale.
    reason: the explanation, or the reason of an abstention.
    cut: what rules and limits changed, empty where they changed nothing.
    answers: that it rests on, in the order of the questions.
    """

    day: int
    stock: str
    owner: str = ""
    action: Action
    size: Decimal
    shares: int
    reason: str
    cut: str = ""
    answers: tuple[SeatAnswer, ...] = ()


def toward(view: MarketView, targets: Mapping[str, int], cost_rate: Decimal) -> Iterator[Wish]:
    """Limit orders a little through the price that lead from what is held to what is wanted: sales first, then
    purchases as far as the cash goes. A limit bounds the price that an empty book would give."""
    for stock in view.stocks:
        held = view.shares[stock.name]
        if (excess := held - targets.get(stock.name, held)) > 0:
            yield Wish(stock.name, Side.SELL, excess, _limit(view, stock, Side.SELL))
    cash = view.cash - CENT
    for stock in view.stocks:
        limit = _limit(view, stock, Side.BUY)
        each = limit * (1 + cost_rate)
        missing = targets.get(stock.name, 0) - view.shares[stock.name]
        quantity = min(missing, int(cash / each))
        if quantity > 0:
            cash -= quantity * each
            yield Wish(stock.name, Side.BUY, quantity, limit)


def _limit(view: MarketView, stock: StockView, side: Side) -> Decimal:
    through = 1 + MARGIN if side is Side.BUY else 1 - MARGIN
    return max(view.tick, in_ticks(view, stock.price * through, side))
