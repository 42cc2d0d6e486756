"""From a filing's page to the text that matters: what is visible, which section, how much of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.filings.document_text import SECTIONS, cut, essence, plain_text, section

MDA, RISKS, BUSINESS = (rule.heading for rule in SECTIONS)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>one<br>two</p><div>three</div>", "one\ntwo\nthree"),
        ("<p>a sentence\nover\n  lines</p>", "a sentence over lines"),
        ("<tr><td>Sales</td><td>12</td></tr><tr><td>Cost</td><td>7</td></tr>", "Sales 12\nCost 7"),
        ("<p>A&amp;B &#8212; 5&nbsp;%</p>", "A&B — 5 %"),
        ("<p>seen<!-- <p>not seen</p> --></p>", "seen"),
        ("<p>x</p><STYLE>p { }</STYLE><p>y</p>", "x\ny"),
        ("<div><ix:header><ix:hidden>no</ix:hidden></ix:header>yes</div>", "yes"),
        ("<p>split<b>ti</b>ng</p>", "splitting"),
        ("<p>12</p><p>F-4</p><p>Page 7</p><p>kept 12</p>", "kept 12"),
        ("<PAGE>\nfirst line\nsecond line\n", "first line\nsecond line"),
        ("no tags\nat all", "no tags\nat all"),
        ("profit < loss", "profit < loss"),
        ("<p>bell\x07 and\x00 nul</p>", "bell and nul"),
        ("", ""),
    ],
)
def test_what_a_reader_sees(page: str, text: str) -> None:
    assert plain_text(page) == text


@given(st.text(alphabet=st.sampled_from("<>/!- abipx:&;\n\"'"), max_size=200))
def test_no_page_breaks_the_reading(page: str) -> None:
    lines = plain_text(page).split("\n")
    assert all(line == " ".join(line.split()) for line in lines)


def test_a_section_ends_at_the_next_item_and_a_table_of_contents_does_not_count() -> None:
    contents = "Item 1A. Risk Factors 12\nItem 2. Properties 30\n"
    text = f"{contents}Item 1A. Risk Factors\nGlass breaks.\nItem 2. Properties\nA hut."
    assert section(text, RISKS) == "Glass breaks."


@pytest.mark.parametrize(
    "heading",
    [
        "Item 7. Management's Discussion and Analysis of Financial Condition",
        "ITEM 7: MANAGEMENT’S DISCUSSION AND ANALYSIS",
        "Item 7 – Management's Discussion and Analysis",
        "Part II, Item 7. Management's Discussion and Analysis",
        "Item 7.\nManagement's Discussion and Analysis",
    ],
)
def test_headings_as_filers_write_them(heading: str) -> None:
    assert section(f"Cover\n{heading}\nSales rose.\nItem 8. Statements\n1 2 3", MDA) == "Sales rose."


def test_an_item_number_on_every_page_does_not_end_the_section() -> None:
    text = "Item 2. Management's Discussion and Analysis\nPage one.\nItem 2\nPage two.\nItem 3. Market Risk\nNone"
    assert section(text, MDA) == "Page one.\nPage two."


def test_a_report_without_item_numbers_is_read_by_its_headings() -> None:
    text = "Cover\nManagement's Discussion and Analysis\nSales rose.\nCosts fell."
    assert section(text, MDA) == "Sales rose.\nCosts fell."
    assert section("See our discussion and analysis of risk factors below.", RISKS) == ""


def test_what_one_section_leaves_over_goes_to_the_others() -> None:
    words = "Lamps were sold. " * 400
    text = (
        f"Item 1. Business\nShort.\nItem 1A. Risk Factors\n{words}\nItem 7. Discussion and Analysis\n{words}\nItem 8. X"
    )
    kept = essence(text, 4000)
    assert 3800 < len(kept) <= 4000
    assert kept.endswith("Business\nShort.")
    discussed, risks = kept.split("Risk factors\n")
    assert 1.3 < len(discussed) / len(risks) < 2.0


@given(st.text(alphabet=st.sampled_from("ab .!?\n"), max_size=300), st.integers(0, 300))
def test_a_cut_is_a_beginning_that_fits(text: str, characters: int) -> None:
    kept = cut(text, characters)
    assert len(kept) <= characters
    assert text.strip().startswith(kept) or text.startswith(kept) or kept in text
    if len(text) <= characters:
        assert kept == text.strip()


def test_a_cut_ends_with_a_sentence_or_a_word() -> None:
    assert cut("One here. Two here. Three here.", 22) == "One here. Two here."
    assert cut("alpha beta gamma delta", 12) == "alpha beta"
    assert re.fullmatch(r"(word )*word", cut("word " * 50, 103))
