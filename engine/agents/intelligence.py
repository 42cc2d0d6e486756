"""The agent that judges every new item, and words the searches of memory. Source: FinAgent §4.1 [A1, A2].

The items that market intelligence judges: news, filings, macro releases, commentary, and the move of the price.
Source: FinAgent §4.1 [A1].

The agent that summarizes a long filing. Source: InvestorBench A.1 [I5].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from math import prod
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from engine.agents.agent import (
    MARKET_ALONE,
    Agent,
    Answer,
    Part,
    Prose,
    Sentence,
    View,
    check_cited,
    count_words,
    plain,
)
from engine.agents.news import TOTAL_LIMIT, NewsLine
from engine.domain.decision import HORIZON_TYPES, PRICE, RetrievalType
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, Symbol
from engine.domain.text import counted, cut_between_sentences, cut_between_words, first_few
from engine.market.figures import SessionMove

READERS_ITEMS = 12
"""Judged items that a reader of the intelligence sees, the weightiest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntelligenceView(View):
    """Items since the last decision, numbered, oldest first, and the moves of the last sessions. What exceeds the
    length of a prompt is left out and counted: the oldest news first, never filings, reports or macro items.
    `summaries` are the texts of those filings that were too long, `types` the retrieval types that a query is wanted
    for. Source: FinAgent §4.1 [A1, A2]."""

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
        object.__setattr__(self, "left_out", self.left_out + len(self.items) - len(kept))
        numbered = enumerate(reversed(kept), 1)
        items = (replace(item, number=PRICE if item.kind == PRICE else str(n)) for n, item in numbered)
        object.__setattr__(self, "items", tuple(items))

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
        price: IntelligenceItem | None = None,
        macro: Iterable[MacroRelease] = (),
        commentary: Iterable[NewsItem] = (),
        types: tuple[RetrievalType, ...] = HORIZON_TYPES,
    ) -> IntelligenceView:
        """The view of macro releases, filings, commentary and news, each in order of availability, and of the `price`
        where the session has moved it."""
        reports = (*map(IntelligenceItem.of_macro, macro), *map(IntelligenceItem.of_filing, filings))
        texts = (*map(IntelligenceItem.of_commentary, commentary), *map(IntelligenceItem.of_news, news))
        items = (*reports, *texts, *(() if price is None else (price,)))
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
        more += ", the price one of them" if any(item.kind == "price" for item in self.items) else ""
        return f"{counted(len(self.items), 'item')}{more}, {counted(len(self.prices), 'session')}"


class ItemJudgement(Part):
    """The meaning of one item for the price."""

    id: str
    """The item's number, as given in brackets before it."""
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
    """A judgement of every item, each once, by its number; empty when there were none."""
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
        check_cited((item.id for item in self.items), (item.number for item in view.items), "items")
        if self.summary in self.queries.texts.values():
            raise ValueError("queries repeat the summary; write search texts of their own")

    def missing(self, view: IntelligenceView) -> str:
        """The complaint about items that were not judged, and about types that share a query."""
        judged = {item.id for item in self.items}
        unjudged = [item.number for item in view.items if item.number not in judged]
        if unjudged:
            return f"items leaves out {first_few(unjudged, 20)}; judge every item"
        texts = self.queries.texts
        return "queries are alike; write one of its own for every type" if len(set(texts.values())) < len(texts) else ""

    @property
    def received(self) -> Sequence[ItemJudgement]:
        """The judgements of what came in: of all items but the move of the price."""
        return [item for item in self.items if item.id != PRICE]

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


ItemKind = Literal["news", "10-Q", "10-K", "report", "macro", "commentary", "price"]

NEWS_LIMIT = 2_400


@dataclass(frozen=True, slots=True)
class IntelligenceItem:
    """One item as plain text, cleaned and cut to length when it is made. `day` is the item's own date, `number` what
    agents know it by: its place among the items, or PRICE."""

    id: str
    kind: ItemKind
    day: date
    text: str
    number: str = ""

    def __post_init__(self) -> None:
        text = plain(self.text)
        news = self.kind == "news"
        text = cut_between_words(text, NEWS_LIMIT) if news else cut_between_sentences(text, REPORT_LIMIT)
        object.__setattr__(self, "text", text)

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

    @classmethod
    def of_price(cls, moves: Sequence[SessionMove]) -> IntelligenceItem | None:
        """The move of the price in the last of some sessions, beside that over all of them; None without a session.
        Source: FinAgent §4.1 [A1]."""
        if not moves:
            return None
        last, whole = moves[-1], prod((1 + move.change for move in moves), start=1.0) - 1
        over = f", {whole * 100:+.2f}% over {len(moves)} sessions" if len(moves) > 1 else ""
        text = f"close {last.close:.2f}, {last.change * 100:+.2f}% in the session{over}"
        return cls(f"price-{last.session}", "price", last.session, text)

    @property
    def line(self) -> str:
        """The item on one line, with its number in brackets."""
        return f"[{self.number}] {self.day.isoformat()} {self.kind}: {self.text}"


REPORT_LIMIT = 8_000
"""Characters of a filing, a report or a macro item: about 1,000 words."""
SUMMARY_WORDS = 1_000
"""Words of a filing's summary, a wish; a filing of no more is read as it is. Source: InvestorBench A.1 [I5]."""


@dataclass(frozen=True, slots=True)
class FilingView(View):
    """A filing as plain text, beyond the length of a prompt its beginning; `length` is that of the whole in characters.
    Nothing in it changes from one session or owner to another, so that a filing is asked about once.
    Source: InvestorBench A.1 [I5]."""

    form: str
    day: date
    text: str
    length: int = 0

    def __post_init__(self) -> None:
        whole = plain(self.text)
        object.__setattr__(self, "form", plain(self.form, 40))
        object.__setattr__(self, "text", cut_between_words(whole, TOTAL_LIMIT))
        object.__setattr__(self, "length", len(whole))

    @classmethod
    def of(cls, symbol: Symbol, session: date, owner: str, filing: Filing) -> FilingView:
        """The view of a filing."""
        return cls(symbol, session, owner, filing.form, filing.date, filing.summary)

    @property
    def is_long(self) -> bool:
        """True for a filing that is worth a summary."""
        return count_words(self.text) > SUMMARY_WORDS

    @property
    def part(self) -> str:
        """The part of the filing that is read, in words; empty where it is read whole."""
        if self.length <= TOTAL_LIMIT:
            return ""
        return f"the first {len(self.text):,} of {self.length:,} characters"

    def summary(self) -> str:
        """The view in a few words."""
        told = f"{self.form} of {self.day}, {count_words(self.text):,} words"
        return f"{told}, {self.part}" if self.part else told


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
