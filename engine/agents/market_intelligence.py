"""Market intelligence: a judgement of every new item, a summary for trading, and search texts for memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from engine.agents.agent import MARKET_ALONE, Agent
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
"""Judged items that a reader of the intelligence sees, the weightiest first."""


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
        return cls(item.id, "news", item.date, NewsLine.of(item).content)

    @classmethod
    def of_filing(cls, filing: Filing) -> IntelligenceItem:
        """A filing; forms other than 10-Q and 10-K, with their amendments, are reports."""
        form: ItemKind = "report"
        if filing.form.startswith(("10-Q", "10-K")):
            form = "10-Q" if filing.form.startswith("10-Q") else "10-K"
        return cls(filing.id, form, filing.date, filing.summary)

    @classmethod
    def of_macro(cls, release: MacroRelease) -> IntelligenceItem:
        """A macro release. Source: TradingGPT §4.1.1 [G2]."""
        return cls(release.id, "macro", release.date, release.summary)

    @property
    def line(self) -> str:
        """The item on one line, with its id in brackets."""
        return f"[{self.id}] {self.day.isoformat()} {self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntelligenceView(View):
    """Items since the last decision, oldest first, and the moves of the last sessions. What exceeds the length of a
    prompt is left out and counted: the oldest news first, never filings, reports or macro items.
    Source: FinAgent §4.1 [A1]."""

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
        """The view of macro releases, filings and news, each in order of availability."""
        reports = (*map(IntelligenceItem.of_macro, macro), *map(IntelligenceItem.of_filing, filings))
        items = (*reports, *map(IntelligenceItem.of_news, news))
        return cls(symbol=symbol, session=session, owner=owner, items=items, prices=prices)

    def summary(self) -> str:
        """The view in a few words."""
        more = f", {self.left_out} more left out" if self.left_out else ""
        return f"{len(self.items)} items{more}, {len(self.prices)} sessions"


class ItemJudgement(Part):
    """The meaning of one item for the price."""

    id: str = Field(description="The item's id, as given in brackets before it.")
    effect: Literal["positive", "negative", "neutral"] = Field(
        description="The effect of the item on the price: positive, negative or neutral."
    )
    horizon: Literal["short", "medium", "long"] = Field(
        description="The time for which it matters: short for days, medium for weeks up to a quarter, long for more."
    )
    weight: Annotated[int, Field(strict=True, ge=1, le=10)] = Field(
        description="The item's importance for the company: a whole number from 1 (noise) to 10 (changes the value of "
        "the company). It decides for how long the item is remembered."
    )
    concerns_company: bool = Field(
        strict=True, description="True if the item is about the company itself, false if it only names it in passing."
    )
    summary: Sentence = Field(description="The content of the item, in one sentence with its main figure.")


class RetrievalQueries(Part):
    """Search texts, one per retrieval type. Source: FinAgent §4.1 [A1, A2]."""

    short_term: Sentence = Field(description="Search words for what may matter over days.")
    medium_term: Sentence = Field(description="Search words for what may matter over weeks up to a quarter.")
    long_term: Sentence = Field(description="Search words for what may matter for longer.")


class MarketIntelligence(Answer):
    """Judged items, a summary for trading, and search texts for memory. Source: FinAgent §4.1 [A1]."""

    items: Annotated[list[ItemJudgement], Field(max_length=400)] = Field(
        description="A judgement of every item, each once, by its id; empty when there were none."
    )
    summary: Prose = Field(
        description="For the trader: what matters for the price, arguments for a rise and for a fall, and whether the "
        "market was lately bullish or bearish. Repeats count once."
    )
    recent_market: Literal["bullish", "bearish", "mixed"] = Field(
        description="The mood of the market over the last sessions: bullish, bearish or mixed."
    )
    queries: RetrievalQueries = Field(
        description="For memory only: texts that find similar past events. Names, events and topics, no judgement; "
        "newly written, never a part of the summary."
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
    rule="engine.offline.intelligence:judge",
    reads=MARKET_ALONE,
    words_searches=True,
)
