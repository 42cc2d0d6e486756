"""What is asked before the desk is halted, goes on, or an order is approved or vetoed: title, text and answers."""

from __future__ import annotations

from datetime import datetime

from tui import amounts
from tui.desk_hand import HandView, OpenOrder, Standing
from tui.plain_text import one_line

Question = tuple[str, str, tuple[tuple[str, str], ...]]
"""Title, text, and keys with what they do."""

HALT_REASON = "by hand in the app"
REASON = 240
"""Characters of an order's reason that a question shows."""


def halt_question(hand: HandView) -> Question:
    """Before the kill switch."""
    sent = sum(order.standing is not Standing.WAITS and order.until is None for order in hand.orders)
    text = "No order is sent any more, by this app or by any run, until the desk is resumed."
    if sent:
        text += f"\n\n{_count(sent)} with the broker already, and not called back."
    return "Halt the desk?", text, (("y", "halt"),)


def resume_question(hand: HandView) -> Question:
    """Before a halted desk goes on."""
    assert hand.halted is not None
    why = f": {one_line(hand.halted.reason)}" if hand.halted.reason else ""
    kept = sum(order.until is not None for order in hand.orders)
    text = f"HALTED since {hand.halted.since:%Y-%m-%d %H:%M} UTC{why}"
    if kept:
        text += f"\n\n{_count(kept)} not sent yet."
    return "Let the desk go on?", text, (("y", "go on"),)


def approve_question(order: OpenOrder, waiting: int, now: datetime, halted: bool) -> Question:
    """Before an order is approved."""
    text = _order_text(order, now)
    text += "\n\nIt is checked once more against the limits and then sent."
    if halted:
        text += " The desk is HALTED: it is sent when the desk goes on."
    return "Approve?", text, _choices("approve", waiting)


def veto_question(order: OpenOrder, waiting: int, now: datetime) -> Question:
    """Before an order is vetoed."""
    return "Veto?", f"{_order_text(order, now)}\n\nA vetoed order is never sent.", _choices("veto", waiting)


def _choices(deed: str, waiting: int) -> tuple[tuple[str, str], ...]:
    return (("y", deed), ("A", f"{deed} all {waiting}")) if waiting > 1 else (("y", deed),)


def _order_text(open_order: OpenOrder, now: datetime) -> str:
    order = open_order.order
    if order.quantity is None:
        text = f"{order.side.value} {order.symbol} for {amounts.money(order.notional)}"
    else:
        text = f"{order.side.value} {amounts.quantity(order.quantity)} {order.symbol}"
    if reason := one_line(order.reason):
        text += f"\n{reason if len(reason) <= REASON else f'{reason[: REASON - 3].rstrip()}...'}"
    if open_order.until is not None:
        until = open_order.until
        text += f"\n\nIt stays until {until:%Y-%m-%d %H:%M} UTC, {amounts.about(until - now)} more."
    return text


def _count(orders: int) -> str:
    return "1 order is" if orders == 1 else f"{orders} orders are"
