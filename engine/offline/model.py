"""The rules behind the LanguageModel port: deterministic answers from the request's View, without key or network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any

from engine.agents.agent import Agent
from engine.agents.ask import prompt_hash
from engine.agents.registry import BUILT_IN
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult

Rule = Callable[[Any], Mapping[str, Any]]


def rule_of(agent: Agent[Any, Any]) -> Rule:
    """The rule that an agent's registration names."""
    if not isinstance(agent.rule, str):
        return agent.rule
    module, _, function = agent.rule.partition(":")
    rule: Rule = getattr(import_module(module), function)
    return rule


class OfflineModel:
    """Answers every agent by rule. It reads nothing but the view; equal views get equal answers."""

    spec = "offline"
    label = "rules, not a language model"
    # Charts reach it as values inside the view, so it needs no table in their place.
    sees = True

    def __init__(self, agents: Mapping[str, Agent[Any, Any]] = BUILT_IN) -> None:
        self._agents = agents

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The rules' answer, at no cost; a failure where there is no rule for the agent and its view."""
        name = hashlib.sha256(f"{prompt_hash(request.system, request.messages)}/{request.sample}".encode()).hexdigest()
        agent = self._agents.get(request.purpose)
        if agent is None or not isinstance(request.view, agent.view):
            detail = f"the rules know no answer of {request.purpose} to this view; choose a language model for it"
            failure = ModelFailure(FailureKind.NOT_CONFIGURED, detail)
            return ModelResult(model=self.spec, failure=failure, cost=Decimal(0), request_hash=name)
        answer = rule_of(agent)(request.view)
        text = json.dumps(answer, ensure_ascii=False)
        if on_delta is not None:
            on_delta(text)
        return ModelResult(
            model=self.spec, answer=answer, text=text, stop_reason="end", cost=Decimal(0), request_hash=name
        )
