"""What the desk remembers and recalls: between its news, filings and lessons and the layered memory library.

Steps of memory are sessions counted on the desk's calendar, so a daily run and a backtest keep the same time; a cycle
within a session stands at a fraction. What a cycle brings waits until all is decided and is written then as one, dated
to a moment after the decision: a run that was killed and goes on recalls what it recalled before, and writes what it
wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import product

from engine.agents.market_intelligence import MarketIntelligence
from engine.domain.decision import Decision, Outcome
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, Symbol
from engine.domain.recollection import Recollection
from engine.ports import Calendar
from memory.in_memory_store import InMemoryStore
from memory.layer_rank import Hit
from memory.ports import Embedder, Store
from memory.recall import LayeredMemory
from memory.record import Item

YEAR = timedelta(days=365)
"""How far back a desk that begins reads filings."""

AFTER = 2**-10
"""What a session brings is written so much of a session after its decision."""

TYPES = ("short term", "medium term", "long term")
"""The retrieval types: for how long an item matters. Source: FinAgent §4.2 [A2]."""


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Whose memory of what, and when."""

    symbol: Symbol
    owner: str
    session: date
    step: float


class TradingMemory:
    """The layered memory of one desk or one run. Raises the errors of memory/errors.py."""

    def __init__(self, memory: LayeredMemory, calendar: Calendar) -> None:
        self._memory = memory
        self._calendar = calendar
        self._waiting: list[tuple[MemoryScope, Item]] = []

    @property
    def embedder(self) -> Embedder:
        """What turns its texts to vectors."""
        return self._memory.embedder

    def copy(self) -> TradingMemory:
        """The same memory in this process alone: what happens to one is not known to the other."""
        return TradingMemory(self._memory.copy_to(InMemoryStore(self.embedder.dimension)), self._calendar)

    def as_of(self, step: float) -> TradingMemory:
        """The memory as it stood when a session was decided, in this process alone: what that session brought is
        dated after its decision, so it is not there yet; what is written is lost with it."""
        copied = self._memory.copy_to(InMemoryStore(self.embedder.dimension), step)
        return TradingMemory(copied, self._calendar)

    def write_to(self, store: Store) -> int:
        """Writes all of it into an empty store; returns how many records there are."""
        return self._memory.write_to(store)

    def begin(self, step: float) -> None:
        """A session's cycle begins: what is due moves or fades."""
        self._waiting = []
        self._memory.sweep(step)

    def knows(self, place: MemoryScope) -> bool:
        """Whether anything of a symbol was ever remembered; a desk that begins reads the filings of the year before."""
        return self._memory.has_records(place.symbol, place.step, owner=place.owner)

    def take_in(
        self,
        place: MemoryScope,
        news: Sequence[NewsItem],
        filings: Sequence[Filing],
        intelligence: MarketIntelligence | None,
        macro: Sequence[MacroRelease] = (),
    ) -> None:
        """Remembers what came in: filings and figures of the economy always, news that was judged to concern the
        company, each as weighty as it was judged. Source: FinAgent §4.1 [A1]; TradingGPT §4.1.1 [G2]."""
        judged = {} if intelligence is None else {item.id: item for item in intelligence.items}
        reports = [(_form(filing.form), filing.id, filing.summary) for filing in filings]
        reports += [("macro", release.id, release.summary) for release in macro]
        for kind, name, text in reports:
            verdict = judged.get(name)
            rating = None if verdict is None else (verdict.weight - 1) / 9
            labels = ("long term",) if verdict is None else (f"{verdict.horizon} term", verdict.effect)
            self._keep(place, kind, text, name, rating, labels)
        for entry in news:
            verdict = judged.get(entry.id)
            if verdict is None or not verdict.concerns_company:
                continue
            text = f"{entry.headline}. {entry.summary}" if entry.headline else entry.summary
            labels = (f"{verdict.horizon} term", verdict.effect)
            self._keep(place, "news", text, entry.id, (verdict.weight - 1) / 9, labels)

    def recall(self, place: MemoryScope, queries: Mapping[str, str], diversified: bool) -> tuple[Recollection, ...]:
        """What memory holds on today: the best of every layer per retrieval type, best first within a layer.
        Without diversification all queries are one. Source: FinAgent §4.2 [A2]; InvestorBench A [I5]."""
        asked = dict(queries) if diversified else {"all": " ".join(queries.values())}
        found = self._memory.recall(place.symbol, asked, place.step, owner=place.owner, labelled=diversified)
        return tuple(self._recollection(hit) for hits in found.values() for hit in hits)

    def lessons(self, place: MemoryScope, kind: str, query: str) -> tuple[Recollection, ...]:
        """A reflection's own past lessons, best first. Source: FinAgent §4.3 [A4, A5]."""
        found = self._memory.recall(place.symbol, {"lessons": query}, place.step, owner=place.owner, kinds=(kind,))
        return tuple(self._recollection(hit) for hits in found.values() for hit in hits)

    def keep_lesson(
        self,
        place: MemoryScope,
        kind: str,
        text: str,
        query: str,
        rests_on: Sequence[Recollection],
        seen_until: int | None,
    ) -> None:
        """Remembers a reflection. With hindsight (`seen_until`) it can be recalled only from that step on.
        Source: FinAgent §4.3, appendix C [A4, A5, A9]."""
        item = Item(
            symbol=place.symbol,
            kind=kind,
            text=text,
            source=f"{kind} of {place.session}",
            query_text=query,
            owner=place.owner,
            seen_until=seen_until,
            rests_on=tuple(memory.id for memory in rests_on),
            labels=TYPES,
        )
        self._waiting.append((place, item))

    def decided(self, decisions: Sequence[Decision], step: float) -> None:
        """A session is decided: writes what it brought, and notes what the decisions rest on."""
        # Symbols think side by side; the order in which they came to it is nobody's.
        waiting = sorted(self._waiting, key=lambda one: (one[0].symbol, one[0].owner))
        self._waiting = []
        self._memory.remember((item for _, item in waiting), step + AFTER)
        for decision in decisions:
            if decision.evidence:
                self._memory.cite(decision.evidence, step, _key(decision))

    def feedback(self, decisions: Mapping[tuple[Symbol, str, date], Decision], rows: Sequence[Outcome]) -> None:
        """Rewards what a decision cited, once its reward is known: up when it paid, down when it cost. An abstention
        rewards nobody. Source: InvestorBench A [I4]."""
        for row in rows:
            decision = decisions.get((row.symbol, row.owner, row.decision_session))
            if decision is None or not decision.evidence or decision.abstained:
                continue
            sign = (row.reward > 0) - (row.reward < 0)
            self._memory.reinforce(decision.evidence, sign, self._calendar.number(row.session), _key(decision))

    def plant(self, marker: str, symbols: Sequence[Symbol], owners: Sequence[str], step: float) -> None:
        """Puts memories of the future into it, for the audit: of every kind one that is written after a step and one
        that is written before and becomes available after it, as weighty as can be."""
        for symbol, owner in product(symbols, owners):
            text = f"{marker}: takeover of {symbol} at triple the price"
            base = Item(symbol=symbol, kind="", text=text, owner=owner, importance=100, labels=TYPES)
            kinds = [replace(base, kind=kind) for kind in self._memory.preset.births]
            self._memory.remember(kinds, step + AFTER)
            self._memory.remember((replace(item, seen_until=step + 1) for item in kinds), step - 1)

    def shows(self, marker: str, places: Sequence[MemoryScope]) -> bool:
        """Whether a recall brings up anything with such a word, asked for by that very word."""
        return any(
            marker in memory.text
            for place in places
            for memory in (
                *self.recall(place, dict.fromkeys(TYPES, marker), True),
                *self.recall(place, dict.fromkeys(TYPES, marker), False),
                *(lesson for kind in self._memory.preset.births for lesson in self.lessons(place, kind, marker)),
            )
        )

    def written_with_hindsight(self) -> int:
        """How many memories were written in training by what had seen the moves that followed."""
        return sum(record.hindsight for record in self._memory.records())

    def available(self, memory: Recollection) -> float:
        """The step from which on a memory may be recalled."""
        return self._memory.record(memory.id).available_at

    def _keep(
        self, place: MemoryScope, kind: str, text: str, source: str, rating: float | None, labels: tuple[str, ...]
    ) -> None:
        if text.strip():
            item = Item(
                symbol=place.symbol,
                kind=kind,
                text=text,
                source=source,
                owner=place.owner,
                rating=rating,
                labels=labels,
            )
            self._waiting.append((place, item))

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


def _form(form: str) -> str:
    """The kind under which a filing is remembered; an amendment is one of its form, any other form weighs as an
    8-K."""
    return next((kind for kind in ("10-Q", "10-K") if form.startswith(kind)), "8-K")


def _key(decision: Decision) -> str:
    key = decision.key
    return f"{key.session} {key.symbol} {key.owner} {key.cycle}"
