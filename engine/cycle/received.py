"""The memories of a session: what came in, each as it was judged, and what was learned of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from engine.agents.intelligence import INTELLIGENCE, ItemJudgement, MarketIntelligence
from engine.cycle.recall import MemoryScope
from engine.cycle.step import Received, StepContext
from engine.domain.decision import HORIZON_TYPES, INSIGHT, PRICE, Recollection, RetrievalType
from memory.record import Item

_FORMS = {"macro": None, "commentary": None, PRICE: None, "news": RetrievalType.NEWS}
_EFFECTS = {"positive": RetrievalType.PRICE_UP, "negative": RetrievalType.PRICE_DOWN}
_TRENDS = {"bullish": RetrievalType.BULLISH_TREND, "bearish": RetrievalType.BEARISH_TREND}
_IN_PASSING = ("news", "commentary")
"""Kinds of which only what concerns the company is remembered."""


def documents(context: StepContext, new: Received) -> Iterator[Item]:
    """Memories of what came in, each as weighty as it was judged and born when it became known. What was not judged has
    no labels. Where the preset remembers analyses, each begins with the agent's sentence about it, by which it is
    found, and the day's summary is a memory too; where memory keeps insights, that sentence lies beside its document;
    where it keeps prices, so does the move of the price.
    Source: FinAgent §4.1, §4.2 [A1, A6]; InvestorBench A [I1, I2]; TradingGPT §4.1.1, figure 1 [G2]."""
    memory, intelligence = context.memory, new.intelligence.value
    if memory is None:
        return
    analyses = "analyses" in context.preset.steps
    trend = None if intelligence is None else _TRENDS.get(intelligence.recent_market)
    for kind, text, source, time in _came_in(context, new):
        item = new.judged.get(source)
        if not text.strip() or (item is not None and kind in _IN_PASSING and not item.concerns_company):
            continue
        document = Item(
            symbol=context.symbol,
            kind=kind,
            text=_worded(item, kind, text, analyses),
            source=source,
            query_text=item.summary if item is not None and analyses else "",
            owner=context.owner,
            rating=None if item is None else (item.weight - 1) / 9,
            known_step=memory.known_step(time, context.turn.step),
            labels=_labels(item, kind, trend),
        )
        yield document
        if item is not None and memory.keeps(kind + INSIGHT):
            yield replace(document, kind=kind + INSIGHT, text=_worded(item, kind, "", analyses=True))
    if intelligence is not None and analyses:
        yield _summary(context, intelligence)


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


def _came_in(context: StepContext, new: Received) -> Iterator[tuple[str, str, str, datetime]]:
    """Kind, text, id and time of all that came in."""
    for filing in new.filings.texts:
        yield _form(filing.form), filing.summary, filing.id, filing.available_at
    for release in new.macro.value or ():
        yield "macro", release.summary, release.id, release.available_at
    for entry in new.commentary.value or ():
        yield "commentary", f"{entry.summary} (fund {entry.symbol})", entry.id, entry.available_at
    for entry in context.news:
        text = f"{entry.headline}. {entry.summary}" if entry.headline else entry.summary
        yield "news", text, entry.id, entry.available_at
    price = context.price_item
    if price is not None and context.memory is not None and context.memory.keeps(PRICE):
        yield PRICE, price.text, price.id, context.turn.market.now


def _worded(item: ItemJudgement | None, kind: str, text: str, analyses: bool) -> str:
    """The text that memory keeps and shows: that of news and of the price begins with its effect.
    Source: InvestorBench A.1 [I5]; FinAgent §4.2 [A6]."""
    if item is None:
        return text
    if analyses:
        return f"{item.effect.capitalize()}, {item.horizon} term: {item.summary.rstrip('.')}. {text}".rstrip()
    return f"{item.effect.capitalize()}: {text}" if kind in ("news", PRICE) else text


def _labels(item: ItemJudgement | None, kind: str, trend: RetrievalType | None) -> tuple[str, ...]:
    """The retrieval types of an item; none where it was not judged. Source: FinAgent §4.1 [A2]."""
    if item is None:
        return ()
    horizon, form = RetrievalType(f"{item.horizon} term"), _FORMS.get(kind, RetrievalType.REPORTS)
    return tuple(name.value for name in (horizon, _EFFECTS.get(item.effect), trend, form) if name is not None)


def _summary(context: StepContext, intelligence: MarketIntelligence) -> Item:
    """The memory of the day's summary: under the trend that it tells of and found by the query for that, or, where
    there was no trend, of its day."""
    kind, label = "market-intelligence", _TRENDS.get(intelligence.recent_market, RetrievalType.SHORT_TERM)
    queries, told = intelligence.queries.texts, context.sources.struck(INTELLIGENCE.name, intelligence.summary)
    return Item(
        symbol=context.symbol,
        kind=kind,
        text=f"{told}\nThe market was lately {intelligence.recent_market}.",
        source=f"{kind} of {context.turn.session}",
        query_text=queries.get(label) or " ".join(queries.values()),
        owner=context.owner,
        labels=(label.value,),
    )


def _form(form: str) -> str:
    """The kind of a filing in memory: an amendment is one of its form, any other form weighs as an 8-K."""
    return next((kind for kind in ("10-Q", "10-K") if form.startswith(kind)), "8-K")
