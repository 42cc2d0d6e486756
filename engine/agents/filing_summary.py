"""The agent that summarizes a long filing. Source: InvestorBench A.1 [I5]."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from engine.agents.agent import MARKET_ALONE, Agent, Answer, Prose, View, count_words, plain
from engine.agents.news import TOTAL_LIMIT
from engine.domain.market import Filing, Symbol
from engine.domain.text import cut_between_words

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
