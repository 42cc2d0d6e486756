"""The place of one record in a recall: its rank and scores by every query, or why it was no candidate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.presets import Relevancy
from memory.record import Layer, Touch


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
class Standing:
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
