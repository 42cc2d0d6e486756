"""The rules behind the LanguageModel port: deterministic answers from the request's View, without key or network.

Rules for the decision over all cash or all shares: the outlook alone decides. Source: FinAgent §4.4 [A10].
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any

from engine.agents.decision import WholeView
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult, Rule, prompt_hash
from engine.offline.decision import Case
from engine.offline.reflections import Stance, case_of, reasoned, weigh_evidence


def answer_by(rule: Rule, view: Any) -> Mapping[str, Any]:
    """The answer of a rule, as plain JSON."""
    if isinstance(rule, str):
        module, _, name = rule.partition(":")
        rule = getattr(import_module(module), name)
        assert callable(rule)
    return rule(view)


class OfflineModel:
    """A model that answers by rule. It reads nothing but the view; equal views get equal answers."""

    spec = "offline"
    label = "rules, not a language model"
    # Charts reach it as values inside the view, so it needs no table in their place.
    sees = True

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The rules' answer, at no cost; a failure for a question without a rule."""
        name = hashlib.sha256(f"{prompt_hash(request.system, request.messages)}/{request.sample}".encode()).hexdigest()
        if request.rule is None:
            detail = f"the rules know no answer of {request.purpose}; choose a language model for it"
            failure = ModelFailure(FailureKind.NOT_CONFIGURED, detail)
            return ModelResult(model=self.spec, failure=failure, cost=Decimal(0), request_hash=name)
        answer = answer_by(request.rule, request.view)
        text = json.dumps(answer, ensure_ascii=False)
        if on_delta is not None:
            on_delta(text)
        return ModelResult(
            model=self.spec, answer=answer, text=text, stop_reason="end", cost=Decimal(0), request_hash=name
        )


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
