"""`paperdesk drill`: the fault table at the sandbox, and the questions to a paper account.

`make test` tries a row of every kind; the whole table is slow.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from connectors.wiring import sandbox as wired
from connectors.wiring.sandbox import practice_accounts
from connectors.wiring.services import services
from engine.app.upkeep.drill import drill as drilling
from engine.app.upkeep.drill import fault_table as table
from engine.app.upkeep.drill.drill import try_rows
from engine.app.upkeep.drill.fault_table import Row, chosen, fault_table
from engine.app.upkeep.drill.practice import DrillParts, prepare
from engine.settings import places
from tests.conftest import REPO, MadeOnce
from tests.tui.commands.conftest import OpenBroker, Run, after_close, contents

PROGRAM = (sys.executable, "-c", "from tui.cli import main; main()")
SYMBOLS = ("ORVL", "HLXM", "TMBK", "PLWY", "BXWD", "WRNN-USD")
SAMPLE = ("post-504-accepted", "post-403-reason", "cancel-504", "price-in-watch", "history-repeated")


@pytest.fixture(scope="session")
def parts() -> DrillParts:
    """Accounts at one market, which is drawn once."""
    return DrillParts(open_account=practice_accounts(), services=services, program=PROGRAM)


@pytest.fixture(scope="session")
def prepared(sessions_table: Path, parts: DrillParts, made_once: MadeOnce) -> Path:
    """The template of all rows' homes, made once."""

    def make(folder: Path) -> None:
        home = folder / "template"
        (home / "cache").mkdir(parents=True)
        shutil.copy(sessions_table, home / "cache")
        prepare(home, SYMBOLS, drilling.AFTER_ALL, parts)

    return made_once("drill", make) / "template"


@pytest.fixture
def quick_start(prepared: Path, parts: DrillParts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drill begins with the template that is there, and with the market that is drawn."""

    def copied(home: Path, *arguments: Any) -> Path:
        shutil.copytree(prepared, home)
        return home / "data" / "market"

    monkeypatch.setattr(drilling, "prepare", copied)
    monkeypatch.setattr(wired, "practice_accounts", lambda: parts.open_account)
    monkeypatch.setenv("PYTHONPATH", str(REPO))


def by_name(document: Mapping[str, Any]) -> dict[str, Any]:
    return {row["name"]: row for row in document["rows"]}


@pytest.mark.slow
def test_a_sample_of_the_table_holds_and_touches_nothing_of_the_desk(run: Run, desk: Path, quick_start: None) -> None:
    before, environment = contents(desk), dict(os.environ)
    said = run("drill", "--json", *(part for name in SAMPLE for part in ("--only", name)))
    rows = by_name(said.json)
    assert (said.code, said.err) == (0, ""), {name: row["detail"] for name, row in rows.items() if not row["held"]}
    assert set(rows) == set(SAMPLE)
    assert rows["history-repeated"]["got"] == rows["history-repeated"]["expected"] == [0, 0]
    assert contents(desk) == before, "also no result, since not all rows were tried"
    assert dict(os.environ) == environment


def a_row(name: str, *steps: Mapping[str, Any]) -> Row:
    (like,) = chosen(["post-500"])
    return Row(name=name, fault="a fault", start=like.start, symbols=like.symbols, steps=steps)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh", "quick_start")
def test_a_row_that_does_not_hold_is_told(parts: DrillParts) -> None:
    rows = [
        a_row("other-code", {"run": 75}),
        a_row("missing", {"run": 0, "placed": 9}),
        a_row("strange", {"run": 0}, {"order": "ORVL", "shares": "3", "side": "buy"}),
    ]
    other_code, missing, strange = try_rows(rows, parts, lambda result, number: None)
    assert not other_code.held and other_code.detail == "a run ended with 0, not with 75: "
    assert (other_code.expected, other_code.got) == ((75,), (0,))
    assert not missing.held and "the broker has 4 orders of the run, not 9" in missing.detail
    assert not strange.held and "the books differ in order" in strange.detail


@pytest.mark.slow
def test_a_result_is_kept_and_doctor_shows_it(
    run: Run, fresh: Path, quick_start: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> Mapping[str, Any]:
        drill: Mapping[str, Any]
        (drill,) = [one for one in run("doctor", "--json").json["checks"] if one["area"] == "Drill"]
        return drill

    assert found() == {"area": "Drill", "name": "drills", "state": "ok", "detail": "none yet: run `paperdesk drill`"}
    two = chosen(["wrong-keys", "address"])
    for module in (drilling, table):
        monkeypatch.setattr(module, "fault_table", lambda: two)
    said = run("drill")
    assert said.code == 0, said.out
    *lines, last = said.out.splitlines()
    assert [line.split()[:3] for line in lines] == [["1/2", "held", "wrong-keys"], ["2/2", "held", "address"]]
    assert last.startswith("drill 20") and last.endswith(": 2 of 2 held")
    assert (found()["state"], found()["detail"]) == ("ok", last)
    kept = json.loads(places.drill_results().read_text(encoding="utf-8"))
    kept["sandbox"]["rows"][0]["held"], kept["sandbox"]["held"] = False, 1
    places.drill_results().write_text(json.dumps(kept), encoding="utf-8")
    assert found()["state"] == "fail" and found()["detail"].endswith(": 1 of 2 held, not wrong-keys")
    places.drill_results().write_text("{", encoding="utf-8")
    assert found()["state"] == "fail" and "delete it" in found()["detail"]


def test_rows_are_listed_and_an_unknown_one_is_refused(run: Run, fresh: Path) -> None:
    listed = run("drill", "--list").out.splitlines()
    assert len(listed) == len(fault_table()) > 73
    said = run("drill", "--only", "post-404-accepted")
    assert said.code == 2 and "did you mean post-504-accepted?" in said.err
    assert run("drill", "--account", "--only", "post-500").code == 2


# A paper account


@pytest.fixture
def account(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(datetime(2025, 3, 7, 21, 5, tzinfo=UTC), through=None, symbols=("ORVL", "HLXM"))


def test_an_account_is_asked_and_nothing_else(run: Run, account: SandboxServer) -> None:
    account.control_request(
        "POST",
        "/v2/orders",
        {"symbol": "ORVL", "qty": "3", "side": "buy", "type": "market", "time_in_force": "day"},
    )
    after_close(account)
    account.control_request("POST", "/sandbox/transfers", {"amount": "250"})
    said = run("drill", "--account", "--json")
    rows = by_name(said.json)
    assert (said.code, said.err) == (0, ""), rows
    assert (said.json["place"], said.json["held"]) == ("account", said.json["count"])
    assert rows["account"]["detail"].startswith("ACTIVE, cash ") and "1 position" in rows["account"]["detail"]
    assert rows["activities"]["detail"] == "1 fill, 1 transfer"
    assert rows["fills"]["detail"] == "1 with order, side and price"
    assert "250" in rows["transfers"]["detail"] and "nothing is known" in rows["splits"]["detail"]
    assert rows["unknown-order"]["detail"] == "it is not found"
    assert all(line.startswith("GET ") for line in account.state()["requests"])
    checks = run("doctor", "--json").json["checks"]
    assert [one["detail"] for one in checks if (one["area"], one["name"]) == ("Drill", "account")] == [
        f"drill {said.json['time'][:10]}: {said.json['count']} of {said.json['count']} held"
    ]


def test_an_account_that_answers_otherwise_fails_the_row(run: Run, account: SandboxServer) -> None:
    account.fault("body", path="/v2/orders:by_client_order_id", status=400, count=0, message='{"message": "no such"}')
    account.fault("edit", path="/v2/calendar", count=0, change={"close": "13:00"})
    said = run("drill", "--account")
    assert said.code == 1
    failed = [line.split()[2] for line in said.out.splitlines() if " FAILS " in line]
    assert failed == ["calendar", "unknown-order"]
    told = " ".join(said.out.split())
    assert "HTTP 400: no such" in told and "the calendars disagree" in told


def test_a_desk_without_an_account_has_none_to_ask(run: Run, desk: Path) -> None:
    said = run("drill", "--account")
    assert said.code == 78 and "broker.kind" in said.err


# The whole table


@pytest.mark.slow
@pytest.mark.usefixtures("fresh", "quick_start")
@pytest.mark.parametrize("name", [row.name for row in fault_table()])
def test_every_row_holds(name: str, parts: DrillParts) -> None:
    (result,) = try_rows(chosen([name]), parts, lambda result, number: None)
    assert result.held, result.detail
