"""Learned baselines: trained on the past alone, kept, and worth no more than a control where nothing can be learned."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.demo.market import DemoMarket
from engine.conventions.metrics import daily_mean_interval
from engine.domain.run import FillAt
from engine.market.as_of import load_market
from engine.market.trading_hours import calendar_for, decision_time
from engine.settings import places
from engine.strategies.learning import training
from engine.strategies.learning.samples import best_thresholds, features, growth, horizon_of, samples_of
from engine.strategies.strategy import TrainingHistory
from tests.tui.commands.conftest import Run

LEARNED = ("--strategy", "lgbm", "--symbols", "ORVL,BXWD", "--warm-up-from", "2024-01-02")
WINDOW = ("--from", "2025-01-02", "--to", "2025-02-14")
SHORT = ("--from", "2025-01-02", "--to", "2025-01-15")


def test_a_model_is_kept_and_found_again(fresh: Path, run: Run) -> None:
    first = run("backtest", *LEARNED, *WINDOW, "--json")
    assert first.code == 0, first
    assert first.json["trades"]
    kept = {path: path.stat().st_mtime_ns for path in places.learned_models().iterdir()}
    assert sorted(path.suffix for path in kept) == ["", ".json"]
    again = run("backtest", *LEARNED, *WINDOW, "--json")
    assert again.json["fingerprint"] == first.json["fingerprint"]
    assert {path: path.stat().st_mtime_ns for path in places.learned_models().iterdir()} == kept
    other = run("backtest", *LEARNED, *WINDOW, "--seed", "1", "--json")
    assert other.json["settings"]["seed"] == 1
    assert len(list(places.learned_models().iterdir())) == 4


def test_what_is_decided_does_not_depend_on_what_comes_later(fresh: Path, run: Run) -> None:
    audit = run("audit", *LEARNED, *SHORT, "--cuts", "3", "--json")
    assert (audit.code, audit.json["verdict"], audit.json["findings"]) == (0, "clean", []), audit
    assert audit.json["truncation"]["differing"] == 0


def test_a_model_that_cannot_be_kept_is_said_in_one_line(fresh: Path, run: Run) -> None:
    places.learned_models().write_text("a file in the place of the folder")
    ended = run("backtest", *LEARNED, *SHORT)
    assert (ended.code, ended.err.count("\n")) == (78, 1)
    assert str(places.learned_models()) in ended.err


ECHO = """import pickle, sys
while True:
    request = pickle.load(sys.stdin.buffer)
    for word in (("progress", 1, 2), ("done", request)):
        pickle.dump(word, sys.stdout.buffer)
    sys.stdout.flush()
"""


def test_a_request_that_was_given_up_does_not_answer_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **more: begin([sys.executable, "-c", ECHO], **more))
    training._Worker.of_process.cache_clear()
    with pytest.raises(ZeroDivisionError):
        training._Worker.of_process().ask(("train",), lambda done, total: 1 / 0)
    worker = training._Worker.of_process()
    assert worker.ask(("predict",), lambda done, total: None) == ("predict",)
    worker._end()


def test_a_short_training_is_refused(fresh: Path, run: Run) -> None:
    ended = run("backtest", *LEARNED[:-1], "2024-12-16", *SHORT)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "--warm-up-from" in ended.err


async def history(fill_at: FillAt) -> TrainingHistory:
    symbols = ("ORVL", "BXWD")
    source = DemoMarket(7, calendar_for, date(2025, 6, 30))
    market = await load_market(source, None, symbols, calendar_for)
    last = date(2025, 5, 30)
    now = decision_time(calendar_for("ORVL"), last)
    return TrainingHistory(
        first=date(2024, 6, 3),
        last=last,
        symbols=symbols,
        market=market.at(now),
        fill_at=fill_at,
        cost=Decimal("0.001"),
    )


async def test_a_feature_in_training_is_that_of_its_own_day() -> None:
    known = await history(FillAt.NEXT_OPEN)
    calendar = calendar_for("ORVL")
    for symbol in known.symbols:
        bars = known.market.bars(symbol, known.market.count(symbol))
        whole = features(bars, 5)
        for row in range(60, len(bars), 37):
            then = known.market._market.at(decision_time(calendar, bars.session(row)))
            np.testing.assert_allclose(features(then.bars(symbol, 40), 5)[-1], whole[row], atol=1e-7)
    assert np.ptp(features(known.bars("BXWD"), 5)[50:, :, -1]) > 0  # a dividend was paid


@pytest.mark.parametrize("fill_at", FillAt)
async def test_no_label_reaches_into_the_part_that_is_held_out(fill_at: FillAt) -> None:
    samples, horizon = samples_of(await history(fill_at), 5), horizon_of(fill_at)
    train, held_out = samples.split(horizon)
    assert len(train) + horizon + len(held_out) == len(samples)
    assert held_out.label[-1] == pytest.approx(samples.label[-1])
    # What a label counts is what holding earns between two fills.
    earned = samples.held if horizon == 1 else (1 + samples.held[:-1]) * (1 + samples.overnight[1:]) - 1
    np.testing.assert_allclose(samples.label[: len(earned)], earned, atol=1e-6)


async def test_thresholds_are_of_the_part_held_out_and_never_lose_in_it() -> None:
    _, held_out = samples_of(await history(FillAt.SAME_CLOSE), 5).split(1)
    random = np.random.default_rng(0)
    for predicted in (held_out.label, random.normal(size=held_out.label.shape), np.zeros(held_out.label.shape)):
        chosen = best_thresholds(predicted, held_out, 0.001)
        assert growth(chosen.positions(predicted), held_out, 0.001) >= 0


@pytest.fixture
def trending(fresh: Path, tmp_path: Path) -> Path:
    """Six stocks whose rise or fall goes on the next day more often than not."""
    days = calendar_for("A").sessions(date(2021, 1, 4), date(2023, 12, 29))
    folder = tmp_path / "data" / "prices"
    folder.mkdir(parents=True)
    random = np.random.default_rng(5)
    for symbol in "ABCDEF":
        moves = np.zeros(len(days))
        for day in range(1, len(days)):
            moves[day] = 0.6 * moves[day - 1] + random.normal(0, 0.012)
        close = 100 * np.exp(np.cumsum(moves))
        rows = ["date,open,high,low,close,adj_close,volume"]
        for day, before, after in zip(days[1:], close, close[1:], strict=False):
            low, high = sorted((before, after))
            rows.append(f"{day},{before:.4f},{high:.4f},{low:.4f},{after:.4f},{after:.4f},1000")
        (folder / f"{symbol}.csv").write_text("\n".join(rows) + "\n")
    return folder.parent


def beyond_holding(document: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns beyond those of buy and hold of the same exposure, by session."""
    values = np.array([float(point["value"]) for point in document["equity"]])
    held = np.array([float(value) for value in document["baselines"]["buy-and-hold"]["equity"]])
    returns, market = values[1:] / values[:-1] - 1, held[1:] / held[:-1] - 1
    beyond: np.ndarray[Any, np.dtype[np.float64]] = returns - document["metrics"]["exposure"] * market
    return beyond


def test_permuted_labels_earn_nothing_where_true_ones_earn(trending: Path, run: Run) -> None:
    arguments = ("--strategy", "lgbm", "--symbols", "A,B,C,D", "--data", str(trending), "--warm-up-from",
                 "2021-03-01", "--from", "2022-06-01", "--to", "2023-12-22", "--slippage", "0", "--json")  # fmt: skip
    true = run("backtest", *arguments)
    assert true.code == 0, true
    low, _ = daily_mean_interval(beyond_holding(true.json))
    assert low is not None and low > 0
    control = run("backtest", *arguments, "--param", "labels=permuted")
    assert control.json["trades"]
    low, high = daily_mean_interval(beyond_holding(control.json))
    assert low is not None and high is not None and low < 0 < high


in_torch = pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="the extra rl is not installed")


@pytest.mark.slow
@in_torch
@pytest.mark.parametrize(
    "strategy", ["lstm", "transformer", "stockmixer", "timesnet", "stockformer", "dqn", "ppo", "sac"]
)
def test_a_model_in_torch_is_the_same_twice_and_sees_nothing_of_the_future(
    fresh: Path, run: Run, strategy: str
) -> None:
    asked = ("--strategy", strategy, *LEARNED[2:5], "2024-11-01", "--from", "2025-01-02", "--to", "2025-01-10")
    first = run("backtest", *asked, "--json")
    assert first.code == 0, first
    shutil.rmtree(places.learned_models())
    assert run("backtest", *asked, "--json").json["fingerprint"] == first.json["fingerprint"]
    audit = run("audit", *asked, "--cuts", "2", "--json")
    assert (audit.code, audit.json["verdict"], audit.json["findings"]) == (0, "clean", []), audit


@pytest.mark.slow
@in_torch
async def test_what_the_trading_environment_pays_is_what_the_books_would_come_to() -> None:
    from engine.strategies.learning.policies import PERCENT, Trading

    samples, cost = samples_of(await history(FillAt.NEXT_OPEN), 5), 0.002
    env, random = Trading(samples, cost, shares=True), np.random.default_rng(1)
    shares = random.random(len(samples))
    env.reset()
    rewards = [env.step(np.array([share]))[1] for share in shares]
    capital, held = 1.0, 0.0
    for place, share in enumerate(shares):
        capital *= 1 + held * samples.overnight[place, 0]
        capital *= (1 - cost * abs(share - held)) * (1 + share * samples.held[place, 0])
        held = share
    assert sum(rewards) / PERCENT == pytest.approx(np.log(capital))
