"""FinMem's warm-up: the move that follows sets the action, and the memories that explain it are paid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.domain.model_call import ModelRequest, ModelResult
from engine.market.trading_hours import calendar_for
from engine.offline.model import OfflineModel
from tests.data_folders import DrawnOnce
from tests.tui.commands.conftest import Run

WINDOW = ("--symbols", "ORVL", "--warm-up-from", "2025-01-15", "--from", "2025-02-18", "--to", "2025-02-28")
PAID = {"BUY": 1, "SELL": -1}


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The views of the immediate reflection."""
    seen: list[Any] = []
    plain = OfflineModel.answer

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> Any:
        if request.purpose == "immediate-reflection":
            seen.append(request.view)
        given: ModelResult = await plain(self, request, on_delta)
        return given

    monkeypatch.setattr(OfflineModel, "answer", answer)
    return seen


def test_in_warm_up_the_move_that_follows_sets_the_action_and_pays_what_explains_it(
    run: Run, fresh: Path, tmp_path: Path, explained: list[Any]
) -> None:
    done = run("backtest", *WINDOW, "--preset", "finmem", "--json").json
    bars = asyncio.run(DrawnOnce(7, calendar_for, date(2025, 6, 30)).history("ORVL"))
    followed = {
        bars.session(row): (bars.close[later] > bars.close[row]) - (bars.close[later] < bars.close[row])
        for row, later in pairwise(range(len(bars)))
    }
    warm, test = done["warm_up"]["decisions"], done["decisions"]
    asked = {decision["session"]: decision["opinions"][0]["action"] for decision in (*warm, *test)}
    for decision in warm:
        assert PAID[asked[decision["session"]]] == followed[date.fromisoformat(decision["session"])]
        assert decision["reason"].startswith(f"Training: {asked[decision['session']]} is set by the move")
    assert {"BUY", "SELL"} <= {asked[decision["session"]] for decision in warm}
    assert not any("Training" in decision["reason"] for decision in test)
    assert [view.session for view in explained if view.training] == [date.fromisoformat(d["session"]) for d in warm]
    assert any("its figures show no skill" in note for note in done["notes"])

    file = tmp_path / "memories.jsonl"
    assert run("memory", "export", str(file), "--run", done["run"]).code == 0
    changes = [change for row in map(json.loads, file.read_text().splitlines()) for change in row["changes"]]
    of_warm_up = [one for one in changes if one["cause"] in ("paid", "cost") and one["by"][:10] <= warm[-1]["session"]]
    assert {one["cause"] for one in of_warm_up} == {"paid"}
    assert {asked[one["by"][:10]] for one in of_warm_up} == {"BUY", "SELL"}


def test_advice_in_levels_trades_in_warm_up_and_never_sees_what_followed(
    run: Run, fresh: Path, explained: list[Any]
) -> None:
    done = run("backtest", *WINDOW, "--preset", "tradinggpt-single", "--json").json
    assert explained and not any(view.training for view in explained)
    assert "BUY" in {decision["action"] for decision in done["warm_up"]["decisions"]}
    assert not any("no skill" in note for note in done["notes"])
