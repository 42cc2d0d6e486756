"""Which texts hold an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.llm.answer_json import NotAnAnswer, parse_answer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda child: st.lists(child, max_size=3) | st.dictionaries(st.text(), child, max_size=3),
    max_leaves=8,
)
ANSWERS = st.dictionaries(st.text(), VALUES, max_size=4)


@given(ANSWERS, st.sampled_from(["{}", "  {}\n", "```json\n{}\n```", "```\n{}\n```", "Here it is:\n```json\n{}\n```"]))
def test_every_object_is_found_bare_or_fenced(answer: dict[str, object], wrapping: str) -> None:
    text = wrapping.replace("{}", json.dumps(answer, indent=1))
    assert parse_answer(text) == (answer, ())


# Python and JSON escape most of the other characters differently.
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="\\"))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda child: st.lists(child, max_size=3) | st.dictionaries(WORDS, child, max_size=3),
    max_leaves=8,
)
MANNERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "none": json.dumps,
    "trailing comma": lambda answer: json.dumps(answer)[:-1] + " , }",
    "comments": lambda answer: "{// one, {two}\n" + json.dumps(answer)[1:-1] + "/* it's\n\" */ # }\n}",
    "single quotes": repr,
    "a list of one": lambda answer: f"[{json.dumps(answer)}]",
    "no opening tag of thinking": lambda answer: 'Say {"a": 1}?\n</think>\n' + json.dumps(answer),
    "a second thinking block": lambda answer: "<think>a</think> <think>{}</think>" + json.dumps(answer),
    "the last of several objects": lambda answer: f'Draft: {{"x": 2}}\nFinal:\n{json.dumps(answer)}\n```',
}


@pytest.mark.parametrize("manner", sorted(MANNERS))
@given(answer=st.dictionaries(WORDS, PLAIN, min_size=1, max_size=4))
def test_every_manner_of_writing_an_object_is_read_or_complained_about_but_never_misread(
    answer: dict[str, Any], manner: str
) -> None:
    text = MANNERS[manner](answer)
    try:
        read, repairs = parse_answer(text)
    except NotAnAnswer:
        # Quotes within single quotes may end the text there.
        assert manner == "single quotes" and re.search(r"""['"]\S*.*[,:}\]/#]""", text)
        return
    assert read == answer
    assert manner in {*repairs, "none", "single quotes"}


@given(ANSWERS, st.data())
def test_a_truncated_or_damaged_object_is_never_read_as_a_part_of_it(answer: dict[str, object], data: Any) -> None:
    text = json.dumps({"first": {"x": 1}, **answer, "last": {"y": 2}})
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(NotAnAnswer):
        parse_answer(cut)


@given(st.text())
def test_any_text_is_an_answer_or_none_and_nothing_else_happens(text: str) -> None:
    try:
        assert isinstance(parse_answer(text)[0], dict)
    except NotAnAnswer as error:
        assert str(error)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "<think>only thoughts</think>",
        "BUY",
        'Buy, for example {"action": "BUY"}, or {"action": "SELL"}.',
        "Nothing {in these} braces is { JSON }.",
        '{"a": ' + "9" * 5000 + "}",
        '{"a": 1e400}',
        '{"a": "\\ud800"}',
        'So: {"a": "\\ud800"}',
        '"BUY"',
        "3",
        "null",
        "[]",
        '{"a": Infinity}',
        '{"a": 1',
        '{"a": 1}, {"a": 2}',
        '{"a": 1}\nAlternatively:\n{"a": 2}',
        '{"a": 1} versus {"a": 2}',
        '{"a": 1}; {"a": 2}',
        '```\n{"a": 1}\n``` if it rises, and in the other case {"a": 2}',
        'So {"a": 1} or {a: 2}.',
        '{a: 1} or {"a": 2}',
        '{"a": 1, "a": 2}',
        '{"a": 1, "b": {"c": "BUY", "c": "SELL"},}',
        *('{"a": ' + "[" * deep + "]" * deep + "}" for deep in (100, 400, 985, 990, 991, 992, 993, 994, 995)),
        'Not {"a": 1} but {"a": 2}, unless prices fall.',
        '[{"a": 1}, {"a": 2},]',
        '{"a": {"b": 1}, c}',
        'Here: {"a": {"b": 1},, "c": {"d": 2}}',
        "{'a': 'he said 'x', then left'}",
        "{a: 1}",
        "[" * 100_000,
        "{/*" * 30_000,
        "{ 'a " * 20_000,
    ],
)
def test_what_is_no_single_object_is_no_answer(text: str) -> None:
    with pytest.raises(NotAnAnswer):
        parse_answer(text)


def test_fences_inside_an_answer_are_part_of_it() -> None:
    answer = {"code": "```python\nx = 1\n```"}
    assert parse_answer(json.dumps(answer)) == (answer, ())


def test_the_only_object_within_prose_is_the_answer() -> None:
    for text in (
        'Here it is {as asked}: {"action": {"is": "BUY"}} - good luck',
        '{"action": {"is": "BUY"}}\nI hope so.',
    ):
        assert parse_answer(text) == ({"action": {"is": "BUY"}}, ())
