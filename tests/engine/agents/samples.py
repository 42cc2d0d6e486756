"""Views and answers that the agents' tests share, and a model that answers from a list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from engine.agents.ask import Asker, QuestionKey
from engine.agents.decision import DecisionView
from engine.domain.decision import Action, Outcome
from engine.domain.model_call import AnswerRecord, FailureKind, ModelFailure, ModelRequest, ModelResult
from engine.domain.order import PositionContext
from engine.market.figures import PriceFigures, PriceMove
from engine.preset import load_preset

DAY = date(2023, 6, 1)

TRADE: Mapping[str, Any] = {
    "symbol": "MSFT",
    "recommendation": "BUY",
    "position_size": 7,
    "rule": "strong uptrend",
    "explanation": "The rise is strong.",
}


class ListedModel:
    """Gives prepared results in order, the last one again and again, and keeps what it was asked."""

    spec = "listed"
    label = "prepared answers"

    def __init__(self, results: Sequence[ModelResult], sees: bool = True) -> None:
        self.results = list(results)
        self.sees = sees
        self.requests: list[ModelRequest] = []

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        self.requests.append(request)
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if on_delta is not None and result.text:
            on_delta(result.text)
        return result


def answered(answer: Mapping[str, Any]) -> ModelResult:
    """A result with an answer."""
    return ModelResult(model="listed", answer=answer, text=json.dumps(answer))


def failed(kind: FailureKind, detail: str = "as prepared", text: str = "") -> ModelResult:
    """A result without one."""
    return ModelResult(model="listed", failure=ModelFailure(kind, detail), text=text)


class Desk:
    """An asker over a model, with everything that it reported."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.records: list[AnswerRecord] = []
        self.deltas: list[tuple[QuestionKey, str]] = []
        self.asker = Asker({"default": model}, {}, self.records.append, lambda a, t: self.deltas.append((a, t)))


def holding(gains_in_a_row: int = 0, **changes: str) -> PositionContext:
    """Half invested, 5.59 percent in profit."""
    values = {"shares": "100", "price": "180", "average_cost": "170.47", "value": "36000", "cash": "18000"}
    figures = {name: Decimal(value) for name, value in (values | changes).items()}
    return PositionContext(**figures, gains_in_a_row=gains_in_a_row)


def outcome(days_ago: int, action: Action = Action.BUY, reward: str = "0.01", factors: str = "dip: low") -> Outcome:
    """A past decision and what it earned."""
    session = DAY - timedelta(days=days_ago)
    size = Decimal(0 if action is Action.HOLD else 5)
    return Outcome(
        decision_session=session,
        session=session + timedelta(days=1),
        symbol="MSFT",
        owner="desk",
        action=action,
        size=size,
        close=Decimal("180.25"),
        reward=Decimal(reward),
        cumulative=Decimal("0.02"),
        key_factors=factors,
    )


FIGURES = PriceFigures(
    close=Decimal("179.5"),
    moves=(PriceMove(1, 0.0111), PriceMove(5, -0.0222), PriceMove(20, 0.0333)),
    rsi=61.44,
    atr=Decimal("3.123456789"),
)


def decision_view(**changes: Any) -> DecisionView:
    """A decision with nothing but the portfolio to go by."""
    values: dict[str, Any] = {
        "symbol": "MSFT",
        "session": DAY,
        "owner": "desk",
        "holding": holding(),
        "figures": FIGURES,
        "news": None,
        "chart": None,
        "short_term": None,
        "medium_term": None,
        "signals": None,
        "outcomes": (),
        "sizing": load_preset("finvision").sizing,
    }
    return DecisionView(**(values | changes))
