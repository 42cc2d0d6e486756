"""Tables and facts as text: columns align, nothing is wider than it may be, and no word is lost in wrapping."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.text.plain_text import facts, table, wrapped

CELL = st.text("abcdef ,.0123456789", max_size=30).map(str.strip)


def test_columns_align_and_an_empty_one_is_left_out() -> None:
    rows = [("AAPL", "", "1,200.00", "a word"), ("BTC-USD", "", "3.50", "")]
    assert list(table(("SYMBOL", "NOTE", "VALUE", "WHY"), rows, {"VALUE"})) == [
        "SYMBOL      VALUE  WHY",
        "AAPL     1,200.00  a word",
        "BTC-USD      3.50",
    ]


def test_free_text_stays_before_figures_where_there_is_room_for_it() -> None:
    lines = table(
        ("DAY", "GAIN", "WHY"), [("Monday", "-676.23", "the price fell below its average")], width=26, free="WHY"
    )
    assert [*lines][1] == "Monday  the price fell..."


def test_columns_without_room_are_left_out_whole_and_free_text_alone_is_cut() -> None:
    head, rows = ("DAY", "GAIN", "COST", "WHY"), [("Monday", "-676.23", "1,234.50", "the price fell below its average")]
    lines = [list(table(head, rows, {"GAIN", "COST"}, width, least=("COST",), free="WHY")) for width in (44, 34, 20, 9)]
    assert [one[1] for one in lines] == [
        "Monday  -676.23  1,234.50  the price fell...",
        "Monday  -676.23  the price fell...",
        "Monday  -676.23",
        "Monday",
    ]


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=8), st.integers(20, 120))
def test_no_line_is_wider_and_the_first_column_is_whole(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = list(table(("A", "B", "C"), rows, {"B"}, width))
    assert len(lines) == len(rows) + 1
    assert all(len(line) <= width for line in lines)
    whole = list(table(("A", "B", "C"), rows, {"B"}, 1000))
    if any(row[0] for row in rows):
        assert all(line.startswith(row[0]) for line, row in zip(whole[1:], rows, strict=True))


@given(st.lists(CELL, max_size=12), st.integers(20, 80))
def test_wrapping_loses_no_word(words: list[str], width: int) -> None:
    text = " ".join(words)
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= width for line in lines)


def test_a_list_hangs_under_its_dash_and_its_own_lines_stay() -> None:
    assert wrapped("first\n- one two three four five six", 20) == ["first", "- one two three four", "  five six"]


def test_facts_hang_under_their_value_and_an_empty_one_is_left_out() -> None:
    assert list(facts([("Value", "1"), ("Nothing", ""), ("Orders", "a\nb")], label=8)) == [
        "Value   1",
        "Orders  a",
        "        b",
    ]
