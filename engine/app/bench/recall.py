"""The bench of recall: questions made by rule from news and filings, whose evidence is certain, put to every ranking.

A question is asked on a session; only what was known by then may be found. Its words are not those of its evidence:
names become symbols, numbers become words or go, and the rest is said otherwise (recall_words.toml). Two kinds: what a
rare report said, within weeks of it, and what is known of a matter that is reported again and again, such as quarterly
figures, whose newest report is the evidence and supersedes the earlier ones.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random

import numpy as np

from engine.domain.market import Symbol
from engine.domain.run import DataSpec
from engine.errors import MissingData
from engine.ports import Calendar
from engine.program_files import program_text
from engine.services import Services
from memory.embedders import HashEmbedder
from memory.in_memory_store import InMemoryStore
from memory.lexical import Corpus, TermIndex
from memory.ports import Embedder
from memory.presets import PRESETS
from memory.recall import LayeredMemory
from memory.record import Item, Layer, MemoryRecord

LEAST = 300
"""Questions that the bench asks at least."""
LATEST = 20
"""Largest number of documents of a ranking that count."""
NEWS_WITHIN, RARE = 15, 3
"""Sessions after a rare report in which it is asked for; how many like it there may be by then."""
PER_SYMBOL = 90
BM25, TIME, ALL, DEFAULT = "bm25", "time", "all", "layered"

_WORD = re.compile(r"[A-Za-z][A-Za-z-]+|\d[\d.,]*%?")
_SHORT = 4
"""Length from which a word can be rare: shorter ones say little."""
_ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Document:
    """A text as memory keeps it: `kind` is news or a filing's form, `step` the session by which it was known, `matter`
    what is reported, without names and numbers."""

    text: str
    kind: str
    day: date
    step: int
    matter: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question asked at a step: the places of its evidence among the symbol's documents, and of what is superseded
    by it."""

    symbol: Symbol
    text: str
    step: int
    evidence: tuple[int, ...]
    superseded: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodRecall:
    """Result of a ranking: the mean share of the evidence among its first 5 and 20, the mean reciprocal rank, questions
    with something superseded before what supersedes it, and documents from after the question."""

    name: str
    r5: float
    r20: float
    mrr: float
    superseded_first: int
    later: int


@dataclass(frozen=True, slots=True)
class RecallBench:
    """The number of questions and documents, and how each ranking did; DEFAULT is the default memory's."""

    questions: int
    documents: int
    methods: tuple[MethodRecall, ...]


Rank = Callable[[Question], Sequence[int]]
"""The places of documents, best first, for a question."""


def run_recall_bench(services: Services, data: DataSpec, symbols: Sequence[Symbol], through: date) -> RecallBench:
    """Make the questions from the documents up to a day and put them to every ranking. Raises MissingData where they
    are too few for LEAST questions, and what the data and the embedder raise."""
    documents = asyncio.run(_documents(services, data, symbols, through))
    questions = {symbol: _questions(symbol, known) for symbol, known in documents.items()}
    count = sum(map(len, questions.values()))
    if count < LEAST:
        raise MissingData(f"the documents give {count} questions, and {LEAST} are asked at least: name more symbols")
    tallies: dict[str, list[tuple[float, float, float, bool, int]]] = {}
    with services.open_embedder(None, lambda use: None) as embedder:
        for symbol, known in documents.items():
            for name, rank in _rankings(symbol, known, embedder).items():
                tallies.setdefault(name, []).extend(_measured(one, rank(one), known) for one in questions[symbol])
    methods = tuple(_method(name, rows) for name, rows in tallies.items())
    return RecallBench(count, sum(map(len, documents.values())), methods)


async def _documents(
    services: Services, data: DataSpec, symbols: Sequence[Symbol], through: date
) -> Mapping[Symbol, Sequence[Document]]:
    source, found = services.open_source(data, through), {}
    for symbol in symbols or tuple(await source.symbols()):
        calendar = services.calendar_for(symbol)
        news, filings = await source.news(symbol), await source.filings(symbol)
        texts = [(one.date, "news", ". ".join(filter(None, (one.headline, one.summary)))) for one in news.items]
        texts += [(one.date, one.form, one.summary) for one in filings.items]
        known = [_document(calendar, *one) for one in sorted(texts) if one[2].strip()]
        if known:
            found[symbol] = known
    return found


def _document(calendar: Calendar, day: date, kind: str, text: str) -> Document:
    sessions = calendar.sessions(day, day.fromordinal(day.toordinal() + 14))
    matter = " ".join(word.lower() for word in _WORD.findall(text.split(". ", maxsplit=1)[0]) if word[0].islower())
    return Document(text, kind, day, calendar.number(sessions[0]), matter if kind == "news" else kind)


def _questions(symbol: Symbol, known: Sequence[Document]) -> Sequence[Question]:
    """Questions on one symbol, by a seed of its own."""
    chance, synonyms = Random(f"recall {symbol}"), _synonyms()
    frequent = Counter(word for one in known for word in set(_content(one.text)))
    last, made = known[-1].step, list[Question]()
    places = [place for place, one in enumerate(known) if one.step + 1 <= last]
    for place in chance.sample(places, min(len(places), 4 * PER_SYMBOL)):
        one = known[place]
        step = one.step + chance.randrange(1, NEWS_WITHIN)
        same = [n for n, other in enumerate(known) if other.matter == one.matter and other.step <= step]
        recent = [n for n in same if known[n].step > step - 250]
        rewritten = _rewritten(one.text, frequent, synonyms, len(known), chance)
        if one.kind != "news" and len(recent) > 1:
            newest = max(known[n].step for n in recent)
            evidence = tuple(n for n in recent if known[n].step == newest)
            text = f"The newest {_form(one.kind)} of {symbol} as of {_day(known[evidence[0]].day)}: {rewritten}"
            made.append(Question(symbol, text, step, evidence, tuple(n for n in recent if n not in evidence)))
        elif one.kind == "news" and len(recent) <= RARE and rewritten:
            made.append(Question(symbol, f"{symbol} around {_day(one.day)}: {rewritten}", step, tuple(recent)))
        if len(made) == PER_SYMBOL:
            break
    return made


def _content(text: str) -> Iterator[str]:
    yield from (word.lower() for word in _WORD.findall(text) if word[0].islower() and len(word) >= _SHORT)


def _rewritten(text: str, frequent: Counter[str], synonyms: Mapping[str, str], count: int, chance: Random) -> str:
    """A text's rarer words in another order, those that have one in other words; empty where too few are left."""
    content = [word for word in dict.fromkeys(_content(text)) if frequent[word] < count / 3]
    said_otherwise = [synonyms[word] for word in content if word in synonyms]
    as_they_are = [word for word in content if word not in synonyms]
    kept = chance.sample(as_they_are, min(2, len(as_they_are)))
    wanted = [*chance.sample(said_otherwise, min(4, len(said_otherwise))), *kept]
    chance.shuffle(wanted)
    return " ".join(wanted) if len(wanted) >= 3 else ""


def _synonyms() -> Mapping[str, str]:
    table: dict[str, dict[str, str]] = tomllib.loads(program_text(Path(__file__).with_name("recall_words.toml")))
    return table["synonyms"]


def _form(kind: str) -> str:
    return {"10-Q": "quarterly figures", "10-K": "annual figures"}.get(kind, "filing")


def _day(day: date) -> str:
    """A day in words: `the second week of March`."""
    return f"the {_ORDINALS[min((day.day - 1) // 7, 3)]} week of {day:%B}"


def _rankings(symbol: Symbol, known: Sequence[Document], embedder: Embedder) -> Mapping[str, Rank]:
    """Every ranking of the documents that were known when a question was asked."""
    steps = np.array([one.step for one in known])
    terms = TermIndex()
    terms.extend([_record(symbol, n, one) for n, one in enumerate(known)])

    def best(scores: np.ndarray[tuple[int], np.dtype[np.float64]], question: Question) -> Sequence[int]:
        places = np.flatnonzero(steps <= question.step)
        order = np.lexsort((-places, -scores[places]))  # of equals the newer first
        return [int(n) for n in places[order]]

    def by_words(question: Question) -> Sequence[int]:
        corpus = Corpus([terms], [steps <= question.step])
        return best(corpus.scores(terms, [question.text])[0], question)

    def by(meaning: Embedder) -> Rank:
        vectors = meaning.embed([one.text for one in known]).astype(np.float64)
        return lambda question: best(vectors @ meaning.embed([question.text])[0].astype(np.float64), question)

    letters = HashEmbedder()
    own = {} if embedder.id == letters.id else {embedder.id: by(embedder)}
    return {
        letters.id: by(letters),
        **own,
        BM25: by_words,
        DEFAULT: _layered(symbol, known, embedder),
        TIME: lambda question: best(steps.astype(np.float64), question),
        ALL: lambda question: best(-steps.astype(np.float64), question),
    }


def _layered(symbol: Symbol, known: Sequence[Document], embedder: Embedder) -> Rank:
    """The default memory as it stands when a question is asked, its layers united by score. It forgets as it does."""
    memory = LayeredMemory(InMemoryStore(embedder.dimension), embedder, PRESETS["desk"])
    places: dict[str, int] = {}
    for step in sorted({one.step for one in known}):
        today = [(n, one) for n, one in enumerate(known) if one.step == step]
        memory.sweep(step)
        items = [_item(symbol, n, one) for n, one in today]
        for (n, _), identity in zip(today, memory.remember(items, step), strict=True):
            places[identity] = n

    def rank(question: Question) -> Sequence[int]:
        found = memory.recall(symbol, {"all": question.text}, question.step, k=LATEST)
        hits = sorted((hit for hits in found.values() for hit in hits), key=lambda hit: -hit.composite)
        return [places[hit.record.id] for hit in hits]

    return rank


def _item(symbol: Symbol, place: int, one: Document) -> Item:
    kind = one.kind if one.kind in PRESETS["desk"].births else "8-K"  # other forms live as long
    return Item(symbol=symbol, kind=kind, text=one.text, source=str(place))


def _record(symbol: Symbol, place: int, one: Document) -> MemoryRecord:
    return MemoryRecord(
        id=str(place),
        owner="bench",
        symbol=symbol,
        kind=one.kind,
        text=one.text,
        query_text="",
        source=str(place),
        born_step=one.step,
        available_at=one.step,
        hindsight=False,
        birth_layer=Layer.SHALLOW,
        importance=0.0,
        rests_on=(),
        labels=(),
        vector=np.zeros(1, np.float32),
    )


def _measured(
    question: Question, ranked: Sequence[int], known: Sequence[Document]
) -> tuple[float, float, float, bool, int]:
    first = {place: rank for rank, place in reversed(list(enumerate(ranked, 1)))}
    shares = [len(set(ranked[:k]) & set(question.evidence)) / len(question.evidence) for k in (5, LATEST)]
    found = min((first[place] for place in question.evidence if place in first), default=0)
    earlier = min((first[place] for place in question.superseded if place in first), default=0)
    superseded_first = bool(earlier) and earlier <= LATEST and (not found or earlier < found)
    later = sum(known[place].step > question.step for place in ranked)
    return shares[0], shares[1], 1 / found if found else 0.0, superseded_first, later


def _method(name: str, rows: Sequence[tuple[float, float, float, bool, int]]) -> MethodRecall:
    r5, r20, mrr = (sum(row[n] for row in rows) / len(rows) for n in range(3))
    return MethodRecall(name, r5, r20, mrr, sum(row[3] for row in rows), sum(row[4] for row in rows))
