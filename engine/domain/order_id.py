"""The ids that make orders exactly-once, and what can be read from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.domain.market import Symbol
    from engine.domain.order import Side


def order_id(
    desk: str, session: date, cycle: int, symbol: Symbol, side: Side, *, book: str = "", attempt: int = 1
) -> str:
    """The id that makes an order exactly-once: the same intention always has the same id. `book` names the owner
    whose book is traded, empty where the desk has one book only."""
    traded = f"{symbol.replace('/', '')}-{book}" if book else symbol.replace("/", "")
    return f"{desk}-{session:%Y%m%d}-{cycle}-{traded}-{side.value[0]}-{attempt}"


@dataclass(frozen=True, slots=True)
class OrderName:
    """The parts of an order's id: its desk, the decision's session, the number of its cycle, and what was traded, a
    symbol with the owner whose book it is where there is one."""

    desk: str
    session: date
    cycle: int
    traded: str


_NAME = re.compile(r"(.+)-(\d{8})-(\d+)-(.+)-[BS]-\d+")


def read_order_id(order: str) -> OrderName | None:
    """The parts of an id of `order_id`; None for one that no desk has given."""
    found = _NAME.fullmatch(order)
    if found is None:
        return None
    try:
        session = date.fromisoformat(found[2])
    except ValueError:
        return None
    return OrderName(found[1], session, int(found[3]), found[4])


YOU = "you"
"""The owner of an order that the operator gives."""
DAILY = 1
"""The number of the cycle after the close; those within the next session count on from it."""
NO_CYCLE = 0
"""The number of the cycle in the id of an order that no cycle has decided."""


def own_order_id(desk: str, session: date, symbol: Symbol, side: Side, attempt: int) -> str:
    """The id of the operator's own order; `attempt` counts those of the symbol and side in a session, from 1."""
    return order_id(desk, session, NO_CYCLE, symbol, side, book=YOU, attempt=attempt)


_OWN = re.compile(rf"-{NO_CYCLE}-.+-{YOU}-[BS]-\d+")


def is_own(order: str) -> bool:
    """True for the id of the operator's own order."""
    return _OWN.search(order) is not None


_CLOSING = re.compile(r"stopped-\d{8}-(?!.*-[BS]-\d+$)")
"""Not what ends in side and attempt: that is an order, and its desk may be named `stopped`."""


def closing_order_id(session: date, symbol: Symbol) -> str:
    """The id in the fill that closes a position because its symbol stopped trading; nobody ordered it."""
    return f"stopped-{session:%Y%m%d}-{symbol}"


def is_closing(order: str) -> bool:
    """True for an id of closing_order_id."""
    return _CLOSING.match(order) is not None
