"""The rules of the presets whose immediate reflection decides act on what they read: news, momentum, the position."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.tui.commands.conftest import Run

PRESETS = ("finmem", "tradinggpt-single")
DEMO = ("--symbols", "ORVL,BXWD", "--warm-up-from", "2025-02-18", "--from", "2025-03-03", "--to", "2025-04-04")
REAL = ("--symbols", "MSFT,JNJ", "--warm-up-from", "2020-07-01", "--from", "2020-10-01", "--to", "2021-05-06")


def ran(run: Run, preset: str, *flags: str) -> dict[str, Any]:
    document: dict[str, Any] = run("backtest", "--preset", preset, *flags, "--json").json
    assert "rules, not a language model" in document["label"]
    return document


def actions(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    """The actions that are left after the limits."""
    return {(made["session"], made["symbol"]): made["action"] for made in document["decisions"]}


def assert_acts(document: dict[str, Any]) -> None:
    """At most 70 % of the decisions are HOLD, of every symbol some buy and some sell, and all of them trade."""
    made = Counter(actions(document).values())
    assert made["HOLD"] + made["ABSTAIN"] <= 0.7 * made.total(), made
    for symbol in document["symbols"]:
        of_symbol = {action for (_, name), action in actions(document).items() if name == symbol}
        assert of_symbol == {"BUY", "SELL", "HOLD"}, symbol
    assert len(document["trades"]) > 0.25 * made.total()


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["finmem", "tradinggpt-single"])
def test_the_rules_act_and_heed_the_news(preset: str, run: Run, fresh: Path) -> None:
    document = ran(run, preset, *DEMO)
    assert_acts(document)
    assert actions(ran(run, preset, *DEMO, "--without", "news")) != actions(document)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_the_rules_act_on_real_news(preset: str, run: Run, fresh: Path, real_data: Path) -> None:
    data = ("--data", str(real_data))
    document = ran(run, preset, *REAL, *data)
    assert_acts(document)
    withheld = actions(ran(run, preset, *REAL, *data, "--without", "news"))
    changed = sum(action != withheld[key] for key, action in actions(document).items())
    assert changed > 0.1 * len(withheld)


def test_the_desk_can_do_without_the_news(run: Run, fresh: Path) -> None:
    """It reads them as intelligence, and its decision is told what it has to do without."""
    flags = ("--preset", "desk", "--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-07", "--json")
    items = {}
    for without in ((), ("--without", "news")):
        document = run("backtest", *flags, *without).json
        (made,) = run("why", "ORVL", "2025-03-05", "--run", document["run"], "--json").json["decisions"]
        answers = {answer["agent"]: answer for answer in made["answers"]}
        judged = answers["market-intelligence"]["answer"]["items"]
        items[without] = sum(item["id"] != "price" for item in judged)
        assert ("news: switched off" in answers["evidence-decision"]["messages"][0]["text"]) == bool(without)
    assert items[()] > items["--without", "news"] == 0
