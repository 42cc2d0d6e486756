"""The filter of a table: its grammar on any rows and any text, and the key on every screen with a table."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Running, shown, until
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from tui.screens.ask import AskScreen
from tui.view.table_filter import Field, parse
from tui.widgets.candle_chart import CandleChart
from tui.widgets.table import Table

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
        ("dissent:>1", "no column dissent: there are sym, session, pnl, pnl%, why"),
        ("s:x", "s may be sym or session"),
        ("pnl:<abc", "abc is no number"),
        ("pnl:", "needs something to compare with, as pnl:>0"),
        ("pnl:..", "at least one end"),
        ("session:>2026-13", "2026-13 is no date"),
        ("pnl%>abc", "abc is no number"),
        ("pnl>", "nothing is no number"),
        ("dissent>=1", "no column dissent: there are sym, session, pnl, pnl%, why (quotes make it a word)"),
        ("-session<soon", "soon is no date"),
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
        assert "soon is no number" in complaint and [row.key for row in table.rows] == ["BBB-USD"]
        await pilot.press("escape")
        assert table.filter_text
        await typed(pilot, "-usd")
        assert not table.rows and "no row fits /-usd" in "".join(
            segment.text for y in range(table.size.height) for segment in table.render_line(y)
        )
        assert pilot.app.screen.query_one(CandleChart).data.title.startswith("BBB-USD "), "what is shown stays"
        await pilot.press("escape")
        await shown(pilot)
        assert table.rows == whole and table.border_title == "Watchlist"
