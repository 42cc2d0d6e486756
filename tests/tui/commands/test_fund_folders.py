"""What is imported beside symbols: macro series, funds' commentary and holdings, on their way to memory and audit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.files.market import FilesMarket
from engine.domain.market import FundHolding, NewsItem
from engine.market.as_of import ArrayMarketAsOf
from engine.market.trading_hours import calendar_for
from tests.data_folders import write_demo
from tests.tui.commands.conftest import Run

WINDOW = ("--symbols", "BXWD", "--from", "2024-02-12", "--to", "2024-02-23", "--preset", "tradinggpt-single")
# 2024-02-13 is a Tuesday; the letter of Saturday reaches the decision of Tuesday, as Monday is a holiday.
LETTERS = [
    {
        "date": "2024-02-13",
        "source": "letter",
        "text": "Boxenwold (BXWD) has full warehouses, and we bought more of it.",
    },
    {"date": "2024-02-17", "source": "video", "text": "Boxenwold may cut its outlook; we keep the position small."},
]
# Of the services index of January, released on 2024-02-05, and of a release that is revised on 2024-02-20.
DELIVERIES = """date,value,known_from
2023-12-01,49.5,2024-01-05T15:00:00Z
2024-01-01,52.4,2024-02-15T15:00:00Z
2024-01-01,52.1,2024-02-20
"""
HOLDINGS = "date,ticker,shares,weight\n2024-02-13,BXWD,1200,4.25%\n2024-02-14,bxwd,900,3.1\n2024-02-14,ORVL,10,0.2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    asyncio.run(write_demo(made, date(2024, 2, 29)))
    return made


def put(folder: Path, name: str, text: str) -> str:
    path = folder.parent / name
    path.write_text(text)
    return str(path)


def fill(run: Run, folder: Path) -> None:
    """Imports a file of each kind, twice."""
    files = {
        ("commentary", "ARKQ"): put(folder, "letters.jsonl", "\n".join(map(json.dumps, LETTERS))),
        ("macro", "ISM_DELIVERIES"): put(folder, "deliveries.csv", DELIVERIES),
        ("holdings", "ARKQ"): put(folder, "holdings.csv", HOLDINGS),
    }
    for (kind, name), file in files.items():
        said = [run("import", kind, file, "--symbol", name, "--data", str(folder), "--json").json for _ in range(2)]
        rows = 2 if kind == "commentary" else 3
        assert [(one["added"], one["unchanged"]) for one in said] == [(rows, 0), (0, rows)]


def remembered(run: Run, folder: Path, *more: str) -> list[dict[str, Any]]:
    """What a backtest remembers of commentary and macro series, oldest first."""
    done = run("backtest", *WINDOW, "--data", str(folder), *more, "--json")
    assert done.code == 0, done.err
    file = folder.parent / f"{done.json['run']}.jsonl"
    assert run("memory", "export", str(file), "--run", done.json["run"]).code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [row for row in rows if row["kind"] in ("commentary", "macro")]


def test_commentary_and_imported_figures_are_remembered_deep_once_they_are_known(run: Run, folder: Path) -> None:
    fill(run, folder)
    rows = remembered(run, folder)
    born = [(row["kind"], row["changes"][0]["session"], row["text"]) for row in rows]
    assert sorted((kind, day) for kind, day, _ in born) == [
        ("commentary", "2024-02-13"),
        ("commentary", "2024-02-20"),
        ("macro", "2024-01-05"),
        ("macro", "2024-02-15"),
        ("macro", "2024-02-21"),
    ]
    assert {row["changes"][0]["layer"] for row in rows} == {"deep"}
    told = {day: text for kind, day, text in born if kind == "commentary"}
    assert told["2024-02-13"] == f"{LETTERS[0]['text']} (fund ARKQ)"
    figures = [text for kind, _, text in born if kind == "macro"]
    assert all("Supplier deliveries, ISM services index (ISM_DELIVERIES)" in text for text in figures)
    assert any("52.1" in text and "revised from 52.4" in text for text in figures)
    without = remembered(run, folder, "--without", "commentary")
    assert {row["kind"] for row in without} == {"macro"}


@pytest.mark.slow
def test_an_audit_reads_commentary_and_catches_access_that_is_a_week_early(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(run, folder)
    asked = ("audit", *WINDOW, "--data", str(folder), "--cuts", "1", "--json")
    clean = run(*asked)
    assert clean.code == 0 and clean.json["verdict"] == "clean"
    assert {read["source"]: read["items"] for read in clean.json["inputs"]}["commentary"] == 2

    honest = ArrayMarketAsOf.commentary

    def early(door: ArrayMarketAsOf, after: datetime) -> Sequence[NewsItem]:
        return honest(ArrayMarketAsOf(door._market, door.now + timedelta(days=7)), after)

    monkeypatch.setattr(ArrayMarketAsOf, "commentary", early)
    leaking = run(*asked)
    assert leaking.code == 1
    assert "commentary" in {one["source"] for one in leaking.json["planted"] if one["surfaced"]}


def test_holdings_are_facts_that_are_checked_and_listed(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(run, folder)
    held = asyncio.run(FilesMarket(folder, calendar_for).holdings())
    assert [(str(one.date), one.symbol, str(one.shares), str(one.weight)) for one in held["ARKQ"]] == [
        ("2024-02-13", "BXWD", "1200", "4.25"),
        ("2024-02-14", "BXWD", "900", "3.1"),
        ("2024-02-14", "ORVL", "10", "0.2"),
    ]
    assert isinstance(held["ARKQ"][0], FundHolding)
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(folder))
    told = {one["name"]: one["detail"] for one in run("doctor", "--json").json["checks"] if one["area"] == "Data"}
    assert told["holdings"] == "ARKQ: 3 rows from 2024-02-13 to 2024-02-14"
    assert told["commentary"] == "ARKQ: 2 texts"
    assert told["macro"] == "ISM_DELIVERIES: 3 figures"


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("macro", "date,value,known_from\n2024-01-01,52.4,\n", "line 2: "),
        ("macro", "date,value\n2024-01-01,52.4\n", "line 2: "),
        ("holdings", "date,symbol,shares,weight\n,BXWD,1,2\n", "line 2: '' is not a date"),
        ("holdings", "date,symbol,shares,weight\n2024-01-02,BXWD,-1,2\n", "line 2: shares -1 are below zero"),
        ("holdings", "date,symbol,shares,weight\n2024-01-02,BXWD,1,200\n", "line 2: weight 200 is not a percentage"),
    ],
)
def test_what_has_no_date_or_cannot_be_is_refused(run: Run, folder: Path, kind: str, text: str, said: str) -> None:
    done = run("import", kind, put(folder, "bad.csv", text), "--symbol", "ARKQ", "--data", str(folder))
    assert done.code == 65 and said in done.err and "Traceback" not in done.err
    assert not (folder / kind).exists()


def test_commentary_without_a_date_is_dropped_and_counted(run: Run, folder: Path) -> None:
    file = put(folder, "undated.jsonl", '{"source": "letter", "text": "Sell all of it."}\n' + json.dumps(LETTERS[0]))
    done = run("import", "commentary", file, "--symbol", "ARKQ", "--data", str(folder), "--json").json
    assert done["added"] == 1 and [(one["reason"], one["count"]) for one in done["dropped"]] == [("no date", 1)]
