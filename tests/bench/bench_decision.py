"""Milliseconds per decision of the whole cycle without model time: what the desk itself costs around its models.

A backtest of the agents runs on the demo market with a model that answers at once from a script (so that rules or
networks do not count), journal included, as `paperdesk backtest` keeps it. Beside it stands the same run with the
offline rules. Run as `python -m tests.bench.bench_decision [--sessions 120]`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from statistics import median
from time import perf_counter
from typing import Any

from connectors.wiring.services import services
from engine.app.models.models import ModelSet
from engine.app.research.agent_run import AgentRun, play
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import check_spec
from engine.domain.model_call import ModelRequest, ModelResult, ReplayMode
from engine.domain.run import DataSpec, RunKind, RunSpec
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel
from engine.preset import load_preset
from engine.settings import places
from engine.settings.config import Config

SCRIPT: dict[str, dict[str, Any]] = {
    "NewsDigest": {
        "summary": ["The company reported."],
        "positive": [],
        "negative": [],
        "sentiment": "neutral",
        "reason": "Nothing moves the price.",
        "unrelated": 0,
    },
    "ChartReading": {
        "macd": {"trend": "flat", "signal": "none"},
        "kdj_rsi": {"trend": "flat", "signal": "none"},
        "bollinger": None,
    },
    "PerformanceReflection": {"effectiveness": "even", "key_factors": "none", "return_trend": "flat"},
    "SignalReflection": {"trend_against_signals": "even", "effectiveness": "even", "missed": []},
}


class Scripted:
    """Answers every question at once; every third decision buys and every third sells."""

    spec, label, sees = "script", "a script", True

    def __init__(self) -> None:
        self._decisions = 0

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The scripted answer."""
        known = SCRIPT.get(request.schema_name)
        return ModelResult(model="script", answer=known if known is not None else self._trade(request))

    def _trade(self, request: ModelRequest) -> dict[str, Any]:
        self._decisions += 1
        action, size, rule = (
            ("HOLD", 0, "uncertainty"),
            ("BUY", 5, "strong uptrend"),
            ("SELL", 3, "reversal"),
        )[self._decisions % 3]
        return {
            "symbol": request.symbol,
            "recommendation": action,
            "position_size": size,
            "rule": rule,
            "explanation": "Scripted.",
        }


def run(model: LanguageModel, spec: RunSpec, config: Config) -> tuple[float, int]:
    """Seconds and decisions of one run with one model for every agent."""
    preset = load_preset("finvision")
    asked = ("news", "chart", "performance-reflection", "signal-reflection", "decision")
    models = ModelSet(
        spec=model.spec,
        models=dict.fromkeys(asked, model),
        settings=dict(preset.agents),
        insisted=frozenset(),
        opened=services(config).models.open(ReplayMode.LIVE),  # nothing is made in it
    )
    market = asyncio.run(load_run(services(config), spec))
    agents = AgentRun(services=services(config), spec=spec, preset=preset, models=models, market=market)
    with JournalWriter(places.run_journal(spec.run), batched=True) as journal:
        journal.run_started(
            RunEntry(id=spec.run, kind=RunKind.BACKTEST, name="bench", started=datetime(2000, 1, 1, tzinfo=UTC))
        )
        began = perf_counter()
        result = asyncio.run(play(agents, journal))
        return perf_counter() - began, len(result.test.decisions)


def main() -> int:
    """Prints milliseconds per decision, the median of three runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print("\nA decision of the whole cycle (finvision, demo market, journal kept), without model time")
    with tempfile.TemporaryDirectory() as home:
        os.environ["PAPERDESK_HOME"] = home
        for name, make in (("scripted answers", Scripted), ("offline rules", OfflineModel)):
            times, decisions = [], 0
            for n in range(repeats):
                spec = RunSpec(
                    symbols=("ORVL", "BXWD", "HLXM"),
                    first=date(2024, 1, 2),
                    last=date(2024, 6, 28),
                    preset="finvision",
                    data=DataSpec(None, 7),
                    run=f"bench-{name.split()[0]}-{n}",
                )
                check_spec(spec, datetime(2026, 1, 1, tzinfo=UTC))
                seconds, decisions = run(make(), spec, Config())
                times.append(seconds / decisions * 1000)
            print(f"  {name:18}{median(times):8.2f} ms per decision  ({decisions} decisions)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
