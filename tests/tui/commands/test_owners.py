"""Three owners on one desk: backtests, daily runs and the sandbox in every way of combining, read from the journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.domain.order import ZERO
from engine.journal.reader import JournalReader
from engine.reports.documents.records import records_in
from engine.reports.documents.trail import latest
from engine.session.owner_books import BookSettlement
from engine.session.recorder import DeskRecorder
from engine.settings import places
from tests.long_cases import first_of
from tests.tui.commands.conftest import Run

ENTRY = (sys.executable, "-c", "from tui.cli import main; main()")
MODES = ("vote", "weighted", "books")
OWNERS = ("bull", "bear", "calm")
PRESET = """
extends = "finmem"
name = "three-{mode}"
combine = "{mode}"
[owners.bull]
risk = "risk-seeking"
preference = "aggressive"
[owners.bear]
risk = "risk-averse"
preference = "conservative"
weight = 2
[owners.calm]
risk = "momentum"
"""
DEMO = ("--symbols", "ORVL,BXWD", "--warm-up-from", "2025-03-03", "--from", "2025-03-10", "--to", "2025-03-18")
REAL = ("--symbols", "MSFT,JNJ", "--warm-up-from", "2020-07-01", "--from", "2020-10-01", "--to", "2021-05-06")
DAYS = (3, 4, 5, 6, 7, 10, 11, 12, 13, 14)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def preset(mode: str, tmp_path: Path, paperdesk_home: Path) -> str:
    file = tmp_path / f"{mode}.toml"
    file.write_text(PRESET.format(mode=mode))
    return str(file)


@dataclass(frozen=True)
class Owned:
    """What a journal holds of each owner."""

    opinions: Counter[str]
    outcomes: Counter[str]
    remembered: Counter[str]


def owned(journal: Path) -> Owned:
    with JournalReader(journal) as reader:
        opinions = reader.opinions()
        return Owned(
            Counter(one.key.owner for one in opinions),
            Counter(row.owner for row in reader.outcomes()),
            Counter(one.key.owner for one in opinions if reader.recalled(one.key)),
        )


def assert_books_add_up(journal: Path, mode: str) -> None:
    """At every close the owners' books are the account, in cash to the cent and in shares exactly."""
    with JournalReader(journal) as reader:
        runs = {run.id: reader.initial_values(run.id) for run in reader.runs()}
        parts = [(run, part) for run, begun in runs.items() for part in (begun or {None: ZERO})]
        for run, part in parts:
            points = reader.equity(run, part, book=None)
            account = {point.session: point for point in points if not point.book}
            for session, point in account.items():
                books = [one for one in points if one.book and one.session == session]
                assert len(books) == (len(OWNERS) if mode == "books" else 0)
                if books:
                    assert sum((one.portfolio.cash for one in books), ZERO) == point.portfolio.cash
                    for symbol, position in point.portfolio.positions.items():
                        assert sum((b.portfolio.quantity(symbol) for b in books), ZERO) == position.quantity


def assert_every_owner_learns(journal: Path, mode: str) -> None:
    found = owned(journal)
    assert set(found.opinions) == set(OWNERS) and len(set(found.opinions.values())) == 1
    assert set(found.outcomes) == {*OWNERS, *(() if mode == "books" else ("desk",))}
    assert set(found.remembered) == set(OWNERS)


def backtest(run: Run, preset: str, *flags: str) -> Any:
    done = run("backtest", "--preset", preset, "--model", "offline", "--json", *flags)
    assert done.code == 0, done.err
    return done.json


@pytest.mark.parametrize("mode", first_of(1, ["books", "vote", "weighted"]), indirect=True)
def test_a_backtest_gives_every_owner_opinions_outcomes_and_memories(
    run: Run, mode: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The ids of its orders begin like that of a position that is closed because its symbol stopped trading.
    monkeypatch.setenv("PAPERDESK_DESK__NAME", "stopped")
    first = backtest(run, preset, *DEMO)
    assert mode == "books" or first["fingerprint"] == backtest(run, preset, *DEMO)["fingerprint"]
    journal = places.run_journal(first["run"])
    with JournalReader(journal) as reader:
        opinions, booked = reader.opinions(), [one for one in reader.fills(first["run"], book=None) if one.book]
    sizes = {owner: sum(one.size for one in opinions if one.key.owner == owner) for owner in OWNERS}
    assert sizes["bull"] > sizes["bear"], "their preferences make their sizes"
    assert bool(booked) is (mode == "books")
    assert all(f"-{fill.book}-" in fill.order_id for fill in booked), "each has its part for its own order"
    assert_every_owner_learns(journal, mode)
    assert_books_add_up(journal, mode)
    assert {row["owner"] for row in first["decisions"]} == (set(OWNERS) if mode == "books" else {"desk"})
    assert {one["owner"] for row in first["decisions"] for one in row["opinions"]} == set(OWNERS)
    assert {row["owner"] for row in first["trades"]} <= {"desk"}
    assert (first["per_owner"] is not None) is (mode == "books")
    for figure in ("initial_value", "final_value") if mode == "books" else ():
        # Each is rounded to the cent by itself; cash and shares were compared exactly.
        books = sum(Decimal(book[figure]) for book in first["per_owner"].values())
        assert abs(books - Decimal(first[figure])) <= Decimal("0.02")
    assert run("journal", "check", "--run", first["run"]).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["weighted", "vote", "books"], indirect=True)
def test_a_desk_keeps_its_owners_from_one_run_to_the_next(
    run: Run, mode: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", preset)
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "ORVL,BXWD")
    for day in DAYS[:4]:
        done = run("--daily", "--session", f"2025-03-{day:02d}", "--json")
        assert done.code == 0, done.err
    journal = places.desk_journal("demo")
    assert_every_owner_learns(journal, mode)
    assert_books_add_up_on_a_desk(journal, mode)
    assert run("journal", "check").code == 0
    assert run("parity").code == 0
    assert_the_trail_shows_every_owner(run, mode)


def assert_the_trail_shows_every_owner(run: Run, mode: str) -> None:
    decided = run("why", "ORVL", "2025-03-05", "--json").json["decisions"]
    with records_in(places.desk_journal("demo"), "demo") as records:
        assert {made.key.owner for made in latest(records, "ORVL")} == {made["owner"] for made in decided}
    for part in ("opinions", "answers", "recollections"):
        assert {row["owner"] for made in decided for row in made[part]} == set(OWNERS), part
    shown = run("why", "ORVL", "2025-03-05", "--full").out
    combined = mode != "books"
    assert "no model calls" not in shown
    assert all((f"\n  {owner}: " in shown) is combined for owner in OWNERS)
    assert ("bull BUY" in run("decisions", "--symbol", "ORVL").out) is combined
    held = run("positions", "--json").json
    assert sum(Decimal(book["cash"]) for book in held.get("per_owner", {"": held}).values()) == Decimal(held["cash"])
    again = run("why", "ORVL", "2025-03-05", "--redecide", "--json").json
    assert again["same_throughout"]
    assert {row["owner"] for one in again["decisions"] for row in one["now"]["answers"]} == set(OWNERS)


@pytest.mark.slow
def test_a_run_killed_before_its_books_were_allocated_goes_on_with_them(
    run: Run, paperdesk_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "books.toml"
    file.write_text(PRESET.format(mode="books"))
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(file))
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "ORVL,BXWD")
    journal = places.desk_journal("demo")

    def killed(recorder: DeskRecorder, settlement: BookSettlement) -> None:
        raise KeyboardInterrupt

    for day in DAYS[:6]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DeskRecorder, "allocated", killed)
            first = run("--daily", "--session", f"2025-03-{day:02d}", "--json")
        assert first.code == (0 if day == DAYS[0] else 130), "the first run only opens the books"
        assert run("--daily", "--session", f"2025-03-{day:02d}", "--json").code == 0
    assert_books_add_up_on_a_desk(journal, "books")
    with JournalReader(journal) as reader:
        assert [fill for fill in reader.fills(book=None) if fill.book], "the owners traded"
        outcomes = Counter(row.owner for row in reader.outcomes())
    assert set(outcomes) == set(OWNERS) and set(outcomes.values()) == {2 * 5}
    assert run("journal", "check").code == 0


def assert_books_add_up_on_a_desk(journal: Path, mode: str) -> None:
    with JournalReader(journal) as reader:
        account = {point.session: point for point in reader.equity()}
        books = [point for point in reader.equity(book=None) if point.book]
    assert len(books) == (len(OWNERS) * len(account) if mode == "books" else 0)
    for session, point in account.items() if books else ():
        own = [one for one in books if one.session == session]
        assert sum((one.portfolio.cash for one in own), ZERO) == point.portfolio.cash
        held = {symbol for one in own for symbol in one.portfolio.positions}
        assert held == set(point.portfolio.positions)
        for symbol in held:
            assert sum((one.portfolio.quantity(symbol) for one in own), ZERO) == point.portfolio.quantity(symbol)
        assert abs(sum((one.value for one in own), ZERO) - point.value) <= Decimal("0.02")


@pytest.mark.slow
def test_the_real_window_comes_out_twice_the_same(run: Run, mode: str, preset: str, real_data: Path) -> None:
    first, second = (backtest(run, preset, "--data", str(real_data), *REAL) for _ in range(2))
    assert first["fingerprint"] == second["fingerprint"]
    journal = places.run_journal(first["run"])
    assert_every_owner_learns(journal, mode)
    assert_books_add_up(journal, mode)


@pytest.mark.slow
def test_a_backtest_that_was_killed_and_started_again_ends_the_same(
    run: Run, mode: str, preset: str, paperdesk_home: Path
) -> None:
    whole = backtest(run, preset, *DEMO)
    command = (*ENTRY, "backtest", "--preset", preset, "--model", "offline", "--json", *DEMO)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun = set(places.run_journal(whole["run"]).parent.glob("*.db"))
    until = time.monotonic() + 600
    while set(places.run_journal(whole["run"]).parent.glob("*.db")) == begun and time.monotonic() < until:
        time.sleep(0.05)
    assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = backtest(run, preset, *DEMO)
    assert again["fingerprint"] == whole["fingerprint"]


@pytest.mark.slow
def test_ten_sessions_at_the_sandbox_are_equal_to_the_cent(mode: str, preset: str, paperdesk_home: Path) -> None:
    environment = os.environ | {
        "PAPERDESK_DESK__PRESET": preset,
        "PAPERDESK_DESK__SYMBOLS": "ORVL,BXWD",
        "PAPERDESK_MODELS__DEFAULT": "offline",
    }
    command = (*ENTRY, "sandbox", "--start", "2025-03-10", "--sessions", "10", "--json")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["sessions"]) == 10
    desk = json.loads(done.stdout)["desk"]
    assert_every_owner_learns(places.desk_journal(desk), mode)
    assert_books_add_up_on_a_desk(places.desk_journal(desk), mode)
