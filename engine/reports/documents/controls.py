"""Halt and open orders of a desk, as `paperdesk halt`, `resume`, `approve` and `veto` print them and the app asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime
from pathlib import Path

from engine.domain.order import Order, OrderState
from engine.execution.controls import Approval, Halted, approvals, halted, not_sent
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.reports.documents import row_json
from engine.reports.documents.control_state import AnsweredOrder, ControlState, OpenOrder, Waiting
from engine.reports.documents.row_json import Row

SCHEMA = 1


def control_state(
    reader: JournalReader | None, *, asks: bool, stays_until: Callable[[date], datetime], now: datetime | None
) -> ControlState:
    """Read a desk's controls; without a reader, for a desk that never ran, nothing is open. Raises what JournalReader
    raises.

    asks: whether orders are sent only when approved.
    now: without it nothing is called too late.
    """
    if reader is None:
        return ControlState()
    entries = reader.orders(open_only=True)
    answers = approvals(reader, [entry.order.id for entry in entries])
    found = [_open(entry.order, asks, answers.get(entry.order.id), stays_until, now) for entry in entries]
    return ControlState(halted(reader), tuple(sorted(found, key=lambda one: not one.waits)))


def _open(
    order: Order, asks: bool, answer: Approval | None, stays_until: Callable[[date], datetime], now: datetime | None
) -> OpenOrder:
    if order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN):
        return OpenOrder(order, Waiting.UNKNOWN)
    if order.state is not OrderState.INTENDED:
        return OpenOrder(order, Waiting.SENT)
    until = stays_until(order.session)
    if answer is not None and not answer.approved:
        return OpenOrder(order, Waiting.VETOED, until)
    if now is not None and now >= until:
        return OpenOrder(order, Waiting.LATE, until)
    if not asks:
        return OpenOrder(order, Waiting.HELD_BACK, until)
    return OpenOrder(order, Waiting.APPROVAL if answer is None else Waiting.APPROVED, until)


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


def resume_document(desk: str, journal: Path, before: Halted | None) -> Row:
    """A desk that goes on; `before` is the halt that was ended, None where there was none."""
    unsent: tuple[OrderEntry, ...] = ()
    if journal.exists():
        with JournalReader(journal) as reader:
            unsent = not_sent(reader)
    head = {**_head(desk), "changed": before is not None}
    return {**head, "was_halted": row_json.halt(before), "not_sent": _orders(unsent)}


def waiting_document(desk: str, state: ControlState) -> Row:
    """The orders that wait for approval, and how long each stays."""
    rows = [
        {
            **row_json.order(one.order),
            "reason": one.order.reason,
            "stays_until": None if one.until is None else one.until.isoformat(),
        }
        for one in state.waiting
    ]
    return {**_head(desk), "halted": row_json.halt(state.halted), "waiting": rows}


def answered_document(desk: str, state: ControlState, answered: Iterable[AnsweredOrder]) -> Row:
    """Orders that were approved or vetoed; `stands` is the state that each came to."""
    rows = [{**row_json.order(one.order), "stands": one.state, "refused": one.refused} for one in answered]
    for row in rows:
        del row["state"]  # that of before
    return {**_head(desk), "halted": row_json.halt(state.halted), "orders": rows}


def _head(desk: str) -> Row:
    return {"schema": SCHEMA, "desk": desk}


def _orders(entries: Iterable[OrderEntry]) -> list[Row]:
    return [row_json.order(entry.order) for entry in entries]
