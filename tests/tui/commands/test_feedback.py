"""What memories are paid for, read from the life-lines that backtests and daily runs leave; decisions are scripted."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from math import sqrt
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from engine.domain.market import PriceHistory
from engine.domain.model_call import ModelRequest, ModelResult
from engine.market.trading_hours import calendar_for
from engine.offline.model import OfflineModel
from tests.data_folders import DrawnOnce
from tests.tui.commands.conftest import Run

WITHOUT = "vision,chart,tools,past,low-level,high-level,performance-reflection,signal-reflection"
FEW_STEPS = """
extends = "desk"
name = "few"
title = "few steps"
steps = ["intelligence", "memory", "diversified"]
"""
RULES = {"BUY": "strong uptrend", "SELL": "reversal", "HOLD": "uncertainty"}
FIRST, LAST = date(2024, 2, 12), date(2024, 4, 5)

Wish = Callable[[ModelRequest, list[Any]], tuple[str, list[Any]] | None]
"""The action of a decision and the memories that it cites, of those it was given; None for no valid answer."""
Changes = Mapping[str, list[dict[str, Any]]]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Wish], None]:
    """Answers decisions by a script, and all else by the rules."""
    plain = OfflineModel.answer

    def script(wish: Wish) -> None:
        async def answer(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
            given = await plain(self, request, on_delta)
            if request.purpose != "evidence-decision":
                return given
            wished = wish(request, sorted(request.view.recollections, key=lambda one: (one.session, one.id)))
            if wished is None:
                return replace(given, answer=None, text="nothing to read")
            action, cited = wished
            said = {"recommendation": action, "position_size": 0 if action == "HOLD" else 5, "rule": RULES[action]}
            said |= {"evidence": [memory.handle for memory in cited], "explanation": "By the script."}
            return replace(given, answer={**(given.answer or {}), **said}, text=json.dumps(said))

        monkeypatch.setattr(OfflineModel, "answer", answer)

    return script


class EachItsOwn:
    """Cites one memory per decision that no decision before it has cited, and acts by the number of the session."""

    def __init__(self, action: Callable[[int], str | None]) -> None:
        self.action = action
        self.cited: dict[date, tuple[str, str | None]] = {}

    def __call__(self, request: ModelRequest, given: list[Any]) -> tuple[str, list[Any]] | None:
        used = {name for name, _ in self.cited.values()}
        fresh = [memory for memory in given if memory.id not in used][:1]
        action = self.action(len(self.cited)) if fresh else "HOLD"
        if fresh:
            self.cited[request.session] = fresh[0].id, action
        return None if action is None else (action, fresh)


def changes(run: Run, folder: Path, *of: str) -> Changes:
    """Every memory's life-line by id."""
    file = folder / f"{len(list(folder.iterdir()))}.jsonl"
    assert run("memory", "export", str(file), *of).code == 0
    return {row["id"]: row["changes"] for row in map(json.loads, file.read_text().splitlines())}


def rewards(lines: Changes) -> dict[str, list[tuple[str, str, str]]]:
    """Session, cause and decision of every reward, by memory."""
    told = {
        name: [(one["session"], one["cause"], one["by"]) for one in line if one["cause"] in ("paid", "cost")]
        for name, line in lines.items()
    }
    return {name: line for name, line in told.items() if line}


def closes(symbol: str) -> PriceHistory:
    return asyncio.run(DrawnOnce(7, calendar_for, date(2025, 6, 30)).history(symbol))


def backtest(run: Run, *more: str, preset: str = "desk", last: date = LAST) -> str:
    """Runs one on the demo market, and returns its id."""
    without = ("--without", WITHOUT) if preset == "desk" else ()
    window = ("--symbols", "TMBK", "--from", str(FIRST), "--to", str(last), "--slippage", "0")
    done = run("backtest", *window, "--preset", preset, *without, *more, "--json")
    assert done.code == 0, done.err
    return str(done.json["run"])


@pytest.mark.parametrize("commission", [pytest.param(0.0, marks=pytest.mark.slow), 0.02])
def test_a_direction_is_paid_by_the_move_over_five_sessions_net_of_costs(
    run: Run, fresh: Path, scripted: Callable[[Wish], None], tmp_path: Path, commission: float
) -> None:
    wish = EachItsOwn(lambda n: ("SELL", "BUY", "SELL", "HOLD", None)[n % 5])
    scripted(wish)
    backtest(run, "--commission", str(commission))
    lines, bars = rewards(changes(run, tmp_path)), closes("TMBK")
    seen = set()
    for session, (name, action) in wish.cited.items():
        row = bars.index(session)
        assert row is not None
        if action is None or action == "HOLD" or bars.session(row + 5) > LAST:
            assert name not in lines
            continue
        move = bars.close[row + 5] / bars.close[row] - 1
        returns = [bars.close[n] / bars.close[n - 1] - 1 for n in range(row - 19, row + 1)]
        if abs(move) <= 0.5 * stdev(returns) * sqrt(5):
            assert name not in lines
            seen.add((action, "noise"))
            continue
        net = (move if action == "BUY" else -move) - commission
        cause = "paid" if net > 0 else "cost"
        assert lines[name] == [(str(bars.session(row + 5)), cause, f"{session} TMBK desk 1")]
        seen.add((action, "rise" if move > 0 else "fall", cause))
    assert {("SELL", "rise", "cost"), ("SELL", "noise")} <= seen
    assert ("SELL", "fall", "paid") in seen or commission
    assert bool(commission) == (("SELL", "fall", "cost") in seen or ("BUY", "rise", "cost") in seen)


def test_a_memory_that_is_cited_daily_is_rewarded_once_per_horizon(
    run: Run, fresh: Path, scripted: Callable[[Wish], None], tmp_path: Path
) -> None:
    scripted(lambda request, given: ("BUY", given[:1]))
    backtest(run)
    lines = changes(run, tmp_path)
    cited = {name: sum(one["cause"] == "cited" for one in line) for name, line in lines.items()}
    bars, often = closes("TMBK"), max(cited, key=lambda name: cited[name])
    assert cited[often] > 10
    by = [date.fromisoformat(decision.split()[0]) for _, _, decision in rewards(lines)[often]]
    rows = [bars.index(session) or 0 for session in by]
    assert len(rows) > 1
    assert all(later - row >= 5 for row, later in itertools.pairwise(rows))
    assert len(set(by)) == len(by)


@pytest.mark.parametrize(
    ("base", "horizon"), [("investorbench", 1), pytest.param("tradinggpt", 5, marks=pytest.mark.slow)]
)
def test_other_presets_have_their_own_horizon_and_size_of_a_move(
    run: Run, fresh: Path, scripted: Callable[[Wish], None], tmp_path: Path, base: str, horizon: int
) -> None:
    preset = tmp_path / "few.toml"
    preset.write_text(FEW_STEPS + f'[memory]\nbase = "{base}"\n')
    wish = EachItsOwn(lambda n: "SELL")
    scripted(wish)
    backtest(run, preset=str(preset))
    lines, bars = rewards(changes(run, tmp_path)), closes("TMBK")
    expected = {}
    for session, (name, _) in wish.cited.items():
        row = bars.index(session) or 0
        returns = [bars.close[n] / bars.close[n - 1] - 1 for n in range(row - 19, row + 1)]
        least = stdev(returns) * (2 if base == "tradinggpt" else 0.5 * sqrt(horizon))
        if bars.session(row + horizon) <= LAST and abs(move := bars.close[row + horizon] / bars.close[row] - 1) > least:
            cause = "cost" if move > 0 else "paid"
            expected[name] = [(str(bars.session(row + horizon)), cause, f"{session} TMBK desk 1")]
    living = {name: line for name, line in expected.items() if name in lines}
    assert lines == living and len(living) > 1


@pytest.mark.slow
def test_an_overruled_owner_is_rewarded_by_its_own_direction(
    run: Run, fresh: Path, scripted: Callable[[Wish], None], tmp_path: Path
) -> None:
    preset = tmp_path / "two.toml"
    owners = (
        'combine = "weighted"\n[owners.bull]\nrisk = "risk-seeking"\nweight = 3\n[owners.bear]\nrisk = "risk-averse"\n'
    )
    preset.write_text(FEW_STEPS + owners)
    scripted(lambda request, given: ("BUY" if request.owner == "bull" else "SELL", given[:1]))
    backtest(run, preset=str(preset), last=date(2024, 3, 8))
    causes: dict[tuple[str, str], str] = {}
    for line in rewards(changes(run, tmp_path)).values():
        for _, cause, by in line:
            session, _, owner, _ = by.split()
            causes[session, owner] = cause
    both = {session for session, _ in causes if (session, "bull") in causes and (session, "bear") in causes}
    assert both
    assert all(causes[session, "bull"] != causes[session, "bear"] for session in both)
    assert {owner for _, owner in causes} == {"bull", "bear"}


@pytest.mark.slow
def test_a_killed_desk_and_a_backtest_reward_the_same(
    run: Run, fresh: Path, scripted: Callable[[Wish], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = [date(2024, 2, 21), date(2024, 2, 23)]

    def wish(request: ModelRequest, given: list[Any]) -> tuple[str, list[Any]]:
        if kills and request.session == kills[0]:
            raise KeyboardInterrupt
        return "SELL", given[:2]

    scripted(wish)
    preset = tmp_path / "few.toml"
    preset.write_text(FEW_STEPS)
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(preset))
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "TMBK")
    monkeypatch.setenv("PAPERDESK_EXECUTION__SLIPPAGE_BP", "0")
    days = calendar_for("TMBK").sessions(date(2024, 2, 9), date(2024, 3, 1))
    for day in days:
        ended = run("--daily", "--session", str(day))
        if kills and day == kills[0]:
            assert ended.code != 0
            kills.pop(0)
            ended = run("--daily", "--session", str(day))
        assert ended.code == 0, ended.err
    daily = rewards(changes(run, tmp_path))
    played = backtest(run, preset=str(preset), last=days[-1])
    assert rewards(changes(run, tmp_path, "--run", played)) == daily != {}

    (both,) = run("why", "TMBK", str(days[-2]), "--redecide", "--run", played, "--json").json["decisions"]
    assert both["then"]["recollections"] == both["now"]["recollections"] != []
