"""Rules for filings and market intelligence: sides by the lexicon, weights and horizons by kind and words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from engine.agents.intelligence import SUMMARY_WORDS, FilingView, IntelligenceItem, IntelligenceView, ItemKind
from engine.agents.rendering import signed_percent
from engine.domain.decision import RetrievalType
from engine.domain.text import counted
from engine.market.figures import SessionMove
from engine.offline.reading import (
    Reading,
    ended,
    extract,
    key_sentences,
    names_of,
    read,
    read_figure,
    salient_words,
)

Horizon = Literal["short", "medium", "long"]

KEY_SENTENCES = 3
"""Sentences of a report in its summary; of a news item there is one."""
QUOTED = 3
"""Items that are quoted for each side."""
QUERY_WORDS = 8
QUERY_ITEMS = 5
TAKEN, LARGE = 0.01, 0.03
"""From this change over the last sessions on, with half of them that way, the market is bullish or bearish; from a
large one on whichever way most of them went."""

_BASE: Mapping[ItemKind, int] = {"news": 2, "commentary": 4, "macro": 5, "report": 5, "10-Q": 6, "10-K": 8, "price": 2}
_HORIZON: Mapping[ItemKind, Horizon] = {
    "10-K": "long",
    "macro": "long",
    "commentary": "long",
    "10-Q": "medium",
    "report": "medium",
}
_EFFECTS: Mapping[int, str] = {1: "positive", -1: "negative", 0: "neutral"}
# Topics of every search of a type: for a horizon those of the kinds of memory that last as long.
_TOPICS: Mapping[RetrievalType, str] = {
    RetrievalType.SHORT_TERM: "",
    RetrievalType.MEDIUM_TERM: "quarterly revenue earnings",
    RetrievalType.LONG_TERM: "annual revenue growth strategy",
    RetrievalType.PRICE_UP: "beats raises gains",
    RetrievalType.PRICE_DOWN: "misses cuts falls",
    RetrievalType.BULLISH_TREND: "rally record high",
    RetrievalType.BEARISH_TREND: "decline new low",
    RetrievalType.NEWS: "news",
    RetrievalType.REPORTS: "quarterly annual revenue earnings growth strategy",
}

_LONG = re.compile(
    r"\b(?:long[- ]term|acqui(?:re|res|red|sition)s?|merger|takeover|strateg\w+|multi-?year|decades?|patents?"
    r"|antitrust|regulat\w+|restructur\w+|20[3-9]\d)\b",
    re.IGNORECASE,
)
_MEDIUM = re.compile(
    r"\b(?:quarter\w*|guidance|forecasts?|outlook|fiscal|full[- ]year|next year|earnings|dividends?|contracts?"
    r"|launch\w*|buyback|orders?)\b",
    re.IGNORECASE,
)
_WEIGHTY = re.compile(
    r"\b(?:acqui(?:re|res|red|sition)s?|merger|takeover|bankrupt\w*|fraud|guidance|earnings|quarterly results|lawsuit"
    r"|antitrust|recall(?:s|ed)?|dividends?|buyback|stock split|chief executive|CEO|breach|hack\w*|approv\w+"
    r"|default\w*|halving|ETF|subpoena)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Judged:
    item: IntelligenceItem
    reading: Reading
    horizon: Horizon
    weight: int
    text: str

    @property
    def concerns(self) -> bool:
        return self.reading.concerns


def summarize_filing(view: FilingView) -> Mapping[str, Any]:
    """Answer as a FilingSummary, as plain JSON."""
    return {"summary": extract(read(view.text), SUMMARY_WORDS)}


def judge(view: IntelligenceView) -> Mapping[str, Any]:
    """Answer as a MarketIntelligence, as plain JSON."""
    judged = list(_judged(view))
    told = [one for one in judged if one.item.kind != "price"]  # the market's mood has words of its own
    concerning = sorted((one for one in told if one.concerns), key=lambda one: -one.weight)
    market = market_mood(view.prices)
    return {
        "items": [
            {
                "id": one.item.number,
                "summary": one.text,
                "concerns_company": one.concerns,
                "effect": _EFFECTS[one.reading.side],
                "horizon": one.horizon,
                "weight": one.weight,
            }
            for one in judged
        ],
        "summary": "\n".join(_summary(view, told, concerning, market)),
        "recent_market": market,
        "queries": {name.replace(" ", "_"): _query(view, concerning, name) for name in view.types},
    }


def market_mood(prices: Sequence[SessionMove]) -> Literal["bullish", "bearish", "mixed"]:
    """The mood of the market over the last sessions, by the change over all of them."""
    change = total_change(prices)
    way = (change > TAKEN) - (change < -TAKEN)
    borne = 2 * sum(move.change * way > 0 for move in prices) >= len(prices)
    if not way or not (borne or abs(change) >= LARGE):
        return "mixed"
    return "bullish" if way > 0 else "bearish"


def total_change(prices: Sequence[SessionMove]) -> float:
    """The change over all sessions, as a fraction."""
    return prod((1 + move.change for move in prices), start=1.0) - 1


def _judged(view: IntelligenceView) -> Iterator[_Judged]:
    names = names_of(view.symbol, (item.text for item in view.items))
    seen: set[str] = set()
    for item in view.items:
        if item.kind == "price" and view.prices:
            yield _judged_price(item, view.prices)
            continue
        # A company's filing is about the company, whatever name it uses.
        about = names if item.kind in ("news", "commentary") else None
        reading = read_figure(item.text) if item.kind == "macro" else read(item.text, about)
        opening = item.text[:160].lower()
        repeats = opening in seen
        seen.add(opening)
        sentences = key_sentences(reading, 1 if item.kind == "news" else KEY_SENTENCES, names)
        text = "; ".join(sentences) or f"{item.kind} of {item.day} without words"
        yield _Judged(item, reading, _horizon(item, text), 1 if repeats else _weight(item, reading), text)


def _judged_price(item: IntelligenceItem, prices: Sequence[SessionMove]) -> _Judged:
    """The judgement of the price's move: taken to go on from a change of the market's on, for longer where it is
    large."""
    last = prices[-1]
    change = last.change
    side = (change >= TAKEN) - (change <= -TAKEN)
    reading = Reading((item.text,), (float(side),))
    weight = min(5, _BASE["price"] + int(abs(change) / TAKEN))
    moved = f"{'rose' if change > 0 else 'fell'} {abs(change):.2%} to" if change else "stayed at"
    text = f"The price {moved} {last.close:.2f}"
    return _Judged(item, reading, "medium" if abs(change) >= LARGE else "short", weight, text)


def _horizon(item: IntelligenceItem, text: str) -> Horizon:
    if item.kind != "news":
        return _HORIZON[item.kind]
    opening = f"{item.text[:200]} {text}"
    return "long" if _LONG.search(opening) else "medium" if _MEDIUM.search(opening) else "short"


def _weight(item: IntelligenceItem, reading: Reading) -> int:
    """The weight of an item: by its kind, the strength of its text, and events that change companies."""
    if not reading.concerns:
        return 1
    strength = min(3, int(abs(reading.total)))
    event = 2 if item.kind == "news" and _WEIGHTY.search(item.text[:600]) else 0
    return min(10, _BASE[item.kind] + strength + event)


def _summary(
    view: IntelligenceView, judged: Sequence[_Judged], concerning: Sequence[_Judged], market: str
) -> Iterator[str]:
    good = [one for one in concerning if one.reading.side > 0]
    bad = [one for one in concerning if one.reading.side < 0]
    unrelated = len(judged) - len(concerning)
    left = f"; {view.left_out} more could not be read" if view.left_out else ""
    if judged:
        yield (
            f"Of {counted(len(judged), 'item')}, {len(good)} for {view.symbol}, {len(bad)} against it, "
            f"{unrelated} about others{left}."
        )
    else:
        yield f"Nothing new came in about {view.symbol}{left}."
    for name, side in (("For it", good), ("Against it", bad)):
        if side:
            yield f"{name}: {' '.join(ended(one.text) for one in side[:QUOTED])}"
    if not good and not bad and concerning:
        yield f"Without a side: {ended(concerning[0].text)}"
    if view.prices:
        moved = f"{signed_percent(total_change(view.prices))} over {counted(len(view.prices), 'session')}"
        yield f"The market has lately been {market}: {moved} to {view.prices[-1].close:.2f}."
    else:
        yield "How the market took the last sessions is not known."


def _query(view: IntelligenceView, concerning: Sequence[_Judged], name: RetrievalType) -> str:
    """Salient words of the weightiest items of a type, of any where it has none, and its topics."""
    of_type = [one for one in concerning if _is_of(one, name)] or concerning
    words = salient_words((one.text for one in of_type[:QUERY_ITEMS]), QUERY_WORDS, (view.symbol,))
    return " ".join(filter(None, (view.symbol, *words, _TOPICS[name]))) + ("" if words else " price news")


def _is_of(one: _Judged, name: RetrievalType) -> bool:
    """True for an item of a retrieval type; a trend is of the market and no item's own."""
    match name:
        case RetrievalType.PRICE_UP:
            return one.reading.side > 0
        case RetrievalType.PRICE_DOWN:
            return one.reading.side < 0
        case RetrievalType.NEWS:
            return one.item.kind == "news"
        case RetrievalType.REPORTS:
            return one.item.kind not in ("news", "macro")
    return name == f"{one.horizon} term"
