"""The place of one record in a recall: its rank and scores by every query, or why it was no candidate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from memory.errors import UnknownRecord
from memory.layer_rank import Hit
from memory.presets import Ranking, Relevancy
from memory.recall import LayeredMemory
from memory.record import DEFAULT_OWNER, MARKET, Layer, MemoryRecord, Touch


class Reason(StrEnum):
    """Reason why a recall brought a record up, or did not."""

    RECALLED = "recalled"
    OUTRANKED = "outranked"
    """Others of its layer scored higher by every query that saw it, as many as are taken."""
    LIKE_ANOTHER = "like another"
    """It says what one that was recalled says."""
    NOT_KNOWN = "not known yet"
    TOO_NEW = "too new"
    """Known already, and later than what was asked for."""
    GONE = "gone"
    """Purged or forgotten by then."""
    OTHER_OWNER = "of another owner"
    OTHER_SYMBOL = "of another symbol"
    OTHER_KIND = "kind not asked for"
    OTHER_TYPES = "types not asked for"
    """Its labels are none of the retrieval types."""
    WEAK = "too weak"
    """Under the lower threshold of the shallowest layer, where a preset passes such records over."""
    NO_QUERY = "no query"
    """A preset that ranks by relevancy alone had nothing to rank by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Rank of a record by one query.

    query: retrieval type of the query.
    rank, of: place by score, from 1, among the records that the query saw.
    relevancy, composite: as of a Hit.
    least: lowest composite of those that the query brought up.
    """

    query: str
    rank: int
    of: int
    relevancy: float
    composite: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Place of a record in a recall; what no ranking was needed for has a reason alone.

    layer: its layer then.
    gone: the change that it is gone by.
    measure: of relevancy.
    k: records that each query takes of that layer.
    recency, importance: on [0, 1]; None where no query saw it.
    like: id of the recalled record that it is like; empty where there is none.
    ranks: by every query that saw it.
    """

    reason: Reason
    layer: Layer | None = None
    gone: Touch | None = None
    measure: Relevancy | None = None
    k: int | None = None
    recency: float | None = None
    importance: float | None = None
    like: str = ""
    ranks: tuple[Rank, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """The arguments of a recall."""

    symbol: str
    queries: Mapping[str, str]
    now: float
    owner: str = DEFAULT_OWNER
    k: int | None = None
    kinds: Collection[str] | None = None
    labelled: bool = False
    known_by: float = math.inf

    def hits(self, memory: LayeredMemory, layer: Layer, **changed: Any) -> Sequence[Hit]:
        """The hits of a layer, with some arguments changed."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return memory.recall(**{**given, **changed})[layer]


def placement_of(memory: LayeredMemory, record_id: str, inquiry: Inquiry) -> Placement:
    """The place of a record in a recall; each query is asked for all records in order."""
    try:
        record, line = memory.record(record_id), memory.lifeline(record_id, inquiry.now)
    except UnknownRecord:
        return Placement(reason=Reason.NOT_KNOWN)
    if not line or max(record.written_step, record.available_at) > inquiry.now:
        return Placement(reason=Reason.NOT_KNOWN)
    layer = line[-1].state.layer
    if layer is None:
        return Placement(reason=Reason.GONE, gone=line[-1])
    texts = {name: text for name, text in inquiry.queries.items() if text.strip()} or {"": ""}
    kinds, asked = inquiry.kinds, set(texts)
    hindrances = {
        Reason.TOO_NEW: record.available_at > inquiry.known_by,
        Reason.OTHER_OWNER: record.owner != inquiry.owner,
        Reason.OTHER_SYMBOL: record.symbol not in (inquiry.symbol, MARKET),
        Reason.OTHER_KIND: kinds is not None and record.kind not in kinds,
        Reason.OTHER_TYPES: inquiry.labelled and bool(record.labels) and not asked & set(record.labels),
        Reason.NO_QUERY: "" in texts and memory.preset.ranking is Ranking.RELEVANCY,
    }
    hindrance = next((reason for reason, holds in hindrances.items() if holds), None)
    return _ranked(memory, record, layer, inquiry, texts) if hindrance is None else Placement(reason=hindrance)


def _ranked(
    memory: LayeredMemory, record: MemoryRecord, layer: Layer, inquiry: Inquiry, texts: Mapping[str, str]
) -> Placement:
    taken, count = memory.taken(layer, inquiry.k), len(memory.records())
    ranks, own, behind = list[Rank](), None, True
    for name, text in texts.items():
        first = inquiry.hits(memory, layer, queries={name: text})
        every = inquiry.hits(memory, layer, queries={name: text}, k=count, alike=True)
        ids = [hit.record.id for hit in every]
        if record.id in ids:
            own, last = every[ids.index(record.id)], first[-1]
            scores = {"relevancy": own.relevancy, "composite": own.composite, "least": last.composite}
            ranks.append(Rank(query=name, rank=own.rank, of=len(every), **scores))
            behind &= len(first) == taken and own.rank > ids.index(last.record.id)
    if own is None:
        return Placement(reason=Reason.WEAK, layer=layer)
    hits = inquiry.hits(memory, layer)
    nearest = max(hits, key=lambda hit: float(hit.record.vector @ record.vector))
    recalled = any(hit.record.id == record.id for hit in hits)
    reason = Reason.RECALLED if recalled else Reason.OUTRANKED if behind else Reason.LIKE_ANOTHER
    return Placement(
        reason=reason,
        layer=layer,
        measure=memory.preset.relevancy,
        k=taken,
        recency=own.recency,
        importance=own.importance,
        like=nearest.record.id if reason is Reason.LIKE_ANOTHER else "",
        ranks=tuple(ranks),
    )
