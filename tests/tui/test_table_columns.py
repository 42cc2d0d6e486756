"""The columns of a table: a long text does not cost a figure its place."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from textual.app import App, ComposeResult

from engine.domain.portfolio import Position
from tests.decided import decided, settled
from tests.tui.conftest import Running, until
from tui.view.market_view import MarketView, Quote
from tui.view.snapshot import Snapshot
from tui.view.state import Books, DeskState, Pane, Progress
from tui.view.watchlist import WatchedGroup
from tui.widgets.desk_tables import WATCHLIST, watchlist_rows
from tui.widgets.table import Cell, Column, Row, Table

DAY = date(2024, 3, 1)
HELD = {"ABCD-USD": Position(Decimal("64.72"), Decimal("284.69"))}
BOOKS = Books(session=DAY, point=settled(DAY, Decimal(1), Decimal(1), HELD))


class OneTable(App[None]):
    CSS = "Table { width: 42; }"

    def __init__(self, columns: tuple[Column, ...]) -> None:
        super().__init__()
        self.columns = columns

    def compose(self) -> ComposeResult:
        yield Table(self.columns, title="", empty="", id="table", classes="pane")


async def test_the_position_stays_while_a_step_with_a_long_name_runs() -> None:
    market = MarketView((Quote("ABCD-USD", Decimal("284.69"), 0.0171, DAY),))
    thinks = {"ABCD-USD": {"desk": (Pane(step="market-intelligence", progress=Progress.THINKING),)}}
    made = {"ABCD-USD": {"desk": decided("ABCD-USD", "BUY", Decimal("3.82"), DAY)}}
    states = (
        (DeskState(books=BOOKS), "-"),
        (DeskState(books=BOOKS, running=True, symbols=("ABCD-USD",), panes=thinks), "market..."),
        (DeskState(books=BOOKS, decisions=made), "BUY  3.8"),
    )
    async with OneTable(WATCHLIST).run_test(size=(60, 10)) as pilot:
        table = pilot.app.query_one(Table)
        for state, signal in states:
            table.show(watchlist_rows(Snapshot(desk=state, market=market), WatchedGroup()))
            await pilot.pause()
            head, row = (table.render_line(n).text for n in (0, 1))
            assert "POS" in head and "64.72" in row and signal in row, (head, row)


async def test_the_row_under_the_cursor_is_one_reversed_row_in_the_terminal_s_own_colours(running: Running) -> None:
    async with running((80, 24)) as pilot:
        pilot.app.theme = "paperdesk-ansi"
        table = pilot.app.screen.query_one("#watchlist", Table)
        await until(pilot, lambda: bool(table.rows) and table.has_focus)
        table.show([Row("one", (Cell("A", "strong"), Cell("1", "up"), Cell("", "warn"), Cell("2"), Cell("B", "down")))])
        await pilot.pause()
        styles = [segment.style for segment in table.render_line(1)]
        assert all(style is not None and style.reverse for style in styles)
        assert len({(style.color, style.bgcolor) for style in styles if style is not None}) == 1


async def test_a_column_of_text_is_as_narrow_again_as_its_text() -> None:
    columns = (Column("A"), Column("FIGURE", form=str, drop_order=1), Column("B"))
    async with OneTable(columns).run_test(size=(60, 10)) as pilot:
        table = pilot.app.query_one(Table)
        for text, there in (("short", True), ("a text of forty cells, that is many more", False), ("short", True)):
            table.show([Row("one", tuple(map(Cell, ("one", "12", text))))])
            await pilot.pause()
            assert ("FIGURE" in table.render_line(0).text) is there


async def test_a_table_without_rows_looks_the_same_whatever_it_showed_before() -> None:
    columns = (Column("A"), Column("FIGURE", form=str), Column("B"))
    async with OneTable(columns).run_test(size=(60, 10)) as pilot:
        table = pilot.app.query_one(Table)
        first = table.render_line(0).text
        table.show([Row("one", tuple(map(Cell, ("one", "1,234,567,890", "text"))))])
        assert table.render_line(0).text != first
        table.show([])
        assert table.render_line(0).text == first


async def test_a_column_of_figures_keeps_its_width_while_they_tick_and_not_in_the_past() -> None:
    columns = (Column("A"), Column("FIGURE", form=str), Column("B"))
    async with OneTable(columns).run_test(size=(60, 10)) as pilot:
        table = pilot.app.query_one(Table)
        heads = []
        for figure in ("12", "1,234,567,890", "12"):
            table.show([Row("one", tuple(map(Cell, ("one", figure, "text"))))])
            heads.append(table.render_line(0).text)
        assert heads[0] != heads[1] == heads[2]
        table.keep_widths(False)
        assert table.render_line(0).text == heads[0]
