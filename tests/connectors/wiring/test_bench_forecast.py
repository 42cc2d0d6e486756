"""The forecast of a bench: what it estimates beside what is asked then, and what is recorded already."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from connectors.charts.painter import MatplotlibPainter
from connectors.llm.paid_results import AnswerStore
from connectors.llm.replay import ReplayModel
from connectors.wiring.remote_models import RemoteModels
from connectors.wiring.services import services
from engine.app.bench import bench as bench_module
from engine.app.bench.bench import PreparedBench, prepare, run_bench
from engine.app.bench.forecast import CHARACTERS_A_TOKEN, CHART_TOKENS, forecast, is_free
from engine.app.bench.plan import BenchRequest
from engine.domain.model_call import ModelRequest, ModelResult, ModelSpec
from engine.errors import MissingData
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.short_bench import short_tables, write_folder

PAID = "openai:gpt-5.4-mini"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_module, "published", short_tables)
    monkeypatch.setenv("OPENAI_API_KEY", "of-no-use")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "data")


def prepared(folder: Path, *specs: str, repeats: int = 1) -> PreparedBench:
    return prepare(
        services(Config()),
        BenchRequest(name="finagent", folder=str(folder), symbols=("AMZN",), models=specs, repeats=repeats),
    )


def test_rules_and_replays_cost_nothing(folder: Path) -> None:
    assert all(is_free(services(Config()), job) for job in prepared(folder, "offline").jobs)
    replayed = [replace(job, spec=replace(job.spec, model="replay")) for job in prepared(folder, "offline").jobs]
    assert all(is_free(services(Config()), job) for job in replayed)
    with pytest.raises(MissingData, match="no answers are recorded yet"):
        prepared(folder, "replay")
    job, other = prepared(folder, PAID).jobs  # FinAgent's run and FinMem's
    assert not is_free(services(Config()), job) and not is_free(services(Config()), other)
    recorded = Config.model_validate({"models": {"default": PAID, "replay": "replay-only"}})
    assert is_free(services(recorded), job)


@pytest.mark.slow
def test_the_estimate_is_near_what_is_asked_then(folder: Path) -> None:
    found = forecast(services(Config()), prepared(folder, PAID).jobs)
    (estimate,) = found.models.values()
    asked = run_bench(services(Config()), prepared(folder, "offline")).models[0]
    assert estimate.calls == pytest.approx(asked.calls, rel=0.1)
    assert estimate.held == 0 and estimate.input_tokens > 500 * estimate.calls
    # Dollars by the price table: 0.75 a million in, a tenth of it from the cache, 4.50 out; tokens are whole numbers.
    fresh = Decimal(estimate.input_tokens - estimate.cached_tokens) * Decimal("0.75e-6")
    cached = Decimal(estimate.cached_tokens) * Decimal("0.075e-6")
    dollars = fresh + cached + Decimal(estimate.output_tokens) * Decimal("4.5e-6")
    assert estimate.cost is not None
    assert float(estimate.cost) == pytest.approx(float(dollars), rel=0.02)


@pytest.mark.slow
def test_repeats_and_models_add_up(folder: Path) -> None:
    once = forecast(services(Config()), prepared(folder, PAID).jobs).models[PAID]
    found = forecast(services(Config()), prepared(folder, PAID, "openai:unheard-of", "offline", repeats=3).jobs)
    assert set(found.models) == {PAID, "openai:unheard-of"} and found.runs == 12
    assert found.models[PAID].calls == pytest.approx(3 * once.calls)
    assert found.models["openai:unheard-of"].cost is None
    text = "\n".join(found.lines())
    assert "estimate" in text and "price unknown" in text and "12 runs" in text


def test_a_run_without_data_asks_nothing_and_is_counted(folder: Path) -> None:
    (folder / "prices" / "AMZN.csv").unlink()
    found = forecast(services(Config()), prepared(folder, PAID).jobs)
    assert (found.models, found.runs) == ({}, 0)


@pytest.mark.slow
@pytest.mark.parametrize("answers", [60, 10**6])
def test_what_is_recorded_is_not_paid_again(folder: Path, answers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = forecast(services(Config()), prepared(folder, PAID).jobs).models[PAID]
    left = [answers]

    class Recording(ReplayModel):
        async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
            left[0] -= 1
            if left[0] < 0:
                return await OfflineModel().answer(request, on_delta)
            return await super().answer(request, on_delta)

    def model(self: RemoteModels, spec: ModelSpec) -> LanguageModel:
        store, painter = AnswerStore(places.replay_cache()), MatplotlibPainter.version
        return Recording(store, OfflineModel(), provider=spec.provider, model=spec.model, painter_version=painter)

    with monkeypatch.context() as patch:
        patch.setattr(RemoteModels, "model", model)
        asked = run_bench(services(Config()), prepared(folder, PAID)).models[0].calls
    after = forecast(services(Config()), prepared(folder, PAID).jobs).models[PAID]
    assert after.held == min(answers, asked)
    if answers > asked:
        assert after.input_tokens < 0.1 * before.input_tokens
        assert after.cost is not None and before.cost is not None and after.cost < before.cost / 10
        other = forecast(services(Config()), prepared(folder, "openai:gpt-5.5").jobs).models["openai:gpt-5.5"]
        assert other.held == 0
    else:
        assert before.input_tokens > after.input_tokens > 0.5 * before.input_tokens


class Counting(OfflineModel):
    """The rules in the place of a model, which count the length and the charts of what they are asked."""

    def __init__(self, sees: bool) -> None:
        self.sees = sees
        self.tokens = self.charts = 0

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        text = request.system + "".join(message.text for message in request.messages) + json.dumps(request.schema)
        charts = sum(len(message.charts) for message in request.messages)
        self.tokens += len(text) // CHARACTERS_A_TOKEN + charts * CHART_TOKENS
        self.charts += charts
        return await super().answer(request, on_delta)


@pytest.mark.slow
@pytest.mark.parametrize("sees", [True, False])
def test_a_model_is_rehearsed_with_charts_only_where_it_is_shown_them(
    folder: Path, sees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two months: an estimate from few sessions is further off.
    longer = partial(short_tables, last=date(2023, 7, 31), warm_up_from=date(2023, 6, 1))
    monkeypatch.setattr(bench_module, "published", longer)
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "vision": sees}
    desk = services(Config.model_validate({"endpoints": {"near": endpoint}}))
    model = Counting(sees)
    monkeypatch.setattr(RemoteModels, "model", lambda self, spec: model)
    request = BenchRequest(name="finagent", folder=str(folder), symbols=("AMZN",), models=("near:m1",))
    bench = prepare(desk, request)
    (estimate,) = forecast(desk, bench.jobs).models.values()
    run_bench(desk, bench)
    assert bool(model.charts) is sees
    assert estimate.input_tokens == pytest.approx(model.tokens, rel=0.03)
