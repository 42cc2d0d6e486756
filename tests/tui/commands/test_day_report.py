"""The report of a session, printed from the journal at any time."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engine.domain.run import RunKind, RunOutcome
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.reports.amounts import quantity
from engine.session.context import run_id
from engine.settings import places
from tests.tui.commands.conftest import SESSIONS, Run


def test_a_run_is_reported_by_its_session_and_by_its_name(run: Run, desk: Path) -> None:
    last = SESSIONS[-1]
    said = run("report", "--session", str(last))
    assert (said.code, said.err) == (0, "")
    assert run("report", "--run", f"daily-demo-{last:%Y%m%d}").out == said.out


def test_the_report_says_who_decided_what_and_why_and_that_it_is_paper(run: Run, desk: Path) -> None:
    text = run("report", "--session", "2025-03-14").out
    document = run("report", "--session", "2025-03-14", "--json").json
    assert "paper money" in text
    lines = {line[:12].strip(): line[12:] for line in text.splitlines()}
    assert re.match(r"rules, not a language model \(preset \w+\)", lines["Decided by"])
    assert lines["Skipped"] == "2025-03-13" and lines["Outcome"].startswith("done")
    for made in document["decisions"]:
        assert re.search(rf"^  {made['symbol']} +{made['action']} ", text, re.MULTILINE)
    assert document["before"]["session"] == "2025-03-13"
    for fill in document["fills"]:
        shares = quantity(Decimal(fill["quantity"]))
        assert f"{fill['session']} {fill['side']} {shares} {fill['symbol']} at " in text
    held = run("positions", "--json").json
    assert held["positions"] == document["positions"]
    for symbol, position in held["positions"].items():
        gain = (Decimal(position["price"]) - Decimal(position["average_cost"])) * Decimal(position["quantity"])
        assert abs(Decimal(position["gain"]) - gain) < Decimal("0.01")
        assert f"{symbol}: {quantity(Decimal(position['quantity']))} at " in text


def test_an_older_session_is_told_as_its_orders_stand_today(run: Run, desk: Path) -> None:
    first = run("report", "--session", "2025-03-11", "--json").json
    assert first["orders"] and {order["state"] for order in first["orders"]} == {"filled"}
    assert ": filled" in run("report", "--session", "2025-03-11").out
    assert first["before"] is None and first["skipped"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--session", "2025-01-02"), 65, "has no run for 2025-01-02; the latest are for 2025-03-14"),
        (("--session", "2025-03-14", "--run", "x"), 2, "give one of them"),
        (("--session", "2025-03-14", "--format", "csv"), 2, "html or json"),
        (("--session", "yesterday"), 2, "yesterday"),
    ],
)
def test_what_cannot_be_reported_is_one_line(
    run: Run, desk: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    said = run("report", *arguments)
    assert said.code == code and says in said.err and said.err.count("\n") == 1


def test_a_desk_that_never_ran_has_no_report(run: Run, fresh: Path) -> None:
    said = run("report", "--session", "2025-03-14")
    assert said.code == 65 and "has not run yet" in said.err


def test_a_cycle_within_the_session_has_a_report_of_its_own(run: Run, desk: Path) -> None:
    journal, session = places.desk_journal("demo"), SESSIONS[-1]
    identity = run_id("demo", session, 2)
    with JournalWriter(journal) as writer:
        now = datetime(2025, 3, 17, 15, tzinfo=UTC)
        writer.run_started(
            RunEntry(
                id=identity,
                kind=RunKind.INTRADAY,
                name="desk",
                started=now,
                label="rules",
                spec=None,
                symbols=("ORVL",),
                session=session,
                cycle=2,
            )
        )
        writer.run_finished(identity, RunOutcome.DONE, now)
    assert run("report", "--run", identity, "--json").json["cycle"] == 2
    assert run("report", "--session", str(session), "--json").json["cycle"] == 1


def test_without_a_date_it_is_the_latest_day(run: Run, desk: Path, tmp_path: Path) -> None:
    latest = run("report", "--session", str(SESSIONS[-1]))
    for arguments in (("--session",), ("--session", "--desk", "demo")):
        said = run("report", *arguments)
        assert (said.code, said.err, said.out) == (0, "", latest.out)
    assert run("report", "--json", "--session").json["session"] == str(SESSIONS[-1])
    wrong = run("report", "--session", "yesterday")
    assert wrong.code == 2 and "leave it out for the latest" in wrong.err
