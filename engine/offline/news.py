"""Rules for the digest of the news: what its sentences say for and against the company."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.agents.agent import count_words, plain
from engine.agents.news import NewsLine, NewsView
from engine.domain.text import counted
from engine.offline.reading import SENTIMENT_TAG, Reading, names_of, read

NEWS_SENTENCES = 5
FACTORS = 4
BALANCE = 0.3
"""Smallest balance of sides at which a day is bullish or bearish: one clear item alone is enough."""


@dataclass(frozen=True, slots=True)
class _Finding:
    text: str
    score: float
    order: int


def digest(view: NewsView) -> Mapping[str, Any]:
    """Answer as a NewsDigest, as plain JSON."""
    items, repeats = [], 0
    names = names_of(view.symbol, (f"{line.headline} {line.summary}" for line in view.items))
    for line, count in _distinct(view.items):
        repeats += count - 1
        items.append(read(line.content, names))
    concerning = [item for item in items if item.concerns]
    findings = _findings(concerning)
    positive = [f.text for f in sorted(findings, key=lambda f: -f.score)[:FACTORS] if f.score > 0]
    negative = [f.text for f in sorted(findings, key=lambda f: f.score)[:FACTORS] if f.score < 0]
    balance = _balance(concerning)
    sentiment = "bullish" if balance > BALANCE else "bearish" if balance < -BALANCE else "neutral"
    unrelated = len(items) - len(concerning)
    return {
        "summary": _news_summary(view, findings, len(items), unrelated, repeats),
        "positive": positive,
        "negative": negative,
        "sentiment": sentiment,
        "reason": _news_reason(concerning, balance, positive, negative),
        "unrelated": unrelated,
    }


def _news_summary(view: NewsView, findings: Sequence[_Finding], items: int, unrelated: int, repeats: int) -> list[str]:
    strongest = sorted(findings, key=lambda f: -abs(f.score))[:NEWS_SENTENCES]
    points = [f.text for f in sorted(strongest, key=lambda f: f.order)]
    remarks, among = [], counted(items, "item")
    if unrelated:
        verb = "does" if unrelated == 1 else "do"
        remarks.append(f"{unrelated} of {among} {verb} not concern {view.symbol} or only name it in passing")
    if repeats:
        remarks.append(f"{repeats} repeated another")
    if remarks or not points:
        points.append(f"{'; '.join(remarks) or f'Nothing in {among} bears on {view.symbol}'}.")
    return points


def _balance(items: Sequence[Reading]) -> float:
    """Positive less negative items over both and two neutral ones: from -1 to 1."""
    good, bad = _sides(items)
    return (good - bad) / (good + bad + 2)


def _sides(items: Sequence[Reading]) -> tuple[int, int]:
    return sum(item.side > 0 for item in items), sum(item.side < 0 for item in items)


def _news_reason(items: Sequence[Reading], balance: float, positive: Sequence[str], negative: Sequence[str]) -> str:
    if not items:
        return "No item is about the company itself."
    good, bad = _sides(items)
    weight = (positive if balance > 0 else negative)[:1]
    most = f"; the weightiest: {plain(weight[0], 160)}" if weight else ""
    verb = "speaks" if good == 1 else "speak"
    return f"Of {counted(len(items), 'item')} {good} {verb} for it and {bad} against it{most}"


def _findings(items: Iterable[Reading]) -> list[_Finding]:
    """The strongest sentences, at most two an item, in reading order."""
    findings: list[_Finding] = []
    for item in items:
        ranked = sorted(range(len(item.scores)), key=lambda row: -abs(item.scores[row]))[:2]
        for row in sorted(ranked):
            if item.scores[row] and count_words(item.sentences[row]) > 2:
                findings.append(_Finding(plain(item.sentences[row], 280), item.scores[row], len(findings)))
    return findings


def _distinct(lines: Iterable[NewsLine]) -> Iterable[tuple[NewsLine, int]]:
    """Each item once with its number of repeats."""
    items: dict[tuple[str, str], list[NewsLine]] = {}
    for line in lines:
        key = (line.headline.lower(), SENTIMENT_TAG.sub("", line.summary)[:160].lower())
        items.setdefault(key, []).append(line)
    return [(same[0], len(same)) for same in items.values()]
