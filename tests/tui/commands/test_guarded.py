"""Whatever asks a paid model is guarded: deciding again, the bench of memory, backtests with a budget."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engine.journal.reader import JournalReader
from engine.settings import places
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_costs import BACKTEST, DAY, LOCAL_PRICE, Counting, Desk, desk, service

__all__ = ["desk", "service"]

ASKING = "[budget]\nask_above = 0.00001\nusd_per_day = {}\n"
DEAR = LOCAL_PRICE.replace("input = 2\n", "input = 20\n").replace("output = 10", "output = 1000")


@pytest.mark.slow
def test_deciding_again_is_forecast_asked_about_and_lives_within_the_day(
    desk: Desk, service: Counting, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk(DEAR)
    assert run(*DAY, "--yes").code == 2  # a daily run never asks
    desk(DEAR + "[budget]\nusd_per_day = 1000\n")
    assert run(*DAY).code == 0
    again = ("why", "ORVL", "2025-03-11", "--redecide", "--without", "news")

    # Nothing is new where nothing changes: no forecast, no question.
    desk(DEAR + ASKING.format(1000))
    service.requests.clear()
    same = run(*again[:-2])
    assert (same.code, same.err, service.requests) == (0, "", [])

    refused = run(*again)
    assert refused.code == 2 and service.requests == []
    assert "Forecast for deciding ORVL of 2025-03-11 again:" in refused.err and "near:m1: about 1 calls" in refused.err
    assert "is above budget.ask_above ($0.00): pass --yes to run it" in refused.err

    desk(DEAR + ASKING.format("0.01"))
    reached = run(*again, "--yes")
    assert reached.code == 75 and service.requests == []
    assert "budget.usd_per_day of $0.01 is reached" in reached.err

    # What was paid for here counts in the day, for the desk's runs as well.
    monkeypatch.setattr(service, "tokens_out", 20_000)
    desk(DEAR + ASKING.format(1000))
    done = run(*again, "--yes")
    assert done.code == 0 and len(service.requests) == 1
    desk(DEAR + "[budget]\nusd_per_day = 21\n")
    service.requests.clear()
    later = run("--daily", "--session", "2025-03-12")
    assert later.code == 75 and service.requests == []
    assert "$20." in later.err and "are spent today" in later.err


def test_the_bench_of_memory_lives_within_the_day(desk: Desk, service: Counting, run: Run) -> None:
    window = ("--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-12")
    bench = ("bench", "memory", "--preset", "finmem", *window)
    desk(DEAR + ASKING.format("0.01"))
    refused = run(*bench)
    assert refused.code == 2 and "pass --yes to run it" in refused.err and service.requests == []
    reached = run(*bench, "--yes")
    assert reached.code == 75 and "budget.usd_per_day of $0.01 is reached" in reached.err
    assert service.requests == []


def test_a_backtest_s_own_budget_stops_it_and_a_resumed_part_counts(
    desk: Desk, service: Counting, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent() -> Decimal:
        with JournalReader(places.run_journal("paid")) as reader:
            return sum((answer.result.cost or Decimal(0) for answer in reader.answers(run="paid")), Decimal(0))

    desk(DEAR)
    monkeypatch.setattr(service, "tokens_out", 1_000)  # no answer is longer than the limit that is sent
    stopped = run(*BACKTEST, "--yes", "--budget", "15")
    assert stopped.code == 75 and "--budget of $15.00 is reached" in stopped.err
    assert "`paperdesk backtest --resume paid` continues" in stopped.err
    first = spent()
    assert 1 < first <= 15
    (listed,) = run("runs", "list", "--json").json["runs"]
    assert listed["outcome"] == "failed" and first < Decimal(listed["cost"]) < first + 1, "with the preflight"
    assert Decimal(run("report", "--run", "paid", "--format", "json").json["model"]["cost"]) == Decimal(listed["cost"])
    same = run("backtest", "--resume", "paid", "--yes", "--budget", "15")
    # It may ask what costs less than the question that ended the first part, which one that is depends on the moment.
    assert same.code == 75 and first <= spent() <= 15
    done = run("backtest", "--resume", "paid", "--yes", "--budget", "100000", "--json")
    assert done.code == 0 and Decimal(done.json["model"]["cost"]) > 15
    assert len(service.requests) == done.json["model"]["calls"]
    assert run(*BACKTEST, "--budget", "-1").code == 2
