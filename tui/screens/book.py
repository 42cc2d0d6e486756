"""Book: equity beside buy and hold, drawdown, positions, orders, trades and cash, as of the moment that is shown."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.errors import PaperdeskError
from engine.reports import amounts
from engine.reports.documents.book import Book
from engine.reports.tables import FLOWS, TRADES
from tui.desk import book_curves
from tui.screens.frame import TALL, Layout
from tui.screens.newest_reading import newest_reading
from tui.screens.order_actions import OrderActions
from tui.settings.keys import BOOK, bindings
from tui.view.snapshot import OPENING, Snapshot
from tui.widgets import book_tables
from tui.widgets.desk_tables import order_state
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Cell, Table, rows_of


class BookScreen(OrderActions):
    """The account: two curves on the left, four tables on the right."""

    MODE = BOOK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(BOOK)]
    TABLE, ORDERS = "book-positions", "book-orders"
    PANES = ("growth", "falls", "book-positions", "book-orders", "trades", "flows", "exposure")

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[object, ...] = ()
        self._book: Book | None = None
        self._listed: dict[str, Cell] | None = None
        """The states of open orders that are listed; None where none of its orders is yet."""

    def compose_body(self) -> ComposeResult:
        """Mount curves and tables."""
        with Horizontal(id="book"):
            with Vertical(id="curves", classes="column"):
                yield CurvePlot(id="growth", classes="pane")
                yield CurvePlot(id="falls", classes="pane")
            with Vertical(id="book-tables", classes="column"):
                for name, title, columns in (
                    ("book-positions", "Positions", book_tables.POSITIONS),
                    ("book-orders", "Orders", book_tables.ORDERS),
                    ("trades", "Trades", TRADES),
                    ("flows", "Cash", FLOWS),
                ):
                    yield Table(columns, title=title, empty=OPENING, id=name, classes="pane")
                yield CurvePlot(id="exposure", classes="pane")

    def on_mount(self) -> None:
        """Focus the positions."""
        self.query_one("#growth").border_title = "Equity"
        self.query_one("#falls").border_title = "Drawdown"
        self.query_one("#exposure").border_title = "Exposure"
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
        self._show_orders(view)
        if (shown := book_curves.seen(view)) != self._shown:
            self._shown = shown
            self._read(view)

    # With a description: Textual would write down a whole snapshot for one.
    @newest_reading
    async def _read(self, view: Snapshot) -> None:
        try:
            book = await book_curves.read_book(view)
        except PaperdeskError as error:
            self.query_one("#book-positions", Table).show([], str(error))
            return
        self._show_book(book, view)

    def _show_book(self, book: Book, view: Snapshot) -> None:
        prices = {quote.symbol: quote.last for quote in view.market.quotes} if view.market is not None else {}
        books = view.desk.books
        live = books is not None and books.live is not None
        for name, rows, empty in (
            ("book-positions", book_tables.positions(book, prices if live else {}), "nothing is held"),
            ("trades", rows_of(TRADES, book.fills), "no trade so far"),
            ("flows", rows_of(FLOWS, book.flows), "no dividend, fee or transfer so far"),
        ):
            self.query_one(f"#{name}", Table).show(rows, empty)
        self._book, self._listed = book, None
        self._show_orders(view)
        positions = self.query_one("#book-positions", Table)
        as_of = books.as_of if books is not None else ""
        positions.border_subtitle = f"cash {amounts.money(book.cash)}  {as_of}" if book.sessions else ""
        growth, falls = self.query_one("#growth", CurvePlot), self.query_one("#falls", CurvePlot)
        growth.show(book_curves.growth(book))
        growth.border_title = f"{book_curves.growth_title(book)}, without deposits" if book.sessions else "Equity"
        falls.show(book_curves.drawdown(book))
        lowest = min(book.falls, default=0.0)
        falls.border_subtitle = f"deepest {amounts.percent(lowest)}" if lowest else ""
        self.query_one("#exposure", CurvePlot).show(book_curves.exposure(book))

    def _show_orders(self, view: Snapshot) -> None:
        """Show the orders of the book that was read last, open ones as they stand now."""
        states = {one.order.id: order_state(one) for one in view.controls.orders}
        if self._book is not None and states != self._listed:
            self._listed = states
            self.query_one("#book-orders", Table).show(book_tables.orders(self._book, states), "no order so far")

    def chosen_symbol(self) -> str:
        """The symbol of the position under the cursor; else the desk's first."""
        quotes = () if self._view.market is None else self._view.market.quotes
        return self.query_one("#book-positions", Table).cursor_key or next((one.symbol for one in quotes), "")

    def has_decision(self) -> bool:
        """True where a position is chosen."""
        return bool(self.query_one("#book-positions", Table).cursor_key)

    def action_why(self) -> None:
        """Open the trail of the latest decision for the position under the cursor."""
        symbol = self.query_one("#book-positions", Table).cursor_key
        if symbol:
            self.open_trail(symbol)
        else:
            self.notify("nothing is held", timeout=3)
