"""Operator controls of a desk: the kill switch, the pause, approval and veto.

A command is a row of the journal and takes effect by being there: whoever trades reads it before every order, in
whatever process it was given. The last one counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.market import Symbol, is_crypto
from engine.domain.order import Order, OrderState
from engine.errors import InvariantBroken, TryAgainLater
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.trading_hours import completed_at, fill_session, is_open, session_after
from engine.messages.commands import (
    Approve,
    Command,
    Edit,
    Halt,
    OrderCommand,
    Pause,
    Resume,
    Undo,
    Unpause,
    Veto,
    in_force,
)
from engine.ports import Calendar

if TYPE_CHECKING:
    from engine.journal.entries import OrderEntry

PATIENCE = 30.0
"""Seconds that a command waits for the journal's write lock: longer than a run ever holds it."""


@dataclass(frozen=True, slots=True)
class Halted:
    """The desk sends nothing since then (UTC), and why; `reason` may be empty."""

    since: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Paused:
    """The desk begins no cycle since then (UTC), and why; `reason` may be empty."""

    since: datetime
    reason: str = ""


class CyclePaused(TryAgainLater):
    """A cycle that stops at a pause, between two questions: what was answered is recorded, and not asked again."""

    def __init__(self, pause: Paused) -> None:
        super().__init__(f"the desk is paused since {pause.since:%Y-%m-%d %H:%M} UTC: paperdesk resume goes on")
        self.pause = pause


@dataclass(frozen=True, slots=True)
class Approval:
    """The last answer on an order: approved, or (False) vetoed, when (UTC), and the reason of a veto."""

    approved: bool
    time: datetime
    reason: str = ""


def halted(reader: JournalReader) -> Halted | None:
    """The halt of the desk at this moment, None where there is none. Commands of other processes count. One query, for
    use before every order."""
    last = reader.last_command(Halt, Resume)
    if last is None or not isinstance(last[1], Halt):
        return None
    return Halted(last[0], last[1].reason)


def paused(reader: JournalReader) -> Paused | None:
    """The pause of the desk at this moment, None where there is none. Commands of other processes count. One query, for
    use before every question to a model."""
    last = reader.last_command(Pause, Unpause)
    if last is None or not isinstance(last[1], Pause):
        return None
    return Paused(last[0], last[1].reason)


def halt_of(journal: Path) -> Halted | None:
    """The halt of a journal's desk, one that never ran included. Raises what JournalReader raises."""
    if not journal.exists():
        return None
    with JournalReader(journal) as reader:
        return halted(reader)


def pause_of(journal: Path) -> Paused | None:
    """The pause of a journal's desk, one that never ran included. Raises what JournalReader raises."""
    if not journal.exists():
        return None
    with JournalReader(journal) as reader:
        return paused(reader)


def approvals(reader: JournalReader, order_ids: Collection[str] | None = None) -> Mapping[str, Approval]:
    """The last approval or veto that holds by order id; `order_ids` narrows to these, which is quick however many there
    were."""
    return answers_of(in_force(reader.order_commands(order_ids)))


def answers_of(held: Mapping[str, Sequence[tuple[datetime, OrderCommand]]]) -> Mapping[str, Approval]:
    """The last approval or veto by order id among commands that hold."""
    last: dict[str, Approval] = {}
    for order_id, given in held.items():
        for time, command in given:
            match command:
                case Approve():
                    last[order_id] = Approval(True, time)
                case Veto(reason=reason):
                    last[order_id] = Approval(False, time, reason)
    return last


def not_sent(reader: JournalReader) -> tuple[OrderEntry, ...]:
    """Orders that are intended and were never submitted: they wait for approval, for the end of a halt, or for the run
    that is at work."""
    return tuple(entry for entry in reader.orders(open_only=True) if entry.order.state is OrderState.INTENDED)


@dataclass(frozen=True, slots=True)
class OrderTimes:
    """When orders of a desk can still be sent, and when they fill.

    calendar: the desk's.
    symbols: all of the desk.
    real_time: at a broker, whose market is open or not; on the simulated market each session has one open.
    """

    calendar: Calendar
    symbols: Sequence[Symbol]
    real_time: bool

    def stays_until(self, session: date) -> datetime:
        """The end of the time in which an order of a decision session may be sent, UTC: the completion of the desk's
        next session, which with crypto among the symbols takes its UTC day as well."""
        return completed_at(self.calendar, self.symbols, session_after(self.calendar, session))

    def fills_at(self, order: Order, now: datetime) -> datetime | None:
        """The open at which an order that is sent at a moment fills, UTC; None where it fills at once."""
        if not self.real_time:
            return fill_session(self.calendar, order, now)[1]
        at_once = is_crypto(order.symbol) or is_open(self.calendar, now)
        return None if at_once else fill_session(self.calendar, order, now)[1]


def halt(journal: Path, now: datetime, reason: str = "") -> tuple[Halted, bool]:
    """Halt the desk of a journal, one that never ran included. Returns its halt, and True where it was not halted
    before: a second halt changes nothing. Raises what JournalWriter raises."""
    with _writing(journal) as writer:
        with JournalReader(journal) as reader:
            before = halted(reader)
        if before is not None:
            return before, False
        writer.command_done(writer.command(Halt(reason), now), now)
    return Halted(now, reason), True


def resume(journal: Path, now: datetime) -> Halted | None:
    """End a halt. Returns it, or None where the desk was not halted. Raises what JournalWriter raises."""
    if not journal.exists():
        return None
    with _writing(journal) as writer:
        with JournalReader(journal) as reader:
            before = halted(reader)
        if before is not None:
            writer.command_done(writer.command(Resume(), now), now)
    return before


def pause(journal: Path, now: datetime, reason: str = "") -> tuple[Paused, bool]:
    """Pause the desk of a journal, one that never ran included. Returns its pause, and True where it was not paused
    before: a second pause changes nothing. Raises what JournalWriter raises."""
    with _writing(journal) as writer:
        before = pause_of(journal)
        if before is not None:
            return before, False
        writer.command_done(writer.command(Pause(reason), now), now)
    return Paused(now, reason), True


def unpause(journal: Path, now: datetime) -> Paused | None:
    """End a pause. Returns it, or None where the desk was not paused. Raises what JournalWriter raises."""
    if not journal.exists():
        return None
    with _writing(journal) as writer:
        before = pause_of(journal)
        if before is not None:
            writer.command_done(writer.command(Unpause(), now), now)
    return before


def give(journal: Path, commands: Iterable[OrderCommand], now: datetime) -> tuple[OrderCommand, ...]:
    """Write commands about orders, each of which takes effect by being there. Returns those that came too late: the
    order is on its way, or ended. Raises what JournalWriter raises."""
    with _writing(journal) as writer:
        return tuple(command for command in commands if not writer.order_command(command, now))


def carry_out(journal: Path, command: Command, now: datetime) -> str:
    """Do what a Halt, a Resume, a Pause, an Unpause or a command about an order asks for, and return the result as a
    sentence. Raises InvariantBroken for any other command, and what JournalWriter raises."""
    refused = ""
    match command:
        case Halt(reason):
            halted_since, new = halt(journal, now, reason)
            refused = "" if new else f"halted since {halted_since.since:%H:%M}"
        case Resume():
            refused = "" if resume(journal, now) is not None else "the desk is not halted"
        case Pause(reason):
            since, new = pause(journal, now, reason)
            refused = "" if new else f"paused since {since.since:%H:%M}"
        case Unpause():
            refused = "" if unpause(journal, now) is not None else "the desk is not paused"
        case OrderCommand():
            late = give(journal, [command], now)
        case _:
            raise InvariantBroken(f"{type(command).__name__} is not an operator control")
    if refused or not isinstance(command, OrderCommand):
        return refused or _CARRIED_OUT[type(command)]
    with JournalReader(journal) as reader:
        if late:
            return f"{_in_words(reader, command.order_id)} is {reader.order_moves(command.order_id)[-1].state} already"
        return _order_words(reader, command)


def command_words(reader: JournalReader, given: Sequence[Command]) -> Iterator[tuple[int, str]]:
    """The operator controls among the last commands of a journal: the place of each among these, and a sentence."""
    orders = [command.order_id if isinstance(command, OrderCommand) else None for command in given]
    for place, command in enumerate(given):
        if isinstance(command, OrderCommand):
            yield place, _order_words(reader, command, orders[place + 1 :].count(command.order_id))
        elif type(command) in _CARRIED_OUT:
            yield place, _CARRIED_OUT[type(command)]


def _order_words(reader: JournalReader, command: OrderCommand, later: int = 0) -> str:
    """A command about an order, which so many about it have followed."""
    done = f"{_undone(reader, command, later)} taken back" if isinstance(command, Undo) else _DONE[type(command)]
    size = _new_size(command) if isinstance(command, Edit) else ""
    return f"{done}: {_in_words(reader, command.order_id)}{size}"


def _new_size(edit: Edit) -> str:
    if edit.notional is not None:
        return f" to ${edit.notional:,.2f}"
    return "" if edit.quantity is None else f" to {edit.quantity.normalize():f} shares"


_CARRIED_OUT: Mapping[type[Command], str] = {
    Halt: "HALTED: no order is sent until the desk is resumed",
    Resume: "the desk goes on",
    Pause: "paused: the present answer is finished, then the cycle waits, and none begins",
    Unpause: "the desk is resumed",
}


_DONE: Mapping[type[OrderCommand], str] = {
    Approve: "approved",
    Veto: "vetoed",
    Edit: "edited",
}
_ANSWERS: Mapping[type[OrderCommand], str] = {Approve: "approval", Veto: "veto", Edit: "edit"}


def _undone(reader: JournalReader, undo: Undo, later: int) -> str:
    """The kind of command that an undo has taken back, with so many commands after it; an answer where there was
    none."""
    held: list[str] = []
    gone = "answer"
    given = reader.order_commands([undo.order_id])
    for _, command in given[: len(given) - later]:
        if not isinstance(command, Undo):
            held.append(_ANSWERS[type(command)])
        elif held:
            gone = held.pop()
    return gone


def _in_words(reader: JournalReader, order_id: str) -> str:
    """Side and symbol of an order; the id of one that the journal does not have."""
    order = reader.order(order_id)
    return order_id if order is None else f"{order.side} {order.symbol}"


def _writing(journal: Path) -> JournalWriter:
    # Imported late: a command that only looks whether the desk is halted stays quick.

    return JournalWriter(journal, wait=PATIENCE)
