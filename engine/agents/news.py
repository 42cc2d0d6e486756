"""The agent that reads the news and digests them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from engine.agents.agent import MARKET_ALONE, Agent, Answer, Sentence, View, plain
from engine.domain.market import NewsItem, Symbol

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

    @property
    def lines(self) -> tuple[str, ...]:
        """The items, each with its number in brackets."""
        return tuple(f"[{number}] {item.text}" for number, item in enumerate(self.items, 1))

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
    rule="engine.offline.news:digest",
    reads=MARKET_ALONE,
    words_searches=True,
)
