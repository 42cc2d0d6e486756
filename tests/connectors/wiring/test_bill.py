"""The bill of real requests to a service that bills as vendors do: no beginning is paid for twice, and every dollar and
token is counted as it was billed."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from connectors.llm import openai_model
from connectors.wiring.services import services
from engine.app.bench.forecast import forecast
from engine.app.bench.jobs import Job
from engine.app.research.backtest import run_backtest
from engine.domain.model_call import AnswerOptions
from engine.domain.run import DataSpec, RunSpec
from engine.reports.documents.backtest import document, fingerprint
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.servers.billing_server import LEAST, PRICES, SPECS, STEP, billing_server, rules_answers

SPEC = RunSpec(
    symbols=("TMBK", "ORVL"),
    first=date(2024, 2, 13),
    last=date(2024, 2, 15),
    data=DataSpec(None, 7),
    options=AnswerOptions(tier="flex"),
)


@pytest.mark.parametrize(
    ("preset", "vendor"),
    [
        ("finvision", "anthropic"),
        ("desk", "openai"),
        pytest.param("finvision", "openai", marks=pytest.mark.slow),
        pytest.param("desk", "anthropic", marks=pytest.mark.slow),
    ],
)
def test_no_beginning_is_paid_for_twice_and_all_is_counted_as_billed(preset: str, vendor: str) -> None:
    config = Config.model_validate({"models": {"default": SPECS[vendor]}})
    spec = replace(SPEC, preset=preset, run=f"{preset}-{vendor}")
    ruled, answers = rules_answers(spec, config)
    with billing_server(answers, reasoning=300) as server:
        report = run_backtest(services(config, NOON), spec)
    result, calls = report.result, server.ledger
    assert fingerprint(result.test) == fingerprint(ruled.test)
    assert result.model is not None and len(calls) == result.model.calls > 20

    assert [call.asks_for for call in calls if call.is_miss] == []
    assert min(call.stable for call in calls) >= LEAST
    assert all(call.read >= call.stable - call.stable % STEP for call in calls if call.again)
    # One cold call of each beginning, however many agents and symbols ask at a time.
    cold = Counter((call.asks_for, call.stable) for call in calls if not call.again)
    assert set(cold.values()) == {1} and len(cold) == len({call.asks_for for call in calls})

    asked, _, _, written = map(Decimal, PRICES[calls[0].model])
    preflight = len(server.preflights) * (10 * asked + 2 * written) / 1_000_000
    use = document(report)["model"]
    assert Decimal(use["cost"]) == sum(call.usd for call in calls) + preflight
    read, tokens = sum(call.read for call in calls), sum(call.tokens for call in calls)
    assert (use["cached_input_tokens"], use["reasoning_tokens"]) == (read, 300 * len(calls))
    assert use["cached_share"] == pytest.approx(read / (tokens + 10 * len(server.preflights)))
    assert use["tier"] == ("flex" if vendor == "openai" else "standard")
    for part in ("agents", "models", "months"):
        assert sum(Decimal(one["cost"]) for one in use[part].values()) == Decimal(use["cost"])
        assert sum(one["cached_input_tokens"] for one in use[part].values()) == read
    assert (list(use["models"]), list(use["months"])) == ([SPECS[vendor]], ["2025-07"])


def test_a_beginning_that_could_have_been_read_is_told_from_a_cold_one(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = itertools.count()
    monkeypatch.setattr(openai_model, "prefix_key", lambda system: f"key {next(keys)}")
    config = Config.model_validate({"models": {"default": SPECS["openai"]}})
    spec = replace(SPEC, preset="finvision", last=date(2024, 2, 14), run="scattered")
    _, answers = rules_answers(spec, config)
    with billing_server(answers) as server:
        run_backtest(services(config, NOON), spec)
    assert any(call.is_miss for call in server.ledger) and not any(call.read for call in server.ledger)


def test_a_forecast_is_within_15_percent_of_the_bill() -> None:
    config = Config.model_validate({"models": {"default": SPECS["openai"]}})
    spec = replace(SPEC, preset="finvision", last=date(2024, 2, 20), run="forecast")
    _, answers = rules_answers(spec, config)
    with billing_server(answers) as server:
        desk = services(config, NOON)
        (expected,) = forecast(desk, [Job(spec, None, "a run")]).models.values()
        run_backtest(desk, spec)
    assert float(expected.cost or 0) == pytest.approx(float(sum(call.usd for call in server.ledger)), rel=0.15)
    assert expected.cached_tokens == pytest.approx(sum(call.read for call in server.ledger), rel=0.15)
