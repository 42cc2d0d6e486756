"""Approval and veto of orders that wait: the orders that an answer is given on, and their states afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from engine.domain.order import Order, OrderState
from engine.domain.run import TradingMode
from engine.errors import MissingData, PaperdeskError, UsageError
from engine.execution.controls import approve, veto
from engine.journal.reader import JournalReader
from engine.reports.documents.control_state import AnsweredOrder, ControlState, OpenOrder, Waiting
from engine.reports.documents.controls import control_state
from engine.reports.documents.records import records_in
from engine.reports.documents.row_json import minute

Answer = Literal["approve", "veto"]

APPROVABLE = (Waiting.APPROVAL, Waiting.VETOED, Waiting.APPROVED)
VETOABLE = (*APPROVABLE, Waiting.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDesk:
    """A desk whose orders are approved or vetoed.

    desk: its name.
    journal: the journal's file.
    mode: auto, ask or observe.
    stays_until: the moment (UTC) from which an order of a decision session can no longer be sent.
    now: UTC by this machine's clock; None where the time is the broker's, who judges it when an order is sent.
    submit: carries out the answers that the journal has: sends what is approved, ends what is vetoed or too late.
    """

    desk: str
    journal: Path
    mode: TradingMode
    stays_until: Callable[[date], datetime]
    now: datetime | None
    submit: Callable[[], Awaitable[object]]

    def state(self) -> ControlState:
        """The halt and the open orders. Raises UsageError for a desk whose orders wait for nobody."""
        if self.mode is not TradingMode.ASK:
            why = {
                TradingMode.AUTO: "sends its orders by itself: stop all of them with paperdesk halt, or set "
                "broker.mode to ask",
                TradingMode.OBSERVE: "only observes and sends nothing: set broker.mode to ask",
            }[self.mode]
            raise UsageError(f"the desk {self.desk} {why}")
        with records_in(self.journal, self.desk) as records:
            return control_state(records.reader, asks=True, stays_until=self.stays_until, now=self.now)


@dataclass(frozen=True, slots=True)
class Answered:
    """The orders that were answered, and the error that kept an approval from being carried out."""

    orders: Sequence[AnsweredOrder]
    error: PaperdeskError | None = None

    @property
    def refused(self) -> bool:
        """True where an answer was not taken."""
        return any(one.refused for one in self.orders)


async def answer_orders(
    desk: ApprovalDesk, answer: Answer, order_ids: Collection[str] | None, *, now: datetime, reason: str = ""
) -> Answered:
    """Write an answer on orders, by id or symbol (None: on all that wait), and carry it out at once. A veto needs
    nobody for that: whoever sends reads it first. Raises UsageError for a desk that does not ask, MissingData for a
    name that the journal does not know."""
    state = desk.state()
    taken, answered = _selected(desk, state, answer, None if order_ids is None else _named(state, order_ids))
    error = None
    if taken:
        names = [order.id for order in taken]
        if answer == "approve":
            approve(desk.journal, names, now)
        else:
            veto(desk.journal, names, now, " ".join(reason.split()))
        try:
            await desk.submit()
        except PaperdeskError as problem:
            error = problem if answer == "approve" else None
        answered += _carried_out(desk.journal, taken, answer)
    return Answered(answered, error)


def _named(state: ControlState, names: Collection[str]) -> list[str]:
    """The ids of orders that are named by their ids, or by a symbol: all that wait for it."""
    found = []
    for name in names:
        of_symbol = [one.order.id for one in state.waiting if one.order.symbol == name.upper()]
        found += of_symbol or [name]
    return found


def _selected(
    desk: ApprovalDesk, state: ControlState, answer: Answer, order_ids: Collection[str] | None
) -> tuple[list[Order], list[AnsweredOrder]]:
    """The orders that the answer can be given on, and those on which it is not taken."""
    if order_ids is None:
        return [one.order for one in state.waiting], []
    still_open = {one.order.id: one for one in state.orders}
    ended = _ended(desk, state, [name for name in order_ids if name not in still_open])
    taken, refused = [], []
    for name in dict.fromkeys(order_ids):
        if name in ended:
            filled = ended[name].state is OrderState.FILLED
            refused.append(AnsweredOrder(ended[name], f"{ended[name].state} already", filled is (answer == "veto")))
        elif still_open[name].state in (APPROVABLE if answer == "approve" else VETOABLE):
            taken.append(still_open[name].order)
        else:
            refused.append(_refusal(still_open[name], answer))
    return taken, refused


def _ended(desk: ApprovalDesk, state: ControlState, order_ids: Sequence[str]) -> dict[str, Order]:
    if not order_ids:
        return {}
    known: dict[str, Order] = {}
    if desk.journal.is_file():
        with JournalReader(desk.journal) as reader:
            known = {entry.order.id: entry.order for entry in reader.orders()}
    for name in sorted(order_ids):
        if name not in known:
            waiting = ", ".join(one.order.id for one in state.waiting) or "(none)"
            raise MissingData(f"the desk {desk.desk} has no order {name}: those that wait are {waiting}")
    return {name: known[name] for name in order_ids}


def _refusal(one: OpenOrder, answer: Answer) -> AnsweredOrder:
    if one.state in (Waiting.SENT, Waiting.UNKNOWN):
        return AnsweredOrder(one.order, f"sent already ({one.order.state})", answer == "veto")
    assert one.until is not None  # an order that was not sent stays for a time
    return AnsweredOrder(one.order, f"too late since {minute(one.until)}, it is not sent any more", refused=True)


def _carried_out(journal: Path, orders: Sequence[Order], answer: Answer) -> Iterator[AnsweredOrder]:
    """Orders once an answer was written and whatever could be done was done."""
    with JournalReader(journal) as reader:
        states = {entry.order.id: entry.order.state for entry in reader.orders()}
        details = {order.id: reader.order_moves(order.id)[-1].detail for order in orders}
    done = "approved" if answer == "approve" else "vetoed"
    for order in orders:
        state, detail = states[order.id], details[order.id]
        if state is OrderState.INTENDED:
            yield AnsweredOrder(order, f"{done}, not sent yet" if answer == "approve" else done)
        elif state in (OrderState.CANCELED, OrderState.EXPIRED, OrderState.REJECTED):
            yield AnsweredOrder(order, f"{state}: {detail}" if detail else f"{state}", answer == "approve")
        else:
            yield AnsweredOrder(order, f"{done}, {state}")
