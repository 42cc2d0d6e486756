"""A recalled memory as an agent sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from engine.domain.decision import DESK

LAYERS = ("shallow", "intermediate", "deep", "reflection")
"""Layers under which evidence is cited, from the fastest decay to the agents' own reflections. Source: InvestorBench
A.2 and its test prompt [I1]."""

IMMEDIATE, EXTENDED = "reflection", "extended-reflection"
"""Kinds that tell the daily reflection, which drives the trade, from the review of a period, which is reference only;
both are in one layer. Source: TradingGPT §4.1.2 [G5]."""


PRICE = "price"
"""Kind of the moves of the price."""
INSIGHT = "-insight"
"""Behind the kind of a document: what market intelligence extracted of it. Source: TradingGPT figure 1 [G2]."""
REFLECTIONS = frozenset({IMMEDIATE, EXTENDED, "low-level-reflection", "high-level-reflection", "debate"})
"""Kinds that hold what owners thought. The others tell what came in: where a model worded that, its figures were held
against the day's items before they were remembered."""


DEBATE = "debate"
"""Kind of the comments that an owner received from others. Source: TradingGPT §4.1.3 [G2, G6]."""


FIGURE_DIGITS = 6
"""Decimal places of a memory's figures: more than are ever shown, and what a journal keeps of them."""


class RetrievalType(StrEnum):
    """A view under which past intelligence is asked for, and a label of what memory keeps.
    Source: FinAgent §4.1 [A2]."""

    SHORT_TERM = "short term"
    MEDIUM_TERM = "medium term"
    LONG_TERM = "long term"
    PRICE_UP = "price up"
    PRICE_DOWN = "price down"
    BULLISH_TREND = "bullish trend"
    BEARISH_TREND = "bearish trend"
    NEWS = "news"
    REPORTS = "reports"


HORIZON_TYPES = (RetrievalType.SHORT_TERM, RetrievalType.MEDIUM_TERM, RetrievalType.LONG_TERM)
"""The retrieval types by the time for which something matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """One recalled memory. Agents cite it by its `handle`, decisions and the journal by its `id`. Its figures are
    rounded, so that those of a journal equal those of the same decision made again.

    kind: news, 10-Q, 10-K, macro, or a reflection.
    layer: one of LAYERS.
    session: when it was written.
    recency, relevancy: fractions of 1.
    importance: on the memory's scale (0 to 100).
    score: the composite of the three.
    rank: from 1 within what was recalled.
    types: the retrieval types that matched it.
    owner: whose memory it is; in a debate handles tell the owners' memories apart.
    Source: InvestorBench A.2 [I2]; FinAgent §4.2 [A2, A6]; TradingGPT §4.1.3 [G6].
    """

    id: str
    kind: str
    layer: str
    session: date
    text: str
    recency: float
    relevancy: float
    importance: float
    score: float
    rank: int
    types: tuple[str, ...] = ()
    owner: str = DESK

    def __post_init__(self) -> None:
        """Round the figures."""
        for figure in ("recency", "relevancy", "importance", "score"):
            object.__setattr__(self, figure, round(getattr(self, figure), FIGURE_DIGITS))

    @property
    def handle(self) -> str:
        """Short name within one decision's recollections: its layer's initial and its rank, as S3, with the owner where
        several decide, as S3-averse."""
        own = "" if self.owner in ("", DESK) else f"-{self.owner}"
        return f"{self.layer[:1].upper()}{self.rank}{own}"
