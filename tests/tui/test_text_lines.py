"""Text that is wrapped and drawn by lines: whatever changes, it shows what Textual's own widget of text shows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from conftest import until
from hypothesis import given
from hypothesis import strategies as st
from textual._compositor import Compositor
from textual.app import App, ComposeResult
from textual.content import Content
from textual.geometry import Offset
from textual.widgets import Static

from engine.messages.answer_text import answer_text
from tests.examples import examples
from tui.text.plain_text import facts, table, wrapped
from tui.view.partial_answer import streamed_text
from tui.widgets.text_lines import CHARACTERS, PAD, TextLines

WIDTH, HEIGHT = 30, 12
WORDS = st.text(st.sampled_from("ab .,界e\u0301\t-[]/"), max_size=70)
BLOCKS = st.lists(st.lists(WORDS, min_size=1, max_size=4).map("\n".join), max_size=5)


class Page(App[None]):
    """A text by lines, and the same in a widget of Textual's own."""

    CSS = f"""
    Screen {{ layout: horizontal; }}
    TextLines {{ width: {WIDTH + 2 * PAD}; height: {HEIGHT}; scrollbar-size-vertical: 1; }}
    Static {{ width: {WIDTH}; height: auto; }}
    """

    def compose(self) -> ComposeResult:
        yield TextLines(id="lines", classes="")
        yield Static(markup=False)


def in_sight(app: App[None]) -> list[str]:
    """What the terminal has of the text by lines, after a partial painting."""
    strips = app.screen._compositor.render_strips()[:HEIGHT]
    # Cut as text: a mark without a width belongs to the cell before it, here the pad.
    return [strip.crop(0, WIDTH + PAD).text[PAD:].rstrip() for strip in strips]


def drawn_by_textual(app: App[None]) -> list[str]:
    own = app.query_one(Static)
    return [own.render_line(y).text.rstrip() for y in range(own.size.height)]


@examples(40)
@given(steps=st.lists(st.tuples(BLOCKS, st.integers(0, 30)), min_size=1, max_size=5))
async def test_any_text_after_any_other_is_drawn_like_textual_draws_it(
    steps: Sequence[tuple[Sequence[str], int]],
) -> None:
    app = Page()
    async with app.run_test(size=(80, 20)) as pilot:
        text, known = app.query_one(TextLines), dict[str, Content]()
        for step, scrolled in steps:
            blocks = [known.setdefault(block, Content(block)) for block in step]
            text.show_blocks(blocks)
            app.query_one(Static).update(Content("\n").join(blocks))
            await pilot.pause()
            shown = drawn_by_textual(app) if blocks else []
            starts = [text.first_row(number) for number in range(len(blocks) + 1)]
            assert starts == sorted(starts) and starts[-1] == text.virtual_size.height == len(shown)
            top = min(scrolled, text.max_scroll_y)
            for y in (text.scroll_offset.y, top):
                text.scroll_to(y=y, animate=False)
                await pilot.pause()
                assert in_sight(app) == [*shown[y : y + HEIGHT], *[""] * (HEIGHT - len(shown[y : y + HEIGHT]))]


async def test_another_width_wraps_all_anew() -> None:
    app, words = Page(), " ".join(f"word{n}" for n in range(40))
    async with app.run_test(size=(80, 20)) as pilot:
        text, own = app.query_one(TextLines), app.query_one(Static)
        text.show_blocks([Content(words)])
        own.update(Content(words))
        for width in (30, 17, 44):
            text.styles.width, own.styles.width = width + 2 * PAD, width
            await pilot.pause()
            await until(pilot, lambda: text.text_width == width == own.size.width)  # noqa: B023
            shown = drawn_by_textual(app)
            # A widget hears of its size after it was laid out.
            await until(pilot, lambda: text.virtual_size.height == len(shown))  # noqa: B023
            assert [text.render_line(y).text[PAD:].rstrip() for y in range(len(shown))] == shown


async def test_a_style_that_changes_is_drawn() -> None:
    app = Page()
    async with app.run_test(size=(80, 20)) as pilot:
        text = app.query_one(TextLines)
        for style in ("bold", "italic"):
            text.show_blocks([Content("plain"), Content.styled("styled", style)])
            await pilot.pause()
            (segment,) = [one for one in app.screen._compositor.render_strips()[1] if one.text.startswith("styled")]
            assert segment.style is not None and getattr(segment.style, style)


async def test_new_text_of_the_same_height_is_painted_without_a_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Page()
    async with app.run_test(size=(80, 20)) as pilot:
        text = app.query_one(TextLines)
        text.show_blocks([Content("one"), Content("two")])
        await pilot.pause()
        layouts: list[object] = []
        monkeypatch.setattr(Compositor, "reflow", lambda *what: layouts.append(what))
        text.show_blocks([Content("one"), Content("three")])
        await pilot.pause()
        assert in_sight(app)[:2] == ["one", "three"] and layouts == []


async def test_a_long_text_comes_a_part_at_a_time() -> None:
    def lines(word: str, characters: int) -> Content:
        return Content("\n".join(f"{word} {n}" for n in range(characters // 8)))

    app = Page()
    async with app.run_test(size=(80, 20)) as pilot:
        text = app.query_one(TextLines)
        text.show_blocks([lines("first", 9 * CHARACTERS)])
        assert in_sight(app)[0] == "first 0"
        first = text.virtual_size.height
        assert first < 2 * CHARACTERS / 8
        text.show_blocks([last := lines("last", 5 * CHARACTERS)])
        count = last.plain.count("\n") + 1
        await until(pilot, lambda: text.virtual_size.height == count)
        text.scroll_end(animate=False)
        await pilot.pause()
        assert in_sight(app)[-1] == f"last {count - 1}" and text.as_text() == last.plain


async def test_the_scrollbar_is_not_painted_with_each_part_of_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Page()
    async with app.run_test(size=(80, 20)) as pilot:
        text = app.query_one(TextLines)
        await pilot.pause()
        heights: list[int] = []
        monkeypatch.setattr(TextLines, "_set_rows", lambda pane, rows: heights.append(rows))
        lines = [f"line {number} of a long answer" for number in range(2 * CHARACTERS)]
        text.show_blocks([Content("\n".join(lines))])
        await until(pilot, lambda: heights[-1] == len(lines))
        assert heights == sorted(heights) and len(heights) < 10, "of 50 parts"


async def test_a_long_text_comes_whole_where_the_same_is_shown_again_meanwhile() -> None:
    words = "\n".join(f"line {number} of a long answer" for number in range(CHARACTERS // 2))
    app = Page()
    async with app.run_test(size=(80, 20)) as pilot:
        text = app.query_one(TextLines)
        text.show_blocks([Content(words)])
        assert text.virtual_size.height < CHARACTERS // 2
        text.show_blocks([Content(words)])  # as each refresh of a screen does
        await until(pilot, lambda: text.virtual_size.height == CHARACTERS // 2)


async def test_text_is_selected_over_the_ends_of_rows() -> None:
    app, words = Page(), "one two three four five six seven eight nine ten"
    async with app.run_test(size=(80, 20)) as pilot:
        text = app.query_one(TextLines)
        text.show_blocks([Content("head"), Content(words)])
        await pilot.pause()
        assert in_sight(app)[:3] == ["head", words[:28].rstrip(), words[28:]]
        await pilot.mouse_down(text, Offset(PAD + 4, 1))
        await pilot.hover(text, Offset(PAD + 4, 2))
        await pilot.mouse_up(text, Offset(PAD + 4, 2))
        assert app.screen.get_selected_text() == words[4:33], "through the character under the mouse"
        lit = [one.text for one in app.screen._compositor.render_strips()[1] if one.style and one.style.bgcolor]
        assert any(part.startswith("two") for part in lit)


texts = st.text(max_size=30)
values = texts | st.integers(-1000, 1000) | st.booleans() | st.lists(texts, max_size=3) | st.floats(-1e6, 1e6)
answers = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), values, min_size=1, max_size=5)


@given(answers, st.integers(0, 400), st.booleans())
def test_every_beginning_of_an_answer_can_be_shown(answer: dict[str, object], cut: int, ascii_only: bool) -> None:
    whole = json.dumps(answer, ensure_ascii=ascii_only)
    shown = streamed_text(whole[:cut])
    names = [line.partition(":")[0] for line in shown.splitlines() if ":" in line]
    known = {line.partition(":")[0] for line in answer_text(answer).splitlines()}
    if cut >= len(whole):
        assert shown == answer_text({name: value for name, value in answer.items() if value not in (None, "")})
    # A field whose value has come is there.
    complete = json.dumps(dict(list(answer.items())[:1]), ensure_ascii=ascii_only)[:-1]
    first = next(iter(answer))
    if cut > len(complete) and str(answer[first]).strip() and answer[first] not in ([],) and first in known:
        assert first in names


def test_fields_come_one_after_the_other() -> None:
    whole = '{"reason": "It rose \\u00fcber 5 %", "action": "BUY", "size": 7, "evidence": ["S1", "S2"]}'
    assert streamed_text(whole[:4]) == ""
    assert streamed_text(whole[: whole.index("rose") + 4]) == "reason: It rose"
    assert streamed_text(whole[: whole.index("u00fc") + 3]).rstrip() == "reason: It rose"
    first = ["reason: It rose über 5 %", "action: BUY"]
    assert streamed_text(whole[: whole.index(', "size') + 8]).splitlines() == first
    assert streamed_text(whole).splitlines() == [*first, "size: 7", "evidence: S1, S2"]
    assert streamed_text(f"Here it is: ```json\n{whole}\n``` done") == streamed_text(whole)
    assert streamed_text("it rises") == "it rises"


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
