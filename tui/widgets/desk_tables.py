"""Rows of the watchlist, the positions and the open orders, from the desk's state and the market's quotes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from engine.domain.market import is_crypto
from engine.reports.documents.control_state import ControlState, OpenOrder, Waiting
from tui import amounts
from tui.bridge import Snapshot
from tui.market_view import Quote
from tui.state import DeskState, Held, Progress
from tui.widgets.table import Cell, Column, Row

WATCHLIST = (
    Column(title="SYM", max_width=9),
    Column(title="LAST", right=True),
    Column(title="CHG%", right=True),
    Column(title="POS", right=True, drop_order=2, max_width=9),
    Column(title="SIGNAL", drop_order=1, max_width=16),
)
POSITIONS = (
    Column(title="SYM", max_width=9),
    Column(title="QTY", right=True, max_width=10),
    Column(title="COST", right=True, drop_order=1),
    Column(title="P&L", right=True),
    Column(title="P&L%", right=True, drop_order=2),
)
ORDERS = (
    Column(title="SYM", max_width=9),
    Column(title="SIDE", max_width=4),
    Column(title="ASKED", right=True, max_width=10),
    Column(title="STANDS", max_width=14),
)
_STATES = {Waiting.APPROVAL: "mark", Waiting.APPROVED: "up", Waiting.SENT: "muted"}
_INKS = {"BUY": "up", "SELL": "down", "ABSTAIN": "warn"}


def watchlist_rows(view: Snapshot) -> list[Row]:
    """Build a row per symbol of the desk, in the desk's order."""
    market, desk = view.market, view.desk
    if market is None:
        return []
    held = {position.symbol: position.quantity for position in desk.books.held} if desk.books else {}
    rows = []
    for quote in _at_live_prices(view):
        change = quote.change
        rows.append(
            Row(
                quote.symbol,
                (
                    Cell(quote.symbol, "strong"),
                    Cell(amounts.price(quote.last), order=quote.last),
                    Cell(amounts.percent(change), _ink(change), order=change),
                    _position(held.get(quote.symbol, Decimal(0))),
                    _signal(desk, quote.symbol),
                ),
            )
        )
    return rows


def _at_live_prices(view: Snapshot) -> Sequence[Quote]:
    """Return the market's quotes, at the prices of the live feed for symbols with a newer price."""
    market, live = view.market, view.live
    assert market is not None
    if live is None or not live.prices or view.services is None:
        return market.quotes
    from engine.market.as_of import last_opened

    now = view.services.clock.now()
    exchange = now.date() if market.calendar is None else last_opened(market.calendar, now)
    return [
        quote.at(live.prices.get(quote.symbol), now.date() if is_crypto(quote.symbol) else exchange)
        for quote in market.quotes
    ]


def _position(shares: Decimal) -> Cell:
    return Cell(amounts.quantity(shares), "text" if shares else "muted", order=shares)


def _ink(change: float | Decimal | None) -> str:
    return "muted" if not change else "up" if change > 0 else "down"


def _signal(desk: DeskState, symbol: str) -> Cell:
    """Show the step in progress while a cycle runs, else the latest decision."""
    if desk.running:
        thinking = next((p for p in desk.panes_of(symbol) if p.progress is Progress.THINKING), None)
        if thinking is not None:
            return Cell(thinking.step, "mark", order="")
    signal = desk.signals.get(symbol)
    if signal is None:
        return Cell("-", "muted")
    if signal.action == "ABSTAIN":
        return Cell("abstain", "warn")
    size = amounts.size(signal.size)
    return Cell(f"{signal.action:<4} {size:>2}".rstrip(), _INKS.get(signal.action, "text"), order=signal.action)


def position_rows(desk: DeskState) -> list[Row]:
    """Build a row per position, as valued at the last close."""
    if desk.books is None:
        return []
    return [_held(held) for held in desk.books.held]


def _held(held: Held) -> Row:
    known = held.cost is not None and held.price is not None
    profit = held.quantity * (held.price - held.cost) if held.price is not None and held.cost is not None else None
    part = None
    if known and held.cost and held.price is not None:
        part = float(held.price / held.cost - 1) * (1 if held.quantity > 0 else -1)
    return Row(
        held.symbol,
        (
            Cell(held.symbol, "strong"),
            Cell(amounts.quantity(held.quantity), order=held.quantity),
            Cell(amounts.price(held.cost), order=held.cost),
            Cell(amounts.gain(profit), _ink(profit), order=profit),
            Cell(amounts.percent(part, 1), _ink(part), order=part),
        ),
    )


def order_rows(controls: ControlState, now: datetime) -> list[Row]:
    """Build a row per open order; one that waits for approval shows the time until it expires."""
    return [_open_order(order, now) for order in controls.orders]


def _open_order(open_order: OpenOrder, now: datetime) -> Row:
    order = open_order.order
    if order.quantity is None:
        quantity = Cell(f"${amounts.money(order.notional, 0)}", order=order.notional)
    else:
        quantity = Cell(amounts.quantity(order.quantity), order=order.quantity)
    state = open_order.state.value
    if open_order.waits and open_order.until is not None:
        state = f"waits {amounts.about(open_order.until - now)}"
    return Row(
        order.id,
        (
            Cell(order.symbol, "strong"),
            Cell(order.side.value, _INKS.get(order.side.value, "text")),
            quantity,
            Cell(state, _STATES.get(open_order.state, "warn")),
        ),
    )
