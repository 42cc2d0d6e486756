"""Reading of texts about a company by rule: sentences, their sentiment, and whether they concern the company."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import islice

from engine.agents.text import count_words
from engine.domain.market import Symbol, is_crypto
from engine.offline.lexicon import lexicon

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
    names = set(_known_names().get(symbol, ())) or set(_learnt(symbol, texts))
    if not names:
        return None
    if not is_crypto(symbol) and len(symbol) > 2:
        names.add(symbol)
    return _pattern(frozenset(names))


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
def _known_names() -> Mapping[Symbol, Sequence[str]]:
    text = (resources.files("engine.offline") / "companies.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
