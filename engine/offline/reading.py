"""Reading of texts about a company by rule: sentences with their sentiment, macro releases, words for searches."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from engine.agents.agent import count_words, plain
from engine.domain.market import Symbol, is_crypto
from engine.program_files import program_text

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
    data = _table("lexicon")
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


TAKES_SIDE = 0.25
"""Smallest worth at which a text takes a side."""

# The full stop first, then the abbreviations before it: the other way round takes three times as long.
_SENTENCE_END = re.compile(
    r"[.!?](?<!\b[A-Z]\.)(?<!\b(?:Co|vs|No|Dr|Mr|Ms|Jr|Sr|St)\.)(?<!\b(?:Inc|Ltd|Mrs)\.)(?<!\bCorp\.)(?<!\bSept\.)"
    r"(?<!\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\.)['\"”]?\s+"
)
# Some feeds end an item with another model's judgement, which is left out.
SENTIMENT_TAG = re.compile(r"\s*\(sentiment:\s*\w+\)", re.IGNORECASE)
_LIST_BEFORE = re.compile(
    r"\b(?:including|includes|include|such as|like|alongside|competitors?|peers?|players?|among)\b[^.;]{0,120}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A text by sentences with the sentiment of each, above zero for positive; `concerns` is False where it is not
    about the company."""

    sentences: tuple[str, ...]
    scores: tuple[float, ...]
    concerns: bool = True

    @property
    def total(self) -> float:
        """The sum of the sentences' sentiment."""
        return sum(self.scores)

    @property
    def worth(self) -> float:
        """The text's balance, from -1 to 1."""
        return self.total / (2.0 + abs(self.total))

    @property
    def side(self) -> int:
        """1 for a positive text, -1 for a negative one, 0 for neither."""
        return (self.worth > TAKES_SIDE) - (self.worth < -TAKES_SIDE)

    @property
    def main_sentence(self) -> str:
        """The strongest sentence, the first where none has a sentiment; empty where there is none."""
        return next(iter(self.weightiest(1)), "")

    def weightiest(self, count: int, bonus: Callable[[str], float] = lambda sentence: 0.0) -> list[str]:
        """Up to so many sentences of three words or more by what they weigh, a bonus of each added, the first ones
        before later equals; where there is none so long, any with a word."""
        weight = [abs(score) + bonus(text) for text, score in zip(self.sentences, self.scores, strict=True)]
        order = sorted(range(len(weight)), key=lambda row: -weight[row])
        for least in (3, 1):
            long_enough = (self.sentences[row] for row in order if count_words(self.sentences[row]) >= least)
            if found := list(islice(long_enough, count)):
                return found
        return []


@lru_cache(maxsize=512)
def read(text: str, names: re.Pattern[str] | None = None) -> Reading:
    """A text read. With names, one that does not concern their bearer is worth nothing. The last texts are kept:
    memories come back day after day."""
    sentences = tuple(s.strip() for s in _SENTENCE_END.split(SENTIMENT_TAG.sub("", text) + " ") if s.strip())
    if names is not None and not _concerns(sentences, names):
        return Reading(sentences, (0.0,) * len(sentences), False)
    words = lexicon()
    return Reading(sentences, tuple(words.score(sentence) for sentence in sentences))


def _concerns(sentences: Sequence[str], names: re.Pattern[str]) -> bool:
    """True for a text about the company: it is named early and not in a list, or at least three times."""
    mentions = 0
    for row, sentence in enumerate(sentences):
        found = names.search(sentence)
        if found is None:
            continue
        before = sentence[: found.start()]
        if row == 0 and count_words(before) <= 14 and not _LIST_BEFORE.search(before):
            return True
        mentions += 1
    return mentions >= 3


def names_of(symbol: Symbol, texts: Iterable[str]) -> re.Pattern[str] | None:
    """The company's names as a pattern; None where they are not known, and every item counts as its."""
    names = company_names(symbol, texts)
    if not names:
        return None
    return _pattern(names if is_crypto(symbol) or len(symbol) <= 2 else names | {symbol})


def company_names(symbol: Symbol, texts: Iterable[str]) -> frozenset[str]:
    """The names of what is behind a symbol: those of companies.toml, else those that its news gives it."""
    return frozenset(companies().get(symbol, ())) or frozenset(_learnt(symbol, texts))


def companies() -> Mapping[Symbol, Sequence[str]]:
    """The names of companies and coins that the press writes about, by symbol."""
    return _table("companies")


@cache
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    spelled = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return re.compile(rf"(?<!\w)(?:{spelled})(?!\w)", re.IGNORECASE)


def _learnt(symbol: Symbol, texts: Iterable[str]) -> Iterable[str]:
    """Names before the symbol in brackets: "Universal Corporation (NYSE: UVV)"."""
    ticker = re.compile(rf"((?:[A-Z][\w&.'-]*\s+){{1,5}})\((?:[A-Z]+:\s*)?{re.escape(symbol)}\)")
    for text in texts:
        for found in ticker.finditer(text):
            yield found[1].strip()


@cache
def antonyms() -> Mapping[str, str]:
    """Words of news with their opposites, both ways, in lower case; a word that has several has the first."""
    pairs = _table("antonyms")["pairs"]
    both = [(a, b) for a, b in pairs] + [(b, a) for a, b in pairs]
    return dict(reversed(both))


_POINTS: Mapping[str, tuple[int, float]] = {"ICSA": (-1, 2.5), "AWHMAN": (1, 0.6)}
"""By series: the side of a rise for shares, and the smallest change in percent that counts."""

_RELEASE = re.compile(r"(?:^|\()([A-Z0-9_]+)\)?: \S+ for \S+, ([+-]\d+\.\d+)% against")


def read_figure(text: str) -> Reading:
    """The reading of a release: it has a side where its series is known and has moved enough."""
    reading = read(text)
    found = _RELEASE.search(text)
    sign, least = _POINTS.get(found[1], (0, 0.0)) if found else (0, 0.0)
    change = float(found[2]) if found else 0.0
    side = sign * ((change >= least) - (change <= -least))
    return Reading(reading.sentences, tuple(0.0 if n else float(side) for n in range(len(reading.sentences))))


_WORD = re.compile(r"[A-Za-z][A-Za-z&'’-]*[A-Za-z]")
_FIGURE = re.compile(r"\d")
_LIST_MARKS = re.compile(r"\*\*|^[\s#*•-]+|^\d+\s*[.)]\s+")


def salient_words(texts: Iterable[str], count: int, skip: Iterable[str] = ()) -> list[str]:
    """The most salient words of some texts, in order of appearance: names and words of finance before others, repeated
    ones before single ones."""
    words, unwanted = lexicon(), common_words() | {word.lower() for word in skip}
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


@lru_cache(maxsize=8192)  # the same sentences are read day after day
def clean(sentence: str, limit: int = 280) -> str:
    """A sentence without the marks of lists and of bold print, cut between two words where it is too long."""
    return plain(_LIST_MARKS.sub("", sentence), limit)


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


def extract(reading: Reading, most: int) -> str:
    """The weightiest sentences, clean and in their order, those with figures before others: as many as fit into so many
    words."""
    best: dict[str, str] = {}
    for sentence in reading.weightiest(len(reading.sentences), lambda text: bool(_FIGURE.search(text))):
        text = ended(clean(sentence))
        most -= count_words(text)
        if most < 0:
            break
        best[sentence] = text
    return " ".join(best[sentence] for sentence in dict.fromkeys(reading.sentences) if sentence in best)


def ended(text: str) -> str:
    """The text with a full stop where it has no end."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


@cache
def common_words() -> frozenset[str]:
    """Words in lower case that say nothing about what a text is about."""
    return frozenset(_table("common_words")["words"])


@cache
def _table(name: str) -> Mapping[str, Any]:
    """A data file of the rules."""
    return tomllib.loads(program_text(Path(__file__).with_name(f"{name}.toml")))
