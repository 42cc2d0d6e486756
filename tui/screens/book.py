"""Book: equity beside buy and hold, drawdown, positions, cash, and every order from its decision to its result, as of
the moment that is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.domain.order import Fill, Order
from engine.errors import PaperdeskError
from engine.reports import amounts, tables
from engine.reports.documents.book import BlotterRow, Book, Position
from engine.reports.documents.trail import decided_order
from engine.reports.table import Cell, Column, sign_ink
from engine.reports.tables import FLOWS, PRICE, REQUESTED, SIDE, SYMBOL
from tui.desk import book_curves
from tui.screens.frame import TALL, Layout
from tui.screens.order_actions import OrderActions
from tui.settings.keys import BOOK, bindings
from tui.view.snapshot import OPENING, Snapshot
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.desk_tables import order_state
from tui.widgets.newest_reading import newest_reading
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Row, Table, rows_of

POSITIONS = (*tables.POSITIONS, Column("TODAY", "today", amounts.gain, sign_ink, drop_order=4))
BLOTTER = (
    Column("DECIDED", "session", drop_order=4),
    SYMBOL,
    SIDE,
    REQUESTED,
    Column("SENT", "sent", "{:%m-%d %H:%M}".format, "muted", drop_order=6),
    Column("STATE", "state", max_width=14),
    Column("FILLED", "filled", max_width=11, drop_order=5),
    Column("QTY", "filled_quantity", amounts.quantity, drop_order=9),
    replace(PRICE, drop_order=1),
    Column("SLIP BP", "slippage", "{:+.1f}".format, drop_order=3),
    Column("P&L", "profit", amounts.gain, sign_ink),
    Column("WHY", "why", ink="muted", drop_order=8, stretch=True, min_width=12),
)
"""Every order from its decision to its result."""


def position_rows(book: Book, prices: Mapping[str, Decimal]) -> list[Row]:
    """A row per position, at live prices where there are any: then today's profit is that since the close."""
    return rows_of(POSITIONS, [_live(one, prices.get(one.symbol)) for one in book.positions], lambda one: one.symbol)


def _live(one: Position, price: Decimal | None) -> Position:
    return one if not price or price == one.price else replace(one, price=price, before=one.price)


def blotter_rows(book: Book, states: Mapping[str, Cell]) -> Sequence[Row]:
    """A row per order, the latest first, with the reason that it ended where it came to nothing, else that of its
    decision; `states` by id are those of open orders as their table shows them: waiting, answered."""
    listed = [_blotter_row(number, one, states) for number, one in enumerate(book.blotter)]
    return rows_of(BLOTTER, listed, lambda one: str(one["id"]))


def _blotter_row(number: int, one: BlotterRow, states: Mapping[str, Cell]) -> Mapping[str, object]:
    order, fills = one.order, one.fills
    asked: Order | Fill = fills[-1] if order is None else order
    state = Cell("not decided", "warn") if order is None else Cell(order.state.value, "muted")
    last = fills[-1] if fills else None
    return {
        **{name: getattr(asked, name, None) for name in ("session", "symbol", "side", "notional", "quantity")},
        "id": number if order is None else order.id,
        "state": state if order is None else states.get(order.id, state),
        "sent": one.sent,
        "filled": None if last is None else f"{last.time:%m-%d %H:%M}" if last.time else str(last.session),
        "filled_quantity": sum((fill.quantity for fill in fills), Decimal(0)) or None,
        "price": one.price,
        "slippage": one.slippage,
        "profit": one.profit,
        "why": one.ended or asked.reason,
    }


class BookScreen(OrderActions):
    """The account: curves on the left, positions and cash on the right, the blotter over the whole width."""

    MODE = BOOK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(BOOK)]
    TABLES, ORDERS = ("book-positions",), "blotter"
    PANES = ("growth", "falls", "book-positions", "flows", "exposure", "blotter")

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[object, ...] = ()
        self._book: Book | None = None
        self._listed: dict[str, Cell] | None = None
        """The states of open orders that are listed; None where none of its orders is yet."""

    def compose_body(self) -> ComposeResult:
        """Mount curves and tables."""
        with Horizontal(id="book", classes="part"):
            with Vertical(id="curves", classes="column"):
                yield CurvePlot(id="growth", title="Equity", classes="pane", empty=OPENING)
                yield CurvePlot(id="falls", title="Drawdown", classes="pane", empty=OPENING)
            with Vertical(id="book-tables", classes="column"):
                yield Table(POSITIONS, title="Positions", empty=OPENING, id="book-positions", classes="pane")
                yield Table(FLOWS, title="Cash", empty=OPENING, id="flows", classes="pane")
                yield CurvePlot(id="exposure", title="Exposure", classes="pane", empty=OPENING)
        yield Table(BLOTTER, title="Blotter", empty=OPENING, id="blotter", classes="pane")

    def on_mount(self) -> None:
        """Focus the positions."""
        self.focus_pane("book-positions")

    def has_room_for(self, pane: Widget) -> bool:
        """True for all but the drawdown of a low screen, which could not be drawn, and the exposure of all but a large
        one."""
        tall = self.size.height >= TALL
        return {"falls": tall, "exposure": tall and self.form is Layout.WIDE}.get(str(pane.id), True)

    def show_body(self, view: Snapshot) -> None:
        """Read again where the books may have changed."""
        if not view.sources:
            for table in self.query(Table):
                table.say_empty(view.unopened)
            return
        self._show_positions(view)
        self._show_orders(view)
        if (shown := book_curves.seen(view)) != self._shown:
            self._shown = shown
            self._read(view)

    @newest_reading
    async def _read(self, view: Snapshot) -> None:
        try:
            book = await book_curves.read_book(view)
        except PaperdeskError as error:
            self._book = None
            for table in self.query(Table):
                table.show([], str(error))
            return
        self._show_book(book, view)

    def _show_book(self, book: Book, view: Snapshot) -> None:
        self.query_one("#flows", Table).show(rows_of(FLOWS, book.flows), "no dividend, fee or transfer so far")
        self._book, self._listed = book, None
        self._show_positions(view)
        self._show_orders(view)
        growth, falls = self.query_one("#growth", CurvePlot), self.query_one("#falls", CurvePlot)
        growth.show(book_curves.growth(book))
        set_title(growth, f"{book_curves.growth_title(book)}, without deposits" if book.sessions else "Equity")
        falls.show(book_curves.drawdown(book))
        lowest = min(book.falls, default=0.0)
        set_subtitle(falls, f"deepest {amounts.percent(lowest)}" if lowest else "")
        self.query_one("#exposure", CurvePlot).show(book_curves.exposure(book))

    def _show_positions(self, view: Snapshot) -> None:
        """Show the positions of the book that was read last, at the prices that the desk is valued at now."""
        book, books = self._book, view.desk.books
        if book is None:
            return
        positions = self.query_one("#book-positions", Table)
        prices = {} if books is None or books.live is None else books.point.prices
        positions.show(position_rows(book, prices), "nothing is held")
        as_of = books.as_of if books is not None else ""
        set_subtitle(positions, f"cash {amounts.money(book.cash)}  {as_of}" if book.sessions else "")

    def _show_orders(self, view: Snapshot) -> None:
        """Show the orders of the book that was read last, open ones as they stand now."""
        states = {one.order.id: order_state(one) for one in view.controls.orders}
        if self._book is not None and states != self._listed:
            self._listed = states
            blotter = self.query_one("#blotter", Table)
            blotter.show(blotter_rows(self._book, states), "no order so far")
            filled = [one for one in self._book.blotter if one.fills]
            gained = sum((one.profit for one in filled if one.profit is not None), Decimal(0))
            set_subtitle(blotter, f"{len(filled):,} filled, P&L {gained:+,.0f}" if filled else "")

    def chosen_symbol(self) -> str:
        """The symbol of the position, or of the order, under the cursor; else the desk's first."""
        quotes = () if self._view.market is None else self._view.market.quotes
        return self._chosen()[0] or next((one.symbol for one in quotes), "")

    def contexts(self) -> dict[str, object]:
        """Those of the position, or of the order, under the cursor."""
        return {**super().contexts(), "decided": self._chosen()[0]}

    @on(Table.Opened)
    def action_why(self) -> None:
        """Open the trail of the decision that the order under the cursor rests on; of a position that of its latest
        trade, and of one without, as in a history that begins later, the latest decision."""
        symbol, order = self._chosen()
        if order is not None:
            self.open_trail(partial(decided_order, symbol=symbol, order=order.id))
        elif symbol:
            self.open_trail(symbol)
        else:
            self.notify("nothing is held", timeout=3)

    def _chosen(self) -> tuple[str, Order | None]:
        """The symbol of the focused table's row with its order: that of the blotter, or the last that a position was
        traded by."""
        rows = () if self._book is None else self._book.blotter
        orders = [(one.order, bool(one.fills)) for one in rows if one.order is not None]
        blotter = self.query_one("#blotter", Table)
        if blotter.has_focus:
            chosen = next((order for order, _ in orders if order.id == blotter.cursor_key), None)
            return "" if chosen is None else chosen.symbol, chosen
        symbol = self.query_one("#book-positions", Table).cursor_key or ""
        return symbol, next((order for order, filled in orders if filled and order.symbol == symbol), None)
