"""Trading memory: trading values on one side, the layered memory library on the other.

Steps of memory are sessions counted on the desk's calendar, so a daily run and a backtest keep the same time; a cycle
within a session is at a fraction. In a session what became known is stored, then memory is asked, then reflections are
written, each a moment after the other: a run that was killed and goes on recalls what it recalled before, and writes
what it wrote.

The rule of a memory's constants by which an opinion pays or charges what it cited, once enough sessions have passed.

- `direction`: a purchase is right when the price rose, a sale when it fell, whatever the position earned: direction
  times the move of the close over the horizon, net of the cost of a trade. A move within the noise says nothing.
- `large`: the same, for moves beyond two daily deviations alone.
- `profit`: the profit of the symbol in the sessions of the horizon, whatever the opinion was.

HOLD takes no direction, and an abstention is no opinion. The move goes from the last close that the decision read to
the one that many sessions of its symbol later, splits in between undone. It rests on closes and on what was decided
alone: it is the same for owners who were overruled, in a backtest and a daily run, and after a run that was cut short.
Source: InvestorBench A [I4]; TradingGPT §4.1.1 [G1]; `profit` is that of FinMem's program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise, product
from math import inf, sqrt
from statistics import stdev
from typing import Any

from engine.cycle.turn import TradingHistory
from engine.domain.decision import DIRECTIONS, Opinion, Recollection, RetrievalType
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import ZERO
from engine.market.as_of import MarketAsOf
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from memory import placement
from memory.in_memory_store import InMemoryStore
from memory.layer_rank import Hit
from memory.ports import Embedder, Store
from memory.presets import FeedbackRule, MemoryPreset
from memory.recall import LayeredMemory
from memory.record import Item, Layer, MemoryRecord


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
    one; without `reflections` only intelligence is recalled, without `today` only what was stored before the session.
    Source: FinAgent §4.2 [A2, A3]."""

    queries: Mapping[str, str]
    diversified: bool
    reflections: bool = True
    today: bool = True


LESSONS = "lessons"
"""The type of the query for a reflection's own lessons."""
YEAR = timedelta(days=365)
"""The lookback for filings of a memory that knows nothing of a symbol yet."""

KNOWN, ASKED, AFTER = 2**-12, 2**-11, 2**-10
"""The parts of a session after its close at which what became known is stored, memory is asked and its answers cited,
and reflections are written."""


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

    def watched(self, record_id: str, noted: list[WatchedRecall]) -> TradingMemory:
        """The memory itself, which notes the place of a record in everything that is asked of it."""
        return WatchedMemory(self._memory, self._calendar, record_id, noted)

    def write_to(self, store: Store) -> None:
        """Write all records into an empty store."""
        self._memory.write_to(store)

    def begin(self, step: float) -> None:
        """Begin a session's cycle: records that are due move between layers or fade."""
        self._memory.sweep(step)

    def keeps(self, kind: str) -> bool:
        """Check whether a kind of source has a place in it: a paper's memory keeps what the paper names."""
        return kind in self._memory.preset.births

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
        known_by = inf if inquiry.today else scope.step
        return self._recalled(scope, asked, k=k, kinds=kinds, labelled=labelled, known_by=known_by)

    def lessons(self, scope: MemoryScope, kind: str, query: str) -> tuple[Recollection, ...]:
        """Recall a reflection's own past lessons, best first. Source: FinAgent §4.3 [A4, A5]."""
        return self._recalled(scope, {LESSONS: query}, kinds=(kind,))

    def earlier(self, scope: MemoryScope, kinds: Sequence[str], sessions: int) -> tuple[Recollection, ...]:
        """Recall what was written, or said again, under some kinds in the last sessions, oldest first and with the
        session of that, without a query: relevancy and score are zero, and the rank is the place.
        Source: TradingGPT §4.2.2 [G8]."""
        found = self._memory.recent(scope.symbol, kinds, scope.step - sessions, scope.step + ASKED, owner=scope.owner)
        return tuple(
            Recollection(
                id=record.id,
                kind=record.kind,
                layer=layer.value,
                session=self._calendar.session_at(int(step)),
                text=record.text,
                recency=0.0,
                relevancy=0.0,
                importance=record.importance,
                score=0.0,
                rank=rank,
            )
            for rank, (step, layer, record) in enumerate(found, 1)
        )

    def known_step(self, time: datetime, step: float) -> float:
        """The step of the session at whose close something that became known at a time was first known, at most
        `step`."""
        closed = self._calendar.last_closed(time)
        number = self._calendar.number(closed)
        return min(number if time <= decision_time(self._calendar, closed) else number + 1, step) + KNOWN

    def store(self, documents: Iterable[Item], step: float) -> None:
        """Store what became known before a session is decided."""
        self._memory.remember(documents, step + KNOWN)

    def write(self, items: Iterable[Item], opinions: Sequence[Opinion], step: float) -> None:
        """Write the reflections of a session, once it is decided, and note what the opinions rest on."""
        for opinion in opinions:
            if opinion.evidence:
                self._memory.cite(opinion.evidence, step + ASKED, _key(opinion))
        self._memory.remember(items, step + AFTER)

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

    def written_at(self, step: float) -> Mapping[tuple[str, ...], MemoryRecord]:
        """The memories that were written when the session of a step was decided, by kind, symbol, owner and source."""
        moments = (step + KNOWN, step + AFTER)
        written = (record for record in self._memory.records() if record.written_step in moments)
        return {(record.kind, record.symbol, record.owner, record.source): record for record in written}

    def available(self, memory: Recollection) -> float:
        """The step from which on a memory may be recalled."""
        return self._memory.record(memory.id).available_at

    def _recalled(self, scope: MemoryScope, queries: Mapping[str, str], **how: Any) -> tuple[Recollection, ...]:
        """Recollections that the queries bring up, restricted as LayeredMemory.recall is."""
        found = self._memory.recall(scope.symbol, queries, scope.step + ASKED, owner=scope.owner, **how)
        return tuple(self._recollection(hit) for hits in found.values() for hit in hits)

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
            owner=record.owner,
        )


@dataclass(frozen=True, slots=True)
class WatchedRecall:
    """The place of one record in what an owner asked of memory by queries of some types."""

    owner: str
    types: tuple[str, ...]
    placement: placement.Placement


class WatchedMemory(TradingMemory):
    """Memory that notes the place of one record in everything that is asked of it."""

    def __init__(self, memory: LayeredMemory, calendar: Calendar, record_id: str, noted: list[WatchedRecall]) -> None:
        super().__init__(memory, calendar)
        self._record_id, self._noted = record_id, noted

    def _recalled(self, scope: MemoryScope, queries: Mapping[str, str], **how: Any) -> tuple[Recollection, ...]:
        inquiry = placement.Inquiry(
            symbol=scope.symbol, queries=queries, now=scope.step + ASKED, owner=scope.owner, **how
        )
        found = placement.placement_of(self._memory, self._record_id, inquiry)
        self._noted.append(WatchedRecall(scope.owner, tuple(queries), found))
        return super()._recalled(scope, queries, **how)


def _key(opinion: Opinion) -> str:
    key = opinion.key
    return f"{key.session} {key.symbol} {key.owner} {key.cycle}"


def _session_of(key: str) -> date:
    return date.fromisoformat(key.partition(" ")[0])


LOOKBACK = 60
"""Sessions in which opinions are looked for: a desk that rested longer than that learns nothing of those before."""

DEVIATION_SESSIONS = 20
"""Returns up to the decision that its daily deviation is taken of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Judgement of the opinions of a trading history, as far as a market knows what followed.

    constants: name the rule, the horizon in sessions, and what is noise or large.
    calendar: the sessions that were decided on.
    calendars: trading calendar by symbol.
    costs: of a trade, as a fraction of its amount.
    """

    constants: MemoryPreset
    calendar: Calendar
    calendars: Mapping[Symbol, Calendar]
    history: TradingHistory
    market: MarketAsOf
    costs: Decimal
    _bars: dict[Symbol, PriceHistory] = field(default_factory=dict, init=False)

    def signs(self) -> Iterator[tuple[Opinion, int]]:
        """The opinions that paid (1) or cost (-1), oldest first."""
        now = self.calendar.number(self.calendar.last_closed(self.market.now))
        citing = [
            one
            for one in self.history.opinions.values()
            if one.evidence and one.key.symbol in self.market.symbols and self._age(one, now) <= LOOKBACK
        ]
        for opinion in sorted(citing, key=lambda one: (one.key.session, one.key.symbol, one.key.owner)):
            value = self._profit(opinion, now) if self._by_profit else self._net_move(opinion)
            if value:
                yield opinion, 1 if value > 0 else -1

    def counts(self, opinion: Opinion, rewarded: Iterable[date]) -> bool:
        """True where an opinion may reward a memory that opinions of these sessions have rewarded: one per horizon, the
        first; under `profit` each session's own."""
        if self._by_profit:
            return opinion.key.session not in rewarded
        symbol = opinion.key.symbol
        seen = self._seen(symbol, opinion.key.session)
        return all(seen - self._seen(symbol, day) >= self.constants.feedback_horizon for day in rewarded)

    @property
    def _by_profit(self) -> bool:
        return self.constants.feedback is FeedbackRule.PROFIT

    def _age(self, opinion: Opinion, now: int) -> int:
        return now - self.calendar.number(opinion.key.session)

    def _profit(self, opinion: Opinion, now: int) -> Decimal:
        """The profit of an owner's symbol from an opinion on, in the sessions of the horizon; zero until they are
        over."""
        key, horizon = opinion.key, self.constants.feedback_horizon
        if self._age(opinion, now) < horizon:
            return ZERO
        # The profit of crypto is known once its own day is over, after the exchange has closed.
        last, ends = (self.calendar.session_at(self.calendar.number(key.session) + horizon - n) for n in (1, 0))
        if self.calendars[key.symbol].last_closed(self.market.now) < ends:
            return ZERO
        rows = self.history.outcomes.get((key.symbol, key.owner), ())
        return sum((row.reward for row in rows if key.session <= row.decision_session <= last), ZERO)

    def _net_move(self, opinion: Opinion) -> float:
        """Direction times move, net of costs; zero for a move that is not known yet or says nothing."""
        key, direction = opinion.key, DIRECTIONS.get(opinion.action, 0)
        closes, row = self._window(key.symbol).close, self._seen(key.symbol, key.session) - 1
        after = row + self.constants.feedback_horizon
        if not direction or row < 0 or after >= len(closes):
            return 0.0
        before = closes[max(0, row - DEVIATION_SESSIONS) : row + 1]
        move = closes[after] / closes[row] - 1
        if abs(move) <= self._least_move([later / close - 1 for close, later in pairwise(before)]):
            return 0.0
        return direction * move - float(self.costs)

    def _least_move(self, returns: list[float]) -> float:
        """The move that is still noise, or not yet large, after these daily returns."""
        deviation = stdev(returns) if len(returns) > 1 else 0.0
        if self.constants.feedback is FeedbackRule.LARGE:
            return self.constants.feedback_large * deviation
        return self.constants.feedback_noise * deviation * sqrt(self.constants.feedback_horizon)

    def _window(self, symbol: Symbol) -> PriceHistory:
        if symbol not in self._bars:
            # A coin has sessions on weekends too: two of its own for each of the desk's are enough.
            wanted = 2 * LOOKBACK + DEVIATION_SESSIONS
            seen = self.market.count(symbol) > 0
            self._bars[symbol] = self.market.bars(symbol, wanted) if seen else PriceHistory.of(symbol, ())
        return self._bars[symbol]

    def _seen(self, symbol: Symbol, session: date) -> int:
        """The number of the window's bars that a session's decision could see."""
        closed = self.calendars[symbol].last_closed(decision_time(self.calendar, session))
        return self._window(symbol).rows_through(closed)
