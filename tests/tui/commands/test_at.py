"""`--at`: what a command printed on a day, printed again later; and what is not known is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.journal.point_in_time import OF_SESSION, hide_after_event
from engine.journal.reader import JournalReader
from engine.journal.schema import CHAIN, MARKED, VERSIONS
from engine.messages.events import DecisionMade, OrderFilled, RunFinished, SessionSettled
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import BACKTEST, FEW_AGENTS, SESSIONS, Run

COMMANDS = ("status", "positions", "orders", "decisions", "equity")
UNKNOWN_THEN = {"due", "missed", "operation"}
"""Sessions that are due or were missed depend on today, rates on the minute."""


@pytest.fixture
def days(run: Run, fresh: Path) -> dict[date, dict[str, Any]]:
    """The documents of every command right after the desk's run of each session; the desk is halted for a while."""
    config = load_config(None, environ=FEW_AGENTS).config
    printed = {}
    for session in SESSIONS:
        asyncio.run(run_daily(services(config), session))
        printed[session] = {command: run(command, "--json").json for command in COMMANDS}
        run("halt", "--reason", f"after {session}")
        run("resume")
    return printed


def test_a_day_is_printed_again_as_it_was(run: Run, days: dict[date, dict[str, Any]]) -> None:
    for session, documents in days.items():
        for command, then in documents.items():
            again = run(command, "--at", str(session), "--json")
            assert (again.code, again.err) == (0, "")
            assert again.json | dict.fromkeys(UNKNOWN_THEN & then.keys()) == then | dict.fromkeys(
                UNKNOWN_THEN & then.keys()
            ), (command, session)
            by_event = run(command, "--at", str(then["event"]), "--json").json
            assert by_event == again.json, (command, session)
    assert days[SESSIONS[0]]["equity"] != days[SESSIONS[2]]["equity"]
    assert "Decisions of desk demo as of 2025-03-12" in run("decisions", "--at", "2025-03-12").out


def test_within_a_run_there_is_what_was_written_by_then(run: Run, days: dict[date, dict[str, Any]]) -> None:
    first, last = days[SESSIONS[1]]["status"]["event"], days[SESSIONS[2]]["status"]["event"]
    settled, decided = [], []
    for event in range(first + 1, last + 1):
        document = run("status", "--at", str(event), "--json").json
        assert document["event"] == event and document["last_run"]["session"] in ("2025-03-12", "2025-03-14")
        settled.append(document["session"])
        decided.append(document["counts"]["decisions"])
    assert settled[0] == "2025-03-12" and settled[-1] == "2025-03-14" and settled == sorted(settled)
    assert decided[0] == 8 and decided[-1] == 12 and decided == sorted(decided)


def test_a_decision_is_there_from_its_event_on(run: Run, days: dict[date, dict[str, Any]]) -> None:
    last, session = days[SESSIONS[1]]["status"]["event"], str(SESSIONS[2])
    with JournalReader(places.desk_journal("demo")) as reader:
        events = reader.events_after(last)
    announced: list[str] = []
    for (number, event), (_, after) in pairwise(events):
        if isinstance(event, RunFinished):
            break
        if isinstance(event, DecisionMade):
            announced.append(event.decision.key.symbol)
        elif not isinstance(after, DecisionMade):
            continue
        for command in ("decisions", "orders"):
            later = [row["symbol"] for row in days[SESSIONS[2]][command][command] if row["session"] == session]
            rows = run(command, "--at", str(number), "--json").json[command]
            then = [row["symbol"] for row in rows if row["session"] == session]
            assert then == [symbol for symbol in later if symbol in announced], (number, command)
            assert later, command
    assert len(announced) == 4


def test_trades_and_books_are_there_from_their_events_on(run: Run, days: dict[date, dict[str, Any]]) -> None:
    with JournalReader(places.desk_journal("demo")) as reader:
        events = reader.events_after(days[SESSIONS[0]]["status"]["event"])
    trades, held, closed, cash = 0, Counter[str](), str(SESSIONS[0]), Decimal(100_000)
    for (number, event), (_, after) in pairwise(events):
        if isinstance(event, OrderFilled):
            fill = event.fill
            trades, signed = trades + 1, fill.quantity if fill.side == "BUY" else -fill.quantity
            held[fill.symbol] += signed  # type: ignore[assignment]
            cash -= round(signed * fill.price, 2) + fill.fee
        if isinstance(event, SessionSettled):
            trades, closed, settled = 0, str(event.books.session), event.books.portfolio.cash
            assert abs(settled - cash) < Decimal("0.05")
            cash = settled
        if not isinstance(event, OrderFilled | SessionSettled) and not isinstance(after, OrderFilled | SessionSettled):
            continue
        then = run("status", "--at", str(number), "--json").json
        assert {symbol: Decimal(one["quantity"]) for symbol, one in then["positions"].items()} == +held, number
        assert then["session"] == closed and abs(Decimal(then["cash"]) - cash) < Decimal("0.05"), number
        assert (then["since"] or {"fills": 0})["fills"] == trades, number
        if isinstance(event, OrderFilled | SessionSettled):
            orders = run("orders", "--at", str(number), "--json").json["orders"]
            assert all((one["state"] == "filled") == bool(one["fills"]) for one in orders), number
        if isinstance(event, SessionSettled):
            assert Decimal(then["value"]) == event.books.value
    assert held and closed == str(SESSIONS[2])


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_known_is_refused_in_one_line(run: Run, desk: Path, command: str) -> None:
    for at, code, words in (
        ("2025-03-13", 65, "the nearest are 2025-03-12 and 2025-03-14"),
        ("2031-01-02", 65, "the nearest is 2025-03-14"),
        ("999999", 65, "no event 999999: its journal has those from 1 to "),
        ("0", 2, "neither a session"),
        ("yesterday", 2, "neither a session"),
        ("-3", 2, "neither a session"),
    ):
        said = run(command, f"--at={at}")
        assert said.code == code and said.out == ""
        assert said.err.count("\n") == 1 and words in said.err


def test_a_desk_that_has_not_run_has_no_past(run: Run, paperdesk_home: Path) -> None:
    said = run("status", "--at", "2025-03-12")
    assert said.code == 65 and "has not run yet" in said.err


def test_a_run_that_began_later_is_unknown_then(run: Run, desk: Path) -> None:
    assert run("orders", "--run", "daily-demo-20250312", "--at", "2025-03-14").code == 0
    said = run("orders", "--run", "daily-demo-20250314", "--at", "2025-03-12")
    assert said.code == 65 and "no run daily-demo-20250314" in said.err


def test_a_backtest_has_sessions_and_no_events(run: Run, backtested: Path) -> None:
    whole = run("equity", "--run", BACKTEST, "--json").json["equity"]
    for number, row in enumerate(whole, 1):
        at = ("--run", BACKTEST, "--at", row["session"])
        assert run("equity", *at, "--json").json["equity"] == whole[:number]
        assert run("positions", *at, "--json").json["value"] == row["value"]
        orders = run("orders", *at, "--json").json["orders"]
        assert all(fill["session"] <= row["session"] for order in orders for fill in order["fills"])
        assert all((order["state"] == "filled") == bool(order["fills"]) for order in orders)
        assert max(made["session"] for made in run("decisions", *at, "--json").json["decisions"]) <= row["session"]
    assert run("status", "--run", BACKTEST, "--at", whole[3]["session"], "--json").json["last_run"]["outcome"] is None
    assert "not finished then (" in " ".join(run("status", "--run", BACKTEST, "--at", whole[3]["session"]).out.split())
    ended = run("status", "--run", BACKTEST, "--at", whole[-1]["session"], "--json").json
    assert ended["last_run"]["outcome"] == "done"
    refused = run("status", "--run", BACKTEST, "--at", "3")
    assert refused.code == 2 and "name a session" in refused.err
    unknown = run("equity", "--run", BACKTEST, "--at", "2025-03-01")
    assert unknown.code == 65 and "did not settle 2025-03-01: the nearest is 2025-03-11" in unknown.err


def test_every_table_is_hidden_or_named_by_its_content(desk: Path) -> None:
    with JournalReader(places.desk_journal("demo")) as reader:
        tables = {row["name"] for row in reader._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    by_content = {"prompts", "charts", "memories", "chunks", "looks", "events", "sqlite_sequence"}
    assert tables - by_content - {CHAIN, VERSIONS} == set(MARKED)  # no document reads the chain
    assert set(OF_SESSION) < set(MARKED)
    connection = sqlite3.connect(places.desk_journal("demo"))
    hide_after_event(connection, 1)
    for table in MARKED:
        assert connection.execute(f"SELECT count(*) FROM {table} WHERE event >= 1").fetchone() == (0,), table
    connection.close()
