"""Rules for the decision over all cash or all shares: the outlook alone decides. Source: FinAgent §4.4 [A10]."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from engine.agents.decision import WholeView
from engine.offline.decision import Case
from engine.offline.evidence import Stance, case_of, reasoned, weigh_evidence

OUTLOOK = {"aggressive": 2, "moderate": 3, "conservative": 4}
"""The outlook from which on an asset is bought, and below which, negative, it is sold, by the trader's preference."""
LEAST = Decimal("0.01")
"""The smallest fraction of the portfolio in cash that is worth a purchase."""


def decide(view: WholeView) -> Mapping[str, Any]:
    """Answer as a WholeTrade, as plain JSON."""
    weighed = weigh_evidence(view)
    case = case_of(view, weighed)
    return reasoned(view, weighed, case, _stance(view, case))


def _stance(view: WholeView, case: Case) -> Stance:
    """The action. After purchases that came too early, more is asked for before a purchase; after
    sales that came too early, before a sale."""
    bar, lessons = _bar(view), case.lessons
    buys = case.outlook >= bar + lessons.buys_too_early - lessons.misses_rises
    sells = case.outlook <= -bar - lessons.sells_too_early
    if buys and view.spare >= LEAST * view.holding.value:
        return _said("BUY", " with all cash", "most of the evidence speaks for a rise")
    if sells and (case.held or view.sizing.allow_short):
        return _said("SELL", " of all shares", "most of the evidence speaks for a fall")
    if buys or sells:
        because = "the cash is in the asset already" if buys else "nothing is held to be sold"
        return _said("HOLD", "", because)
    return _said("HOLD", "", "the evidence is too mixed or too thin to change the position")


def _bar(view: WholeView) -> int:
    """The outlook that a trade asks for. Where tools are all that speaks, which count as one signal at most, their side
    is enough. Source: FinAgent Table 5, tools alone [A12]."""
    others = (view.intelligence, view.news, view.past, view.chart, view.low_level, view.high_level, view.immediate)
    alone = view.tools and not (view.reports or any(one is not None for one in others))
    return 1 if alone else OUTLOOK[view.preference]


def _said(action: str, much: str, because: str) -> Stance:
    return Stance(action, because, f"{action}{much}: {because}.")
