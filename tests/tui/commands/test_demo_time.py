"""A demo desk's own time: it begins some sessions ago, `n` runs the next one, and no session is left out."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from textual.pilot import Pilot

from connectors.wiring.services import services
from engine import places
from engine.app import demo_time
from engine.app.desk_context import Finished
from engine.app.open_desk import OpenDesk
from engine.app.runs import run_daily
from engine.config import load_config
from engine.domain.order import OrderState
from engine.domain.run import RunOutcome
from engine.errors import MissingData
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.messages.commands import Approve, Halt, Resume
from engine.messages.events import Event, Noticed
from engine.services import Services
from tests.tui.commands.conftest import FEW_AGENTS, Run
from tests.tui.conftest import opened, shown, until
from tui.bridge import HALTED
from tui.commands.app import open_desk
from tui.desk_follower import DeskFollower
from tui.invocation import Invocation
from tui.screens.confirm import ConfirmScreen
from tui.snapshot import Snapshot
from tui.state import Progress
from tui.widgets.navigation_bars import Hints

NOW = datetime(2025, 3, 14, 12, tzinfo=UTC)
BEGAN, *SESSIONS = (date(2025, 3, day) for day in (7, 10, 11, 12, 13))


def view(pilot: Pilot[Any]) -> Snapshot:
    found: Snapshot = pilot.app.bridge.snapshot()  # type: ignore[attr-defined]
    return found


def screen(pilot: Pilot[Any]) -> str:
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def decided() -> list[tuple[date | None, RunOutcome | None]]:
    try:
        with JournalReader(places.desk_journal("demo")) as reader:
            return [(run.session, run.outcome) for run in reader.runs()]
    except MissingData:  # it is being made
        return []


def few_sessions(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """A demo desk with few agents begins so many sessions before the last completed one at NOW."""
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOW)
    monkeypatch.setattr(demo_time, "BEFORE", before)
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)


async def test_n_runs_the_next_session_and_a_headless_run_every_one_that_is_left(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_sessions(monkeypatch, 4)
    demo_time.begin(services(load_config(None).config))
    there, read = threading.Event(), DeskFollower._try_to_read

    async def late(follower: DeskFollower, desk: OpenDesk) -> None:
        if follower.unread:
            await asyncio.to_thread(there.wait)
        await read(follower, desk)

    monkeypatch.setattr(DeskFollower, "_try_to_read", late)
    async with opened() as pilot:
        await shown(pilot)
        assert view(pilot).now == datetime(2025, 3, 8, 0, 0, 1, tzinfo=UTC)
        assert {quote.session for quote in view(pilot).market.quotes} == {BEGAN}  # type: ignore[union-attr]
        assert "next session" in str(pilot.app.screen.query_one(Hints).render())
        for key in ("5", "1"):
            await pilot.press(key)
            await until(pilot, lambda: "press n to run the first cycle" in screen(pilot))
            assert "press r" not in screen(pilot).lower()
        await pilot.press("less_than_sign")
        await until(pilot, lambda: view(pilot).place is not None and "press n" not in screen(pilot))
        await pilot.press("backslash")
        await until(pilot, lambda: view(pilot).place is None)
        moments = set[tuple[date, date]]()

        def ended(session: date) -> bool:
            now = view(pilot)
            if now.desk.books is not None and now.market is not None:
                moments.update((now.desk.books.session, one.session) for one in now.market.quotes if one.session)
            return (session, RunOutcome.DONE) in decided() and not now.busy and not now.desk.running

        for session in SESSIONS[:2]:
            version = view(pilot).sources[0].version
            await pilot.press("n")
            if session == SESSIONS[0]:  # whose end is not read yet: another one would come beside older books
                await until(pilot, lambda: ended(SESSIONS[0]))
                await pilot.press("n")
                assert not view(pilot).busy and "a cycle is running already" in [
                    one.message for one in pilot.app._notifications
                ]
                there.set()
            # The desk is read twice: before its new books are shown, and after the run.
            await until(
                pilot,
                lambda session=session, version=version: (  # type: ignore[misc]
                    ended(session) and view(pilot).sources[0].version >= version + 2
                ),
            )
        assert moments == {(session, session) for session in SESSIONS[:2]}, "no prices beside older books"
        told = [line.text for line in view(pilot).desk.lines]
        assert sum(text.endswith(" begins") for text in told) == 2 and not any(
            text.endswith("goes on") for text in told
        )
        books = view(pilot).desk.books
        assert books is not None and books.session == SESSIONS[1]
        await until(pilot, lambda: view(pilot).market.quotes[0].session == SESSIONS[1])  # type: ignore[union-attr]
        await pilot.press("9")
        await until(pilot, lambda: f"session {SESSIONS[1]} is decided; n runs the next session" in screen(pilot))
        await pilot.press("1")
        present = view(pilot)
        await pilot.press("left_curly_bracket", "right_curly_bracket")
        await until(pilot, lambda: pilot.app.bridge.playback.arrived and view(pilot).desk.session == SESSIONS[1])  # type: ignore[attr-defined]
        past = view(pilot)
        assert past.market is not None and past.market.quotes == present.market.quotes  # type: ignore[union-attr]
        assert "WRNN-USD" in {quote.symbol for quote in past.market.quotes}, "a coin's session ends at midnight"
        assert past.now == past.desk.lines[-1].time >= datetime(2025, 3, 12, 0, 0, 1, tzinfo=UTC)
        await pilot.press("backslash", "r")
        await until(pilot, lambda: "n runs the next session" in view(pilot).desk.lines[-1].text)
    status = await asyncio.to_thread(run, "status")
    assert f"{SESSIONS[2]} is the demo's next session: n in the app" in status.out
    assert not {"Missed", "Rates"} & {line.split(" ")[0] for line in status.out.splitlines()}
    done = await asyncio.to_thread(run, "--daily", "--json")
    assert (done.code, done.json["session"], done.json["skipped"]) == (0, "2025-03-13", [])
    assert "decided first, for a demo desk leaves no session out: 2025-03-12\n" in done.err
    assert decided() == [(session, RunOutcome.DONE) for session in SESSIONS]
    with JournalReader(places.desk_journal("demo")) as reader:
        ends = [run.ended.date() for run in reader.runs() if run.ended is not None]
    assert ends == [session + timedelta(days=1) for session in SESSIONS], "by the demo's own time"
    assert (await asyncio.to_thread(run, "status", "--json")).json["due"] is None
    again = await asyncio.to_thread(run, "--daily", "--json")
    assert again.json["outcome"] == "nothing to do"
    async with opened() as pilot:
        await until(pilot, lambda: view(pilot).desk.books is not None)
        assert view(pilot).now == NOW and view(pilot).desk.books.session == SESSIONS[-1]  # type: ignore[union-attr]
        await pilot.press("n")
        toast = [str(one.message) for one in pilot.app._notifications]
        assert toast == ["every session so far is decided; the next, 2025-03-14, is over at 2025-03-15 00:00 UTC"]
    assert decided() == [(session, RunOutcome.DONE) for session in SESSIONS]


@pytest.mark.slow
async def test_the_next_session_is_asked_for_while_orders_wait_that_expire_with_it(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_sessions(monkeypatch, 4)
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    demo_time.begin(services(load_config(None).config))
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
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen) and "Next session?" in screen(pilot))
        await pilot.press("escape")
        assert view(pilot).controls.waiting and len(decided()) == count and not view(pilot).busy
        await pilot.press("n", "y")
        await until(pilot, lambda: len(decided()) == count + 1 and not view(pilot).busy)


async def test_the_demo_begins_when_it_is_first_opened_and_never_after_a_run(run: Run, fresh: Path, desk: Path) -> None:
    """The home of `desk` has run: its time is this machine's."""
    async with opened() as pilot:
        assert not Invocation().configured
        assert not places.desk_beginning("demo").exists() and not view(pilot).services.has_own_clock  # type: ignore[union-attr]
        assert "next session" not in str(pilot.app.screen.query_one(Hints).render())
        await pilot.press("n")
        assert "only a demo desk" in next(str(one.message) for one in pilot.app._notifications)
    places.desk_journal("demo").unlink()
    async with opened() as pilot:
        assert places.desk_beginning("demo").exists() and view(pilot).services.has_own_clock  # type: ignore[union-attr]


@pytest.mark.slow
def test_orders_of_a_demo_desk_wait_by_its_own_time(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOW)
    monkeypatch.setattr(demo_time, "BEFORE", 4)
    for name, value in {**FEW_AGENTS, "PAPERDESK_BROKER__MODE": "ask"}.items():
        monkeypatch.setenv(name, value)
    demo_time.begin(services(load_config(None).config))
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
    assert times[-1].date() < NOW.date()
    assert stands == "approved, acknowledged"


def test_a_halt_leaves_every_session_due(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_sessions(monkeypatch, 3)
    demo_time.begin(services(load_config(None).config))
    assert run("halt").code == 0
    halted = run("--daily")
    assert halted.code == 0 and decided() == [(SESSIONS[1], RunOutcome.HALTED)]
    assert f"{SESSIONS[1]} is the demo's next session" in run("status").out
    assert run("resume").code == 0 and run("--daily").code == 0
    assert decided() == [(session, RunOutcome.DONE) for session in SESSIONS[1:]]
    with JournalReader(places.desk_journal("demo")) as reader:
        assert {made.key.session for made in reader.decisions()} == set(SESSIONS[1:])


async def test_the_app_runs_its_cycles_in_a_process_of_their_own_with_the_configuration_that_it_shows(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Event] = []
    there = AsyncMock(return_value=Finished("daily-demo-20250715", date(2025, 7, 15)))
    monkeypatch.setattr("engine.app.cycle_request.in_own_process", there)
    desk = open_desk(Invocation())
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", '["ORVL"]')
    await desk.run_cycle(heard.append, AsyncMock())
    open_services = there.await_args.args[0].args[0]  # type: ignore[union-attr]
    assert open_services().symbols == desk.symbols != ("ORVL",)
    assert [event.text for event in heard if isinstance(event, Noticed)] == [
        "2025-07-15 is decided already; n runs the next session"
    ]


@pytest.mark.parametrize("text", ["", "yesterday", "\udcff"])
def test_a_beginning_that_says_nothing_is_no_desk_without_one(run: Run, fresh: Path, text: str) -> None:
    file = places.desk_beginning("demo")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, errors="surrogateescape")
    ended = run("--daily")
    assert (ended.code, ended.err.count("\n")) == (65, 1) and f"{file} does not say which session" in ended.err
    assert not places.desk_journal("demo").exists() or not decided()


async def test_a_session_that_was_left_midway_is_the_one_that_the_desk_opens_at(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its books and events are of its close: prices of the session before beside them would be false."""
    few_sessions(monkeypatch, 4)
    configured = services(load_config(None).config)
    demo_time.begin(configured)
    left = OpenDesk(configured, demo=True)
    assert left.next_session() == ""
    with pytest.raises(asyncio.CancelledError):
        await left.run_cycle(lambda event: None, AsyncMock(side_effect=[None, asyncio.CancelledError]))
    assert [session for session, outcome in decided() if outcome is not RunOutcome.DONE] == [SESSIONS[0]]
    async with opened() as pilot:
        await until(pilot, lambda: view(pilot).market is not None and bool(view(pilot).desk.panes))
        assert {quote.session for quote in view(pilot).market.quotes} == {SESSIONS[0]}  # type: ignore[union-attr]
        steps = [pane for symbol in view(pilot).desk.panes for pane in view(pilot).desk.panes_of(symbol)]
        assert steps and not any(pane.progress is Progress.THINKING for pane in steps)
        await pilot.press("9")
        await until(pilot, lambda: f"session {SESSIONS[0]} is due" in screen(pilot))
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: view(pilot).controls.halted is not None)
        now = view(pilot).now
        await pilot.press("n")
        await until(pilot, lambda: any(str(one.message) == HALTED for one in pilot.app._notifications))
        assert view(pilot).now == now
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: view(pilot).controls.halted is None)
        await pilot.press("r")
        await until(pilot, lambda: decided() == [(SESSIONS[0], RunOutcome.DONE)])
        await until(pilot, lambda: f"session {SESSIONS[0]} is decided" in screen(pilot))


async def test_a_desk_that_decided_one_symbol_shows_the_prices_of_that_session(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its books are of that close, and its other symbols are still to be decided."""
    few_sessions(monkeypatch, 2)
    demo_time.begin(services(load_config(None).config))
    assert (await asyncio.to_thread(run, "--daily", "--symbol", "ORVL")).code == 0
    value = (await asyncio.to_thread(run, "positions", "--json")).json
    assert value["session"] == str(SESSIONS[-1])
    async with opened() as pilot:
        await until(pilot, lambda: view(pilot).market is not None and view(pilot).desk.books is not None)
        assert {quote.session for quote in view(pilot).market.quotes} == {SESSIONS[-1]}  # type: ignore[union-attr]
        assert view(pilot).desk.books.as_of == f"close of {SESSIONS[-1]}"  # type: ignore[union-attr]
        await shown(pilot)
        await pilot.press("C")
        # Without the session the command would decide every session that is over.
        twin = f"paperdesk --daily --session {SESSIONS[-1]} --symbol ORVL"
        assert pilot.app.last_command == twin  # type: ignore[attr-defined]
        await until(pilot, lambda: "is decided already" in screen(pilot) and not view(pilot).busy)
        await pilot.press("n")
        await until(pilot, lambda: (SESSIONS[-1], RunOutcome.DONE) == decided()[-1] and len(decided()) == 3)


def run_elsewhere(of: Services, session: date) -> None:
    """A daily run that this app does not publish: only the journal tells of it."""
    asyncio.run(run_daily(of, session))


async def test_no_books_of_a_headless_run_come_before_the_prices_that_they_are_valued_at(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_sessions(monkeypatch, 4)
    market = OpenDesk.market

    async def slowly(desk: OpenDesk) -> Market:
        await asyncio.sleep(0.2)
        return await market(desk)

    monkeypatch.setattr(OpenDesk, "market", slowly)
    demo_time.begin(services(load_config(None).config))
    seen: set[tuple[date, date]] = set()
    async with opened() as pilot:
        await shown(pilot)
        config = load_config(None).config
        for session in SESSIONS[:2]:
            daily = asyncio.create_task(asyncio.to_thread(run_elsewhere, services(config), session))
            while not daily.done() or (session, session) not in seen or view(pilot).desk.running:
                now = view(pilot)
                if now.desk.books is not None and now.market is not None:
                    last = {quote.session for quote in now.market.quotes}.pop()
                    assert last is not None and now.desk.books.session <= last
                    seen.add((now.desk.books.session, last))
                await pilot.pause(0.01)
            await daily


@pytest.mark.slow
async def test_once_every_session_is_decided_no_key_for_the_next_is_offered(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_sessions(monkeypatch, 1)
    demo_time.begin(services(load_config(None).config))
    async with opened() as pilot:
        await shown(pilot)
        hints = pilot.app.screen.query_one(Hints)
        assert "next session" in str(hints.render())
        await pilot.press("n")
        await until(pilot, lambda: decided() == [(SESSIONS[-1], RunOutcome.DONE)])
        await until(pilot, lambda: "next session" not in str(hints.render()))
        await until(pilot, lambda: not view(pilot).busy)
        await pilot.press("r")
        over = "the next, 2025-03-14, is over at 2025-03-15 00:00 UTC"
        await until(pilot, lambda: over in screen(pilot))
        # A screen without the log says it as well.
        await pilot.press("3", "r")
        await until(pilot, lambda: any(over in str(one.message) for one in pilot.app._notifications))
