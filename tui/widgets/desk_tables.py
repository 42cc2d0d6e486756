"""Rows of the watchlist and the open orders, from the desk's state and the market's quotes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from engine.domain.decision import Action
from engine.domain.order import is_own
from engine.reports import amounts
from engine.reports.documents.control_state import ControlState, OpenOrder, Waiting
from engine.reports.table import action_ink, sign_ink
from engine.reports.tables import PROFIT, REQUESTED, SIDE, SYMBOL, worth
from tui.charts.chart_canvas import VOLUME_BARS
from tui.text.plain_text import cut
from tui.view.market_view import DAYS, Quote
from tui.view.state import DeskState, Progress
from tui.view.watchlist import DESK
from tui.widgets.table import Cell, Column, Row, rows_of

if TYPE_CHECKING:
    from engine.domain.order import Position
    from tui.view.snapshot import Snapshot
    from tui.view.watchlist import WatchedGroup

STEP_CELLS = 9
"""Cells of the name of a step: a longer one would cost other columns their place while it runs."""
A_CELL = 3
"""Sessions that a cell of a sparkline stands for, by the close of the last."""
PLACES = 7
"""Cells between the lowest and the highest price of a day."""


def _sparkline(row: Mapping[str, Any]) -> Cell | None:
    closes = row["closes"][::-1][::A_CELL][::-1]
    if not closes:
        return None
    low, high = min(closes), max(closes)
    eighths = (int(8 * (close - low) / (high - low)) if high > low else 0 for close in closes)
    change = row["closes"][-1] / row["closes"][0] - 1
    return Cell("".join(VOLUME_BARS[1:][min(7, one)] for one in eighths), "muted", change)


def _day(row: Mapping[str, Any]) -> Cell | None:
    """The place of the last price between the day's lowest and highest."""
    low, high, last = row["low"], row["high"], row["last"]
    if low is None or high is None or not low <= last <= high or low == high:
        return None
    place = (last - low) / (high - low)
    before = round(place * (PLACES - 1))
    return Cell("─" * before + "┃" + "─" * (PLACES - 1 - before), "muted", place)


WATCHLIST = {
    "last": Column("LAST", "last", amounts.price),
    "change": Column("CHG%", "change", amounts.percent, sign_ink),
    "sparkline": Column("30D", _sparkline, drop_order=2, max_width=DAYS // A_CELL),
    "day": Column("DAY", _day, drop_order=5, max_width=PLACES),
    "held": Column("POS", "quantity", amounts.quantity, drop_order=6, max_width=9),
    "value": Column("VALUE", worth, "{:,.0f}".format, drop_order=3),
    "profit": replace(PROFIT, form="{:+,.0f}".format, drop_order=1),
    "signal": Column("SIGNAL", "signal", drop_order=4, max_width=16),
}
"""The columns of the watchlist by the names that the configuration has for them."""
ORDERS = (SYMBOL, SIDE, REQUESTED, Column("STATE", max_width=20))
_STATE_INKS = {Waiting.APPROVAL: "mark", Waiting.APPROVED: "up", Waiting.SENT: "muted"}


def watchlist_columns(names: Sequence[str]) -> tuple[Column, ...]:
    """The symbol, and the columns of some names; all without one."""
    return (SYMBOL, *(WATCHLIST[name] for name in names or WATCHLIST))


def watchlist_rows(view: Snapshot, group: WatchedGroup, columns: Sequence[Column]) -> tuple[list[Row], str]:
    """A row per symbol of a group, in its order, then the desk's own per other symbol that is held; before there are
    prices, of what the desk has decided. With the value and the profit of all of them, in words."""
    books, quotes = view.desk.books, [] if view.market is None else group.quotes(view.market.quotes)
    prices = {} if books is None else books.point.prices
    positions = {} if books is None else books.point.portfolio.positions
    if group.name == DESK:
        known = {quote.symbol for quote in quotes}
        beside = positions if view.market else view.desk.decisions
        quotes += [Quote(symbol, prices.get(symbol), None) for symbol in beside if symbol not in known]
    watched = [_watched(view.desk, quote, positions.get(quote.symbol), prices.get(quote.symbol)) for quote in quotes]
    held = [one for one in watched if one["quantity"]]
    value, profit = (sum((one or Decimal(0) for one in map(read, held)), Decimal(0)) for read in (worth, PROFIT.value))
    sums = f"value {value:,.0f}  P&L {profit:+,.0f}" if books is not None else ""
    return rows_of(columns, watched, itemgetter("symbol")), sums


def _watched(desk: DeskState, quote: Quote, held: Position | None, price: Decimal | None) -> dict[str, Any]:
    """A row of the watchlist; what is held has the price that the books are valued at."""
    return {
        "symbol": quote.symbol,
        "last": quote.last,
        "change": quote.change,
        "closes": quote.closes,
        "low": quote.low,
        "high": quote.high,
        "quantity": None if held is None else held.quantity,
        "cost": None if held is None else held.average_cost,
        "price": None if held is None else price,
        "signal": _signal(desk, quote.symbol),
    }


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
