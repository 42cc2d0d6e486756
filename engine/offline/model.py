"""The rules behind the LanguageModel port: deterministic answers from the request's View, without key or network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from engine.agents.ask import prompt_hash
from engine.agents.chart_reading import ChartView
from engine.agents.decision import DecisionView
from engine.agents.evidence_decision import EvidenceView
from engine.agents.extended_reflection import ExtendedView
from engine.agents.high_level_reflection import HighLevelView
from engine.agents.immediate_reflection import ImmediateView
from engine.agents.low_level_reflection import LowLevelView
from engine.agents.market_intelligence import IntelligenceView
from engine.agents.news_digest import NewsView
from engine.agents.past_intelligence import PastView
from engine.agents.performance_reflection import PerformanceView
from engine.agents.signal_reflection import SignalView
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult
from engine.offline import (
    chart,
    decision,
    evidence,
    immediate,
    intelligence,
    moves,
    news,
    past,
    reflection,
    review,
)

RULES: Mapping[type, Callable[[Any], Mapping[str, Any]]] = {
    NewsView: news.digest,
    ChartView: chart.read,
    PerformanceView: reflection.on_performance,
    SignalView: reflection.on_signals,
    DecisionView: decision.decide,
    IntelligenceView: intelligence.judge,
    PastView: past.summarize,
    LowLevelView: moves.reflect,
    HighLevelView: review.on_decisions,
    ImmediateView: immediate.reflect,
    ExtendedView: review.on_period,
    EvidenceView: evidence.decide,
}
"""The rule that answers each kind of view."""


class OfflineModel:
    """Answers every agent by rule. It reads nothing but the view; equal views get equal answers."""

    spec = "offline"
    label = "rules, not a language model"
    # Charts reach it as values inside the view, so it needs no table in their place.
    sees = True

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The rules' answer, at no cost; a failure for a view that there is no rule for."""
        name = hashlib.sha256(f"{prompt_hash(request.system, request.messages)}/{request.sample}".encode()).hexdigest()
        rule = RULES.get(type(request.view))
        if rule is None:
            detail = f"the rules know no answer to {type(request.view).__name__}; choose a language model for it"
            failure = ModelFailure(FailureKind.NOT_CONFIGURED, detail)
            return ModelResult(model=self.spec, failure=failure, cost=Decimal(0), request_hash=name)
        answer = rule(request.view)
        text = json.dumps(answer, ensure_ascii=False)
        if on_delta is not None:
            on_delta(text)
        return ModelResult(
            model=self.spec, answer=answer, text=text, stop_reason="end", cost=Decimal(0), request_hash=name
        )
