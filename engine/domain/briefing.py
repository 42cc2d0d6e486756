"""What the desk's user tells its agents beside their preset: kept with a run, so that it can be run again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from engine.domain.market import Symbol


@dataclass(frozen=True, slots=True)
class ExpertNote:
    """What an expert wrote about a symbol on a day. Source: FinAgent §4.4 [A7]."""

    day: date
    symbol: Symbol
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """`profiles` are what is known of each asset and its sector [I6], `risk` the risk character, `preference` how a
    trader trades [A8], `tools` the rule strategies that the decision reads, each None for the preset's own;
    `instruction` stands over every decision with evidence, `guidance` are experts' notes, of which each decision is
    shown those that were dated by then. Source: InvestorBench A.1 [I6]; FinAgent §4.4 [A7, A8]."""

    profiles: tuple[tuple[Symbol, str], ...] = ()
    risk: str | None = None
    preference: str | None = None
    tools: tuple[str, ...] | None = None
    instruction: str = ""
    guidance: tuple[ExpertNote, ...] = ()
