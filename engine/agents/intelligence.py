"""The agents that read: a digest of the news, intelligence on every new item, a summary of memories, the chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from engine.agents.agent import MARKET_ALONE, Agent, Answer, ChartedView, Part, Reads, View
from engine.agents.evidence import check_cited
from engine.agents.text import Prose, Sentence, count_words, plain, shortened
from engine.domain.chart import IndicatorTable
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, Symbol
from engine.domain.recollection import HORIZON_TYPES, Recollection, RetrievalType
from engine.market.moves import SessionMove

HEADLINE_LIMIT = 300
SUMMARY_LIMIT = 2_000
TOTAL_LIMIT = 60_000
"""Characters of all items together: about 15,000 tokens, some 70 items of a real feed."""


@dataclass(frozen=True, slots=True)
class NewsLine:
    """One item of news as plain text, cleaned and cut to length when it is made. `day` is the item's own date."""

    day: date
    headline: str
    summary: str
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", plain(self.headline, HEADLINE_LIMIT))
        object.__setattr__(self, "summary", plain(self.summary, SUMMARY_LIMIT))
        object.__setattr__(self, "source", plain(self.source, 80))

    @classmethod
    def of(cls, item: NewsItem) -> NewsLine:
        """The line of an item."""
        return cls(item.date, item.headline or "", item.summary, item.source or "")

    @property
    def text(self) -> str:
        """The item on one line, with its date and source."""
        origin = f" ({self.source})" if self.source else ""
        return f"{self.day.isoformat()}{origin}: {self.content}"

    @property
    def content(self) -> str:
        """Headline and summary as sentences."""
        return ". ".join(part for part in (self.headline.rstrip("."), self.summary) if part)


@dataclass(frozen=True, slots=True)
class NewsView(View):
    """News since the last decision, oldest first. What exceeds the length of a prompt is left out and counted, the
    oldest first. Source: FinVision §3.1 [V1]."""

    items: tuple[NewsLine, ...]
    left_out: int = 0

    def __post_init__(self) -> None:
        room, first = TOTAL_LIMIT, len(self.items)
        while first and (room := room - len(self.items[first - 1].text)) >= 0:
            first -= 1
        if first:
            object.__setattr__(self, "items", self.items[first:])
            object.__setattr__(self, "left_out", self.left_out + first)

    @classmethod
    def of(cls, symbol: Symbol, session: date, owner: str, items: Iterable[NewsItem]) -> NewsView:
        """The view of news items in order of availability."""
        return cls(symbol, session, owner, tuple(map(NewsLine.of, items)))

    def summary(self) -> str:
        """The view in a few words."""
        more = f", {self.left_out} more left out" if self.left_out else ""
        noun = "item" if len(self.items) == 1 else "items"
        return f"{len(self.items)} news {noun}{more}"


class NewsDigest(Answer):
    """A digest of the news of the day. Source: FinVision table 4 [V1]."""

    summary: Annotated[list[Sentence], Field(min_length=1, max_length=6)]
    """The main points that may move the price soon, one sentence each: five or six, fewer if there is little news. Say
    here as well if items do not concern the company."""
    positive: Annotated[list[Sentence], Field(max_length=10)]
    """Arguments for a rise of the price, one short phrase each; empty when there are none."""
    negative: Annotated[list[Sentence], Field(max_length=10)]
    """Arguments for a fall of the price, one short phrase each; empty when there are none."""
    unrelated: Annotated[int, Field(strict=True, ge=0)]
    """The number of items that name the company only in passing or concern another one; they do not count for the
    sentiment."""
    reason: Sentence
    """The reason for the sentiment, in one sentence."""
    sentiment: Literal["bullish", "bearish", "neutral"]
    """The balance of all of it: bullish, bearish or neutral."""


NEWS = Agent(
    name="news",
    view=NewsView,
    answer=NewsDigest,
    rule="engine.offline.intelligence:digest",
    reads=MARKET_ALONE,
    words_searches=True,
)


ItemKind = Literal["news", "10-Q", "10-K", "report", "macro", "commentary"]
REPORT_LIMIT = 8_000
"""Characters of a filing, a report or a macro item: about 1,000 words."""
SUMMARY_WORDS = 1_000
"""Words of a filing's summary, a wish; a filing of no more is read as it is. Source: InvestorBench A.1 [I5]."""
NEWS_LIMIT = 2_400
READERS_ITEMS = 12
"""Judged items that a reader of the intelligence sees, the weightiest first."""


def shown_id(source: str) -> str:
    """The id of an item as agents see it."""
    return plain(source, 80)


@dataclass(frozen=True, slots=True)
class IntelligenceItem:
    """One item as plain text, cleaned and cut to length when it is made. `day` is the item's own date."""

    id: str
    kind: ItemKind
    day: date
    text: str

    def __post_init__(self) -> None:
        limit = NEWS_LIMIT if self.kind == "news" else REPORT_LIMIT
        object.__setattr__(self, "id", shown_id(self.id))
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

    @classmethod
    def of_commentary(cls, text: NewsItem) -> IntelligenceItem:
        """A text of a fund. Source: TradingGPT §4.1.1 [G2]."""
        return cls(text.id, "commentary", text.date, f"{text.summary} (fund {text.symbol})")

    @property
    def line(self) -> str:
        """The item on one line, with its id in brackets."""
        return f"[{self.id}] {self.day.isoformat()} {self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class FilingView(View):
    """A filing as plain text, its end cut off beyond the length of a prompt. Nothing in it changes from one session or
    owner to another, so that a filing is asked about once. Source: InvestorBench A.1 [I5]."""

    form: str
    day: date
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", plain(self.form, 40))
        object.__setattr__(self, "text", plain(self.text, TOTAL_LIMIT))

    @classmethod
    def of(cls, symbol: Symbol, session: date, owner: str, filing: Filing) -> FilingView:
        """The view of a filing."""
        return cls(symbol, session, owner, filing.form, filing.date, filing.summary)

    @property
    def is_long(self) -> bool:
        """True for a filing that is worth a summary."""
        return count_words(self.text) > SUMMARY_WORDS

    def summary(self) -> str:
        """The view in a few words."""
        return f"{self.form} of {self.day}, {count_words(self.text):,} words"


class FilingSummary(Answer):
    """A filing in 1,000 words. Source: InvestorBench A.1 [I5]."""

    summary: Prose
    """The filing's contents that matter to an investor, in prose of at most 1,000 words: results and their causes,
    segments, margins, cash and debt, outlook, risks that are new. Every figure as the filing gives it, with its unit
    and period."""

    def lines(self) -> tuple[str, ...]:
        """The summary for a reader."""
        return tuple(self.summary.splitlines())

    def quoted(self) -> tuple[str, ...]:
        """The summary as the text of an item."""
        return (plain(self.summary, REPORT_LIMIT),)


FILING_SUMMARY = Agent(
    name="filing-summary",
    view=FilingView,
    answer=FilingSummary,
    rule="engine.offline.intelligence:summarize_filing",
    reads=MARKET_ALONE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntelligenceView(View):
    """Items since the last decision, oldest first, and the moves of the last sessions. What exceeds the length of a
    prompt is left out and counted: the oldest news first, never filings, reports or macro items. `summaries` are the
    texts of those filings that were too long, `types` the retrieval types that a query is wanted for.
    Source: FinAgent §4.1 [A1, A2]."""

    items: tuple[IntelligenceItem, ...]
    left_out: int = 0
    prices: tuple[SessionMove, ...] = ()
    summaries: tuple[FilingSummary, ...] = ()
    types: tuple[RetrievalType, ...] = HORIZON_TYPES

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
        summaries: tuple[FilingSummary, ...] = (),
        prices: tuple[SessionMove, ...] = (),
        macro: Iterable[MacroRelease] = (),
        commentary: Iterable[NewsItem] = (),
        types: tuple[RetrievalType, ...] = HORIZON_TYPES,
    ) -> IntelligenceView:
        """The view of macro releases, filings, commentary and news, each in order of availability."""
        reports = (*map(IntelligenceItem.of_macro, macro), *map(IntelligenceItem.of_filing, filings))
        items = (*reports, *map(IntelligenceItem.of_commentary, commentary), *map(IntelligenceItem.of_news, news))
        return cls(
            symbol=symbol,
            session=session,
            owner=owner,
            items=items,
            prices=prices,
            summaries=summaries,
            types=types,
        )

    def summary(self) -> str:
        """The view in a few words."""
        more = f", {self.left_out} more left out" if self.left_out else ""
        more += f", {len(self.summaries)} of them summarized" if self.summaries else ""
        return f"{len(self.items)} items{more}, {len(self.prices)} sessions"


class ItemJudgement(Part):
    """The meaning of one item for the price."""

    id: str
    """The item's id, as given in brackets before it."""
    summary: Sentence
    """The content of the item, in one sentence with its main figure."""
    concerns_company: bool = Field(strict=True)
    """True if the item is about the company itself, false if it only names it in passing."""
    effect: Literal["positive", "negative", "neutral"]
    """The effect of the item on the price: positive, negative or neutral."""
    horizon: Literal["short", "medium", "long"]
    """The time for which it matters: short for days, medium for weeks up to a quarter, long for more."""
    weight: Annotated[int, Field(strict=True, ge=1, le=10)]
    """The item's importance for the company: a whole number from 1 (noise) to 10 (changes the value of the company). It
    decides for how long the item is remembered."""


QUERIES: Mapping[RetrievalType, str] = {
    RetrievalType.SHORT_TERM: "Search words for what may matter over days.",
    RetrievalType.MEDIUM_TERM: "Search words for what may matter over weeks up to a quarter.",
    RetrievalType.LONG_TERM: "Search words for what may matter for longer.",
    RetrievalType.PRICE_UP: "Search words for events that would raise the price.",
    RetrievalType.PRICE_DOWN: "Search words for events that would lower the price.",
    RetrievalType.BULLISH_TREND: "Search words for what would be said of the asset while the market rises.",
    RetrievalType.BEARISH_TREND: "Search words for what would be said of the asset while the market falls.",
    RetrievalType.NEWS: "Search words for news like today's.",
    RetrievalType.REPORTS: "Search words for what the company's reports and filings say about today's topics.",
}
"""The instruction for the query of every retrieval type."""


class RetrievalQueries(Part):
    """Search texts, one per retrieval type that is asked for (`answer_with`). Source: FinAgent §4.1 [A1, A2]."""

    @property
    def texts(self) -> Mapping[RetrievalType, str]:
        """The search texts by retrieval type."""
        return {RetrievalType(name.replace("_", " ")): text for name, text in self}


class MarketIntelligence(Answer):
    """Judged items, a summary for trading, and search texts for memory. Source: FinAgent §4.1 [A1]."""

    items: Annotated[list[ItemJudgement], Field(max_length=400)]
    """A judgement of every item, each once, by its id; empty when there were none."""
    summary: Prose
    """For the trader: what matters for the price, arguments for a rise and for a fall, and whether the market was
    lately bullish or bearish. Repeats count once."""
    recent_market: Literal["bullish", "bearish", "mixed"]
    """The mood of the market over the last sessions: bullish, bearish or mixed."""
    queries: RetrievalQueries
    """For memory only: texts that find similar past events. Names, events and topics, no judgement; newly written,
    never a part of the summary."""

    def check(self, view: IntelligenceView) -> None:
        """Raise ValueError for items that were not given, and for queries that repeat the summary."""
        check_cited((item.id for item in self.items), (item.id for item in view.items), "items")
        if self.summary in self.queries.texts.values():
            raise ValueError("queries repeat the summary; write search texts of their own")

    def missing(self, view: IntelligenceView) -> str:
        """The complaint about items that were not judged, and about types that share a query."""
        judged = {item.id for item in self.items}
        unjudged = [item.id for item in view.items if item.id not in judged]
        if unjudged:
            more = f" and {len(unjudged) - 20} more" if len(unjudged) > 20 else ""
            return f"items leaves out {', '.join(unjudged[:20])}{more}; judge every item"
        texts = self.queries.texts
        return "queries are alike; write one of its own for every type" if len(set(texts.values())) < len(texts) else ""

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


@cache
def answer_with(types: Sequence[RetrievalType]) -> type[MarketIntelligence]:
    """The class of an answer with a query for each of these retrieval types."""
    fields: dict[str, Any] = {name.replace(" ", "_"): (Sentence, Field(description=QUERIES[name])) for name in types}
    queries = create_model("RetrievalQueries", __base__=RetrievalQueries, **fields)
    described = MarketIntelligence.model_fields["queries"].description
    return create_model(
        "MarketIntelligence", __base__=MarketIntelligence, queries=(queries, Field(description=described))
    )


INTELLIGENCE = Agent(
    name="market-intelligence",
    step="intelligence",
    view=IntelligenceView,
    answer=MarketIntelligence,
    answer_to=lambda view: answer_with(view.types),
    rule="engine.offline.intelligence:judge",
    reads=MARKET_ALONE,
    words_searches=True,
)


@dataclass(frozen=True, slots=True)
class PastView(View):
    """The recalled memories, best first: up to M retrieval types times K. Source: FinAgent §4.1 [A2, A3]."""

    recollections: tuple[Recollection, ...]

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.recollections)} memories"


class PastSummary(Answer):
    """A summary of the past for today. Source: FinAgent §4.1 [A3]."""

    summary: Prose = Field(
        description="What of the past matters today: events with their dates and outcomes, patterns that repeat, what "
        "has changed since."
    )
    still_valid: Annotated[list[str], Field(max_length=200)]
    """The ids, as given in brackets, of the memories that are still valid."""
    outdated: Annotated[list[str], Field(max_length=200)]
    """The ids of the memories that are outdated by newer ones or by time."""

    def check(self, view: PastView) -> None:
        """Raise ValueError for memories that were not given, or that are named in both lists."""
        known = frozenset(memory.handle for memory in view.recollections)
        check_cited(self.still_valid, known, "still_valid")
        check_cited(self.outdated, known, "outdated")
        both = set(self.still_valid) & set(self.outdated)
        if both:
            raise ValueError(f"a memory is still valid or outdated, not both: {plain(min(both), 40)}")

    def lines(self) -> tuple[str, ...]:
        """The summary for a reader."""
        return (
            *self.summary.splitlines(),
            f"{len(self.still_valid)} memories still hold, {len(self.outdated)} are outdated.",
        )


PAST = Agent(
    name="past-intelligence",
    step="past",
    view=PastView,
    answer=PastSummary,
    rule="engine.offline.memories:summarize",
    reads=frozenset({Reads.MEMORY}),
    group="memory",
)


@dataclass(frozen=True, slots=True)
class ChartView(ChartedView):
    """The chart of kind `kline` to the last visible session, and its figures as a table for models that do not see.
    Source: FinVision §3.2, §4.1 [V2]."""

    table: IndicatorTable

    def summary(self) -> str:
        """The view in a few words."""
        return f"a chart of {len(self.chart.sessions)} sessions"

    def figures(self) -> str:
        """The table as text."""
        return self.table.text


class Reading(Part):
    """The reading of one strategy. Its word limits are wishes. Source: FinVision table 4 [V2]."""

    trend: Sentence
    """One observation about the trend, at most 10 words."""
    signal: Sentence
    """One signal that follows from it, at most 10 words."""


class ChartReading(Answer):
    """A reading per strategy. Source: FinVision table 4 [V2]; the Bollinger reading is in its sample answer."""

    macd: Reading
    """MACD crossover: the side of the signal line that MACD is on, and a crossover if there is one."""
    kdj_rsi: Reading
    """KDJ, with RSI as a filter that confirms or denies it."""
    bollinger: Reading | None
    """Mean reversion between the Bollinger bands; null when the bands give no signal."""

    def lines(self) -> tuple[str, ...]:
        """The readings for a reader, one per strategy: trend, then signal."""
        named = (("MACD", self.macd), ("KDJ with RSI", self.kdj_rsi), ("Bollinger", self.bollinger))
        return tuple(
            f"{name}: {shortened(read.trend, 10)} | {shortened(read.signal, 10)}"
            for name, read in named
            if read is not None
        )


CHART = Agent(
    name="chart",
    view=ChartView,
    answer=ChartReading,
    rule="engine.offline.chart:read",
    reads=MARKET_ALONE,
)
