"""Market intelligence: every new item judged for its effect, a summary to trade on, query texts to remember by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from engine.agents.agent import MARKET_ALONE, PROMPTS, Agent
from engine.agents.citing import check_cited
from engine.agents.news_digest import TOTAL_LIMIT, NewsLine
from engine.agents.text import Prose, Sentence, plain
from engine.agents.view import Answer, Part, View
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, Symbol
from engine.market.moves import SessionMove

ItemKind = Literal["news", "10-Q", "10-K", "report", "macro"]
REPORT_LIMIT = 8_000
"""Characters of a filing, a report or a macro item: its summary is of 1,000 words. Source: InvestorBench [I5]."""
NEWS_LIMIT = 2_400
READERS_ITEMS = 12
"""Judged items that a reader of the intelligence is told, the weightiest first."""


@dataclass(frozen=True, slots=True)
class IntelligenceItem:
    """One item as plain text, cleaned and cut to length when it is made. `day` is the item's own date."""

    id: str
    kind: ItemKind
    day: date
    text: str

    def __post_init__(self) -> None:
        limit = NEWS_LIMIT if self.kind == "news" else REPORT_LIMIT
        object.__setattr__(self, "id", plain(self.id, 80))
        object.__setattr__(self, "text", plain(self.text, limit))

    @classmethod
    def of_news(cls, item: NewsItem) -> IntelligenceItem:
        """An item of news: headline, then summary."""
        line = NewsLine(item.date, item.headline or "", item.summary, item.source or "")
        return cls(item.id, "news", item.date, line.content)

    @classmethod
    def of_filing(cls, filing: Filing) -> IntelligenceItem:
        """A filing; forms other than 10-Q and 10-K, with their amendments, are reports."""
        form: ItemKind = "report"
        if filing.form.startswith(("10-Q", "10-K")):
            form = "10-Q" if filing.form.startswith("10-Q") else "10-K"
        return cls(filing.id, form, filing.date, filing.summary)

    @classmethod
    def of_macro(cls, release: MacroRelease) -> IntelligenceItem:
        """A figure of the economy. Source: TradingGPT §4.1.1 [G2]."""
        return cls(release.id, "macro", release.date, release.summary)

    @property
    def line(self) -> str:
        """The item on one line, with its id in brackets."""
        return f"[{self.id}] {self.day.isoformat()} {self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntelligenceView(View):
    """What came in since the last decision, oldest first, and how the price moved in the last sessions. It is never
    more than a prompt may carry: filings, reports and macro items stay, the newest news are kept, and what had to be
    left out is counted. Source: FinAgent §4.1 [A1]."""

    items: tuple[IntelligenceItem, ...]
    left_out: int = 0
    prices: tuple[SessionMove, ...] = ()

    def __post_init__(self) -> None:
        room = TOTAL_LIMIT - sum(len(item.line) for item in self.items if item.kind != "news")
        kept: list[IntelligenceItem] = []
        for item in reversed(self.items):
            if item.kind == "news":
                room -= len(item.line)
                if room < 0:
                    continue
            kept.append(item)
        if len(kept) < len(self.items):
            object.__setattr__(self, "left_out", self.left_out + len(self.items) - len(kept))
            object.__setattr__(self, "items", tuple(reversed(kept)))

    @classmethod
    def of(
        cls,
        symbol: Symbol,
        session: date,
        owner: str,
        news: Iterable[NewsItem],
        *,
        filings: Iterable[Filing] = (),
        prices: tuple[SessionMove, ...] = (),
        macro: Iterable[MacroRelease] = (),
    ) -> IntelligenceView:
        """The view of figures of the economy, filings and news, each in order of availability."""
        reports = (*map(IntelligenceItem.of_macro, macro), *map(IntelligenceItem.of_filing, filings))
        items = (*reports, *map(IntelligenceItem.of_news, news))
        return cls(symbol=symbol, session=session, owner=owner, items=items, prices=prices)

    def summary(self) -> str:
        """The view in a few words."""
        more = f", {self.left_out} more left out" if self.left_out else ""
        return f"{len(self.items)} items{more}, {len(self.prices)} sessions"


class ItemJudgement(Part):
    """What one item means for the price."""

    id: str = Field(description="The item's id, as it stands in the brackets before it.")
    effect: Literal["positive", "negative", "neutral"] = Field(
        description="What the item does to the price, if anything: positive, negative or neutral."
    )
    horizon: Literal["short", "medium", "long"] = Field(
        description="For how long it matters: short for days, medium for weeks up to a quarter, long beyond that."
    )
    weight: Annotated[int, Field(strict=True, ge=1, le=10)] = Field(
        description="How weighty the item is for the company: a whole number from 1 (noise) to 10 (changes what the "
        "company is worth). It decides how long the item is remembered."
    )
    concerns_company: bool = Field(
        strict=True, description="Whether the item is about the company itself, and does not only name it in passing."
    )
    summary: Sentence = Field(description="What the item says, in one sentence with its main figure.")


class RetrievalQueries(Part):
    """Search texts, one per retrieval type. Source: FinAgent §4.1 [A1, A2]."""

    short_term: Sentence = Field(description="Search words for what may matter over days.")
    medium_term: Sentence = Field(description="Search words for what may matter over weeks up to a quarter.")
    long_term: Sentence = Field(description="Search words for what may matter for longer.")


class MarketIntelligence(Answer):
    """The items judged, what follows for trading, and what to look for in memory. Source: FinAgent §4.1 [A1]."""

    items: Annotated[list[ItemJudgement], Field(max_length=400)] = Field(
        description="Every item judged, each once, by its id; empty when there were none."
    )
    summary: Prose = Field(
        description="For the trader: what of all this bears on the price, what speaks for it and against it, and "
        "whether the market was lately bullish or bearish. Repeats count once."
    )
    recent_market: Literal["bullish", "bearish", "mixed"] = Field(
        description="How the market took the last sessions: bullish, bearish or mixed."
    )
    queries: RetrievalQueries = Field(
        description="For the memory alone: texts to find similar past events with. Names, events and topics, no "
        "judgement; written afresh, never a part of the summary."
    )

    def check(self, view: IntelligenceView) -> None:
        """Raise ValueError for items that were not given, and for queries that repeat the summary."""
        check_cited((item.id for item in self.items), (item.id for item in view.items), "items")
        asked = (self.queries.short_term, self.queries.medium_term, self.queries.long_term)
        if self.summary in asked:
            raise ValueError("queries repeat the summary; write search texts of their own")

    def lines(self) -> tuple[str, ...]:
        """The intelligence for a reader: the summary, then the weightiest items about the company."""
        concerning = sorted((item for item in self.items if item.concerns_company), key=lambda item: -item.weight)
        return (
            *self.summary.splitlines(),
            f"The market was lately {self.recent_market}.",
            *(
                f"{item.effect}, {item.horizon} term, weight {item.weight}: {item.summary}"
                for item in concerning[:READERS_ITEMS]
            ),
        )


INTELLIGENCE = Agent(
    name="market-intelligence",
    step="intelligence",
    view=IntelligenceView,
    answer=MarketIntelligence,
    prompt=PROMPTS / "market-intelligence.md",
    rule="engine.offline.intelligence:judge",
    reads=MARKET_ALONE,
    words_searches=True,
)
