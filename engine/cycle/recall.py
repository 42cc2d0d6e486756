"""Trading memory: trading values on one side, the layered memory library on the other.

Steps of memory are sessions counted on the desk's calendar, so a daily run and a backtest keep the same time; a cycle
within a session is at a fraction. What a cycle brings is written once all is decided, dated to a moment after the
decision: a run that was killed and goes on recalls what it recalled before, and writes what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import product

from engine.agents.intelligence import ItemJudgement, MarketIntelligence, shown_id
from engine.cycle.feedback import Feedback
from engine.cycle.turn import TradingHistory
from engine.domain.decision import Opinion
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, Symbol
from engine.domain.recollection import HORIZON_TYPES, Recollection, RetrievalType
from engine.market.point_in_time import MarketAsOf
from engine.ports import Calendar
from memory.in_memory_store import InMemoryStore
from memory.layer_rank import Hit
from memory.ports import Embedder, Store
from memory.recall import LayeredMemory
from memory.record import Item, Layer

_FORMS = {"macro": None, "commentary": None, "news": RetrievalType.NEWS}
_EFFECTS = {"positive": RetrievalType.PRICE_UP, "negative": RetrievalType.PRICE_DOWN}
_TRENDS = {"bullish": RetrievalType.BULLISH_TREND, "bearish": RetrievalType.BEARISH_TREND}


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """One owner's memory of one symbol, at the step of a session."""

    symbol: Symbol
    owner: str
    session: date
    step: float


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The question to memory. `diversified` ranks each retrieval type by the query of its own, else all queries are
    one; without `reflections` only intelligence is recalled. Source: FinAgent §4.2 [A2, A3]."""

    queries: Mapping[str, str]
    diversified: bool
    reflections: bool = True


def received(
    scope: MemoryScope,
    news: Sequence[NewsItem],
    filings: Sequence[Filing],
    intelligence: MarketIntelligence | None,
    macro: Sequence[MacroRelease] = (),
    *,
    commentary: Sequence[NewsItem] = (),
    analyses: bool = False,
) -> tuple[Item, ...]:
    """Memories of what came in, each as weighty as it was judged: all but news and commentary judged not to concern the
    company. What was not judged has no labels. With `analyses` each begins with the agent's sentence about it, by which
    it is found, and the day's summary is a memory too. Source: FinAgent §4.1, §4.2 [A1, A6]; TradingGPT §4.1.1 [G2]."""
    judged = _Judged.of(intelligence, analyses)
    reports, texts = _reports(scope, filings, macro, judged), _commentary(scope, commentary, judged)
    items = (*reports, *texts, *_news(scope, news, judged))
    if intelligence is None or not analyses:
        return items
    return (*items, _summary(scope, intelligence))


def lesson(
    scope: MemoryScope,
    kind: str,
    text: str,
    *,
    query: str = "",
    rests_on: Sequence[Recollection] = (),
    seen_until: int | None = None,
) -> Item:
    """The memory of a reflection. With hindsight (`seen_until`) it can be recalled only from that step on.
    Source: FinAgent §4.3, appendix C [A4, A5, A9]."""
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=text,
        source=f"{kind} of {scope.session}",
        query_text=query,
        owner=scope.owner,
        seen_until=seen_until,
        rests_on=tuple(memory.id for memory in rests_on),
        labels=HORIZON_TYPES,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """The judgements of the day's items by their ids, the mood of the market, and whether memory keeps them."""

    items: Mapping[str, ItemJudgement]
    market: str
    analyses: bool

    @classmethod
    def of(cls, intelligence: MarketIntelligence | None, analyses: bool) -> _Judged:
        """The judgements of an answer; none without one."""
        if intelligence is None:
            return cls({}, "", analyses)
        return cls({item.id: item for item in intelligence.items}, intelligence.recent_market, analyses)

    def item(self, source: str) -> ItemJudgement | None:
        """The judgement of an item by the id that it has at its source; None where it was not judged."""
        return self.items.get(shown_id(source))

    def worded(self, item: ItemJudgement | None, kind: str, text: str) -> str:
        """The text that memory keeps and shows: that of news begins with its effect.
        Source: InvestorBench A.1 [I5]; FinAgent §4.2 [A6]."""
        if item is None:
            return text
        if self.analyses:
            return f"{item.effect.capitalize()}, {item.horizon} term: {item.summary.rstrip('.')}. {text}"
        return f"{item.effect.capitalize()}: {text}" if kind == "news" else text

    def labels(self, item: ItemJudgement | None, form: RetrievalType | None) -> tuple[str, ...]:
        """The retrieval types of an item; none where it was not judged. Source: FinAgent §4.1 [A2]."""
        if item is None:
            return ()
        horizon = RetrievalType(f"{item.horizon} term")
        named = (horizon, _EFFECTS.get(item.effect), _TRENDS.get(self.market), form)
        return tuple(name.value for name in named if name is not None)


def _reports(
    scope: MemoryScope,
    filings: Sequence[Filing],
    macro: Sequence[MacroRelease],
    judged: _Judged,
) -> Iterator[Item]:
    for filing in filings:
        if filing.summary.strip():
            yield _item(scope, _form(filing.form), filing.summary, filing.id, judged)
    for release in macro:
        if release.summary.strip():
            yield _item(scope, "macro", release.summary, release.id, judged)


def _commentary(scope: MemoryScope, texts: Sequence[NewsItem], judged: _Judged) -> Iterator[Item]:
    """Commentary of funds. Source: TradingGPT §4.1.1 [G2]."""
    for entry in texts:
        item = judged.item(entry.id)
        if item is None or item.concerns_company:
            yield _item(scope, "commentary", f"{entry.summary} (fund {entry.symbol})", entry.id, judged)


def _news(scope: MemoryScope, news: Sequence[NewsItem], judged: _Judged) -> Iterator[Item]:
    for entry in news:
        item = judged.item(entry.id)
        text = f"{entry.headline}. {entry.summary}" if entry.headline else entry.summary
        if text.strip() and (item is None or item.concerns_company):
            yield _item(scope, "news", text, entry.id, judged)


def _item(scope: MemoryScope, kind: str, text: str, source: str, judged: _Judged) -> Item:
    item = judged.item(source)
    form = _FORMS.get(kind, RetrievalType.REPORTS)
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=judged.worded(item, kind, text),
        source=source,
        query_text=item.summary if item is not None and judged.analyses else "",
        owner=scope.owner,
        rating=None if item is None else (item.weight - 1) / 9,
        labels=judged.labels(item, form),
    )


def _summary(scope: MemoryScope, intelligence: MarketIntelligence) -> Item:
    """The memory of the day's summary: under the trend that it tells of and found by the query for that, or, where
    there was no trend, of its day."""
    kind, label = "market-intelligence", _TRENDS.get(intelligence.recent_market, RetrievalType.SHORT_TERM)
    queries = intelligence.queries.texts
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=f"{intelligence.summary}\nThe market was lately {intelligence.recent_market}.",
        source=f"{kind} of {scope.session}",
        query_text=queries.get(label) or " ".join(queries.values()),
        owner=scope.owner,
        labels=(label.value,),
    )


def _form(form: str) -> str:
    """The kind of a filing in memory: an amendment is one of its form, any other form weighs as an 8-K."""
    return next((kind for kind in ("10-Q", "10-K") if form.startswith(kind)), "8-K")


YEAR = timedelta(days=365)
"""The lookback for filings of a memory that knows nothing of a symbol yet."""

AFTER = 2**-10
"""The part of a session after its decision at which its memories are written."""


class TradingMemory:
    """The layered memory of one desk or one run. Raises the errors of memory/errors.py."""

    def __init__(self, memory: LayeredMemory, calendar: Calendar) -> None:
        self._memory = memory
        self._calendar = calendar

    @property
    def embedder(self) -> Embedder:
        """The embedder of its texts."""
        return self._memory.embedder

    def copy(self) -> TradingMemory:
        """Copy the memory within this process; what is written to one does not reach the other."""
        return TradingMemory(self._memory.copy_to(InMemoryStore(self.embedder.dimension)), self._calendar)

    def as_of(self, step: float) -> TradingMemory:
        """Copy the memory as it was when a session was decided. Memories of that session are dated after its decision,
        so they are not in it; what is written to the copy is lost with it."""
        copied = self._memory.copy_to(InMemoryStore(self.embedder.dimension), step)
        return TradingMemory(copied, self._calendar)

    def write_to(self, store: Store) -> None:
        """Write all records into an empty store."""
        self._memory.write_to(store)

    def begin(self, step: float) -> None:
        """Begin a session's cycle: records that are due move between layers or fade."""
        self._memory.sweep(step)

    def knows(self, scope: MemoryScope) -> bool:
        """Check whether anything of a symbol was ever remembered."""
        return self._memory.has_records(scope.symbol, scope.step, owner=scope.owner)

    def recall(self, scope: MemoryScope, inquiry: Inquiry, k: int | None = None) -> tuple[Recollection, ...]:
        """Recall what bears on today: the best of every layer for every query, best first within a layer; `k` of each
        in place of the preset's number. Source: FinAgent §4.2 [A2, A3]; InvestorBench A [I5]."""
        diversified, queries = inquiry.diversified, inquiry.queries
        asked = dict(queries) if diversified else {"all": " ".join(queries.values())}
        labelled = diversified and asked.keys() <= set(RetrievalType)
        births = self._memory.preset.births.items()
        intelligence = [kind for kind, birth in births if birth.layer is not Layer.REFLECTION]
        kinds = None if inquiry.reflections else intelligence
        found = self._memory.recall(
            scope.symbol, asked, scope.step, k=k, owner=scope.owner, kinds=kinds, labelled=labelled
        )
        return tuple(self._recollection(hit) for hits in found.values() for hit in hits)

    def lessons(self, scope: MemoryScope, kind: str, query: str) -> tuple[Recollection, ...]:
        """Recall a reflection's own past lessons, best first. Source: FinAgent §4.3 [A4, A5]."""
        found = self._memory.recall(scope.symbol, {"lessons": query}, scope.step, owner=scope.owner, kinds=(kind,))
        return tuple(self._recollection(hit) for hits in found.values() for hit in hits)

    def earlier(self, scope: MemoryScope, kinds: Sequence[str], sessions: int) -> tuple[Recollection, ...]:
        """Recall what was written under some kinds in the last sessions, oldest first, without a query: relevancy and
        score are zero, and the rank is the place. Source: TradingGPT §4.2.2 [G8]."""
        found = self._memory.recent(scope.symbol, kinds, scope.step - sessions, scope.step, owner=scope.owner)
        return tuple(
            Recollection(
                id=record.id,
                kind=record.kind,
                layer=layer.value,
                session=self._calendar.session_at(int(record.born_step)),
                text=record.text,
                recency=0.0,
                relevancy=0.0,
                importance=record.importance,
                score=0.0,
                rank=rank,
            )
            for rank, (layer, record) in enumerate(found, 1)
        )

    def write(self, items: Iterable[Item], opinions: Sequence[Opinion], step: float) -> None:
        """Write the memories of a session, once it is decided, and note what the opinions rest on."""
        for opinion in opinions:
            if opinion.evidence:
                self._memory.cite(opinion.evidence, step, _key(opinion))
        # Symbols are analysed side by side: the order in which they end is chance.
        ordered = sorted(items, key=lambda item: (item.symbol, item.owner))
        self._memory.remember(ordered, step + AFTER)

    def feedback(
        self,
        history: TradingHistory,
        market: MarketAsOf,
        step: float,
        *,
        calendars: Mapping[Symbol, Calendar],
        costs: Decimal,
    ) -> None:
        """Reward what opinions cited, once what followed them is known: up where they paid, down where they cost, each
        memory of theirs by one opinion per horizon. What was rewarded before is not rewarded again, so it does not
        matter how often this is called. Source: InvestorBench A [I4]."""
        feedback = Feedback(
            constants=self._memory.preset,
            calendar=self._calendar,
            calendars=calendars,
            history=history,
            market=market,
            costs=costs,
        )
        for opinion, sign in feedback.signs():
            own = [
                name
                for name in self._memory.alive(opinion.evidence, owner=opinion.key.owner)
                if feedback.counts(opinion, [_session_of(touch.key) for touch in self._memory.rewards(name)])
            ]
            self._memory.reinforce(own, sign, step, _key(opinion))

    def plant(self, marker: str, symbols: Sequence[Symbol], owners: Sequence[str], step: float) -> None:
        """Plant memories of the future, for the audit: of every kind one that is written after a step, and one that is
        written before and becomes available after it, as weighty as can be."""
        for symbol, owner in product(symbols, owners):
            text = f"{marker}: takeover of {symbol} at triple the price"
            base = Item(symbol=symbol, kind="", text=text, owner=owner, importance=100)
            kinds = [replace(base, kind=kind) for kind in self._memory.preset.births]
            self._memory.remember(kinds, step + AFTER)
            self._memory.remember((replace(item, seen_until=step + 1) for item in kinds), step - 1)

    def shows(self, marker: str, scopes: Sequence[MemoryScope]) -> bool:
        """Check whether a recall brings up anything that contains a marker, when it is asked for by that marker."""
        return any(
            marker in memory.text
            for scope in scopes
            for memory in (
                *self.recall(scope, Inquiry(dict.fromkeys(RetrievalType, marker), diversified=True)),
                *self.recall(scope, Inquiry({"all": marker}, diversified=False)),
                *(lesson for kind in self._memory.preset.births for lesson in self.lessons(scope, kind, marker)),
                *self.earlier(scope, tuple(self._memory.preset.births), 1),
            )
        )

    def written_with_hindsight(self) -> int:
        """Count the memories that were written in training with sight of the moves that followed."""
        return sum(record.hindsight for record in self._memory.records())

    def available(self, memory: Recollection) -> float:
        """The step from which on a memory may be recalled."""
        return self._memory.record(memory.id).available_at

    def _recollection(self, hit: Hit) -> Recollection:
        record = hit.record
        return Recollection(
            id=record.id,
            kind=record.kind,
            layer=hit.layer.value,
            session=self._calendar.session_at(int(record.born_step)),
            text=record.text,
            recency=hit.recency,
            relevancy=hit.relevancy,
            importance=hit.importance * 100,
            score=hit.composite,
            rank=hit.rank,
            types=tuple(name for name, _ in hit.query_ranks),
        )


def _key(opinion: Opinion) -> str:
    key = opinion.key
    return f"{key.session} {key.symbol} {key.owner} {key.cycle}"


def _session_of(key: str) -> date:
    return date.fromisoformat(key.partition(" ")[0])
