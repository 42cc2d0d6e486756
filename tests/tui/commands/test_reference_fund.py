"""A reference fund's trades guide the warm-up of advice in five levels, and never the test."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engine.cycle.step import StepContext
from engine.domain.market import FundTrade
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.data_folders import write_demo
from tests.tui.commands.conftest import Run

# As ARK publishes them: US dates, thousands with commas, and a remark below the table.
PUBLISHED = """date,fund,company,ticker,cusip,shares,"market value ($)","weight (%)"
{rows}
,,"The principal risks of investing are described in the prospectus.",,,,,
"""
WINDOW = ("--symbols", "ORVL", "--warm-up-from", "2025-02-12", "--from", "2025-02-18", "--to", "2025-02-20")
DAYS = (10, 11, 12, 13, 14, 18, 19, 20, 21, 24)


def published(shares: list[int]) -> str:
    rows = (
        f'02/{day:02d}/2025,ARKK,ORVILLE INC,ORVL,68900,"{count:,}","$80,000,000.00",8.01%'
        for day, count in zip(DAYS, shares, strict=True)
        if count
    )
    others = (f'02/{day:02d}/2025,ARKK,BOXWOLD,BXWD,68901,"500,000","$20.00",2.01%' for day in DAYS)
    return PUBLISHED.format(rows="\n".join((*rows, *others)))


@pytest.fixture
def folder(tmp_path: Path, fresh: Path) -> Path:
    made = tmp_path / "data"
    asyncio.run(write_demo(made, date(2025, 2, 28)))
    return made


def backtest(run: Run, folder: Path, *flags: str) -> Any:
    done = run("backtest", "--preset", "tradinggpt", "--model", "offline", "--data", str(folder), "--json", *flags)
    assert done.code == 0, done.err
    return done.json


def test_a_published_file_is_imported_and_guides_training_alone(run: Run, folder: Path, tmp_path: Path) -> None:
    before = backtest(run, folder, *WINDOW, "--run", "before")
    assert any("no holdings of ARKK, ARKQ, ARKF" in note for note in before["notes"])
    file = tmp_path / "ARK_INNOVATION.csv"
    # The fund leaves the symbol on the 12th and comes back on the 14th; the test falls into what it buys later.
    file.write_text(published([1_000_000, 900_000, 0, 0, 1_200_000, 1, 2_000_000, 1, 2_000_000, 1]))
    done = run("import", "holdings", str(file), "--symbol", "ARKK", "--data", str(folder))
    assert done.code == 0 and "note: passed over in the table: The principal risks of investing" in done.out, done.err
    guided = backtest(run, folder, *WINDOW, "--run", "guided")
    assert any("no holdings of ARKQ, ARKF" in note for note in guided["notes"])
    with JournalReader(places.run_journal("guided")) as reader:
        asked = {
            (answer.key.session, answer.key.owner): answer.messages[0].text
            for answer in reader.answers()
            if answer.agent == "immediate-reflection"
        }
    test = {date.fromisoformat(made["session"]) for made in guided["decisions"]}
    told = {key for key, text in asked.items() if "reference fund ARKK, which guides your training" in text}
    assert told and {owner for _, owner in told} == {"seeking"}, "the others' funds published nothing"
    assert not {session for session, _ in told} & test
    # On the 13th the last two published days are the 11th and the 12th.
    assert "900000 shares on 2025-02-11, 0 on 2025-02-12, -100.00%" in asked[date(2025, 2, 13), "seeking"]
    pairs = zip(before["warm_up"]["decisions"], guided["warm_up"]["decisions"], strict=True)
    changed = [(a["owner"], a["action"], b["action"]) for a, b in pairs if a["action"] != b["action"]]
    assert changed, "its trades change what the warm-up does"


@pytest.mark.slow
def test_the_audit_proves_that_the_test_never_sees_holdings(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ARK_INNOVATION.csv"
    file.write_text(published([1_000_000, 900_000, 0, 0, 1_200_000, 1, 2_000_000, 1, 2_000_000, 1]))
    assert run("import", "holdings", str(file), "--symbol", "ARKK", "--data", str(folder)).code == 0
    asked = ("audit", *WINDOW, "--preset", "tradinggpt", "--data", str(folder), "--cuts", "1", "--json")
    clean = run(*asked)
    assert clean.code == 0, clean.json["findings"]
    assert {one["source"]: one["items"] for one in clean.json["inputs"]}["holdings"] > 0
    assert {one["source"]: one["surfaced"] for one in clean.json["planted"]}["holdings"] is False

    def always(context: StepContext) -> FundTrade | None:
        return context.turn.market.fund_trade(context.traits.reference_fund, context.symbol)

    monkeypatch.setattr(StepContext, "fund_trade", property(always))
    leaking = run(*asked)
    assert leaking.code == 1 and leaking.json["verdict"] == "leak"
    assert "holdings" in {one["source"] for one in leaking.json["planted"] if one["surfaced"]}
