"""The briefing of a desk's agents: what the user adds to a preset, kept with a run so that it can be run again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from engine.domain.market import Symbol


@dataclass(frozen=True, slots=True)
class ExpertNote:
    """An expert's note about a symbol on a day. Source: FinAgent §4.4 [A7]."""

    day: date
    symbol: Symbol
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The user's additions to a preset. Source: InvestorBench A.1 [I6]; FinAgent §4.4 [A7, A8].

    profiles: descriptions of assets and their sectors by symbol [I6].
    risk: the risk character; None: the preset's.
    preference: the trader's preference [A8]; None: the preset's.
    tools: rule strategies that the decision reads; None: the preset's.
    instruction: a text at the head of every decision with evidence.
    guidance: experts' notes; each decision gets those that were dated by then.
    """

    profiles: tuple[tuple[Symbol, str], ...] = ()
    risk: str | None = None
    preference: str | None = None
    tools: tuple[str, ...] | None = None
    instruction: str = ""
    guidance: tuple[ExpertNote, ...] = ()
