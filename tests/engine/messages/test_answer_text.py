"""A model's answer as a person reads it."""

from __future__ import annotations

import pytest

from engine.messages.answer_text import answer_text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"position_size": 5, "rule": "reversal"}, "position size: 5\nrule: reversal"),
        ({"positive": ["a", "b"], "negative": []}, "positive: a, b"),
        ({"macd": {"trend": "up", "signal": "buy"}}, "macd trend: up\nmacd signal: buy"),
        ({"bollinger": None, "note": "", "unrelated": 0}, "unrelated: 0"),
        ({}, ""),
    ],
)
def test_a_line_per_field(answer: dict[str, object], words: str) -> None:
    assert answer_text(answer) == words


def test_a_list_of_single_words_stands_on_one_line() -> None:
    assert answer_text({"evidence": ["S1", "D2"], "missed": ["A rise."]}).splitlines() == [
        "evidence: S1, D2",
        "missed:",
        "- A rise.",
    ]


def test_entries_with_fields_become_their_text_with_the_rest_behind_it() -> None:
    """Nobody reads braces and quotes."""
    answer = {
        "items": [
            {
                "id": "n1",
                "effect": "positive",
                "weight": 7,
                "concerns_company": True,
                "summary": "Revenue rose by 12 %.",
            }
        ],
        "summary": "One item speaks for it.",
    }
    assert answer_text(answer).splitlines() == [
        "summary: One item speaks for it.",
        "items:",
        "- Revenue rose by 12 %. (effect positive, weight 7, concerns company yes)",
    ]
