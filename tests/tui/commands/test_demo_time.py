"""A demo desk's own time: its clock stands at the end of a session, and `n` or `paperdesk next` alone move it on."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, date, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine.app.desk import demo_history
from engine.app.desk.context import Finished
from engine.app.desk.notification import CycleProcess, run_next
from engine.app.open_desk import OpenDesk
from engine.domain.order import OrderState
from engine.domain.run import RunOutcome
from engine.errors import MissingData
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.messages.commands import Approve, Halt, Resume
from engine.messages.events import Event, Noticed
from engine.services import Services
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import FEW_AGENTS, OpenBroker, Run
from tests.tui.conftest import drawn, opened, shown, until
from tui.commands.app import open_desk
from tui.desk.bridge import HALTED
from tui.desk.desk_follower import DeskFollower
from tui.screens.confirm import ConfirmScreen
from tui.settings.invocation import Invocation
from tui.view.snapshot import Snapshot
from tui.view.state import Progress
from tui.widgets.navigation_bars import Hints

SESSIONS = tuple(date(2025, 3, day) for day in (10, 11, 12, 13))


def view(pilot: Pilot[Any]) -> Snapshot:
    found: Snapshot = pilot.app.bridge.snapshot()  # type: ignore[attr-defined]
    return found


def decided() -> list[tuple[date | None, RunOutcome | None]]:
    try:
        with JournalReader(places.desk_journal("demo")) as reader:
            return [(run.session, run.outcome) for run in reader.runs()]
    except MissingData:  # it is being made
        return []


@pytest.fixture
def few(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo desk with few agents and without a history, whose first session is due."""
    monkeypatch.setattr(demo_history, "DUE", SESSIONS[0])
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    return fresh


async def test_r_and_a_headless_run_decide_what_is_due_and_n_and_next_go_on(
    run: Run, few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await asyncio.to_thread(run, "status", "--json")
    assert first.code == 0 and decided() == []
    there, read = threading.Event(), DeskFollower._try_to_read

    async def late(follower: DeskFollower, desk: OpenDesk) -> None:
        if follower.unread:
            await asyncio.to_thread(there.wait)
        await read(follower, desk)

    monkeypatch.setattr(DeskFollower, "_try_to_read", late)
    async with opened() as pilot:
        await shown(pilot)
        assert datetime(2025, 3, 11, 0, 0, 1, tzinfo=UTC) <= view(pilot).now  # type: ignore[operator]
        assert view(pilot).now < datetime(2025, 3, 12, 0, 0, 1, tzinfo=UTC)  # type: ignore[operator]
        assert {quote.session for quote in view(pilot).market.quotes} == {SESSIONS[0]}  # type: ignore[union-attr]
        hints = str(pilot.app.screen.query_one(Hints).render())
        assert "n next session" in hints and "run cycle" not in hints  # the one that applies
        for key in ("2", "1"):
            await pilot.press(key)
            await until(pilot, lambda: "press n to run the first cycle" in drawn(pilot))
        moments = set[tuple[date, date]]()

        def ended(session: date) -> bool:
            now = view(pilot)
            if now.desk.books is not None and now.market is not None:
                moments.update((now.desk.books.session, one.session) for one in now.market.quotes if one.session)
            return (session, RunOutcome.DONE) in decided() and not now.busy and not now.desk.running

        for number, (session, cli_equivalent) in enumerate(zip(SESSIONS, ("--daily", "next", "next"), strict=False)):
            await (pilot.press("n") if number else pilot.press("r"))
            assert pilot.app.last_command == f"paperdesk {cli_equivalent}"  # type: ignore[attr-defined]
            await until(pilot, lambda session=session: ended(session))  # type: ignore[misc]
            if not number:  # its end is not read yet: another one would come beside older books
                await pilot.press("n")
                assert "a cycle is running already" in [one.message for one in pilot.app._notifications]
                there.set()
            await until(pilot, lambda session=session: getattr(view(pilot).desk.books, "session", None) == session)
            await until(pilot, lambda: not pilot.app.bridge._follower.unread)  # type: ignore[attr-defined]
        assert moments and all(books == prices for books, prices in moments), "no prices beside older books"
        present = view(pilot)
        await pilot.press("left_curly_bracket", "right_curly_bracket")
        await until(pilot, lambda: pilot.app.bridge.playback.arrived and view(pilot).desk.session == SESSIONS[2])  # type: ignore[attr-defined]
        past = view(pilot)
        assert past.market is not None and past.market.quotes == present.market.quotes  # type: ignore[union-attr]
        assert "WRNN-USD" in {quote.symbol for quote in past.market.quotes}, "a coin's session ends at midnight"
        await pilot.press("backslash", "5")
        await until(pilot, lambda: f"session {SESSIONS[2]} is decided; n runs" in drawn(pilot))
        clock = view(pilot).now
        await pilot.press("r")
        await until(pilot, lambda: "is already decided; n runs" in view(pilot).desk.lines[-1].text)
        assert view(pilot).now.date() == clock.date() and len(decided()) == 3  # type: ignore[union-attr]
    for _ in range(2):
        done = await asyncio.to_thread(run, "--daily", "--json")
        assert (done.code, done.json["outcome"], done.json["session"]) == (0, "nothing to do", str(SESSIONS[2]))
    future = await asyncio.to_thread(run, "--daily", "--session", str(SESSIONS[3]))
    assert future.code == 2, "its clock does not stand there yet"
    assert decided() == [(session, RunOutcome.DONE) for session in SESSIONS[:3]]
    with JournalReader(places.desk_journal("demo")) as reader:
        ends = [run.ended.date() for run in reader.runs() if run.ended is not None]
    assert ends == [session + timedelta(days=1) for session in SESSIONS[:3]], "by the demo's own time"
    status = (await asyncio.to_thread(run, "status", "--json")).json
    assert (status["due"], status["missed"]) == (None, [])


def test_next_decides_what_is_due_first_and_then_goes_on_by_sessions(run: Run, few: Path) -> None:
    assert run("status", "--json").json["due"] == str(SESSIONS[0])
    two = run("next", "2", "--json")
    assert (two.code, [one["session"] for one in two.json["sessions"]]) == (0, list(map(str, SESSIONS[:2])))
    assert f"session {SESSIONS[2]}" in run("next").out
    assert run("--daily", "--json").json["outcome"] == "nothing to do"
    assert decided() == [(session, RunOutcome.DONE) for session in SESSIONS[:3]]
    assert run("next", "0").code == 2


def test_a_fresh_home_goes_on_from_its_history(run: Run, fresh: Path, recorded_history: None) -> None:
    status = run("status", "--json").json
    assert (status["session"], status["due"]) == (str(demo_history.LAST), str(demo_history.DUE))
    done, again = (run("--daily", "--json") for _ in range(2))
    assert (done.code, done.json["session"], done.json["skipped"]) == (0, str(demo_history.DUE), [])
    assert done.json["outcome"] == "done" and done.json["positions"]
    assert (again.code, again.json["outcome"], again.json["session"]) == (0, "nothing to do", str(demo_history.DUE))
    assert [one["session"] for one in run("next", "2", "--json").json["sessions"]] == ["2026-09-28", "2026-09-29"]
    assert run("journal", "check", "--verify").code == 0
    assert run("memory", "list", "--json").json["memories"] and run("why", "ORVL", "2026-08-31").code == 0


def test_a_desk_that_goes_by_the_clock_of_its_market_is_not_moved_on(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(tmp_path))
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "AAA")
    refused = run("next")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert not places.desk_journal("demo").exists()


def test_a_desk_at_the_sandbox_goes_on_too(run: Run, open_broker: OpenBroker) -> None:
    open_broker(datetime(2025, 3, 11, 21, tzinfo=UTC), through=date(2025, 3, 20), symbols=("ORVL",))
    sessions = run("next", "2", "--json")
    assert sessions.code == 0, sessions.err
    assert [one["session"] for one in sessions.json["sessions"]] == ["2025-03-11", "2025-03-12"]
    assert run("--daily", "--json").json["outcome"] == "nothing to do"
    assert run("next", "9").code == 2, "the sandbox's data ends before"


def test_next_says_when_the_sandbox_refuses_the_keys(
    run: Run, open_broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_broker(datetime(2025, 3, 11, 21, tzinfo=UTC), through=date(2025, 3, 20), symbols=("ORVL",))
    monkeypatch.setenv("APCA_API_SECRET_KEY", "of-another-account")
    assert (run("next").code, run("--daily").code) == (77, 77)


@pytest.mark.slow
async def test_the_next_session_is_asked_for_while_orders_wait_that_expire_with_it(
    few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    async with opened() as pilot:
        await shown(pilot)
        for session in SESSIONS[:3]:
            await pilot.press("n")
            await until(pilot, lambda session=session: dict(decided()).get(session) is not None)  # type: ignore[misc]
            await until(pilot, lambda: not view(pilot).busy and not view(pilot).desk.running)
            if dict(decided())[session] is RunOutcome.WAITING:
                break
        count = len(decided())
        await until(pilot, lambda: bool(view(pilot).controls.waiting))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen) and "Next session?" in drawn(pilot))
        await pilot.press("escape")
        assert view(pilot).controls.waiting and len(decided()) == count and not view(pilot).busy
        await pilot.press("n", "y")
        await until(pilot, lambda: len(decided()) == count + 1 and not view(pilot).busy)


@pytest.mark.slow
def test_orders_of_a_demo_desk_wait_by_its_own_time(run: Run, few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    desk = open_desk(Invocation())

    async def gate() -> None:
        pass

    for _ in SESSIONS[:2]:
        assert desk.next_session() == ""
        asyncio.run(desk.run_cycle(lambda event: None, gate))
        if waiting := run("approve", "--json").json["waiting"]:
            break
    assert waiting and waiting[0]["session"] < str(SESSIONS[-1])
    assert run("halt").code == run("resume").code == 0
    stands = run("approve", waiting[0]["id"], "--json").json["orders"][0]["stands"]
    with JournalReader(places.desk_journal("demo")) as reader:
        given = [time for time, _ in reader.commands(Halt, Resume, Approve)]
        sent = [move.time for move in reader.order_moves(waiting[0]["id"]) if move.state is not OrderState.INTENDED]
    times = [*given, *sent]
    assert len(given) == 3 and sent and times == sorted(times), "by the desk's time, whoever does it"
    assert times[-1].date() <= SESSIONS[-1]
    assert stands == "approved, acknowledged"


def test_a_halt_leaves_the_session_due_and_the_clock_where_it_is(run: Run, few: Path) -> None:
    assert run("halt").code == 0
    assert run("--daily").code == 0 and decided() == [(SESSIONS[0], RunOutcome.HALTED)]
    (halted,) = run("next", "2", "--json").json["sessions"]
    assert (halted["session"], halted["outcome"]) == (str(SESSIONS[0]), "halted")
    assert run("status", "--json").json["due"] == str(SESSIONS[0])
    assert run("resume").code == 0 and run("next", "2").code == 0
    assert decided() == [(session, RunOutcome.DONE) for session in SESSIONS[:2]]
    assert run("halt").code == 0
    (stays,) = run("next", "--json").json["sessions"]
    assert (stays["session"], stays["outcome"]) == (str(SESSIONS[1]), "nothing to do")


async def test_the_app_runs_its_cycles_in_a_process_of_their_own_with_the_configuration_that_it_shows(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Event] = []
    there = AsyncMock(return_value=Finished("daily-demo-20250715", date(2025, 7, 15)))
    monkeypatch.setattr("engine.app.desk.notification.CycleProcess", CycleProcess)
    monkeypatch.setattr("engine.app.desk.notification.in_own_process", there)
    desk = open_desk(Invocation())
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", '["ORVL"]')
    await desk.run_cycle(heard.append, AsyncMock())
    open_services = there.await_args.args[0].args[0]  # type: ignore[union-attr]
    assert open_services().symbols == desk.symbols != ("ORVL",)
    assert [event.text for event in heard if isinstance(event, Noticed)] == [
        "2025-07-15 is already decided; n runs the next session"
    ]


async def test_a_session_that_was_left_midway_is_the_one_that_the_desk_opens_at(
    few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its books and events are of its close: prices of the session before beside them would be false."""
    left = OpenDesk(services(load_config(None).config))
    assert left.next_session() == ""
    with pytest.raises(asyncio.CancelledError):
        await left.run_cycle(lambda event: None, AsyncMock(side_effect=chain([None], repeat(asyncio.CancelledError))))
    assert [session for session, outcome in decided() if outcome is not RunOutcome.DONE] == [SESSIONS[0]]
    async with opened() as pilot:
        await until(pilot, lambda: view(pilot).market is not None and bool(view(pilot).desk.panes))
        assert {quote.session for quote in view(pilot).market.quotes} == {SESSIONS[0]}  # type: ignore[union-attr]
        steps = [pane for symbol in view(pilot).desk.panes for pane in view(pilot).desk.panes_of(symbol)]
        assert steps and not any(pane.progress is Progress.THINKING for pane in steps)
        await pilot.press("5")
        await until(pilot, lambda: f"session {SESSIONS[0]} is due" in drawn(pilot))
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: view(pilot).controls.halted is not None)
        now = view(pilot).now
        await pilot.press("n")
        await until(pilot, lambda: any(str(one.message) == HALTED for one in pilot.app._notifications))
        assert view(pilot).now - now < timedelta(minutes=5)
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: view(pilot).controls.halted is None)
        await pilot.press("r")
        await until(pilot, lambda: decided() == [(SESSIONS[0], RunOutcome.DONE)])
        await until(pilot, lambda: f"session {SESSIONS[0]} is decided" in drawn(pilot))


@pytest.mark.slow
async def test_a_desk_that_decided_one_symbol_shows_the_prices_of_that_session(run: Run, few: Path) -> None:
    """Its books are of that close, and its other symbols are still to be decided."""
    assert (await asyncio.to_thread(run, "--daily", "--symbol", "ORVL")).code == 0
    value = (await asyncio.to_thread(run, "positions", "--json")).json
    assert value["session"] == str(SESSIONS[0])
    async with opened() as pilot:
        await until(pilot, lambda: view(pilot).market is not None and view(pilot).desk.books is not None)
        assert {quote.session for quote in view(pilot).market.quotes} == {SESSIONS[0]}  # type: ignore[union-attr]
        assert view(pilot).desk.books.as_of == f"close of {SESSIONS[0]}"  # type: ignore[union-attr]
        await shown(pilot)
        await pilot.press("C")
        assert pilot.app.last_command == "paperdesk --daily --symbol ORVL"  # type: ignore[attr-defined]
        await until(pilot, lambda: "is already decided" in drawn(pilot) and not view(pilot).busy)
        await pilot.press("n")
        await until(pilot, lambda: (SESSIONS[0], RunOutcome.DONE) == decided()[-1] and len(decided()) == 2)


def run_elsewhere(of: Services) -> None:
    """A run that this app does not publish: only the journal tells of it."""
    asyncio.run(run_next(of, lambda event: None))


async def test_no_books_of_a_headless_run_come_before_the_prices_that_they_are_valued_at(
    few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = OpenDesk.market

    async def slowly(desk: OpenDesk) -> Market:
        await asyncio.sleep(0.2)
        return await market(desk)

    monkeypatch.setattr(OpenDesk, "market", slowly)
    seen: set[tuple[date, date]] = set()
    async with opened() as pilot:
        await shown(pilot)
        config = load_config(None).config
        for session in SESSIONS[:2]:
            daily = asyncio.create_task(asyncio.to_thread(run_elsewhere, services(config)))
            while not daily.done() or (session, session) not in seen or view(pilot).desk.running:
                now = view(pilot)
                if now.desk.books is not None and now.market is not None:
                    last = {quote.session for quote in now.market.quotes}.pop()
                    assert last is not None and now.desk.books.session <= last
                    seen.add((now.desk.books.session, last))
                await pilot.pause(0.01)
            await daily
