"""The filter of a table: its grammar on any rows and any text, and the key on every screen with a table."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from conftest import Running, shown, until
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from engine.domain.order import Position
from tests.decided import decided, settled
from tui.screens.ask import AskScreen
from tui.view.market_view import MarketView, Quote
from tui.view.snapshot import Snapshot
from tui.view.state import Books, DeskState, Pane, Progress
from tui.view.table_filter import Field, parse
from tui.view.watchlist import WatchedGroup
from tui.widgets.candle_chart import CandleChart
from tui.widgets.desk_tables import watchlist_columns, watchlist_rows
from tui.widgets.table import Cell, Column, Row, Table

FIELDS = [Field("SYM", False), Field("SESSION", False), Field("P&L", True), Field("P&L%", True), Field("WHY", False)]
FIGURES = st.integers(-9_999_999, 9_999_999).map(lambda cents: cents / 100)
ROWS = st.tuples(
    st.sampled_from(["NVDA", "AAPL", "BTC/USD"]),
    st.dates().map(str),
    FIGURES.map(lambda figure: f"{figure:+,.2f}") | st.just("-"),
    FIGURES.map(lambda figure: f"{figure:.2f}%"),
    st.text("aB é:-.>5", max_size=12),
    st.just("hidden"),
)
TERMS = st.sampled_from(
    [
        "nvda",
        "sym:aa",
        "sym:=nvda",
        "pnl:>0",
        "pnl:<=-5.5",
        "pnl%:-10..10%",
        "pnl:..0",
        "session:2020..2021-06",
        "session:>1999-12-31",
        "why:a",
        '"a b"',
        "hidden",
        "pnl:1k..",
    ]
)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.lists(TERMS, max_size=4))
def test_all_terms_hold_and_a_minus_turns_one_around(row: tuple[str, ...], terms: list[str]) -> None:
    each = [parse(term, FIELDS).fits(row) for term in terms]
    assert parse(" ".join(terms), FIELDS).fits(row) is all(each)
    assert [parse(f"-{term}", FIELDS).fits(row) for term in terms] == [not fits for fits in each]


@settings(max_examples=40, deadline=None)
@given(ROWS, FIGURES)
def test_figures_compare_as_they_are_shown(row: tuple[str, ...], limit: float) -> None:
    value = float(row[3].rstrip("%"))
    for sign, holds in (
        (">", value > limit),
        ("<", value < limit),
        (">=", value >= limit),
        ("", value == limit),
    ):
        assert parse(f"pnl%:{sign}{limit:.2f}", FIELDS).fits(row) is holds
    if row[2] == "-":  # nothing is known: no comparison holds
        assert not parse("pnl:<0", FIELDS).fits(row) and not parse("pnl:>=0", FIELDS).fits(row)


@settings(max_examples=40, deadline=None)
@given(ROWS, FIGURES)
def test_a_sign_makes_a_column_of_a_word_without_a_colon(row: tuple[str, ...], limit: float) -> None:
    fields = [*FIELDS[:2], Field("+5", True), *FIELDS[3:]]
    for term in (f"pnl%:>{limit}", f"+5:<={limit}", f"-pnl%:={limit}", "sym:=nvda", "session:>2020-06"):
        bare = term.replace(":", "", 1)
        assert parse(bare, fields).fits(row) is parse(term, fields).fits(row), bare


@pytest.mark.parametrize("word", ["SI=F", "buy->hold", "2>1", "(", ">", "<=", "10:30", "a=b", '"pnl>soon"'])
def test_words_with_signs_that_name_no_column_stay_words(word: str) -> None:
    row = ("NVDA", "2026-11-20", "1", "2%", f"because {word.strip(chr(34))} holds", "")
    assert parse(word, FIELDS).fits(row) and not parse(word, FIELDS).fits(("NVDA", "", "", "", "why", ""))


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_every_text_is_matched_by_itself_in_quotes(row: tuple[str, ...]) -> None:
    for text in row:
        assert parse(f'"{text}"', FIELDS).fits(row)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_one_line_of_complaint(text: str) -> None:
    try:
        parse(text, FIELDS).fits(("NVDA", "2026-11-20", "1", "2%", "why", ""))
    except ValueError as error:
        assert "\n" not in str(error).replace(text, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dissent:>1", "unknown column dissent; available: sym, session, pnl, pnl%, why"),
        ("s:x", "s may be sym or session"),
        ("pnl:<abc", "abc is not a number"),
        ("pnl:", "needs a value to compare with, such as pnl:>0"),
        ("pnl:..", "at least one end"),
        ("session:>2026-13", "2026-13 is not a date"),
        ("pnl%>abc", "abc is not a number"),
        ("pnl>", "nothing is not a number"),
        (
            "dissent>=1",
            "unknown column dissent; available: sym, session, pnl, pnl%, why (quote it to search for the word)",
        ),
        ("-session<soon", "soon is not a date"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        parse(text, FIELDS)
    assert said in str(refused.value)


async def typed(pilot: Pilot[Any], text: str) -> None:
    """Set the filter of the table in focus."""
    await pilot.press("slash")
    await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
    pilot.app.screen.query_one("Input").value = text  # type: ignore[attr-defined]
    await pilot.press("enter")


async def test_the_key_filters_the_table_in_focus_and_escape_shows_all(running: Running) -> None:
    async with running() as pilot:
        await pilot.press("r")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().sources[0].version == 2 and not bridge.snapshot().busy)
        await shown(pilot)
        table = pilot.app.screen.query_one("#watchlist", Table)
        whole = table.rows
        await typed(pilot, "sym:bbb signal:sell")
        await shown(pilot)
        assert [row.key for row in table.rows] == ["BBB-USD"]
        assert table.border_title == "Watchlist  /sym:bbb signal:sell  1 of 3"
        assert pilot.app.screen.symbol == "BBB-USD"  # type: ignore[attr-defined]  # the panes follow the cursor
        await typed(pilot, "last:<soon")
        complaint = str(pilot.app.screen.query_one("#complaint").render())
        assert "soon is not a number" in complaint and [row.key for row in table.rows] == ["BBB-USD"]
        await pilot.press("escape")
        assert table.filter_text
        await typed(pilot, "-usd")
        assert not table.rows and "no row matches /-usd" in "".join(
            segment.text for y in range(table.size.height) for segment in table.render_line(y)
        )
        assert pilot.app.screen.query_one(CandleChart).data.title.startswith("BBB-USD "), "what is shown stays"
        await pilot.press("escape")
        await shown(pilot)
        assert table.rows == whole and str(table.border_title).startswith("Watchlist, close of ")


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
    columns = watchlist_columns(("last", "change", "held", "signal"))
    async with OneTable(columns).run_test(size=(60, 10)) as pilot:
        table = pilot.app.query_one(Table)
        for state, signal in states:
            table.show(watchlist_rows(Snapshot(desk=state, market=market), WatchedGroup(), columns)[0])
            await pilot.pause()
            head, row = (table.render_line(n).text for n in (0, 1))
            assert "POS" in head and "64.72" in row and signal in row, (head, row)


async def test_the_row_under_the_cursor_is_one_reversed_row_in_the_terminal_s_own_colours(running: Running) -> None:
    async with running((80, 24)) as pilot:
        pilot.app.theme = "paperdesk-ansi"
        table = pilot.app.screen.query_one("#watchlist", Table)
        await until(pilot, lambda: bool(table.rows) and table.has_focus)
        table.show([Row("one", (Cell("A", "strong"), Cell("1", "up"), *(Cell(text) for text in "2345678")))])
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
