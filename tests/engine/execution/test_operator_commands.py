"""Approve, veto, edit and undo in any order, between runs and within them, with kills: an order is sent once at most,
in the size that the operator gave last, and never where the last answer was no approval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.app.orders.approvals import Answer, ApprovalDesk, answer_orders
from engine.domain.order import Order, OrderSize, OrderState, Portfolio, Position, Side
from engine.domain.run import TradingMode
from engine.errors import UsageError
from engine.execution.controls import give
from engine.execution.limits import buying_power, edit_of, short_excess, shortfall
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.commands import Approve, Edit, OrderCommand, Undo, Veto
from tests.engine.account.accounts import DAYS, Desk
from tests.engine.desks import trade
from tests.engine.execution.test_submission import now

Make = Callable[[str], OrderCommand]

COMMANDS: dict[str, Make] = {
    "approve": Approve,
    "veto": lambda order_id: Veto(order_id, "no"),
    "edit to 3000": lambda order_id: Edit(order_id, notional=Decimal("3000.00")),
    "edit to 900": lambda order_id: Edit(order_id, notional=Decimal("900.00")),
    "undo": Undo,
}
given_commands = st.tuples(st.sampled_from(sorted(COMMANDS)), st.integers(0, 1))
calls = st.sampled_from(["account", "open_orders", "place"])
steps = st.one_of(
    given_commands.map(lambda command: ("give", command)),
    st.tuples(
        st.just("run"), calls, st.integers(1, 4), st.one_of(st.sampled_from(["kill", "kill after"]), given_commands)
    ),
)


class Killed(BaseException):
    """The process is gone."""


class Disturbed:
    """A broker at whose Nth request of a name something happens."""

    def __init__(self, inner: Any, step: Any, does: Callable[[Any], None]) -> None:
        _, self._name, self._left, self._happens = step
        self._inner, self._does = inner, does

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name != self._name:
            return method

        async def call(*args: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._happens == "kill":
                raise Killed
            if self._left == 0 and self._happens != "kill after":
                self._does(self._happens)
            answer = await method(*args)
            if self._left == 0 and self._happens == "kill after":
                raise Killed
            return answer

        return call


class Operator:
    """Gives commands on a desk's two orders, and remembers those that came before the order was on its way."""

    def __init__(self, desk: Desk, orders: Sequence[Order]) -> None:
        self.desk, self.orders = desk, orders
        self.held: dict[str, list[OrderCommand]] = {order.id: [] for order in orders}

    def give(self, command: tuple[str, int]) -> None:
        name, n = command
        made = COMMANDS[name](self.orders[n].id)
        if give(self.desk.journal, [made], now(self.desk)):
            return
        held = self.held[made.order_id]
        if not isinstance(made, Undo):
            held.append(made)
        elif held and isinstance(held.pop(), Veto):
            held[:] = [one for one in held if not isinstance(one, Approve)]

    def run(self) -> None:
        """A daily run, unless the session is done."""
        with JournalReader(self.desk.journal) as reader:
            if reader.finished_run(DAYS[0]) is not None:
                return
        self.desk.run()

    def wanted(self, order: Order) -> tuple[bool | None, Decimal | None]:
        """The last answer on an order, and its amount."""
        answers = [isinstance(one, Approve) for one in self.held[order.id] if not isinstance(one, Edit)]
        amounts = [one.notional for one in self.held[order.id] if isinstance(one, Edit)]
        return (answers or [None])[-1], (amounts or [order.notional])[-1]


def check(taken: Sequence[Any]) -> None:
    """Carry out the steps on a desk with two orders that wait, and compare broker, journal and operator."""
    with TemporaryDirectory() as folder:
        desk = Desk(
            folder=Path(folder), script=lambda one: trade(one, "BUY", 8, "strong uptrend"), mode=TradingMode.ASK
        )
        operator = Operator(desk, desk.run().orders)
        for step in taken:
            if step[0] == "give":
                operator.give(step[1])
                continue
            desk.wrap = lambda inner, step=step: Disturbed(inner, step, operator.give)  # type: ignore[misc]
            with suppress(Killed):
                operator.run()
            desk.wrap = lambda inner: inner
        operator.run()
        posted = {one["client_order_id"]: one for one in desk.local.state()["orders"]}
        assert len(posted) == len(desk.local.state()["orders"])
        with JournalReader(desk.journal) as reader:
            states = {entry.order.id: entry.order.state for entry in reader.orders(session=DAYS[0])}
        for order in operator.orders:
            answer, amount = operator.wanted(order)
            assert (order.id in posted) is bool(answer)
            expected = {True: OrderState.ACKNOWLEDGED, False: OrderState.CANCELED, None: OrderState.INTENDED}[answer]
            assert states[order.id] is expected
            if answer:
                assert Decimal(posted[order.id]["notional"]) == amount


def test_an_undo_of_a_veto_sends_nothing_that_was_approved_before_it() -> None:
    # The veto is a colleague's, and came before the approval was taken back.
    check([("give", (name, 0)) for name in ("approve", "veto", "undo")])
    check([("give", (name, 0)) for name in ("edit to 900", "approve", "veto", "undo", "approve")])


quickly = settings(max_examples=4, deadline=None, derandomize=True, database=None)


@quickly
@given(st.lists(steps, min_size=3, max_size=6))
def test_an_order_is_sent_once_as_the_operator_wanted_or_not_at_all(taken: list[Any]) -> None:
    check(taken)


@pytest.mark.slow
@settings(quickly, max_examples=150)
@given(st.lists(steps, min_size=2, max_size=8))
def test_an_order_is_sent_once_as_the_operator_wanted_or_not_at_all_at_length(taken: list[Any]) -> None:
    check(taken)


def sized(**size: str) -> Order:
    return Order(
        id="o",
        symbol="AAA",
        side=Side.SELL,
        session=DAYS[0],
        **{name: Decimal(number) for name, number in size.items()},
    )


@pytest.mark.parametrize(
    ("order", "size", "becomes"),
    [
        (sized(quantity="40"), OrderSize(Decimal(25)), {"quantity": Decimal(25)}),
        (sized(quantity="40"), OrderSize(Decimal("199"), money=True), {"quantity": Decimal(3)}),
        (sized(quantity="0.5"), OrderSize(Decimal("0.25")), {"quantity": Decimal("0.25")}),
        (sized(notional="7000.00"), OrderSize(Decimal(25)), {"notional": Decimal("1250.00")}),
        (sized(notional="7000.00"), OrderSize(Decimal("99.999"), money=True), {"notional": Decimal("99.99")}),
    ],
)
def test_an_edit_keeps_the_unit_of_the_order(order: Order, size: OrderSize, becomes: dict[str, Decimal]) -> None:
    assert edit_of(order, size, Decimal(50)) == Edit("o", **becomes)


@pytest.mark.parametrize(
    "size",
    [OrderSize(Decimal(text)) for text in ("0", "-3", "2.5", "NaN", "1e30", "1e400000", "1e-400000")],
)
def test_a_size_that_cannot_be_traded_is_refused(size: OrderSize) -> None:
    with pytest.raises(UsageError):
        edit_of(sized(quantity="40"), size, Decimal(50))


def test_other_open_orders_count_against_an_edit() -> None:
    portfolio = Portfolio(Decimal(1000), {"AAA": Position(Decimal(40), Decimal(50))})
    power = buying_power(portfolio, [sized(quantity="30")], lambda symbol: Decimal(50))
    for quantity, lacks in (("10", False), ("11", True)):
        order = sized(quantity=quantity)
        assert bool(shortfall(order, power, Decimal(50), floor=Decimal(0), allow_short=False)) is lacks


def test_what_is_short_is_bought_back_whatever_the_cash_and_no_more() -> None:
    power = buying_power(
        Portfolio(Decimal(100), {"AAA": Position(Decimal(-5), Decimal(50))}), [], lambda symbol: Decimal(50)
    )
    for size, lacks in (("5", False), ("6", True), ("1000000", True)):
        order = replace(sized(quantity=size), side=Side.BUY)
        assert bool(shortfall(order, power, Decimal(50), floor=Decimal(0), allow_short=True)) is lacks, size


def test_a_sale_shorts_no_more_than_the_equity() -> None:
    portfolio = Portfolio(
        Decimal(1000), {"AAA": Position(Decimal(4), Decimal(50)), "B": Position(Decimal(-2), Decimal(50))}
    )
    price = {"AAA": Decimal(50), "B": Decimal(50)}.__getitem__
    power = buying_power(portfolio, [sized(quantity="3")], price)
    # The equity is 1,100. B is short by 100, and an open sale has 3 of the 4 shares.
    assert not short_excess(sized(quantity="21"), power, portfolio, price)
    assert "1150.00" in short_excess(sized(quantity="22"), power, portfolio, price)


@pytest.mark.parametrize(("answer", "refused"), [("approve", True), ("veto", False), ("undo", True)])
def test_an_answer_on_an_order_that_ends_meanwhile_names_its_end(tmp_path: Path, answer: Answer, refused: bool) -> None:
    desk = Desk(folder=tmp_path, script=lambda one: trade(one, "BUY", 8, "strong uptrend"), mode=TradingMode.ASK)
    order = desk.run().orders[0]
    give(desk.journal, [Edit(order.id, notional=Decimal("900.00"))], now(desk))

    def ended(session: date) -> datetime:
        """Ends the order while the state of the desk is read, as a run of another process does."""
        with JournalReader(desk.journal) as reader, JournalWriter(desk.journal) as writer:
            if reader.order_moves(order.id)[-1].state is OrderState.INTENDED:
                writer.order_moved(order.moved(OrderState.CANCELED), now(desk), detail="the cash is gone")
        return now(desk) + timedelta(days=1)

    async def submitted() -> None:
        pass

    asked = ApprovalDesk(
        desk="desk",
        journal=desk.journal,
        mode=TradingMode.ASK,
        times=SimpleNamespace(stays_until=ended, fills_at=lambda order, now: None),
        now=now(desk),
        edit=lambda order_id, size: Edit(order_id),
        effects=lambda orders: {},
        submit=submitted,
    )
    done = asyncio.run(answer_orders(asked, answer, [order.id], now=now(desk)))
    assert [(one.state, one.refused) for one in done.orders] == [("canceled: the cash is gone", refused)]
