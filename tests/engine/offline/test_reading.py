"""How a text is read: where its sentences end."""

from __future__ import annotations

import pytest

from engine.offline.reading import read


@pytest.mark.parametrize(
    "sentence",
    [
        "The quarter that ended on Sept. 30, 2026 brought revenue of $3.6 billion.",
        "As of Dec. 31, 2025 Orvelle Corp. held 4.5 m shares of Wexcombe Inc. and Fable Co. of No. 9 Main St. too.",
        "Mr. J. Doe met Dr. Roe of the U.S. Treasury.",
    ],
)
def test_an_abbreviation_does_not_end_a_sentence(sentence: str) -> None:
    assert read(f"{sentence} Nothing else happened.").sentences == (sentence.removesuffix("."), "Nothing else happened")


def test_sentences_end_at_stops_marks_and_quotes() -> None:
    assert len(read('It rose. Did it? "It did." They said so!').sentences) == 4
