"""The running desk: one cycle at a time, paused between questions, told to stop from another thread."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pytest import MonkeyPatch

from engine.app.desk_runner import DeskRunner
from engine.app.models.models import Gate, Gated
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import OrderSize, Portfolio, Side
from engine.domain.run import RunOutcome
from engine.errors import InvariantBroken, StaleData, TryAgainLater
from engine.execution import controls
from engine.execution.limits import own_order
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.bus import Bus
from engine.messages.commands import (
    Approve,
    Command,
    Edit,
    Halt,
    Pause,
    PlaceOrder,
    Resume,
    RunCycle,
    Shutdown,
    Unpause,
    Veto,
)
from engine.messages.events import CycleFailed, Event, Noticed, Publish, RunFinished
from engine.reports.documents.order_effect import Ticket, order_effect

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


NOWHERE = Path(os.devnull) / "nowhere.db"


async def nothing(publish: Publish) -> None:
    """No order waits."""


async def no_cancel(order_id: str, publish: Publish) -> str:
    raise AssertionError("nothing is canceled")


async def no_order(wanted: PlaceOrder, publish: Publish) -> Ticket:
    raise AssertionError("nothing is ordered")


def no_edit(order_id: str, size: OrderSize) -> Edit:
    raise AssertionError("nothing is edited")


class Noon:
    def now(self) -> datetime:
        return NOON


class Cycles:
    """A cycle of three questions; counts what it did. While it is `held`, the first has no answer."""

    def __init__(self, held: bool = False) -> None:
        self.asked = 0
        self.cancelled = False
        self.began, self.answered = asyncio.Event(), asyncio.Event()
        if not held:
            self.answered.set()

    async def run(self, publish: Publish, gate: Gate, only: str | None = None) -> None:
        try:
            for _ in range(3):
                await gate()
                self.asked += 1
                self.began.set()
                await self.answered.wait()
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        publish(RunFinished("r1", NOON, RunOutcome.DONE, None, ""))


def runner(
    run: Callable[..., Awaitable[None]],
    *,
    bus: Bus | None = None,
    journal: Path = NOWHERE,
    submit: Callable[[Publish], Awaitable[None]] = nothing,
    place: Callable[[PlaceOrder, Publish], Awaitable[Ticket]] = no_order,
    book: Callable[[Publish], Awaitable[object]] | None = None,
) -> DeskRunner:
    """A desk on which whatever a test does not name does not happen."""
    asked = {"edit": no_edit, "place": place, "cancel": no_cancel, "book": book, "books_fills": book is not None}
    desk = SimpleNamespace(run_cycle=run, clock=Noon(), journal=journal, submit=submit, undo_seconds=0, **asked)
    return DeskRunner(bus or Bus(), cast(Any, desk))


async def _heard(bus: Bus, wanted: int) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(60):
        async for event in bus.subscribe():
            events.append(event)
            if len(events) == wanted:
                break
    return events


async def test_a_cycle_runs_to_its_end_and_the_desk_stops_when_told() -> None:
    bus, cycles = Bus(), Cycles()
    desk = runner(cycles.run, bus=bus)
    heard = asyncio.create_task(_heard(bus, 1))
    desk.send(RunCycle())
    serving = asyncio.create_task(desk.serve())
    assert await heard == [RunFinished("r1", NOON, RunOutcome.DONE, None, "")]
    assert cycles.asked == 3
    desk.send(Shutdown())
    async with asyncio.timeout(60):
        await serving
    assert not desk.busy


async def test_a_second_cycle_waits_for_nobody_and_is_refused() -> None:
    bus, cycles = Bus(), Cycles()
    desk = runner(cycles.run, bus=bus)
    heard = asyncio.create_task(_heard(bus, 2))
    await asyncio.sleep(0)
    desk.send(RunCycle())
    desk.send(RunCycle())
    serving = asyncio.create_task(desk.serve())
    first, second = await heard
    assert isinstance(first, Noticed) and "already" in first.text
    assert isinstance(second, RunFinished)
    assert cycles.asked == 3
    desk.send(Shutdown())
    await serving


async def test_a_pause_holds_the_next_question_until_it_is_over(tmp_path: Path) -> None:
    cycles, journal = Cycles(held=True), tmp_path / "desk.db"
    JournalWriter(journal).close()
    desk = runner(cycles.run, journal=journal)
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await cycles.began.wait()
    desk.send(Pause("a look at the books"))
    await _until(lambda: controls.pause_of(journal) == controls.Paused(NOON, "a look at the books"))
    cycles.answered.set()
    await _many_turns()
    assert cycles.asked == 1 and desk.busy
    desk.send(Unpause())
    await _until(lambda: cycles.asked == 3)
    assert controls.pause_of(journal) is None
    desk.send(Shutdown())
    await serving


async def test_a_pause_of_another_process_holds_the_cycle_as_well(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("engine.app.desk_runner.PAUSE_SECONDS", 0.01)
    cycles, journal = Cycles(held=True), tmp_path / "desk.db"
    JournalWriter(journal).close()
    desk = runner(cycles.run, journal=journal)
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await cycles.began.wait()
    controls.pause(journal, NOON)
    cycles.answered.set()
    await _many_turns()
    assert cycles.asked == 1 and desk.busy
    controls.unpause(journal, NOON)
    await _until(lambda: cycles.asked == 3)
    desk.send(Shutdown())
    await serving


async def test_what_a_cycle_raises_is_said_and_the_desk_lives_on() -> None:
    bus, runs = Bus(), 0

    async def fails(publish: Publish, gate: Gate, only: str | None) -> None:
        nonlocal runs
        runs += 1
        raise StaleData("the bars end on 2024-02-01") if runs == 1 else ZeroDivisionError("division by zero")

    desk = runner(fails, bus=bus)
    heard = asyncio.create_task(_heard(bus, 2))
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await _until(lambda: runs == 1 and not desk.busy)
    desk.send(RunCycle())
    stale, bug = await heard
    assert stale == CycleFailed("", NOON, "error", "the bars end on 2024-02-01")
    assert isinstance(bug, Noticed) and "ZeroDivisionError" in bug.text
    desk.send(Shutdown())
    await serving


async def test_shutdown_ends_a_paused_cycle_within_its_patience(tmp_path: Path) -> None:
    cycles = Cycles(held=True)
    desk = runner(cycles.run, journal=tmp_path / "desk.db")
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await cycles.began.wait()
    desk.send(Pause())
    desk.send(Shutdown())
    async with asyncio.timeout(60):
        await serving
    assert cycles.cancelled and not desk.busy


async def test_a_cycle_that_has_not_begun_is_dropped_by_shutdown() -> None:
    cycles = Cycles()
    desk = runner(cycles.run)
    desk.send(RunCycle())
    desk.send(Shutdown())
    await desk.serve()
    gc.collect()  # pytest fails the test for a coroutine that was never awaited
    assert cycles.asked == 0 and not desk.busy


async def test_a_command_of_someone_else_is_a_bug() -> None:
    desk = runner(Cycles().run)
    desk.send(Command())
    with pytest.raises(InvariantBroken, match="Command"):
        await desk.serve()


def test_commands_come_from_another_thread() -> None:
    made, done = threading.Event(), threading.Event()
    box: list[DeskRunner] = []

    async def run(publish: Publish, gate: Gate, only: str | None) -> None:
        done.set()

    def live() -> None:
        async def main() -> None:
            box.append(runner(run))
            made.set()
            await box[0].serve()

        asyncio.run(main())

    thread = threading.Thread(target=live)
    thread.start()
    assert made.wait(600)
    box[0].send(RunCycle())
    assert done.wait(600)
    box[0].send(Shutdown())
    thread.join(60)
    assert not thread.is_alive()


async def test_a_gated_model_is_the_one_inside_once_the_gate_opens() -> None:
    opened = asyncio.Event()
    result = ModelResult(model="m", text="yes")

    class Model:
        spec, label, sees = "openai:m", "a model", True

        async def answer(self, request: ModelRequest, on_delta: object = None) -> ModelResult:
            return result

    async def gate() -> None:
        await opened.wait()

    model = Gated(Model(), gate)
    assert (model.spec, model.label, model.sees) == ("openai:m", "a model", True)
    request = ModelRequest(
        purpose="news",
        symbol="ABC",
        session=NOON.date(),
        owner="desk",
        system="",
        messages=(),
        view=None,
        schema_name="X",
        schema={},
    )
    asking = asyncio.create_task(model.answer(request))
    await _many_turns()
    assert not asking.done()
    opened.set()
    assert await asking is result


def _halted(journal: Path) -> bool:
    with JournalReader(journal) as reader:
        return controls.halted(reader) is not None


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def _many_turns() -> None:
    """Lets the event loop do whatever it can do without waiting."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_halt_waits_neither_for_a_paused_cycle_nor_for_orders_that_are_being_sent(tmp_path: Path) -> None:
    journal, sent = tmp_path / "desk.db", asyncio.Event()
    JournalWriter(journal).close()
    begun = asyncio.Event()

    async def submit(publish: Publish) -> None:
        begun.set()
        await sent.wait()

    cycles = Cycles(held=True)
    desk = runner(cycles.run, journal=journal, submit=submit)
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await cycles.began.wait()
    desk.send(Pause())
    desk.send(Approve("o1"))
    await begun.wait()
    desk.send(Halt("now"))
    await _until(lambda: _halted(journal))
    assert desk.busy and controls.pause_of(journal) and not sent.is_set()
    desk.send(Resume())
    await _until(lambda: not _halted(journal))
    sent.set()
    desk.send(Shutdown())
    await serving


async def test_commands_are_written_in_the_order_they_were_given_and_sent_together(tmp_path: Path) -> None:
    journal, sent = tmp_path / "desk.db", []
    wanted = {"o1": False} | {f"o{n}": True for n in range(2, 12)}

    def words() -> dict[str, bool]:
        with JournalReader(journal) as reader:
            return {name: word.approved for name, word in controls.approvals(reader).items()}

    async def submit(publish: Publish) -> None:
        sent.append(words())
        while words() != wanted:  # the rest is written meanwhile
            await asyncio.sleep(0.01)

    desk = runner(Cycles().run, journal=journal, submit=submit)
    for command in (Approve("o1"), Veto("o1"), *(Approve(f"o{n}") for n in range(2, 12))):
        desk.send(command)
    serving = asyncio.create_task(desk.serve())
    await _until(lambda: bool(sent) and sent[-1] == wanted)
    assert len(sent) <= 3, "twelve words do not take twelve looks at the broker"
    desk.send(Shutdown())
    await serving


async def test_a_command_given_before_the_end_is_still_written(tmp_path: Path) -> None:
    journal = tmp_path / "desk.db"
    desk = runner(Cycles().run, journal=journal)
    desk.send(Halt("leaving"))
    desk.send(Shutdown())
    await desk.serve()
    assert _halted(journal)


async def test_a_run_that_is_at_work_keeps_the_answer_for_later_and_is_noticed(tmp_path: Path) -> None:
    async def submit(publish: Publish) -> None:
        raise TryAgainLater("another run is at work")

    bus, journal = Bus(), tmp_path / "desk.db"
    desk = runner(Cycles().run, bus=bus, journal=journal, submit=submit)
    heard = asyncio.create_task(_heard(bus, 2))
    await asyncio.sleep(0)
    desk.send(Approve("o1"))
    serving = asyncio.create_task(desk.serve())
    assert [event.level for event in await heard if isinstance(event, Noticed)] == ["info", "warning"]
    with JournalReader(journal) as reader:
        assert controls.approvals(reader)["o1"].approved
    desk.send(Shutdown())
    await serving


async def test_a_command_that_came_too_late_for_the_cycle_is_carried_out_after_it(tmp_path: Path) -> None:
    journal, cycles, tried, sent = tmp_path / "desk.db", Cycles(held=True), asyncio.Event(), list[int]()

    async def submit(publish: Publish) -> None:
        tried.set()
        if desk.busy and cycles.asked < 3:
            raise TryAgainLater("the cycle holds the lock")
        sent.append(cycles.asked)

    desk = runner(cycles.run, journal=journal, submit=submit)
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await cycles.began.wait()
    desk.send(Pause())
    desk.send(Veto("o1"))
    await tried.wait()
    cycles.answered.set()
    await _many_turns()
    assert sent == []
    desk.send(Unpause())
    await _until(lambda: bool(sent))
    assert sent == [3]
    desk.send(Shutdown())
    await serving


async def test_a_journal_that_cannot_be_written_is_an_error_that_is_said(tmp_path: Path) -> None:
    journal = tmp_path / "desk.db"
    journal.write_bytes(b"this is no journal, whatever its name says")
    bus = Bus()
    desk = runner(Cycles().run, bus=bus, journal=journal)
    heard = asyncio.create_task(_heard(bus, 1))
    await asyncio.sleep(0)
    desk.send(Halt())
    serving = asyncio.create_task(desk.serve())
    (said,) = await heard
    assert isinstance(said, Noticed) and said.level == "error"
    desk.send(Shutdown())
    await serving


async def test_an_order_of_ones_own_waits_for_the_cycle_at_work_and_what_is_refused_is_an_error() -> None:
    bus, cycles, placed = Bus(), Cycles(held=True), list[int]()
    wanted = PlaceOrder("AAA", Side.BUY, OrderSize(Decimal(5)))

    async def place(order: PlaceOrder, publish: Publish) -> Ticket:
        placed.append(cycles.asked)
        price, nothing = Decimal(10), Decimal(0)
        sized = own_order("o1", order, price, NOON.date())
        effect = order_effect(sized, lambda symbol: price, NOON.date(), portfolio=Portfolio(nothing), value=nothing)
        return Ticket(order=sized, effect=effect, refused="there is no cash")

    desk = runner(cycles.run, bus=bus, place=place)
    heard = asyncio.create_task(_heard(bus, 2))
    serving = asyncio.create_task(desk.serve())
    desk.send(RunCycle())
    await cycles.began.wait()
    desk.send(wanted)
    await _until(lambda: desk.own_orders.waiting == (wanted,))
    await _many_turns()
    assert placed == []
    cycles.answered.set()
    (said,) = [event for event in await heard if isinstance(event, Noticed)]
    assert placed == [3] and said.level == "error" and "there is no cash" in said.text
    assert desk.own_orders.waiting == ()
    desk.send(Shutdown())
    await serving
