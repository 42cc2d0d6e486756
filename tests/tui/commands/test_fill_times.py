"""On the simulated market an order fills at the first open after it was sent, and nothing is dated before the books."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.settings import places
from tests.tui.commands.conftest import FEW_AGENTS, Run

At = Callable[[str], None]
EVENING = "2025-03-12T21:00"
"""After the close of 2025-03-12, at 20:00 UTC."""
LATE = "2025-03-13T19:57"
"""Three minutes before the close of the next session, which opened at 13:30 UTC."""


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Sets this machine's clock, UTC."""

    def set_to(moment: str) -> None:
        now = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: now)

    return set_to


@pytest.fixture
def folder_desk(
    fresh: Path, demo_folder: Callable[[date], Path], at: At, run: Run, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A desk on a data folder, by this machine's clock, that has decided on 2025-03-12; gives its journal."""
    monkeypatch.setenv("PAPERDESK_DESK__NAME", "folder")
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "ORVL,HLXM")
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(demo_folder(date(2025, 3, 31))))
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    at(EVENING)
    assert run("--daily").code == 0
    return places.desk_journal("folder")


def orders_of(run: Run, symbol: str = "HLXM") -> dict[str, Any]:
    listed = run("orders", "--symbol", symbol, "--json").json["orders"]
    return {one["id"]: one for one in listed if "-you-" in one["id"]}


def filled(run: Run, order_id: str) -> list[str]:
    listed = run("orders", "--json").json["orders"]
    return [fill["filled_at"] for one in listed if one["id"] == order_id for fill in one["fills"]]


def test_an_order_of_the_evening_fills_at_the_next_open(run: Run, folder_desk: Path, at: At) -> None:
    taken = run("order", "buy", "HLXM", "--amount", "1000", "--yes", "--json").json
    assert taken["effect"]["fills_at"] == "2025-03-13T13:30:00+00:00"
    at("2025-03-13T21:00")
    assert run("--daily").code == 0
    assert filled(run, taken["order"]["id"]) == ["2025-03-13T13:30:00+00:00"]
    assert run("journal", "check").code == 0


def test_an_order_three_minutes_before_the_close_does_not_fill_at_that_mornings_open(
    run: Run, folder_desk: Path, at: At
) -> None:
    at(LATE)
    asked = run("order", "buy", "HLXM", "--amount", "1000", "--yes")
    assert asked.code == 0 and "2025-03-14 13:30 UTC" in asked.out, asked.out
    (order_id,) = orders_of(run)
    at("2025-03-13T21:00")
    assert run("--daily").code == 0
    assert filled(run, order_id) == [], "its open has not come yet"
    waiting = run("orders", "--open", "--json").json["orders"]
    assert order_id in [one["id"] for one in waiting]
    at("2025-03-14T21:00")
    assert run("--daily").code == 0
    assert filled(run, order_id) == ["2025-03-14T13:30:00+00:00"], orders_of(run)
    assert run("journal", "check").code == 0


def test_a_late_order_can_be_canceled_until_the_open_at_which_it_fills(run: Run, folder_desk: Path, at: At) -> None:
    at(LATE)
    assert run("order", "buy", "HLXM", "--amount", "1000", "--yes").code == 0
    (order_id,) = orders_of(run)
    at("2025-03-14T13:29")
    assert run("cancel", order_id).code == 0
    assert orders_of(run)[order_id]["state"] == "canceled"


def test_a_whole_run_after_the_open_says_that_it_has_passed_and_fills_at_the_next(
    run: Run, folder_desk: Path, at: At
) -> None:
    days = ("2025-03-13", "2025-03-14", "2025-03-17", "2025-03-18", "2025-03-19", "2025-03-20", "2025-03-21")
    for decided, now, _ in zip(days, days[1:], days[2:], strict=False):
        at(f"{now}T19:55")
        done = run("--daily", "--json")
        assert (done.code, done.json["session"]) == (0, decided)
        sent = [one for one in done.json["orders"] if one["state"] == "acknowledged"]
        if sent:
            break
    assert sent, "the rules order something in five sessions"
    following = days[days.index(now) + 1]
    opens = f"{following} 13:30 UTC"
    assert f"the open after {decided} has passed" in done.err and opens in done.err, done.err
    at(f"{now}T21:00")
    assert run("--daily").code == 0
    assert filled(run, sent[0]["id"]) == []
    at(f"{following}T21:00")
    assert run("--daily").code == 0
    assert [time[:16] for time in filled(run, sent[0]["id"])] == [f"{following}T13:30"]


def test_an_approval_counts_from_its_own_time(
    run: Run, folder_desk: Path, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    found: list[dict[str, Any]] = []
    for day in (13, 14, 17, 18, 19, 20, 21, 24):
        at(f"2025-03-{day}T21:00")
        assert run("--daily").code == 0
        found = run("approve", "--json").json["waiting"]
        if found:
            break
    assert found, "the rules order something in eight sessions"
    following = {13: 14, 14: 17, 17: 18, 18: 19, 19: 20, 20: 21, 21: 24, 24: 25}[day]
    assert found[0]["effect"]["fills_at"] == f"2025-03-{following}T13:30:00+00:00"
    at(f"2025-03-{following}T19:56")
    (waiting,) = [one for one in run("approve", "--json").json["waiting"] if one["id"] == found[0]["id"]]
    assert waiting["effect"]["fills_at"] > f"2025-03-{following}T19:56"
    assert run("approve", found[0]["id"]).code == 0
    at(f"2025-03-{following}T21:00")
    assert run("--daily").code == 0
    assert filled(run, found[0]["id"]) == []


def test_a_past_session_that_is_decided_now_fills_at_the_next_open_from_now(
    run: Run, fresh: Path, folder_desk: Path, at: At
) -> None:
    at("2025-03-20T12:00")
    assert run("--daily", "--session", "2025-03-14").code == 0
    assert run("order", "buy", "HLXM", "--amount", "1000", "--yes").code == 0
    (order_id,) = orders_of(run)
    assert run("--daily").code == 0, "2025-03-19"
    assert filled(run, order_id) == []
    at("2025-03-20T21:00")
    assert run("--daily").code == 0
    assert filled(run, order_id) == ["2025-03-20T13:30:00+00:00"]


def test_a_clock_set_back_is_named_and_dates_nothing(run: Run, folder_desk: Path, at: At) -> None:
    at("2025-03-13T21:00")
    assert run("--daily").code == 0
    before = len(run("orders", "--json").json["orders"])
    at("2025-03-11T12:00")
    for words in (("--daily",), ("order", "buy", "HLXM", "--amount", "1000", "--yes")):
        said = run(*words)
        assert said.code == 78 and said.err.count("\n") == 1, said.err
        assert "clock" in said.err and "2025-03-13" in said.err
    assert len(run("orders", "--json").json["orders"]) == before
    at("2025-03-14T21:00")
    assert run("--daily", "--session", "2025-03-11").code == 2, "a day that the books have passed is no clock set back"


def test_check_and_parity_refuse_a_fill_before_its_order(run: Run, folder_desk: Path, at: At) -> None:
    assert run("order", "buy", "HLXM", "--amount", "1000", "--yes").code == 0
    for day in ("2025-03-13", "2025-03-14"):
        at(f"{day}T21:00")
        assert run("--daily").code == 0
    assert run("parity", "2025-03-13").code == 0
    with closing(sqlite3.connect(folder_desk)) as journal, journal:
        for (guard,) in journal.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            journal.execute(f"DROP TRIGGER {guard}")
        early = "UPDATE fills SET time = '2025-03-12T13:30:00.000000+00:00'"
        assert journal.execute(early).rowcount > 1, "of the operator's order, and of the run's"
    checked = run("journal", "check", "--json")
    assert checked.code == 65
    assert any("a fill comes after its order was sent" in fault for fault in checked.json["faults"])
    refused = run("parity", "2025-03-13")
    assert (refused.code, refused.err.count("\n")) == (65, 1) and "2025-03-12 13:30 UTC" in refused.err


def test_a_halted_desk_takes_only_what_reduces_a_position(run: Run, folder_desk: Path, at: At) -> None:
    bought = run("order", "buy", "HLXM", "--amount", "1000", "--yes", "--json").json["order"]["id"]
    at("2025-03-13T21:00")
    assert run("--daily").code == 0
    assert filled(run, bought)
    assert run("halt").code == 0
    refused = run("order", "buy", "HLXM", "--amount", "1000", "--yes", "--json")
    assert refused.code == 1 and not refused.json["taken"]
    too_much = run("order", "sell", "HLXM", "--quantity", "1000", "--yes", "--json")
    assert too_much.code == 1 and not too_much.json["taken"]
    sold = run("order", "sell", "HLXM", "--quantity", "1", "--yes", "--json")
    assert sold.code == 0 and sold.json["order"]["state"] == "acknowledged", sold.json
    assert run("status", "--json").json["halted"] is not None
    at("2025-03-14T21:00")
    assert run("--daily").code == 0
    assert filled(run, sold.json["order"]["id"]) == ["2025-03-14T13:30:00+00:00"]


def test_an_order_whose_session_had_no_trade_keeps_its_cash_in_every_later_run(
    run: Run, folder_desk: Path, at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(os.environ["PAPERDESK_DATA__FOLDER"], tmp_path / "untraded"))
    prices = folder / "prices" / "HLXM.csv"
    lines = prices.read_text().splitlines()
    day = next(n for n, line in enumerate(lines) if line.startswith("2025-03-13"))
    lines[day] = lines[day].rpartition(",")[0] + ",0"
    prices.write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(folder))
    bought = run("order", "buy", "HLXM", "--amount", "60000", "--yes", "--json").json["order"]["id"]
    at("2025-03-13T21:00")
    assert run("--daily").code == 0 and filled(run, bought) == []
    for _ in range(2):
        more = run("order", "buy", "ORVL", "--amount", "60000", "--yes", "--json")
        assert more.code == 1 and not more.json["taken"], more.json
    at("2025-03-14T21:00")
    assert run("--daily").code == 0
    assert filled(run, bought) == ["2025-03-14T13:30:00+00:00"]
