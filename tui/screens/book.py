"""Book: equity beside buy and hold, drawdown, positions, orders, trades and cash, as of the moment that is shown."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.errors import PaperdeskError
from engine.reports.documents.book import Book
from tui import amounts
from tui.keys import BOOK, bindings
from tui.screens.frame import TALL, FramedScreen
from tui.snapshot import Snapshot
from tui.widgets import book_tables
from tui.widgets.plot import CurvePlot, PlotData
from tui.widgets.table import Table


class BookScreen(FramedScreen):
    """The account: two curves on the left, four tables on the right."""

    MODE = BOOK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(BOOK)]
    TABLE = "book-positions"
    PANES = ("growth", "falls", "book-positions", "book-orders", "trades", "flows")

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[object, ...] = ()

    def compose_body(self) -> ComposeResult:
        """Mount curves and tables."""
        with Horizontal(id="book"):
            with Vertical(id="curves", classes="column"):
                yield CurvePlot(id="growth", classes="pane")
                yield CurvePlot(id="falls", classes="pane")
            with Vertical(id="book-tables", classes="column"):
                for name, title, columns, empty in (
                    ("book-positions", "Positions", book_tables.POSITIONS, "nothing is held"),
                    ("book-orders", "Orders", book_tables.ORDERS, "no order so far"),
                    ("trades", "Trades", book_tables.TRADES, "no trade so far"),
                    ("flows", "Cash", book_tables.FLOWS, "no dividend, fee or transfer so far"),
                ):
                    yield Table(columns, title=title, empty=empty, id=name, classes="pane")

    def on_mount(self) -> None:
        """Focus the positions."""
        self.query_one("#growth").border_title = "Equity"
        self.query_one("#falls").border_title = "Drawdown"
        self.focus_pane("book-positions")

    def has_room_for(self, pane: Widget) -> bool:
        """True for all but the drawdown of a low screen, which could not be drawn."""
        return pane.id != "falls" or self.size.height >= TALL

    def show_body(self, view: Snapshot) -> None:
        """Read again where the books may have changed."""
        if not view.sources:
            return
        books = view.desk.books
        shown = (view.sources[0], None if books is None else (books.session, books.cash), len(view.desk.lines))
        if shown != self._shown:
            self._shown = shown
            self._read(view)

    # With a description: Textual would write down a whole snapshot for one.
    @work(exclusive=True, exit_on_error=False, description="books")
    async def _read(self, view: Snapshot) -> None:
        from engine.reports.documents.book import book_of

        market = None if view.market is None else view.market.as_of
        symbols = () if view.market is None else tuple(quote.symbol for quote in view.market.quotes)
        try:
            book = await asyncio.to_thread(view.sources[0].read, lambda records: book_of(records, market, symbols))
        except PaperdeskError as error:
            self.query_one("#book-positions", Table).show([], str(error))
            return
        self._show_book(book, view)

    def _show_book(self, book: Book, view: Snapshot) -> None:
        prices = {quote.symbol: quote.last for quote in view.market.quotes} if view.market is not None else {}
        live = view.desk.books is not None and view.desk.books.live is not None
        for name, rows in (
            ("book-positions", book_tables.positions(book, prices if live else {})),
            ("book-orders", book_tables.orders(book)),
            ("trades", book_tables.trades(book)),
            ("flows", book_tables.flows(book)),
        ):
            self.query_one(f"#{name}", Table).show(rows)
        positions = self.query_one("#book-positions", Table)
        last = f"close of {book.sessions[-1]}" if book.sessions else ""
        positions.border_subtitle = f"cash {amounts.money(book.cash)}  {'live' if live else last}" if last else ""
        labels = [str(session) for session in book.sessions]
        growth, falls = self.query_one("#growth", CurvePlot), self.query_one("#falls", CurvePlot)
        start = 100.0
        growth.show(
            PlotData(
                {name: [None if one is None else start * one for one in curve] for name, curve in book.curves.items()},
                labels,
            )
        )
        growth.border_title = f"Growth of {start:g} since {labels[0]}, without deposits" if labels else "Equity"
        falls.show(PlotData({"% below the highest": [100 * fall for fall in book.falls]}, labels))
        lowest = min(book.falls, default=0.0)
        falls.border_subtitle = f"deepest {amounts.percent(lowest, 1)}" if lowest else ""
