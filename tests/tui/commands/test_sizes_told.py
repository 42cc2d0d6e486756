"""What is asked, decided and traded is the same on the trail, or the trail says what changed it and why."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.tui.commands.conftest import Run

WINDOW = ("--from", "2024-02-01", "--json", "--symbols")


def trails(run: Run, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The trails of all decisions that a limit changed or that traded."""
    days = [made["session"] for made in document["decisions"] if made["cut"] or made["action"] in ("BUY", "SELL")]
    (symbol,) = document["symbols"]
    return [run("why", symbol, day, "--run", document["run"], "--json").json["decisions"][0] for day in days]


@pytest.mark.parametrize(
    "preset", ["finvision", "finmem", *(pytest.param(name, marks=pytest.mark.slow) for name in ("desk", "finagent"))]
)
def test_sizes_agree_from_the_question_to_the_trade(preset: str, run: Run, fresh: Path) -> None:
    last = "2024-04-05" if preset == "finagent" else "2024-03-01"
    symbol = "BXWD" if preset == "finmem" else "TMBK"
    document = run("backtest", "--preset", preset, *WINDOW, symbol, "--to", last).json
    shown = trails(run, document)
    assert any(made["orders"] for made in shown)
    values = {point["session"]: Decimal(point["value"]) for point in document["equity"]}
    for made in shown:
        steps = [Decimal(str(made["asked"]["size"])), *(Decimal(cut["allowed"]) for cut in made["cuts"])]
        assert [Decimal(cut["asked"]) for cut in made["cuts"]] == steps[:-1]
        assert steps[-1] == Decimal(str(made["size"]))
        for order in made["orders"]:
            traded = sum(Decimal(fill["price"]) * Decimal(fill["quantity"]) for fill in order["fills"])
            value = values.get(made["session"], Decimal(document["initial_value"]))
            assert abs(100 * traded / value - steps[-1]) < max(Decimal("0.1"), steps[-1] * Decimal("0.05"))


@pytest.mark.slow
def test_finagent_is_asked_for_an_action_and_neither_for_a_size_nor_for_a_rule(run: Run, fresh: Path) -> None:
    document = run("backtest", "--preset", "finagent", *WINDOW, "TMBK", "--to", "2024-04-05").json
    shown = trails(run, document)
    assert [made["action"] for made in shown][:2] == ["BUY", "SELL"]
    for made in shown:
        answer = made["answers"][-1]
        assert answer["agent"] == "whole-decision"
        assert not {"position_size", "rule"} & answer["answer"].keys()
        asked = answer["system"] + answer["messages"][0]["text"]
        for foreign in ("-100.00%", "dip in an uptrend", "over average cost", "Size 1 to 10", "position_size"):
            assert foreign not in asked, foreign
        assert made["asked"]["whole"] and made["asked"]["rule"] is None and not made["cuts"]
    bought, sold = (run("why", "TMBK", made["session"], "--run", document["run"]).out for made in shown[:2])
    assert "BUY with all cash, 100 % of the portfolio" in bought and "SELL of all shares, 99." in sold
