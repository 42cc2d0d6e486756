"""Seconds a session beside the floor of the graph, with a model that lets everybody wait: what is asked one after
another that could have been asked together shows as a ratio above 1.

The offline rules answer each question after `--wait` seconds, as many at once as an endpoint takes by default. Each
preset runs on the demo market; its floor are the calls that have to stand in a row (intelligence, past, low-level
reflection, decision in `desk`). Run as `python -m tests.bench.bench_waiting [--wait 3] [--last DATE]`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from time import perf_counter

from connectors.llm.endpoint import RateLimiter
from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.clock import LiveClock
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.offline.model import OfflineModel
from engine.settings.config import Config

RUNS = {"finvision": (2, ("TMBK", "ORVL", "HLXM")), "desk": (4, ("TMBK", "ORVL", "HLXM", "KSTO"))}
"""The floor of each preset, and its symbols."""
FIRST = date(2025, 3, 3)
BY_RULES = OfflineModel.answer


def run(preset: str, symbols: tuple[str, ...], wait: float, last: date) -> tuple[int, float]:
    """The sessions in which models were asked, and the seconds that they took."""
    limiter, sessions = RateLimiter(), set[date]()

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None) -> ModelResult:
        sessions.add(request.session)
        async with limiter.slots.slot():
            await asyncio.sleep(wait)
        return await BY_RULES(self, request, on_delta)

    spec = RunSpec(
        symbols=symbols, first=FIRST, last=last, preset=preset, data=DataSpec(None, 7), run=f"waiting-{preset}"
    )
    OfflineModel.answer = answer  # type: ignore[method-assign]
    began = perf_counter()
    run_backtest(services(Config(), LiveClock()), spec, baselines=())
    return len(sessions), perf_counter() - began


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wait", type=float, default=0.5)
    parser.add_argument("--last", type=date.fromisoformat, default=date(2025, 3, 6))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PAPERDESK_HOME"] = folder
        print(f"{'preset':12} sessions  s a session  floor  ratio")
        for preset, (floor, symbols) in RUNS.items():
            sessions, took = run(preset, symbols, chosen.wait, chosen.last)
            each, least = took / sessions, floor * chosen.wait
            print(f"{preset:12} {sessions:8}  {each:11.2f}  {least:5.2f}  {each / least:5.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
