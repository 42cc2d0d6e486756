"""`paperdesk bench recall`: whether what is asked for is found, ranking by ranking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING

from tui.text.console import show_document, standard_output

if TYPE_CHECKING:
    from engine.app.bench.recall import RecallBench
    from engine.services import Services

THROUGH = date(2025, 12, 31)
"""The last day of the demo market's documents: the questions are the same on every day."""


def measure_recall(services: Services, folder: str | None, symbols: tuple[str, ...]) -> None:
    """Put the questions to every ranking and print how each did."""
    from engine.app.bench.recall import DEFAULT, run_recall_bench
    from engine.clock import LiveClock
    from engine.domain.run import DataSpec

    data = DataSpec(folder) if folder is not None else DataSpec(None, services.config.data.demo_seed)
    through = THROUGH if folder is None else LiveClock().now().date()
    bench = run_recall_bench(services, data, symbols, through)
    document = {"schema": 1, "default": DEFAULT, **asdict(bench)}
    show_document(document, lambda: _lines(bench))


def _lines(bench: RecallBench) -> Iterator[str]:
    console = standard_output()
    yield console.bold(f"Evidence recall: {bench.questions:,} questions over {bench.documents:,} documents")
    yield f"{'RANKING':<24} {'R@5':>6} {'R@20':>6} {'MRR':>6} {'SUPERSEDED FIRST':>17}"
    for one in sorted(bench.methods, key=lambda one: -one.r20):
        yield f"{one.name:<24} {one.r5:6.3f} {one.r20:6.3f} {one.mrr:6.3f} {one.superseded_first:17}"
    yield "R@k: share of the evidence among the first k. MRR: mean reciprocal rank of the first piece of evidence."
    later = sum(one.later for one in bench.methods)
    yield f"Ranked although from after its question: {later}. layered is the default memory, which forgets."
