"""The items that market intelligence judges: news, filings, macro releases, commentary, and the move of the price.
Source: FinAgent §4.1 [A1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import prod
from typing import Literal

from engine.agents.filing_summary import REPORT_LIMIT
from engine.agents.news import NewsLine
from engine.agents.text import plain
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem
from engine.domain.text import cut_between_sentences, cut_between_words
from engine.market.moves import SessionMove

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
