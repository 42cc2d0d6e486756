"""Halt, pause and open orders of a desk, as `paperdesk halt`, `pause`, `resume`, `approve`, `veto` and `undo` print
them and the app asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from engine.domain.order import Order, OrderState
from engine.execution.controls import Approval, Halted, OrderTimes, Paused, answers_of, halted, not_sent, paused
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.messages.commands import in_force
from engine.reports.documents import row_json
from engine.reports.documents.control_state import AnsweredOrder, ControlState, OpenOrder, Waiting
from engine.reports.documents.row_json import Row

SCHEMA = 1


def control_state(reader: JournalReader | None, *, asks: bool, times: OrderTimes, now: datetime | None) -> ControlState:
    """Read a desk's controls; without a reader, for a desk that never ran, nothing is open. Raises what JournalReader
    raises.

    asks: whether orders are sent only when approved.
    now: without it nothing is called too late.
    """
    if reader is None:
        return ControlState()
    entries = reader.orders(open_only=True)
    held = in_force(reader.order_commands([entry.order.id for entry in entries]))
    answers = answers_of(held)
    found = []
    for entry in entries:
        order = entry.order
        until = times.stays_until(order.session) if order.state is OrderState.INTENDED else None
        state = _waiting(
            order, asks, answers.get(order.id), late=until is not None and now is not None and now >= until
        )
        undoable = until is not None and bool(held.get(order.id))
        fills = None if until is None or now is None else times.fills_at(order, now)
        found.append(OpenOrder(order, state, until, entry.decided, undoable, fills))
    orders = tuple(sorted(found, key=lambda one: not one.waits))
    return ControlState(halted=halted(reader), paused=paused(reader), orders=orders)


def _waiting(order: Order, asks: bool, answer: Approval | None, *, late: bool) -> Waiting:
    if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
        return Waiting.UNKNOWN
    if order.state is not OrderState.INTENDED:
        return Waiting.SENT
    if answer is not None and not answer.approved:
        return Waiting.VETOED
    if late:
        return Waiting.LATE
    if not asks:
        return Waiting.HELD_BACK
    return Waiting.APPROVAL if answer is None else Waiting.APPROVED


def halt_document(desk: str, journal: Path, *, changed: bool) -> Row:
    """A desk that is halted now; `changed` tells whether it was not before."""
    with JournalReader(journal) as reader:
        unsent = not_sent(reader)
        known = {entry.order.id for entry in unsent}
        sent = [entry for entry in reader.orders(open_only=True) if entry.order.id not in known]
        return {
            **_head(desk),
            "changed": changed,
            "halted": row_json.halt(halted(reader)),
            "not_sent": _orders(unsent),
            "sent": _orders(sent),
        }


def pause_document(desk: str, pause: Paused, *, changed: bool) -> Row:
    """A desk that is paused now; `changed` tells whether it was not before."""
    return {**_head(desk), "changed": changed, "paused": row_json.halt(pause)}


def resume_document(desk: str, journal: Path, halt: Halted | None, pause: Paused | None) -> Row:
    """A desk that goes on, with the halt and the pause that were ended, None where there was none; `halted` and
    `paused` are what still holds."""
    unsent: tuple[OrderEntry, ...] = ()
    still: tuple[Halted | None, Paused | None] = None, None
    if journal.exists():
        with JournalReader(journal) as reader:
            unsent, still = not_sent(reader), (halted(reader), paused(reader))
    return {
        **_head(desk),
        "changed": halt is not None or pause is not None,
        "was_halted": row_json.halt(halt),
        "was_paused": row_json.halt(pause),
        "halted": row_json.halt(still[0]),
        "paused": row_json.halt(still[1]),
        "not_sent": _orders(unsent),
    }


def waiting_document(desk: str, state: ControlState, listed: Iterable[OpenOrder], effects: Mapping[str, Row]) -> Row:
    """The orders that are `listed` for an answer, how long each stays, and what it would do: its effect by order id."""
    rows = [
        {
            **row_json.order(one.order, one.decided),
            "reason": one.order.reason,
            "stays_until": None if one.until is None else one.until.isoformat(),
            "effect": effects.get(one.order.id),
        }
        for one in listed
    ]
    return {**_head(desk), "halted": row_json.halt(state.halted), "waiting": rows}


def answered_document(desk: str, state: ControlState, answered: Iterable[AnsweredOrder]) -> Row:
    """Orders that were approved or vetoed; `stands` is the state that each came to."""
    return {**_head(desk), "halted": row_json.halt(state.halted), "orders": _answered(answered)}


def sent_document(desk: str, sent: Iterable[OrderEntry]) -> Row:
    """Orders that were sent and are open, which can be canceled."""
    return {**_head(desk), "sent": _orders(sent)}


def canceled_document(desk: str, canceled: Iterable[AnsweredOrder]) -> Row:
    """Orders whose cancellation was asked for; `stands` is the state that each came to, `refused` true where it was not
    canceled."""
    return {**_head(desk), "orders": _answered(canceled)}


def _answered(answered: Iterable[AnsweredOrder]) -> list[Row]:
    rows = [{**row_json.order(one.order, one.decided), "stands": one.state, "refused": one.refused} for one in answered]
    for row in rows:
        del row["state"]  # that of before
    return rows


def _head(desk: str) -> Row:
    return {"schema": SCHEMA, "desk": desk}


def _orders(entries: Iterable[OrderEntry]) -> list[Row]:
    return [row_json.order(entry.order, entry.decided) for entry in entries]
