"""Memories of a cycle as values of the memory library: what came in, and what was learned.

Nothing is written here. A cycle's memories are written as one once all is decided (`TradingMemory.write`), so that a
killed run which goes on recalls what it recalled before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from engine.agents.market_intelligence import ItemJudgement, MarketIntelligence
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, Symbol
from engine.domain.recollection import Recollection
from memory.record import Item

TYPES = ("short term", "medium term", "long term")
"""The retrieval types: for how long an item matters. Source: FinAgent §4.2 [A2]."""


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """One owner's memory of one symbol, at the step of a session."""

    symbol: Symbol
    owner: str
    session: date
    step: float


def received(
    scope: MemoryScope,
    news: Sequence[NewsItem],
    filings: Sequence[Filing],
    intelligence: MarketIntelligence | None,
    macro: Sequence[MacroRelease] = (),
) -> tuple[Item, ...]:
    """Memories of what came in: filings and macro releases always, news that was judged to concern the company, each
    as weighty as it was judged. Source: FinAgent §4.1 [A1]; TradingGPT §4.1.1 [G2]."""
    judgements = {} if intelligence is None else {item.id: item for item in intelligence.items}
    return (*_reports(scope, filings, macro, judgements), *_news(scope, news, judgements))


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
        labels=TYPES,
    )


def _reports(
    scope: MemoryScope,
    filings: Sequence[Filing],
    macro: Sequence[MacroRelease],
    judgements: dict[str, ItemJudgement],
) -> Iterator[Item]:
    reports = [(_form(filing.form), filing.id, filing.summary) for filing in filings]
    reports += [("macro", release.id, release.summary) for release in macro]
    for kind, name, text in reports:
        if text.strip():
            yield _item(scope, kind, text, name, judgements.get(name))


def _news(scope: MemoryScope, news: Sequence[NewsItem], judgements: dict[str, ItemJudgement]) -> Iterator[Item]:
    for entry in news:
        judged = judgements.get(entry.id)
        text = f"{entry.headline}. {entry.summary}" if entry.headline else entry.summary
        if judged is not None and judged.concerns_company and text.strip():
            yield _item(scope, "news", text, entry.id, judged)


def _item(scope: MemoryScope, kind: str, text: str, source: str, judged: ItemJudgement | None) -> Item:
    return Item(
        symbol=scope.symbol,
        kind=kind,
        text=text,
        source=source,
        owner=scope.owner,
        rating=None if judged is None else (judged.weight - 1) / 9,
        labels=("long term",) if judged is None else (f"{judged.horizon} term", judged.effect),
    )


def _form(form: str) -> str:
    """The kind of a filing in memory: an amendment is one of its form, any other form weighs as an 8-K."""
    return next((kind for kind in ("10-Q", "10-K") if form.startswith(kind)), "8-K")
