"""The report of a session: kept beside the journal when a run ends, printed again from the journal at any time."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine import places
from engine.app.desk_run import keep_report
from engine.domain.run import RunKind, RunOutcome
from engine.errors import DataError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.reports.amounts import quantity
from engine.reports.day_markdown import day_markdown
from engine.session.context import run_id
from tests.tui.commands.conftest import SESSIONS, Run


def test_every_run_left_its_report_and_it_is_what_the_command_prints(run: Run, desk: Path) -> None:
    folder = places.desk_reports("demo")
    assert sorted(path.name for path in folder.iterdir()) == [f"{session}.md" for session in SESSIONS]
    last = SESSIONS[-1]
    said = run("report", "--session", str(last))
    assert (said.code, said.err) == (0, "")
    assert said.out == (folder / f"{last}.md").read_text(encoding="utf-8")
    assert run("report", "--run", f"daily-demo-{last:%Y%m%d}").out == said.out


def test_the_report_says_who_decided_what_and_why_and_that_it_is_paper(run: Run, desk: Path) -> None:
    text = run("report", "--session", "2025-03-14").out
    document = run("report", "--session", "2025-03-14", "--json").json
    assert "Paper money. Not investment advice." in text
    assert re.search(r"Decided by +\| rules, not a language model \(preset \w+\)", text)
    assert re.search(r"Skipped +\| 2025-03-13 ", text)
    for made in document["decisions"]:
        assert f"### {made['symbol']}: {made['action']}" in text
    change = Decimal(document["value"]) - Decimal(document["before"]["value"])
    assert f"{change:+,.2f}" in text and document["before"]["session"] == "2025-03-13"
    for fill in document["fills"]:
        shares = quantity(Decimal(fill["quantity"]))
        assert re.search(rf"{fill['session']} \| {fill['symbol']} +\| {fill['side']} +\| +{shares}", text)
    held = run("positions", "--json").json
    assert held["positions"] == document["positions"]
    for symbol, position in held["positions"].items():
        gain = (Decimal(position["price"]) - Decimal(position["average_cost"])) * Decimal(position["quantity"])
        assert abs(Decimal(position["gain"]) - gain) < Decimal("0.01")
        shown = re.escape(f"{Decimal(position['gain']):+,.2f}")
        assert re.search(rf"\| {symbol} .*{shown} \|", text)


def test_an_older_session_is_told_as_its_orders_stand_today(run: Run, desk: Path) -> None:
    first = run("report", "--session", "2025-03-11", "--json").json
    kept = (places.desk_reports("demo") / "2025-03-11.md").read_text(encoding="utf-8")
    today = run("report", "--session", "2025-03-11").out
    if first["orders"]:
        assert "acknowledged" in kept and "filled" in today
    assert first["before"] is None and first["skipped"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--session", "2025-01-02"), 65, "has no run for 2025-01-02; the latest are for 2025-03-14"),
        (("--session", "2025-03-14", "--run", "x"), 2, "give one of them"),
        (("--session", "2025-03-14", "--format", "csv"), 2, "md, html or json"),
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


def report(run: str, folder: Path) -> Path | None:
    with JournalReader(places.desk_journal("demo")) as reader:
        return keep_report(reader, "demo", run, folder)


def test_a_report_is_written_whole_or_not_at_all(desk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = places.desk_reports("demo")
    target = folder / "2025-03-14.md"
    before = target.read_text(encoding="utf-8")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(DataError, match="No space left on device"):
            report("daily-demo-20250314", folder)
    assert target.read_text(encoding="utf-8") == before
    assert {path.name for path in folder.iterdir()} == {f"{session}.md" for session in SESSIONS}
    assert report("daily-demo-19990101", folder) is None


def test_what_agents_write_neither_marks_up_nor_steers_a_terminal(run: Run, desk: Path) -> None:
    document: dict[str, Any] = run("report", "--session", "2025-03-14", "--json").json
    document["decisions"][0]["reason"] = "buy | now <b>\x1b[31m red\n# a heading\u202e"
    text = day_markdown(document)
    assert "\x1b" not in text and "\u202e" not in text
    assert "buy \\| now \\<b\\> red" in text
    assert "- \\# a heading" in text


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
    kept = report(identity, places.desk_reports("demo"))
    assert kept is not None and kept.name == f"{session}-2.md"
    assert f"session {session}, cycle 2 within the next" in kept.read_text(encoding="utf-8").splitlines()[0]
    assert run("report", "--run", identity).out == kept.read_text(encoding="utf-8")
    assert run("report", "--session", str(session), "--json").json["cycle"] == 1


def test_without_a_date_it_is_the_latest_day(run: Run, desk: Path, tmp_path: Path) -> None:
    latest = run("report", "--session", str(SESSIONS[-1]))
    for arguments in (("--session",), ("--session", "--format", "md"), ("--session", "--desk", "demo")):
        said = run("report", *arguments)
        assert (said.code, said.err, said.out) == (0, "", latest.out)
    assert run("report", "--json", "--session").json["session"] == str(SESSIONS[-1])
    wrong = run("report", "--session", "yesterday")
    assert wrong.code == 2 and "leave it out for the latest" in wrong.err
