"""The arms of a study of memory: what an agent is given of its memory, changed in one way, and what it makes of it.

`recall` is the memory as it is, `without memory` none at all, `oracle` what later proves pivotal (is paid for) in the
run with recall, `without LAYER` all layers but one, `poisoned` the memory with false items beside a share of the news.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from engine.agents.agent import by_layer
from engine.cycle.recall import ASKED, KNOWN, Inquiry, MemoryScope, TradingMemory
from engine.domain.decision import DIRECTIONS, Action, DecisionKey, Opinion, Recollection, RetrievalType
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord
from engine.domain.run import RunPart
from engine.ports import Calendar
from memory.recall import LayeredMemory
from memory.record import Cause, Item, id_of

FALSE = (
    "Negative: fraud probe at {symbol}, its auditor resigned, guidance was cut, losses widened. Reported after: {news}"
)
"""The text of a false memory, which speaks for a sale; the words of the news tell it from other false ones, since of
equal texts one is recalled."""
QUOTED = 12
"""Number of words of the news that it quotes."""

WITHOUT = "without memory"
"""The arm that the worth of recall is measured against."""

Place = tuple[date, Symbol, str]
"""Session, symbol and owner of an analysis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of changing a memory.

    name: of the arm.
    against: the arm that it is compared with; empty for the first.
    layer: the layer that is switched off.
    pivotal: the last step at which each memory is paid for, by id: only those that are still to be are recalled.
    share: of the news, beside which a false item is remembered.
    poisoned: the first and last step of that.
    """

    name: str
    against: str = ""
    layer: str = ""
    pivotal: Mapping[str, float] | None = None
    share: float = 0.0
    poisoned: tuple[float, float] = (0.0, 0.0)


class StudiedMemory(TradingMemory):
    """The memory of an arm, which notes what it gave and what it was made to hold."""

    def __init__(self, memory: LayeredMemory, calendar: Calendar, arm: Arm) -> None:
        super().__init__(memory, calendar)
        self.arm = arm
        self.given: dict[Place, tuple[Recollection, ...]] = {}
        self.false: set[str] = set()
        self.recalled = 0
        self.later = 0

    def recall(self, scope: MemoryScope, inquiry: Inquiry, k: int | None = None) -> tuple[Recollection, ...]:
        """Recall as the arm has it."""
        pivotal = self.arm.pivotal
        if pivotal is None:
            found = self._kept(super().recall(scope, inquiry, k), scope)
        else:
            undivided = replace(inquiry, diversified=False)
            every = super().recall(scope, undivided, max(1, len(self._memory.records())))
            found = self._first(one for one in every if pivotal.get(one.id, -1.0) > scope.step)
        self.given[scope.session, scope.symbol, scope.owner] = found
        return found

    def lessons(self, scope: MemoryScope, kind: str, query: str) -> tuple[Recollection, ...]:
        """Recall lessons, of the layers that the arm has."""
        return self._kept(super().lessons(scope, kind, query), scope)

    def earlier(self, scope: MemoryScope, kinds: Sequence[str], sessions: int) -> tuple[Recollection, ...]:
        """Recall the last sessions' reflections and debates, of the layers that the arm has."""
        return self._kept(super().earlier(scope, kinds, sessions), scope)

    def store(self, documents: Iterable[Item], step: float) -> None:
        """Store what became known, false memories beside the arm's share of the news."""
        given = list(documents)
        false = [_false(item) for item in given if self._poisons(item, step)]
        self.false.update(id_of(item, item.born(step + KNOWN)) for item in false)
        super().store((*given, *false), step)

    def paid(self) -> dict[str, float]:
        """The last step at which each memory was paid for."""
        touches = {record.id: self._memory.rewards(record.id) for record in self._memory.records()}
        steps = {name: [one.state.step for one in rows if one.cause is Cause.PAID] for name, rows in touches.items()}
        return {name: max(found) for name, found in steps.items() if found}

    def alive_false(self) -> int:
        """The number of false memories that are alive at the end."""
        return sum(one.record.id in self.false for one in self._memory.scored_records(self._memory.latest))

    def _kept(self, found: Sequence[Recollection], scope: MemoryScope) -> tuple[Recollection, ...]:
        """The recollections without those of the layer that is switched off; all are looked at for the future."""
        self.recalled += len(found)
        self.later += sum(self.available(one) > scope.step + ASKED or one.session > scope.session for one in found)
        return tuple(one for one in found if one.layer != self.arm.layer)

    def _first(self, found: Iterable[Recollection]) -> tuple[Recollection, ...]:
        """As many of each layer as the preset recalls of it for one query, whatever their place among the others."""
        constants, rows = self._memory.preset, by_layer(found)
        return tuple(
            one
            for layer, rule in constants.layers.items()
            for one in rows.get(layer.value, ())[: rule.k or constants.k]
        )

    def _poisons(self, item: Item, step: float) -> bool:
        first, last = self.arm.poisoned
        chance = int(id_of(item, step)[:13], 16) / 16**13
        return item.kind == "news" and first <= step <= last and chance < self.arm.share


def _false(item: Item) -> Item:
    text = FALSE.format(symbol=item.symbol, news=" ".join(item.text.split()[:QUOTED]))
    labels = tuple(RetrievalType.PRICE_DOWN if label == RetrievalType.PRICE_UP else label for label in item.labels)
    return replace(item, text=text, query_text="", source=f"false, beside {item.source}", labels=labels)


def arms(layers: Iterable[str], share: float, poisoned: tuple[float, float]) -> Iterator[Arm]:
    """The arms that need nothing of another run, the one without memory first."""
    yield Arm(name=WITHOUT)
    yield Arm(name="recall", against=WITHOUT)
    yield from (Arm(name=f"without {layer}", against="recall", layer=layer) for layer in layers)
    yield Arm(name="poisoned", against="recall", share=share, poisoned=poisoned)


@dataclass(slots=True)
class Citations:
    """The memories that answers cite: all of them, and those that the agent was not given."""

    decider: str
    cited: int = 0
    not_held: int = 0
    _open: list[tuple[DecisionKey, list[str]]] = field(default_factory=list)

    def note(self, record: AnswerRecord) -> None:
        """Note an answer of the agent that decides, one that was sent back as well."""
        if record.agent == self.decider and record.result.answer is not None:
            self._open.append((record.key, list(_handles(record.result.answer.get("evidence")))))

    def settle(self, memory: StudiedMemory | None) -> None:
        """Look all citations up in what the memory gave."""
        for key, handles in self._open:
            given = () if memory is None else memory.given.get((key.session, key.symbol, key.owner), ())
            known = {one.handle.upper() for one in given}
            self.cited += len(handles)
            self.not_held += sum(handle.strip("[] ").upper() not in known for handle in handles)
        self._open.clear()


def _handles(evidence: object) -> Iterator[str]:
    """All handles of an answer, whether they come as a list or by layer."""
    if isinstance(evidence, Mapping):
        evidence = [handle for part in evidence.values() if isinstance(part, list) for handle in part]
    if isinstance(evidence, list):
        yield from (handle for handle in evidence if isinstance(handle, str))


def actions(run_part: RunPart) -> dict[Place, Action]:
    """The advice of every owner, before limits."""
    return {(one.key.session, one.key.symbol, one.key.owner): one.action for one in run_part.opinions}


def changed(ours: RunPart, theirs: RunPart) -> tuple[int, int, int]:
    """The opinions that differ between two runs; of them those nearer to a sale and those nearer to a purchase."""
    one, other = actions(ours), actions(theirs)
    moves = [DIRECTIONS.get(one[key], 0) - DIRECTIONS.get(other[key], 0) for key in one.keys() & other.keys()]
    differ = sum(one[key] is not other[key] for key in one.keys() & other.keys())
    return differ, sum(move < 0 for move in moves), sum(move > 0 for move in moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """The course of false memories.

    share: of the news, beside which a false item was written.
    written, recalled, cited: the false memories; their places among all that was recalled; citations of them.
    recalled_share: of all recollections until the writing ended.
    followed: opinions that moved the way the false ones speak, less those that moved the other way, as a share of all.
    last_session: the last session written in.
    sessions_recalled_after: sessions until the last one in which one was still recalled.
    alive: false memories at the end.
    """

    share: float
    written: int
    recalled: int
    recalled_share: float
    cited: int
    followed: float
    last_session: date
    sessions_recalled_after: int
    alive: int


def poison_of(memory: StudiedMemory, ours: RunPart, theirs: RunPart, calendar: Calendar) -> Poison:
    """Find out what came of the false memories of an arm, beside the run with recall."""
    end = int(memory.arm.poisoned[1])
    last = calendar.session_at(end)
    seen = {place: [one for one in rows if one.id in memory.false] for place, rows in memory.given.items()}
    begun = calendar.session_at(int(memory.arm.poisoned[0]))
    during = [place for place in seen if begun < place[0] <= last]
    places = sum(len(memory.given[place]) for place in during)
    _, towards, away = changed(ours, theirs)
    return Poison(
        share=memory.arm.share,
        written=len(memory.false),
        recalled=sum(map(len, seen.values())),
        recalled_share=sum(len(seen[place]) for place in during) / places if places else 0.0,
        cited=sum(name in memory.false for one in ours.opinions for name in one.evidence),
        followed=(towards - away) / max(1, len(ours.opinions)),
        last_session=last,
        sessions_recalled_after=max([0, *(calendar.number(place[0]) - end for place in seen if seen[place])]),
        alive=memory.alive_false(),
    )


def unresolved(opinions: Iterable[Opinion]) -> tuple[int, int]:
    """The opinions that quote a figure which their inputs do not hold, and all that took a side or held."""
    voiced = [one for one in opinions if not one.abstained]
    return sum(bool(one.unresolved_figures) for one in voiced), len(voiced)
