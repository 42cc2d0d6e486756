"""The memories of a session: what came in, each as it was judged, and what was learned of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.agents.intelligence import ItemJudgement, MarketIntelligence
from engine.agents.intelligence_items import IntelligenceItem
from engine.cycle.recall import MemoryScope
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem
from engine.domain.recollection import HORIZON_TYPES, Recollection, RetrievalType
from memory.record import Item

_FORMS = {"macro": None, "commentary": None, "price": None, "news": RetrievalType.NEWS}
_EFFECTS = {"positive": RetrievalType.PRICE_UP, "negative": RetrievalType.PRICE_DOWN}
_TRENDS = {"bullish": RetrievalType.BULLISH_TREND, "bearish": RetrievalType.BEARISH_TREND}


def received(
    scope: MemoryScope,
    news: Sequence[NewsItem],
    filings: Sequence[Filing],
    intelligence: MarketIntelligence | None,
    macro: Sequence[MacroRelease] = (),
    *,
    judged: Mapping[str, ItemJudgement],
    commentary: Sequence[NewsItem] = (),
    price: IntelligenceItem | None = None,
    analyses: bool = False,
) -> tuple[Item, ...]:
    """Memories of what came in, each as weighty as it was judged: all but news and commentary judged not to concern the
    company. What was not judged has no labels. With `analyses` each begins with the agent's sentence about it, by which
    it is found, and the day's summary is a memory too. `judged` are the judgements by the ids of the
    items, `price` is the move of the price, where memory keeps it.
    Source: FinAgent §4.1, §4.2 [A1, A6]; TradingGPT §4.1.1 [G2]."""
    known = _Judged(judged, "" if intelligence is None else intelligence.recent_market, analyses)
    reports, texts = _reports(scope, filings, macro, known), _commentary(scope, commentary, known)
    moved = () if price is None else (_item(scope, price.kind, price.text, price.id, known),)
    items = (*reports, *texts, *_news(scope, news, known), *moved)
    if intelligence is None or not analyses:
        return items
    return (*items, _summary(scope, intelligence))


def lesson(
    scope: MemoryScope,
    kind: str,
    text: str,
    *,
    query: str = "",
    rests_on: Sequence[Recollection] = (),
    seen_until: int | None = None,
) -> Item:
    """The memory of a reflection. With hindsight (`seen_until`) it can be recalled only from that step on.
    Source: FinAgent §4.3, appendix C [A4, A5, A9]."""
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=text,
        source=f"{kind} of {scope.session}",
        query_text=query,
        owner=scope.owner,
        seen_until=seen_until,
        rests_on=tuple(memory.id for memory in rests_on),
        labels=HORIZON_TYPES,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """The judgements of the day's items by their ids, the mood of the market, and whether memory keeps them."""

    items: Mapping[str, ItemJudgement]
    market: str
    analyses: bool

    def item(self, source: str) -> ItemJudgement | None:
        """The judgement of an item by the id that it has at its source; None where it was not judged."""
        return self.items.get(source)

    def worded(self, item: ItemJudgement | None, kind: str, text: str) -> str:
        """The text that memory keeps and shows: that of news and of the price begins with its effect.
        Source: InvestorBench A.1 [I5]; FinAgent §4.2 [A6]."""
        if item is None:
            return text
        if self.analyses:
            return f"{item.effect.capitalize()}, {item.horizon} term: {item.summary.rstrip('.')}. {text}"
        return f"{item.effect.capitalize()}: {text}" if kind in ("news", "price") else text

    def labels(self, item: ItemJudgement | None, form: RetrievalType | None) -> tuple[str, ...]:
        """The retrieval types of an item; none where it was not judged. Source: FinAgent §4.1 [A2]."""
        if item is None:
            return ()
        horizon = RetrievalType(f"{item.horizon} term")
        named = (horizon, _EFFECTS.get(item.effect), _TRENDS.get(self.market), form)
        return tuple(name.value for name in named if name is not None)


def _reports(
    scope: MemoryScope,
    filings: Sequence[Filing],
    macro: Sequence[MacroRelease],
    judged: _Judged,
) -> Iterator[Item]:
    for filing in filings:
        if filing.summary.strip():
            yield _item(scope, _form(filing.form), filing.summary, filing.id, judged)
    for release in macro:
        if release.summary.strip():
            yield _item(scope, "macro", release.summary, release.id, judged)


def _commentary(scope: MemoryScope, texts: Sequence[NewsItem], judged: _Judged) -> Iterator[Item]:
    """Commentary of funds. Source: TradingGPT §4.1.1 [G2]."""
    for entry in texts:
        item = judged.item(entry.id)
        if item is None or item.concerns_company:
            yield _item(scope, "commentary", f"{entry.summary} (fund {entry.symbol})", entry.id, judged)


def _news(scope: MemoryScope, news: Sequence[NewsItem], judged: _Judged) -> Iterator[Item]:
    for entry in news:
        item = judged.item(entry.id)
        text = f"{entry.headline}. {entry.summary}" if entry.headline else entry.summary
        if text.strip() and (item is None or item.concerns_company):
            yield _item(scope, "news", text, entry.id, judged)


def _item(scope: MemoryScope, kind: str, text: str, source: str, judged: _Judged) -> Item:
    item = judged.item(source)
    form = _FORMS.get(kind, RetrievalType.REPORTS)
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=judged.worded(item, kind, text),
        source=source,
        query_text=item.summary if item is not None and judged.analyses else "",
        owner=scope.owner,
        rating=None if item is None else (item.weight - 1) / 9,
        labels=judged.labels(item, form),
    )


def _summary(scope: MemoryScope, intelligence: MarketIntelligence) -> Item:
    """The memory of the day's summary: under the trend that it tells of and found by the query for that, or, where
    there was no trend, of its day."""
    kind, label = "market-intelligence", _TRENDS.get(intelligence.recent_market, RetrievalType.SHORT_TERM)
    queries = intelligence.queries.texts
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=f"{intelligence.summary}\nThe market was lately {intelligence.recent_market}.",
        source=f"{kind} of {scope.session}",
        query_text=queries.get(label) or " ".join(queries.values()),
        owner=scope.owner,
        labels=(label.value,),
    )


def _form(form: str) -> str:
    """The kind of a filing in memory: an amendment is one of its form, any other form weighs as an 8-K."""
    return next((kind for kind in ("10-Q", "10-K") if form.startswith(kind)), "8-K")
