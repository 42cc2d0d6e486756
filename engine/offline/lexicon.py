"""The finance lexicon of the rules: words, and verbs with nouns, that are positive or negative for a share."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_TOKEN = re.compile(r"[a-z]+(?:['’][a-z]+)?|[.,;:()]")
_VERB_REACH = 5
"""Words between a verb and the noun that it moves: "raised its full year 2024 guidance"."""
_NOUN_REACH = 3
"""Words between a noun and the verb after it: "revenue unexpectedly fell"."""
_NEGATION_REACH = 3
_MODAL_WEIGHT = 0.4
_LONE_VERB = 0.3
"""Weight of a verb such as "rises" without a noun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Word forms in lower case: `weights` with their sign, `moves` +1 for more and -1 for less,
    `things` +1 where more is good and -1 where more is bad."""

    weights: Mapping[str, float]
    moves: Mapping[str, int]
    things: Mapping[str, int]
    negators: frozenset[str]
    failing: frozenset[str]
    modals: frozenset[str]

    def score(self, sentence: str) -> float:
        """The sentiment of a sentence: positive, negative, or zero.

        A verb and the noun it moves count together ("cut losses" is good, "cut forecast" bad); a negator
        within three words turns the sign ("not profitable", "failed to beat"); where a modal stands
        before it, it counts for less.
        """
        tokens = _TOKEN.findall(sentence.lower())
        total = 0.0
        maybe_from = next((at for at, token in enumerate(tokens) if token in self.modals), len(tokens))
        used: set[int] = set()
        for at, token in enumerate(tokens):
            if token in self.moves:
                worth = self._moved(tokens, at, used) * self._turned(tokens, at)
                total += worth if at < maybe_from else _MODAL_WEIGHT * worth
        for at, token in enumerate(tokens):
            if token in self.weights and at not in used:
                worth = self.weights[token] * self._turned(tokens, at)
                total += worth if at < maybe_from else _MODAL_WEIGHT * worth
        return total

    def _moved(self, tokens: list[str], at: int, used: set[int]) -> float:
        """The sign of a verb with its noun: the first noun after it in its clause, else the last one
        before it."""
        move = self.moves[tokens[at]]
        for reach in range(at + 1, min(at + 1 + _VERB_REACH, len(tokens))):
            if tokens[reach] in ".;:()" or tokens[reach] in self.moves:
                break
            if tokens[reach] in self.things and reach not in used:
                used.update((at, reach))
                return 1.5 * move * self.things[tokens[reach]]
        for reach in range(at - 1, max(at - 2 - _NOUN_REACH, -1), -1):
            if tokens[reach] in ".;:(),":
                break
            if tokens[reach] in self.things and reach not in used:
                used.update((at, reach))
                return 1.5 * move * self.things[tokens[reach]]
        return _LONE_VERB * move

    def _turned(self, tokens: list[str], at: int) -> float:
        """-1 where a negator is shortly before, else 1."""
        for back in range(at - 1, max(at - 1 - _NEGATION_REACH, -1), -1):
            token = tokens[back]
            if token in ".;:,()":
                break
            if token in self.negators:
                return -1.0
            if token == "to" and back and tokens[back - 1] in self.failing:
                return -1.0
        return 1.0


@cache
def lexicon() -> Lexicon:
    """The lexicon that ships."""
    text = (resources.files("engine.offline") / "lexicon.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    weights = {"strong": 2.0, "plain": 1.0, "weak": 0.2}
    words: dict[str, float] = {}
    for side, sign in (("positive", 1.0), ("negative", -1.0)):
        for grade, weight in weights.items():
            words.update(dict.fromkeys(_forms(data[side][grade]), sign * weight))
    verbs, nouns, modifiers = data["verbs"], data["nouns"], data["modifiers"]
    moves = dict.fromkeys(_forms(verbs["up"]), 1) | dict.fromkeys(_forms(verbs["down"]), -1)
    things = dict.fromkeys(_plurals(nouns["good"]), 1) | dict.fromkeys(_plurals(nouns["bad"]), -1)
    return Lexicon(
        weights=words,
        moves=moves,
        things={word: sign for word, sign in things.items() if word not in moves},
        negators=frozenset(modifiers["negators"]),
        failing=frozenset(modifiers["failing"]),
        modals=frozenset(modifiers["modals"]),
    )


def _plurals(nouns: Iterable[str]) -> Iterable[str]:
    for noun in nouns:
        yield noun
        yield noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")


def _forms(words: Iterable[str]) -> Iterable[str]:
    """The words with their endings: cut, cuts, cutting; ease, eases, eased, easing; rally, rallies,
    rallied."""
    for word in words:
        yield word
        if word.endswith("y") and word[-2] not in "aeiou":
            yield from (word[:-1] + "ies", word[:-1] + "ied", word + "ing")
        elif word.endswith("e"):
            yield from (word + "s", word + "d", word[:-1] + "ing")
        elif word.endswith(("s", "sh", "ch", "x")):
            yield from (word + "es", word + "ed", word + "ing")
        else:
            yield from (word + "s", word + "ed", word + "ing")
            if len(word) < 5 and word[-1] in "tpnmbg":
                yield from (word + word[-1] + "ed", word + word[-1] + "ing")
