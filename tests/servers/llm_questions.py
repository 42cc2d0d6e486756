"""A question and its parts for tests of language models, with every default overridable."""

from __future__ import annotations

from datetime import date
from typing import Any

from engine.domain.chart import Candles, ChartSpec
from engine.domain.model_call import AnswerOptions, Message, ModelRequest, ModelSettings

SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Decision",
    "properties": {
        "action": {"type": "string", "enum": ["BUY", "HOLD", "SELL"]},
        "size": {"type": "integer", "minimum": 0, "maximum": 10},
    },
    "required": ["action", "size"],
    "additionalProperties": False,
}


def question(**overrides: Any) -> ModelRequest:
    """A request of the decision agent."""
    settings = ModelSettings(**{"timeout": 5.0, **overrides.pop("settings", {})})
    options = AnswerOptions(**overrides.pop("options", {}))
    parts: dict[str, Any] = {
        "purpose": "decision",
        "symbol": "NVDA",
        "session": date(2024, 3, 8),
        "owner": "desk",
        "system": "You run a paper desk.",
        "messages": (Message("user", "Decide."),),
        "view": None,
        "schema_name": "decision",
        "schema": SCHEMA,
    }
    return ModelRequest(**(parts | overrides), settings=settings, options=options)


def small_chart(last: float = 11.0) -> ChartSpec:
    """Three sessions of candles."""
    candles = Candles((9.0, 10.0, 10.5), (10.5, 11.0, 11.5), (8.5, 9.5, 10.0), (10.0, 10.5, last))
    sessions = ("2024-03-06", "2024-03-07", "2024-03-08")
    return ChartSpec(kind="kline", title="NVDA, 3 sessions", symbol="NVDA", sessions=sessions, candles=candles)


class OnePixelPainter:
    """A ChartPainter whose pictures are told apart by the chart's fingerprint behind a PNG's first bytes."""

    version = "pixel-1"

    async def paint(self, spec: ChartSpec) -> bytes:
        return b"\x89PNG\r\n\x1a\n" + bytes.fromhex(spec.fingerprint())
