"""Salient words for searches, and salient sentences for quotations."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources

from engine.agents.text import plain
from engine.offline.lexicon import lexicon
from engine.offline.reading import Reading

_WORD = re.compile(r"[A-Za-z][A-Za-z&'’-]*[A-Za-z]")
_FIGURE = re.compile(r"\d")
_LIST_MARKS = re.compile(r"\*\*|^[\s#*•-]+|^\d+\s*[.)]\s+")


def salient_words(texts: Iterable[str], count: int, skip: Iterable[str] = ()) -> list[str]:
    """The most salient words of some texts, in order of appearance: names and words of finance before others, repeated
    ones before single ones."""
    words, unwanted = lexicon(), _common_words() | {word.lower() for word in skip}
    weight: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for text in texts:
        for found in _WORD.finditer(text):
            word = found[0]
            low = word.lower()
            if low in unwanted or len(low) < 3:
                continue
            named = word[0].isupper() and found.start() > 0
            known = low in words.things or low in words.weights or low in words.moves
            weight[low] = weight.get(low, 0.0) + 1.0 + 0.8 * named + 0.6 * known
            if named or low not in spelled:
                spelled[low] = word if named else low
    order = {low: place for place, low in enumerate(weight)}
    best = sorted(weight, key=lambda low: (-weight[low], order[low]))[:count]
    return [spelled[low] for low in sorted(best, key=order.__getitem__)]


def clean(sentence: str, limit: int = 280) -> str:
    """A sentence without the marks of lists and of bold print; one that is too long is cut between two words, so that
    no figure is cut in two."""
    text = plain(_LIST_MARKS.sub("", sentence))
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0]
    return f"{(whole or text[: limit - 1]).rstrip(' ,;:-…')}…"


def main_sentence(reading: Reading, limit: int = 280) -> str:
    """The strongest sentence, clean; empty where there is none."""
    return clean(reading.main_sentence, limit)


def key_sentences(reading: Reading, count: int, names: re.Pattern[str] | None = None, limit: int = 280) -> list[str]:
    """Up to so many sentences, clean and in their order: the weightiest, those with figures and those that name the
    company before others."""

    def bonus(sentence: str) -> float:
        named = names is not None and names.search(sentence) is not None
        return bool(_FIGURE.search(sentence)) + 0.5 * named

    best = reading.weightiest(count, bonus)
    return [clean(sentence, limit) for sentence in reading.sentences if sentence in best]


def ended(text: str) -> str:
    """The text with a full stop where it has no end."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 session, 2 sessions."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@cache
def _common_words() -> frozenset[str]:
    text = (resources.files("engine.offline") / "common_words.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)["words"])
