"""The question before an order is answered: what it would do to the portfolio, and how long there is for an answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from engine.domain.order import Order
from engine.reports.documents import row_json
from engine.reports.documents.control_state import OpenOrder, Waiting
from engine.reports.documents.order_effect import effect_row, order_effect
from tui.screens.confirm import Confirmation
from tui.text.plain_text import cut, facts, one_line
from tui.text.run_text import effect_facts, terms
from tui.view.order_size import SIZE_NOTE, order_size
from tui.view.snapshot import Snapshot


def open_order(view: Snapshot, order_id: str) -> OpenOrder | None:
    """An open order by its id; None once nothing can follow it any more."""
    return next((one for one in view.controls.orders if one.order.id == order_id), None)


def order_confirmation(view: Snapshot, order_id: str, width: int, *, approve: bool) -> Confirmation | None:
    """Before an order is approved or vetoed, with facts of `width`; with several that wait, for all of them at once
    too. None for an order that does not wait any more."""
    one = open_order(view, order_id)
    if one is None or not one.waits or view.now is None:
        return None
    lines = [terms(row_json.order(one.order, one.decided))]
    if reason := one_line(one.order.reason):
        lines.append(cut(reason, 2 * width))
    known = list(facts(_effect(view, one.order), width, label=8))
    lines += ["", *known] if known else []
    if one.until is not None:
        lines += [
            "",
            f"{_left(one.until - view.now)} left, until {row_json.minute(one.until)}; then it expires unsent.",
        ]
    if not approve:
        lines.append("A vetoed order is never sent.")
    else:
        lines.append("It is checked once more against the limits and then sent.")
        lines += ["The desk is HALTED: it is sent when the desk is resumed."] if view.controls.halted else []
    action, waiting = "approve" if approve else "veto", len(view.controls.waiting)
    more = (("e", "edit"), *((("u", "undo edit"),) if one.undoable else ())) if approve else (("r", "with a reason"),)
    every = (("A", f"{action} all {waiting}"),) if waiting > 1 else ()
    return Confirmation(f"{action.capitalize()}?", "\n".join(lines), (("y", action), *more, *every))


def cancellation(one: OpenOrder) -> Confirmation:
    """Before an order that was sent is canceled."""
    lines = [terms(row_json.order(one.order, one.decided)), "", f"It was sent, and is {one.order.state}."]
    lines.append("What it has traded by then stays.")
    return Confirmation("Cancel the order?", "\n".join(lines), (("y", "cancel the order"),), leave="keep it")


def size_note(view: Snapshot, order_id: str, width: int, text: str) -> str:
    """The effect of an order at a size that is being typed, with facts of `width`; how a size is written where it is
    none yet."""
    one, note = open_order(view, order_id), SIZE_NOTE
    try:
        size = order_size(text)
    except ValueError:
        return note
    quotes = () if view.market is None else view.market.quotes
    last = next((quote.last for quote in quotes if one is not None and quote.symbol == one.order.symbol), None)
    if one is None or last is None:
        return note
    if one.order.notional is not None:
        order = replace(one.order, notional=size.number if size.money else size.number * last)
    else:
        order = replace(one.order, quantity=size.number / last if size.money else size.number)
    return "\n".join((note, *facts(_effect(view, order), width, label=8)))


def undoable_order(view: Snapshot, symbol: str) -> OpenOrder | None:
    """The order whose last answer or edit can be taken back: one of the symbol, else the first."""
    found = [one for one in view.controls.orders if one.undoable and one.state is not Waiting.LATE]
    return next((one for one in found if one.order.symbol == symbol), next(iter(found), None))


def _left(left: timedelta) -> str:
    """The time that is left to the second."""
    seconds = max(0, int(left.total_seconds()))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes:02}m{seconds % 60:02}s" if hours else f"{minutes}m{seconds % 60:02}s"


def _effect(view: Snapshot, order: Order) -> list[tuple[str, str]]:
    """The effect of an order on the books that are shown, at the price that is shown, with the price's age."""
    books, quotes = view.desk.books, () if view.market is None else view.market.quotes
    quote = next((quote for quote in quotes if quote.symbol == order.symbol), None)
    if books is None or quote is None or quote.last is None or quote.session is None:
        return []
    prices = {quote.symbol: quote.last for quote in quotes if quote.last is not None}
    others = [open_one.order for open_one in view.controls.orders if open_one.order.symbol in prices]
    effect = order_effect(
        order,
        prices.__getitem__,
        quote.session,
        portfolio=books.point.portfolio,
        value=books.point.value,
        others=others,
        time=view.now if quote.live else None,
        fills_at=next((one.fills_at for one in view.controls.orders if one.order.id == order.id), None),
    )
    days = 0 if view.now is None else (view.now.date() - quote.session).days
    return effect_facts(
        effect_row(effect), f"the close of {quote.session}" + (f", {days} days ago" if days > 1 else "")
    )
