"""The rules behind the LanguageModel port: deterministic answers from the request's View, without key or network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any

from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult, Rule, prompt_hash


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
