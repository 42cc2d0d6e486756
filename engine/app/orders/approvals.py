"""Approval, veto, edit and undo of orders that wait: the orders that an answer is given on, and their states
afterwards.

Orders that wait for an operator: their effect on the portfolio, and an edit under the limits of the desk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Literal

from engine.account.reconciliation import journal_snapshot
from engine.app.research.market_data import known_closes
from engine.domain.market import Symbol
from engine.domain.order import Order, OrderSize, OrderState, Portfolio, Side
from engine.domain.run import TradingMode
from engine.domain.text import state_words
from engine.errors import MissingData, PaperdeskError, UsageError
from engine.execution.controls import OrderTimes, give
from engine.execution.limits import Price, buying_power, cash_floor, edit_of, short_excess, shortfall
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.market.as_of import MarketAsOf
from engine.messages.commands import Approve, Edit, OrderCommand, Undo, Veto
from engine.preset import load_preset
from engine.reports.documents.control_state import AnsweredOrder, ControlState, OpenOrder, Waiting
from engine.reports.documents.controls import control_state, waiting_document
from engine.reports.documents.order_effect import order_effect
from engine.reports.documents.records import Records, records_in
from engine.reports.documents.row_json import Row, minute
from engine.services import Services
from engine.session.owner_books import has_books
from engine.settings import places

Answer = Literal["approve", "veto", "undo"]

APPROVABLE = (Waiting.APPROVAL, Waiting.VETOED, Waiting.APPROVED)
ANSWERABLE: Mapping[Answer, Collection[Waiting]] = {
    "approve": APPROVABLE,
    "veto": (*APPROVABLE, Waiting.LATE),
    "undo": APPROVABLE,
}
"""The states of an order that an answer is taken in."""
DONE: Mapping[Answer, str] = {"approve": "approved", "veto": "vetoed", "undo": "taken back"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDesk:
    """A desk whose orders are answered by an operator.

    desk: its name.
    journal: the journal's file.
    mode: auto, ask or observe.
    times: when its orders can be sent, and when they fill.
    now: UTC by the desk's clock; None where that is the broker's, and it does not answer.
    edit: the edit that gives an order another size; raises UsageError where the limits do not allow it.
    effects: the effects of open orders on the portfolio by order id, where prices are had.
    submit: carries out the answers that the journal has: sends what is approved, ends what is vetoed or too late.
    """

    desk: str
    journal: Path
    mode: TradingMode
    times: OrderTimes
    now: datetime | None
    edit: Callable[[str, OrderSize], Edit]
    effects: Callable[[Iterable[Order]], Mapping[str, Row]]
    submit: Callable[[], Awaitable[object]]

    def state(self) -> ControlState:
        """The halt and the open orders. Raises UsageError for a desk whose orders wait for nobody."""
        if self.mode is not TradingMode.ASK:
            why = {
                TradingMode.AUTO: "sends its orders by itself: stop all of them with paperdesk halt, or set "
                "broker.mode to ask",
                TradingMode.OBSERVE: "is in observe mode and sends nothing: set broker.mode to ask",
            }[self.mode]
            raise UsageError(f"the desk {self.desk} {why}")
        with records_in(self.journal, self.desk) as records:
            return control_state(records.reader, asks=True, times=self.times, now=self.now)


def waiting_orders(desk: ApprovalDesk, answer: Answer) -> Row:
    """The document of the orders that an answer can be given on, with the effect of each. Raises as
    `ApprovalDesk.state` does."""
    state = desk.state()
    listed = [one for one in state.orders if _is_meant(one, answer)]
    effects = desk.effects([one.order for one in listed]) if listed else {}
    return waiting_document(desk.desk, state, listed, effects)


def _is_meant(one: OpenOrder, answer: Answer) -> bool:
    """True for an order that an answer is about where none is named: one that waits, or can be undone."""
    return one.undoable and one.state in ANSWERABLE["undo"] if answer == "undo" else one.waits


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
    desk: ApprovalDesk,
    answer: Answer,
    order_ids: Collection[str] | None,
    *,
    now: datetime,
    reason: str = "",
    size: OrderSize | None = None,
) -> Answered:
    """Write an answer on orders, by id or symbol (None: on all that wait), and carry it out at once. A veto needs
    nobody for that: whoever sends reads it first. An approval may come with another `size` for one order. Raises
    UsageError for a desk that does not ask and for a size that cannot be, MissingData for a name that the journal does
    not know."""
    state = desk.state()
    names = None if order_ids is None else _named(state, answer, order_ids)
    taken, answered = _selected(desk, state, answer, names)
    if size is not None and len(taken) + len(answered) != 1:
        raise UsageError("a size needs one order: name a waiting one")
    if not taken:
        return Answered(answered)
    commands: list[OrderCommand] = []
    if size is not None:
        commands.append(await asyncio.to_thread(desk.edit, taken[0].id, size))
    commands += [_command(answer, one.id, " ".join(reason.split())) for one in taken]
    late = {command.order_id for command in give(desk.journal, commands, now)}
    error = None
    if answer != "undo":
        try:
            await desk.submit()
        except PaperdeskError as problem:
            error = problem if answer == "approve" else None
    return Answered([*answered, *_carried_out(desk, [one.id for one in taken], answer, late)], error)


def _command(answer: Answer, order_id: str, reason: str) -> OrderCommand:
    if answer == "approve":
        return Approve(order_id)
    return Undo(order_id) if answer == "undo" else Veto(order_id, reason)


def _named(state: ControlState, answer: Answer, names: Collection[str]) -> list[str]:
    """The ids of orders that are named by their ids, or by a symbol: all of it that wait, or can be undone. Where none
    waits, those whose answer was not carried out yet: it can be given again, or another."""
    unsent = [one for one in state.orders if one.state in ANSWERABLE[answer]]
    found = []
    for name in names:
        of_symbol = [one for one in unsent if one.order.symbol == name.upper()]
        meant = [one for one in of_symbol if _is_meant(one, answer)] or of_symbol
        found += [one.order.id for one in meant] or [name]
    return found


def _selected(
    desk: ApprovalDesk, state: ControlState, answer: Answer, order_ids: Collection[str] | None
) -> tuple[list[Order], list[AnsweredOrder]]:
    """The orders that the answer can be given on, and those on which it is not taken."""
    if order_ids is None:
        return [one.order for one in state.orders if _is_meant(one, answer)], []
    still_open = {one.order.id: one for one in state.orders}
    ended = _ended(desk, state, [name for name in order_ids if name not in still_open])
    taken, refused = [], []
    for name in dict.fromkeys(order_ids):
        one = still_open.get(name)
        if one is None:
            order, decided = ended[name].order, ended[name].decided
            no = answer == "undo" or (order.state is OrderState.FILLED) is (answer == "veto")
            refused.append(AnsweredOrder(order, f"{order.state} already", no, decided))
        elif one.state not in ANSWERABLE[answer]:
            refused.append(_refusal(one, answer))
        elif answer == "undo" and not one.undoable:
            refused.append(AnsweredOrder(one.order, "nothing to undo", decided=one.decided))
        else:
            taken.append(one.order)
    return taken, refused


def _ended(desk: ApprovalDesk, state: ControlState, order_ids: Sequence[str]) -> dict[str, OrderEntry]:
    if not order_ids:
        return {}
    known: dict[str, OrderEntry] = {}
    if desk.journal.is_file():
        with JournalReader(desk.journal) as reader:
            known = {entry.order.id: entry for entry in reader.orders()}
    for name in sorted(order_ids):
        if name not in known:
            waiting = ", ".join(one.order.id for one in state.waiting) or "(none)"
            raise MissingData(f"the desk {desk.desk} has no order {name}: waiting: {waiting}")
    return {name: known[name] for name in order_ids}


def _refusal(one: OpenOrder, answer: Answer) -> AnsweredOrder:
    if one.state in (Waiting.SENT, Waiting.UNKNOWN):
        return AnsweredOrder(one.order, f"sent already ({one.order.state})", answer != "approve", one.decided)
    assert one.until is not None  # an order that was not sent stays for a time
    late = f"too late since {minute(one.until)}, it will not be sent"
    return AnsweredOrder(one.order, late, refused=True, decided=one.decided)


def _carried_out(
    desk: ApprovalDesk, order_ids: Sequence[str], answer: Answer, late: Collection[str]
) -> Iterator[AnsweredOrder]:
    """Orders once an answer was written and whatever could be done was done; `late` are those that were on their way
    before it was written."""
    waiting = {one.order.id: one.state for one in desk.state().orders}
    with JournalReader(desk.journal) as reader:
        entries = {entry.order.id: entry for entry in reader.orders()}
        details = {order_id: reader.order_moves(order_id)[-1].detail for order_id in order_ids}
    for order_id in order_ids:
        order, detail, refused = entries[order_id].order, details[order_id], False
        state = f"{DONE[answer]}, {order.state}"
        if order.state is OrderState.INTENDED:
            unsent = {"approve": "approved, not sent yet", "veto": "vetoed"}
            state = unsent.get(answer, f"{DONE[answer]}: {waiting[order_id]}")
        elif order.state in (OrderState.CANCELED, OrderState.EXPIRED, OrderState.REJECTED):
            state = state_words(order.state, detail)
            refused = answer == "approve" or (answer == "undo" and order_id in late)
        elif order_id in late:
            state, refused = f"sent already ({order.state})", answer != "approve"
        yield AnsweredOrder(order, state, refused, entries[order_id].decided)


def limited_edit(services: Services, order_id: str, size: OrderSize) -> Edit:
    """The edit that gives an open order another size, by the books and at the prices that the desk decided on, beside
    its other open orders. The account is asked again before the order is sent. Raises UsageError for a size that the
    limits do not allow, and where owners keep books of their own, MissingData for an order that is not open."""
    preset = load_preset(services.config.desk.preset)
    if has_books(preset):
        raise UsageError(
            f"the owners of {preset.name} keep books of their own, and an order is the net of theirs: veto it, or let "
            "it be sent as it is"
        )
    with records_in(places.desk_journal(services.desk), services.desk) as records:
        orders = {entry.order.id: entry.order for entry in records.required.orders(open_only=True)}
        if order_id not in orders:
            raise MissingData(f"the desk {services.desk} has no open order {order_id}")
        order, portfolio = orders.pop(order_id), journal_snapshot(records.required).portfolio()
        price = last_prices(services, records, portfolio)
        edit = edit_of(order, size, price(order.symbol))
        edited, power = edit.applied(order), buying_power(portfolio, orders.values(), price)
        lacking = shortfall(
            edited,
            power,
            price(order.symbol),
            floor=cash_floor(portfolio, price, preset.sizing.cash_floor),
            allow_short=preset.sizing.allow_short,
        )
        if order.side is Side.SELL and preset.sizing.allow_short:
            lacking = lacking or short_excess(edited, power, portfolio, price)
    if lacking:
        raise UsageError(f"{order.symbol} keeps its size: {lacking}")
    return edit


def order_times(services: Services) -> OrderTimes:
    """When orders of the configured desk can be sent, and when they fill."""
    return OrderTimes(services.desk_calendar(services.symbols), services.symbols, services.broker is not None)


def order_effects(services: Services, now: datetime | None, orders: Iterable[Order]) -> Mapping[str, Row]:
    """The effects of open orders on the portfolio by order id, at the prices that the desk decided on, if they are sent
    at a moment (UTC; None: not known); an order whose symbol has no price is left out. Raises what the journal
    raises."""
    times = order_times(services)
    with records_in(places.desk_journal(services.desk), services.desk) as records:
        snapshot = journal_snapshot(records.required)
        assert snapshot.books is not None  # a desk with orders has books
        portfolio, session = snapshot.portfolio(), snapshot.books.session
        price = last_prices(services, records, portfolio)
        value = portfolio.value({symbol: price(symbol) for symbol in portfolio.positions})
        others = [entry.order for entry in records.required.orders(open_only=True)]
        found = {}
        for order in orders:
            with suppress(MissingData):
                fills = None if now is None else times.fills_at(order, now)
                found[order.id] = order_effect(
                    order, price, session, portfolio=portfolio, value=value, others=others, fills_at=fills
                )
        return found


def last_prices(services: Services, records: Records, portfolio: Portfolio, *symbols: Symbol) -> Price:
    """The last closes of some symbols, of those of open orders and of what a portfolio holds, as the books have them or
    the market."""
    reader = records.required
    orders = [entry.order.symbol for entry in reader.orders(open_only=True)]
    wanted = tuple(dict.fromkeys((*symbols, *orders, *portfolio.positions)))
    return partial(_price, reader, known_closes(services, records, wanted))


def _price(reader: JournalReader, market: MarketAsOf | None, symbol: Symbol) -> Decimal:
    """The last close of a symbol by the market, or by the books."""
    if market is not None and market.count(symbol):
        return market.close(symbol)
    priced = [one.price for one in reader.holdings(symbol=symbol) if one.price is not None]
    if not priced:
        raise MissingData(f"{symbol} has no price to size an order by")
    return priced[-1]
