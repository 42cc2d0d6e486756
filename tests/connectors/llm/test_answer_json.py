"""Which texts hold an answer."""

from __future__ import annotations

import json

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
    assert parse_answer(text) == answer


@given(st.text())
def test_any_text_is_an_answer_or_none_and_nothing_else_happens(text: str) -> None:
    try:
        assert isinstance(parse_answer(text), dict)
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
        '```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```',
        '{"a": 1} {"b": 2}',
        "[" * 100_000,
    ],
)
def test_what_is_no_single_object_is_no_answer(text: str) -> None:
    with pytest.raises(NotAnAnswer):
        parse_answer(text)


def test_fences_inside_an_answer_are_part_of_it() -> None:
    answer = {"code": "```python\nx = 1\n```"}
    assert parse_answer(json.dumps(answer)) == answer


def test_the_only_object_within_prose_is_the_answer() -> None:
    assert parse_answer('Here it is {as asked}: {"action": {"is": "BUY"}} - good luck') == {"action": {"is": "BUY"}}
