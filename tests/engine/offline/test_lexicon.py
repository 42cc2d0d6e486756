"""Words count with what they are said of: verbs with their nouns, findings with their negation."""

from __future__ import annotations

import pytest

from engine.offline.reading import lexicon

GOOD = [
    "The company cut losses in its retail arm.",
    "It beat estimates for the third quarter.",
    "Management raised its full year guidance.",
    "Revenue rose sharply.",
    "The board increased the dividend.",
    "It reduced debt and lowered costs.",
    "Analysts upgraded the shares.",
    "The firm avoided bankruptcy.",
    "The deal closed without a lawsuit.",
    "Losses narrowed.",
    "Record profit.",
]
BAD = [
    "The company cut its forecast for next year.",
    "It missed estimates again.",
    "Management lowered its guidance.",
    "Revenue fell sharply.",
    "The board suspended the dividend.",
    "Costs rose faster than planned.",
    "Analysts downgraded the shares.",
    "It failed to beat estimates.",
    "The business is not profitable.",
    "Losses widened.",
    "There is no growth in sight.",
    "Regulators opened a fraud investigation.",
]


@pytest.mark.parametrize("sentence", GOOD)
def test_what_is_good_for_the_share_counts_for_it(sentence: str) -> None:
    assert lexicon().score(sentence) > 0


@pytest.mark.parametrize("sentence", BAD)
def test_what_is_bad_for_the_share_counts_against_it(sentence: str) -> None:
    assert lexicon().score(sentence) < 0


@pytest.mark.parametrize("sentence", ["The meeting is on Tuesday.", "", "It opened an office in Lyon."])
def test_what_says_nothing_counts_nothing(sentence: str) -> None:
    assert lexicon().score(sentence) == 0


def test_what_may_be_counts_for_less_than_what_is() -> None:
    assert 0 < lexicon().score("It could raise its guidance.") < lexicon().score("It raised its guidance.")


def test_a_negation_ends_with_its_clause() -> None:
    assert lexicon().score("It does not sell phones, profit rose.") > 0


def test_strong_words_weigh_more_than_advertising() -> None:
    assert lexicon().score("A fraud was found in the innovative, leading partnership.") < 0


def test_no_word_speaks_for_and_against() -> None:
    words = lexicon()
    assert len(words.weights) + len(words.moves) + len(words.things) > 400
    assert not set(words.moves) & set(words.things)
