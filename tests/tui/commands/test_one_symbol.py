"""`paperdesk --daily --symbol`: one symbol is decided in a run of its own, and the daily run decides the rest."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.journal.reader import JournalReader
from engine.session.simulated_venue import DeskVenue
from engine.settings import places
from tests.engine.session.test_daily import Killed
from tests.tui.commands.conftest import FEW_AGENTS, OpenBroker, Run
from tests.tui.commands.test_daily_circumstances import FRIDAY, THROUGH

NEXT = "2025-03-17"
NOON = datetime(2025, 3, 18, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset of the desk that has run."""
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)


def alone(run: Run, symbol: str, *more: str) -> Any:
    return run("--daily", "--session", NEXT, "--symbol", symbol, *more)


def decided() -> list[tuple[str, str]]:
    """Run and symbol of every decision for NEXT."""
    with JournalReader(places.desk_journal("demo")) as reader:
        made = reader.decisions(first=date.fromisoformat(NEXT))
        return [(one.key.run, one.key.symbol) for one in made]


def test_one_symbol_is_decided_then_the_rest_and_nothing_twice(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOON)
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 17))
    unknown = alone(run, "NOPE")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1) and "the desk demo does not decide NOPE" in unknown.err
    assert run("--symbol", "ORVL").code == 2

    first = alone(run, "orvl", "--json").json
    own = "symbol-demo-20250317-ORVL"
    assert (first["run"], first["symbol"], first["outcome"]) == (own, "ORVL", "done")
    assert [one["symbol"] for one in first["decisions"]] == ["ORVL"] and first["fills"]
    calls = run("status", "--json").json["model"]["calls"]
    again = alone(run, "ORVL")
    assert (again.code, again.err) == (0, "")
    assert again.out == f"Nothing to do: the desk demo has decided ORVL for {NEXT} already (run {own}).\n"
    status = run("status", "--json").json
    assert status["model"]["calls"] == calls and status["last_run"]["id"] == own
    assert (status["session"], status["due"], status["decided_alone"]) == (NEXT, NEXT, {"ORVL": own})
    assert f"{NEXT} is completed and not decided yet but for ORVL: paperdesk --daily" in run("status").out
    assert run("equity", "--at", NEXT, "--json").json["equity"][-1]["session"] == NEXT
    assert f"Desk demo, session {NEXT}, ORVL alone" in run("report", "--session", NEXT).out

    rest = run("--daily", "--session", NEXT)
    assert rest.code == 0 and "Left out    ORVL: decided already, in a run of its own" in rest.out
    assert "Since last  no fills" in rest.out, "the first run has booked them"
    document = run("--daily", "--session", NEXT, "--json").json
    assert (document["outcome"], document["decided_alone"]) == ("nothing to do", {"ORVL": own})
    others = [one["symbol"] for one in document["decisions"]]
    assert sorted((*others, "ORVL")) == sorted(symbol for _, symbol in decided()) and len(others) == 3
    assert alone(run, others[0]).out.endswith("already (run daily-demo-20250317).\n")
    for symbol, by in (("ORVL", own), (others[0], "daily-demo-20250317")):
        assert run("why", symbol, NEXT, "--json").json["decisions"][0]["run"] == by
    listed = {one["id"]: one for one in run("runs", "list", "--json").json["runs"]}
    assert (listed[own]["kind"], listed[own]["symbols"]) == ("symbol", ["ORVL"])


def test_what_a_killed_run_has_decided_is_sent_once_by_whoever_comes_next(run: Run, desk: Path) -> None:
    async def killed(venue: DeskVenue, order: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(DeskVenue, "place", killed)
        alone(run, "ORVL")
    assert _states(run) == {"ORVL": "submitting"}
    last = next(one for one in run("doctor", "--json").json["checks"] if one["name"] == "last run")
    assert last["detail"].endswith(": running, or killed; the next run resumes it")

    document = run("--daily", "--session", NEXT, "--json").json
    assert document["outcome"] == "done" and [*document["decided_alone"]] == ["ORVL"]
    assert _states(run) == {"ORVL": "acknowledged"}
    assert sorted(set(decided())) == sorted(decided())
    with JournalReader(places.desk_journal("demo")) as reader:
        assert {one.outcome for one in reader.runs() if str(one.session) == NEXT} == {"done"}


def test_an_order_of_its_own_waits_beside_the_others_and_is_sent_once_it_is_approved(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A desk that begins buys two symbols at that close."""
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 17))
    waiting = alone(run, "ORVL", "--json").json
    assert waiting["outcome"] == "waiting" and len(waiting["waiting"]) == 1
    rest = run("--daily", "--session", NEXT, "--json").json
    assert rest["outcome"] == "waiting" and _states(run) == {"ORVL": "intended", "HLXM": "intended"}
    for done, symbol in enumerate(("ORVL", "HLXM")):
        assert run("approve", symbol).code == 0
        assert _states(run) == {"ORVL": "acknowledged", "HLXM": "acknowledged" if done else "intended"}


def test_a_pause_and_a_halt_keep_it_from_deciding(run: Run, desk: Path) -> None:
    for stop, outcome in (("pause", "paused"), ("halt", "halted")):
        run(stop)
        stopped = alone(run, "ORVL", "--json")
        assert (stopped.code, stopped.json["outcome"], stopped.json["decisions"]) == (0, outcome, [])
        run("resume")
    assert alone(run, "ORVL", "--json").json["outcome"] == "done"


def test_a_run_that_a_pause_stopped_is_superseded_once_the_daily_run_has_decided(run: Run, desk: Path) -> None:
    def ends() -> list[dict[str, str]]:
        listed = run("runs", "list", "--symbol", "ORVL", "--json").json["runs"]
        rows = run("status", "--json").json["operation"]["runs"]
        return [{one["kind"]: one["outcome"] for one in found if "20250317" in one["id"]} for found in (listed, rows)]

    run("pause")
    assert alone(run, "ORVL").code == 0
    run("resume")
    assert ends() == [{"symbol": "paused"}] * 2
    assert run("--daily", "--session", NEXT).code == 0
    assert ends() == [{"daily": "done", "symbol": "superseded"}] * 2
    again = alone(run, "ORVL")
    assert (again.code, again.out.count("\n"), again.err) == (0, 1, "") and "Nothing to do" in again.out


def test_a_preset_that_decides_on_the_portfolio_has_no_run_of_one_symbol(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", "arena")
    refused = alone(run, "ORVL")
    assert refused.code == 78 and "arena decides on the whole portfolio in one question" in refused.err


def _states(run: Run) -> dict[str, str]:
    """The state of every order for NEXT by symbol."""
    return {one["symbol"]: one["state"] for one in run("orders", "--json").json["orders"] if one["session"] == NEXT}


def test_at_a_broker_the_daily_run_sees_the_cash_that_the_order_before_may_take(
    run: Run, open_broker: OpenBroker
) -> None:
    server = open_broker(FRIDAY, through=THROUGH, symbols=("ORVL", "HLXM"), more="timeout = 20\n")
    first = run("--daily", "--symbol", "ORVL", "--json").json
    rest = run("--daily", "--json").json
    again = run("--daily", "--symbol", "ORVL", "--json").json
    assert [first["outcome"], rest["outcome"], again["outcome"]] == ["done", "done", "nothing to do"]
    (order,) = first["orders"]
    assert (order["symbol"], [one["symbol"] for one in rest["decisions"]]) == ("ORVL", ["HLXM"])
    assert server.state()["posts"] == {order["id"]: 1, **{one["id"]: 1 for one in rest["orders"]}}
    with JournalReader(places.desk_journal("paper")) as reader:
        seen = json.loads(reader.inputs(rest["run"], 1)["turn"][0])
    assert Decimal(seen["reserved"]) == Decimal(order["notional"]) > 0
