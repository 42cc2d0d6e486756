"""Confirmation texts: before the desk is halted or goes on, and before an order is approved or vetoed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.reports.documents import row_json
from engine.reports.documents.control_state import ControlState, OpenOrder
from tui import amounts
from tui.plain_text import one_line
from tui.run_text import halt_words, terms

HALT_REASON = "from the app"
REASON = 240
"""Characters of an order's reason that a confirmation shows."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question before something is done; `choices` are keys with what they do."""

    title: str
    text: str
    choices: tuple[tuple[str, str], ...]


def halt_confirmation(controls: ControlState) -> Confirmation:
    """Before the kill switch."""
    sent = sum(not order.waits and order.until is None for order in controls.orders)
    text = "No order is sent any more, by this app or by any run, until the desk is resumed."
    if sent:
        text += f"\n\n{_count(sent)} with the broker already, and not called back."
    return Confirmation("Halt the desk?", text, (("y", "halt"),))


def resume_confirmation(controls: ControlState) -> Confirmation:
    """Before a halted desk goes on."""
    halt = row_json.halt(controls.halted)
    assert halt is not None
    unsent = sum(order.until is not None for order in controls.orders)
    text = f"HALTED {halt_words(halt)}"
    if unsent:
        text += f"\n\n{_count(unsent)} not sent yet."
    return Confirmation("Let the desk go on?", text, (("y", "go on"),))


def approve_confirmation(order: OpenOrder, waiting: int, now: datetime, halted: bool) -> Confirmation:
    """Before an order is approved."""
    text = f"{_order_text(order, now)}\n\nIt is checked once more against the limits and then sent."
    if halted:
        text += " The desk is HALTED: it is sent when the desk goes on."
    return Confirmation("Approve?", text, _choices("approve", waiting))


def veto_confirmation(order: OpenOrder, waiting: int, now: datetime) -> Confirmation:
    """Before an order is vetoed."""
    text = f"{_order_text(order, now)}\n\nA vetoed order is never sent."
    return Confirmation("Veto?", text, _choices("veto", waiting))


def _choices(action: str, waiting: int) -> tuple[tuple[str, str], ...]:
    return (("y", action), ("A", f"{action} all {waiting}")) if waiting > 1 else (("y", action),)


def _order_text(order: OpenOrder, now: datetime) -> str:
    text = terms(row_json.order(order.order))
    if reason := one_line(order.order.reason):
        text += f"\n{reason if len(reason) <= REASON else f'{reason[: REASON - 3].rstrip()}...'}"
    if order.until is not None:
        left = amounts.about(order.until - now)
        text += f"\n\nIt stays until {row_json.minute(order.until)}, {left} more."
    return text


def _count(orders: int) -> str:
    return "1 order is" if orders == 1 else f"{orders} orders are"
