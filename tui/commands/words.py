"""A word on orders that wait, for `paperdesk approve` and `paperdesk veto`: which are meant, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from engine.domain.run import TradingMode
from engine.errors import MissingData, PaperdeskError, UsageError
from tui.commands.desk_hand import Hand, hand_on, moment
from tui.commands.words_text import print_said, print_waiting
from tui.desk_hand import HandView, OpenOrder, Standing
from tui.invocation import Invocation

if TYPE_CHECKING:
    from datetime import date, datetime

    from engine.config import Config
    from engine.domain.order import Order, OrderState

Word = Literal["approve", "veto"]

APPROVABLE = (Standing.WAITS, Standing.VETOED, Standing.APPROVED)
VETOABLE = (Standing.WAITS, Standing.VETOED, Standing.APPROVED, Standing.LATE)


@dataclass(frozen=True, slots=True)
class Desk:
    """A desk whose orders are asked about: `now` is None where the time is the broker's, which judges it then."""

    hand: Hand
    config: Config
    now: datetime | None

    def view(self) -> HandView:
        """How it stands."""
        from engine.execution.controls import stays_until
        from engine.market.trading_hours import desk_calendar
        from tui.commands.due import kept_sessions
        from tui.desk_hand import hand_view

        symbols = self._symbols()
        calendar = desk_calendar(symbols, kept_sessions())

        def until(session: date) -> datetime:
            return stays_until(calendar, symbols, session)

        return hand_view(self.hand.journal, self.config.broker.mode is TradingMode.ASK, until, self.now)

    def _symbols(self) -> Sequence[str]:
        from connectors.wiring.services import services

        return services(self.config).symbols


@dataclass(frozen=True, slots=True)
class Said:
    """What a word on one order came to: `stands` is how the order stands now, in words; `refused` where the word was
    not taken."""

    order: Order
    stands: str
    refused: bool = False


def speak(
    invocation: Invocation, word: Word, order_ids: Sequence[str], everything: bool, as_json: bool, reason: str = ""
) -> int:
    """Says a word on orders and has it carried out at once: what is approved is sent, what is vetoed ended. Without
    orders lists those that wait. Returns the exit code. Raises UsageError, MissingData, and after an approval what a
    daily run raises: the word stands all the same."""
    if order_ids and everything:
        raise click.UsageError("name orders or say --all, not both")
    desk = _desk(invocation)
    _check_asks(desk)
    if not order_ids and not everything:
        print_waiting(desk.hand, desk.view(), desk.now, as_json)
        return 0
    orders, said = _meant(desk, word, order_ids, everything)
    trouble = _write(desk, word, orders, reason) if orders else None
    said += _stands_now(desk, orders, word)
    print_said(desk.hand, desk.view().halted, said, as_json)
    if trouble is not None and word == "approve":
        raise trouble
    return int(any(one.refused for one in said))


def _write(desk: Desk, word: Word, orders: Sequence[Order], reason: str) -> PaperdeskError | None:
    """Writes the word down and has it carried out; what kept it from being. A veto needs nobody for that: whoever
    sends reads it first."""
    import asyncio

    from connectors.wiring.approved import hand_over_approved
    from engine.clock import LiveClock
    from engine.execution.controls import approve, veto

    names, now = [order.id for order in orders], LiveClock().now()
    if word == "approve":
        approve(desk.hand.journal, names, now)
    else:
        veto(desk.hand.journal, names, now, " ".join(reason.split()))
    try:
        asyncio.run(hand_over_approved(desk.config))
    except PaperdeskError as error:
        return error
    return None


def _desk(invocation: Invocation) -> Desk:
    """The desk of a call. Raises what `hand_on` raises."""
    from engine.clock import LiveClock

    hand, config = hand_on(invocation), invocation.load().config
    return Desk(hand, config, None if config.broker.clock == "broker" else LiveClock().now())


def _check_asks(desk: Desk) -> None:
    """Raises UsageError for a desk whose orders wait for nobody."""
    mode = desk.config.broker.mode
    if mode is TradingMode.ASK:
        return
    why = {
        TradingMode.AUTO: "sends its orders by itself: stop all of them with paperdesk halt, or set broker.mode to ask",
        TradingMode.OBSERVE: "only observes and sends nothing: set broker.mode to ask",
    }[mode]
    raise UsageError(f"the desk {desk.hand.desk} {why}")


def _meant(desk: Desk, word: Word, order_ids: Sequence[str], everything: bool) -> tuple[list[Order], list[Said]]:
    """The orders on which a word can be said, and those on which it cannot. Raises MissingData for an id that the
    journal does not know."""
    view = desk.view()
    if everything:
        return [one.order for one in view.waiting], []
    open_orders = {one.order.id: one for one in view.orders}
    ended = _ended(desk, set(order_ids) - open_orders.keys())
    takes, said = [], []
    for order_id in dict.fromkeys(order_ids):
        if order_id not in open_orders:
            said.append(_on_an_ended(ended[order_id], word))
        elif (refusal := _refusal(open_orders[order_id], word)) is not None:
            said.append(refusal)
        else:
            takes.append(open_orders[order_id].order)
    return takes, said


def _ended(desk: Desk, order_ids: Iterable[str]) -> dict[str, Order]:
    from engine.journal.reader import JournalReader

    wanted = sorted(order_ids)
    if not wanted:
        return {}
    with JournalReader(desk.hand.journal) as reader:
        known = {entry.order.id: entry.order for entry in reader.orders()}
    for order_id in wanted:
        if order_id not in known:
            waiting = ", ".join(one.order.id for one in desk.view().waiting) or "(none)"
            raise MissingData(f"the desk {desk.hand.desk} has no order {order_id}: those that wait are {waiting}")
    return {order_id: known[order_id] for order_id in wanted}


def _refusal(one: OpenOrder, word: Word) -> Said | None:
    if one.standing in (APPROVABLE if word == "approve" else VETOABLE):
        return None
    if one.standing in (Standing.SENT, Standing.UNKNOWN):
        return Said(one.order, f"sent already ({one.order.state.value})", refused=word == "veto")
    assert one.until is not None  # what was not sent stays for a time
    return Said(one.order, f"too late since {moment(one.until)}, it is not sent any more", refused=True)


def _on_an_ended(order: Order, word: Word) -> Said:
    from engine.domain.order import OrderState

    traded = order.state is OrderState.FILLED
    return Said(order, f"{order.state.value} already", refused=traded is (word == "veto"))


def _stands_now(desk: Desk, orders: Sequence[Order], word: Word) -> list[Said]:
    """How orders stand after a word was said on them and whatever could be done was done."""
    from engine.domain.order import OrderState
    from engine.journal.reader import JournalReader

    with JournalReader(desk.hand.journal) as reader:
        states: dict[str, OrderState] = {entry.order.id: entry.order.state for entry in reader.orders()}
        details = {order.id: reader.order_moves(order.id)[-1].detail for order in orders}
    found = []
    for order in orders:
        state, detail = states[order.id], details[order.id]
        done = "approved" if word == "approve" else "vetoed"
        if state is OrderState.INTENDED:
            found.append(Said(order, f"{done}, not sent yet" if word == "approve" else done))
        elif state in (OrderState.CANCELED, OrderState.EXPIRED, OrderState.REJECTED):
            found.append(Said(order, f"{state.value}: {detail}" if detail else state.value, word == "approve"))
        else:
            found.append(Said(order, f"{done}, {state.value}"))
    return found
