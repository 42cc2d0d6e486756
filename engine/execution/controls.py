"""The person's hand on the desk: the kill switch, and the word on orders that wait for one.

A word is a row of the journal's commands and takes effect by standing there: whoever trades reads it before every
order, in whatever process it was said. The last word counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.market import Symbol, is_crypto
from engine.domain.order import OrderState
from engine.errors import InvariantBroken
from engine.journal.reader import JournalReader
from engine.market.trading_hours import AFTER_CLOSE, AroundTheClock
from engine.messages.commands import Approve, Command, Halt, Resume, Veto
from engine.ports import Calendar

if TYPE_CHECKING:
    from engine.journal.entries import OrderEntry
    from engine.journal.writer import JournalWriter

PATIENCE = 30.0
"""Seconds that a word waits for the journal's write lock: longer than a run ever holds it."""

NEXT_SESSION = timedelta(days=14)
"""Within so many days a market opens again, whatever the holidays."""


@dataclass(frozen=True, slots=True)
class Halted:
    """The desk sends nothing since then (UTC), and why; `reason` may be empty."""

    since: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """The last word on an order: approved, or (False) vetoed, when (UTC), and the reason of a veto."""

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


def approvals(reader: JournalReader, order_ids: Collection[str] | None = None) -> Mapping[str, Approval]:
    """The last word on every order that anything was said about, by order id; `order_ids` narrows to these, which is
    quick whatever was said in years."""
    words: dict[str, Approval] = {}
    for time, command in reader.commands(Approve, Veto, about=order_ids):
        match command:
            case Approve(order_id):
                words[order_id] = Approval(True, time)
            case Veto(order_id, reason):
                words[order_id] = Approval(False, time, reason)
    return words


def not_sent(reader: JournalReader) -> tuple[OrderEntry, ...]:
    """Orders that are meant and were never handed over: they wait for approval, for the end of a halt, or for the run
    that is at work."""
    return tuple(entry for entry in reader.orders(open_only=True) if entry.order.state is OrderState.INTENDED)


def stays_until(calendar: Calendar, symbols: Iterable[Symbol], session: date) -> datetime:
    """The end of the time in which an order of a decision session may be sent, UTC: the completion of the desk's next
    session, which with crypto among the symbols takes its UTC day as well."""
    following = calendar.sessions(session + timedelta(days=1), session + NEXT_SESSION)[0]
    closes = calendar.closes_at(following) + AFTER_CLOSE
    return max(closes, AroundTheClock().closes_at(following)) if any(map(is_crypto, symbols)) else closes


def halt(journal: Path, now: datetime, reason: str = "") -> tuple[Halted, bool]:
    """Halts the desk of a journal, one that never ran included; how it is halted now, and whether it was not before
    (a second halt changes nothing). Raises what JournalWriter raises."""
    with _writing(journal) as writer:
        with JournalReader(journal) as reader:
            before = halted(reader)
        if before is not None:
            return before, False
        _say(writer, Halt(reason), now)
    return Halted(now, reason), True


def resume(journal: Path, now: datetime) -> Halted | None:
    """Ends a halt; what it was, or None where the desk was not halted. Raises what JournalWriter raises."""
    if not journal.exists():
        return None
    with _writing(journal) as writer:
        with JournalReader(journal) as reader:
            before = halted(reader)
        if before is not None:
            _say(writer, Resume(), now)
    return before


def approve(journal: Path, order_ids: Iterable[str], now: datetime) -> None:
    """Writes down that orders may be sent. Raises what JournalWriter raises."""
    with _writing(journal) as writer:
        for order_id in order_ids:
            _say(writer, Approve(order_id), now)


def veto(journal: Path, order_ids: Iterable[str], now: datetime, reason: str = "") -> None:
    """Writes down that orders must not be sent. Raises what JournalWriter raises."""
    with _writing(journal) as writer:
        for order_id in order_ids:
            _say(writer, Veto(order_id, reason), now)


def carry_out(journal: Path, command: Command, now: datetime) -> str:
    """Does what a Halt, Resume, Approve or Veto asks for and says in a sentence what came of it. Raises
    InvariantBroken for any other command, and what JournalWriter raises."""
    match command:
        case Halt(reason):
            how, new = halt(journal, now, reason)
            return "HALTED: no order is sent until the desk is resumed" if new else f"halted since {how.since:%H:%M}"
        case Resume():
            return "the desk goes on" if resume(journal, now) is not None else "the desk is not halted"
        case Approve(order_id) | Veto(order_id) if (stands := _past_a_word(journal, order_id)) is not None:
            return f"{order_id} is {stands} already"
        case Approve(order_id):
            approve(journal, [order_id], now)
            return f"approved: {order_id}"
        case Veto(order_id, reason):
            veto(journal, [order_id], now, reason)
            return f"vetoed: {order_id}"
        case _:
            raise InvariantBroken(f"{type(command).__name__} is no word of a person on the desk")


def _past_a_word(journal: Path, order_id: str) -> OrderState | None:
    """The state of an order that is no longer only meant, so that no word on it can count; else None."""
    if not journal.exists():
        return None
    with JournalReader(journal) as reader:
        state = next((entry.order.state for entry in reader.orders() if entry.order.id == order_id), None)
    return None if state is OrderState.INTENDED else state


def _writing(journal: Path) -> JournalWriter:
    # Imported late: a command that only looks whether the desk is halted stays quick.
    from engine.journal.writer import JournalWriter

    return JournalWriter(journal, wait=PATIENCE)


def _say(writer: JournalWriter, command: Command, now: datetime) -> None:
    """A word takes effect by standing: it never waits for anybody to carry it out."""
    writer.command_done(writer.command(command, now), now)
