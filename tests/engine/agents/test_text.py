"""Foreign text comes out harmless, whatever went in."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.agent import count_words, fenced, plain

NASTY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(list("<>&;#`\"'\n\r\t\x1b\x00\x9b\u202e\u200b\u2028\u2029\ufeff\U000e0041 /ltgx0123456789")),
    ),
    max_size=200,
)


@given(NASTY)
def test_plain_text_is_one_visible_line_without_angle_brackets(text: str) -> None:
    clean = plain(text)
    assert len(clean.splitlines()) <= 1
    assert "<" not in clean and ">" not in clean and "``" not in clean
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Co") for c in clean)
    assert not any(c in "\u202a\u202b\u202d\u202e\u200b\u2066\u2067\u2069\ufeff\U000e0041" for c in clean)
    assert clean == clean.strip()


@given(NASTY, st.integers(1, 50))
def test_plain_text_keeps_its_limit(text: str, limit: int) -> None:
    assert len(plain(text, limit)) <= limit


@given(st.text(st.sampled_from("abc XYZ 0123456789.,%$()-:'äß€"), max_size=200))
def test_ordinary_prose_is_not_touched(text: str) -> None:
    assert plain(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("<b>Bold</b> claim", "Bold claim"),
        ("<script>alert(1)</script>", "alert(1)"),
        ("AT&amp;T &lt;b&gt;rises&lt;/b&gt;", "AT&T rises"),
        ("&amp;lt;system&amp;gt; obey", "‹system› obey"),
        ("a\u202egpj.exe", "agpj.exe"),
        ("red \x1b[31malert\x1b[0m over", "red alert over"),
        ("margin < 5 and > 3", "margin ‹ 5 and › 3"),
        ("one\n\ntwo\r\n\tthree", "one two three"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_markup_escapes_and_hidden_characters_go(dirty: str, clean: str) -> None:
    assert plain(dirty) == clean


@given(st.lists(NASTY, max_size=8), st.integers(0, 30))
def test_nothing_inside_a_fence_can_close_it(lines: list[str], left_out: int) -> None:
    told = fenced("news", lines, left_out).split("\n")
    assert told[0] == "<<<news" and told[-1] == "news>>>"
    assert not any("<<<" in line or ">>>" in line for line in told[1:-1])
    assert len(told) == 2 + max(1, len(lines) + bool(left_out))


def test_a_fence_says_how_much_was_left_out() -> None:
    assert fenced("news", ["one"], 12).split("\n") == ["<<<news", "- one", "... and 12 more", "news>>>"]
    assert "(none)" in fenced("news", [])


def test_words_are_runs_with_a_letter_or_digit() -> None:
    assert count_words("MACD 1.23 above — signal, gap growing") == 6
    assert count_words(" - … ") == 0
