"""Rows of the watchlist, the positions and the open orders, from the desk's state and the market's quotes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING

from engine.domain.decision import Action
from engine.domain.order import is_own
from engine.reports import amounts
from engine.reports.documents.control_state import ControlState, OpenOrder, Waiting
from engine.reports.table import action_ink, signed
from engine.reports.tables import COST, GAINED, PROFIT, QUANTITY, REQUESTED, SIDE, SYMBOL
from tui.text.plain_text import cut
from tui.view.state import DeskState, Progress
from tui.view.watchlist import DESK
from tui.widgets.table import Cell, Column, Row, rows_of

if TYPE_CHECKING:
    from tui.view.market_view import Quote
    from tui.view.snapshot import Snapshot
    from tui.view.watchlist import WatchedGroup

STEP_CELLS = 9
"""Cells of the name of a step: a longer one would cost the positions their column while it runs."""
WATCHLIST = (
    SYMBOL,
    Column("LAST", form=str),
    Column("CHG%", form=str),
    Column("POS", form=str, drop_order=2, max_width=9),
    Column("SIGNAL", drop_order=1, max_width=16),
)
POSITIONS = (SYMBOL, QUANTITY, COST, PROFIT, GAINED)
ORDERS = (SYMBOL, SIDE, REQUESTED, Column("STATE", max_width=20))
_STATE_INKS = {Waiting.APPROVAL: "mark", Waiting.APPROVED: "up", Waiting.SENT: "muted"}


def watchlist_rows(view: Snapshot, group: WatchedGroup) -> list[Row]:
    """Build a row per symbol of a group, in its order; before there are prices, of what the desk has decided."""
    if view.market is None:
        unknown = (Cell("-", "muted"),) * 3
        decided = view.desk.symbols if group.name == DESK and view.desk.decisions else ()
        return [Row(one, (Cell(one, "strong"), *unknown, _signal(view.desk, one))) for one in decided]
    books = view.desk.books
    return [
        _quote(quote, books.point.portfolio.quantity(quote.symbol) if books else Decimal(0), view.desk)
        for quote in group.quotes(view.market.quotes)
    ]


def _quote(quote: Quote, shares: Decimal, desk: DeskState) -> Row:
    return Row(
        quote.symbol,
        (
            Cell(quote.symbol, "strong"),
            Cell(amounts.price(quote.last), order=quote.last),
            signed(amounts.percent(quote.change), quote.change),
            Cell(amounts.quantity(shares), "text" if shares else "muted", order=shares),
            _signal(desk, quote.symbol),
        ),
    )


def _signal(desk: DeskState, symbol: str) -> Cell:
    """Show the step in progress while a cycle runs, else the latest decision, or the decisions of several owners; in
    brackets that of a session before the one that the desk decides, or decided last."""
    if desk.running:
        thinking = next((pane for pane in desk.panes_of(symbol) if pane.progress is Progress.THINKING), None)
        if thinking is not None:
            return Cell(cut(thinking.step, STEP_CELLS), "mark", order="")
    made = tuple(desk.decisions.get(symbol, {}).values())
    if not made:
        return Cell("-", "muted")
    earlier = desk.session is not None and made[0].key.session < desk.session
    if len(made) > 1:
        (action, count), *_ = Counter(one.action for one in made).most_common()
        text = f"{action:<4} {count}/{len(made)}"
    else:
        # More digits would cost the positions their column.
        action, size = made[0].action, amounts.size(round(made[0].size, 1))
        text = "abstain" if action is Action.ABSTAIN else f"{action:<4} {size:>2}".rstrip()
    word = text.partition(" ")[0]
    return Cell(f"({word})", "muted", action) if earlier else Cell(text, action_ink(action), action)


def position_rows(desk: DeskState) -> list[Row]:
    """Build a row per position, at the price of its quote."""
    if desk.books is None:
        return []
    point = desk.books.point
    held = [
        {"symbol": symbol, "quantity": one.quantity, "cost": one.average_cost, "price": point.prices.get(symbol)}
        for symbol, one in point.portfolio.positions.items()
    ]
    return rows_of(POSITIONS, held, itemgetter("symbol"))


def order_rows(controls: ControlState, now: datetime) -> list[Row]:
    """Build a row per open order: one that waits for approval shows the time until it expires, one that was sent its
    state at the broker."""
    return [_open_order(order, now) for order in controls.orders]


def order_state(open_order: OpenOrder) -> Cell:
    """The state of an open order in a few words: at the broker once it was sent, before that how it was answered."""
    shown = open_order.order.state.value if open_order.state is Waiting.SENT else open_order.state.value
    return Cell(shown, _STATE_INKS.get(open_order.state, "warn"))


def _open_order(open_order: OpenOrder, now: datetime) -> Row:
    order, state = open_order.order, order_state(open_order)
    if open_order.waits and open_order.until is not None:
        state = replace(state, text=f"{state.text} {amounts.about(open_order.until - now)}")
    if is_own(order.id):
        state = replace(state, text=f"{state.text}, yours")
    return Row(order.id, (*(column.cell(order) for column in ORDERS[:-1]), state))
