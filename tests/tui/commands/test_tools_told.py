"""Tools as the decision is told of them: parameters, a record of their own signals until then, experts' notes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engine.domain.market import PriceHistory
from engine.domain.model_call import ModelRequest, ModelResult
from engine.market.trading_hours import calendar_for
from engine.offline.model import OfflineModel
from engine.strategies.catalog import make_rule
from tests.data_folders import DrawnOnce
from tests.tui.commands.conftest import Run

WINDOW = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-07")


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> dict[date, str]:
    """What the decision is told, by session."""
    told: dict[date, str] = {}
    plain = OfflineModel.answer

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> Any:
        if request.purpose in ("whole-decision", "evidence-decision"):
            told[request.session] = request.system + "\n".join(message.text for message in request.messages)
        given: ModelResult = await plain(self, request, on_delta)
        return given

    monkeypatch.setattr(OfflineModel, "answer", answer)
    return told


def counted(name: str, bars: PriceHistory) -> tuple[str, int, int, float, float]:
    """A rule's record, counted bar by bar: the day of its first signal, those that were right, all, and two returns."""
    signals = [int(signal) for signal in make_rule(name).signals(bars)]
    side, begun, right, count, worth, first = 0, 0, 0, 0, 1.0, -1
    for row in range(len(bars)):
        ends = row == len(bars) - 1
        if side and (ends or signals[row] * side < 0):
            move = bars.close[row] / bars.close[begun]
            right, count = right + ((move > 1) if side > 0 else (move < 1)), count + 1
            worth *= move if side > 0 else 1.0
        if signals[row] and not ends and signals[row] * side <= 0:
            side, begun = (1 if signals[row] > 0 else -1), row
            first = row if first < 0 else first
    return str(bars.session(first)), right, count, worth - 1, bars.close[-1] / bars.close[first] - 1


@pytest.mark.parametrize("preset", ["finagent", "desk"])
def test_tools_come_with_parameters_and_the_record_of_their_signals_until_then(
    run: Run, fresh: Path, prompts: dict[date, str], preset: str
) -> None:
    assert run("backtest", *WINDOW, "--preset", preset, "--json").code == 0
    bars = asyncio.run(DrawnOnce(7, calendar_for, date(2025, 6, 30)).history("ORVL"))
    assert len(prompts) == 5
    for session, text in prompts.items():
        assert "often been wrong" not in text
        known = bars.slice(0, bars.rows_through(session))
        known = known.slice(max(0, len(known) - 310), len(known))
        for name, parameters in (
            ("macd", "fast 12, slow 26, signal 9, rows 0"),
            ("kdj-rsi", "window 9, smoothing 3, overbought 60.0, oversold 40.0, period 14, lines recursive, rows 0"),
            ("z-score", "window 14, threshold 1.0"),
        ):
            line = next(line for line in text.splitlines() if line.startswith(f"- {name}, "))
            assert f"Parameters: {parameters}. " in line
            found = re.search(
                r"Record since (\S+): (\d+) of (\d+) signals right; invested by them (\S+)%, always invested (\S+)%\.$",
                line,
            )
            assert found is not None, line
            first, right, count, worth, held = counted(name, known)
            assert (found[1], int(found[2]), int(found[3])) == (first, right, count)
            assert (float(found[4]), float(found[5])) == pytest.approx((100 * worth, 100 * held), abs=0.006)


def test_the_tools_that_are_on_and_the_experts_are_the_users(
    run: Run, fresh: Path, prompts: dict[date, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "guidance.csv"
    notes.write_text("date,symbol,text\n2025-03-03,ORVL,Boards are short.\n2025-03-05,ORVL,Boards are plenty.\n")
    monkeypatch.setenv("PAPERDESK_DATA__GUIDANCE", str(notes))
    preset = tmp_path / "own.toml"
    preset.write_text('extends = "finagent"\nname = "own"\ntools = ["z-score"]\n')
    assert run("backtest", *WINDOW, "--preset", str(preset), "--json").code == 0
    for session, text in prompts.items():
        assert "- z-score, " in text and "- macd, " not in text and "- kdj-rsi, " not in text
        assert ("expert guidance: Boards are short." in text) == (session > date(2025, 3, 3))
        assert ("expert guidance: Boards are plenty." in text) == (session > date(2025, 3, 5))

    other = tmp_path / "other.toml"
    other.write_text(preset.read_text().replace("z-score", "mcd"))
    refused = run("backtest", *WINDOW, "--preset", str(other), "--json")
    assert refused.code == 78 and "unknown strategy mcd (did you mean macd?)" in refused.err


def test_a_tool_has_the_presets_parameters_and_can_be_left_out_alone(
    run: Run, fresh: Path, prompts: dict[date, str], tmp_path: Path
) -> None:
    preset = tmp_path / "own.toml"
    preset.write_text('extends = "finagent"\nname = "own"\n[tools]\nmacd = { fast = 5, slow = 20 }\n')
    assert run("backtest", *WINDOW, "--preset", str(preset), "--without", "z-score", "--json").code == 0
    assert len(prompts) == 5
    for text in prompts.values():
        assert "Parameters: fast 5, slow 20, signal 9, rows 0. " in text
        assert "- kdj-rsi, " in text and "- z-score, " not in text


def test_a_tool_of_the_briefing_is_left_out_as_one_of_the_preset_is(
    run: Run, fresh: Path, prompts: dict[date, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__TOOLS", "macd,sma-cross")
    preset = tmp_path / "own.toml"
    preset.write_text('extends = "finagent"\nname = "own"\n[tools]\nmacd = { fast = 5, slow = 20 }\n')
    told = ("backtest", *WINDOW, "--preset", str(preset))
    assert run(*told, "--without", "macd", "--json").code == 0
    assert prompts and all("- sma-cross, " in text and "- macd, " not in text for text in prompts.values())

    assert run(*told, "--without", "sma-cross", "--json").code == 0
    again = ("why", "ORVL", "2025-03-05", "--redecide", "--json")
    for flags, shown in (((), True), (("--without", "macd"), False)):
        prompts.clear()
        assert run(*again, *flags).code == 0
        (text,) = prompts.values()
        assert ("Parameters: fast 5, slow 20," in text) is shown and "- sma-cross, " not in text
