"""The bench of the memory measures the same work: on the same records all exact engines find the same."""

from __future__ import annotations

import pytest

from tests.bench import bench_memory
from tests.bench.bench_memory import bench_recall, bench_sweep, bench_year


@pytest.mark.parametrize(
    ("count", "symbols"),
    [
        (600, 1),
        (500, 10),
        *(pytest.param(*long, marks=pytest.mark.slow) for long in ((2_200, 1), (6_000, 1), (3_000, 10))),
    ],
)
def test_a_ranking_of_all_is_the_step_wise_one(count: int, symbols: int) -> None:
    rows = {row["engine"]: row for row in bench_recall(count, symbols)}

    assert rows["paperdesk"]["agree"] == 1.0
    assert rows["step-wise numpy"]["agree"] == 1.0
    assert 0 < rows["paperdesk"]["p50"] <= rows["paperdesk"]["p95"]
    if "faiss-cpu" in rows:
        assert 0 < rows["faiss-cpu"]["agree"] < 1  # it ranks what is likest alone


def test_a_sweep_touches_what_is_due_alone() -> None:
    row = bench_sweep(1_200)

    assert 0 < row["touched"] < row["alive"] / 2


@pytest.mark.slow
def test_a_month_of_a_year_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_memory, "YEAR", 25)

    row = bench_year()

    assert row["records"] == 25 * bench_memory.A_DAY
    assert row["tidied"] >= 2
    assert row["largest_mb"] < bench_memory.LIMIT_MB * 25 / 250
