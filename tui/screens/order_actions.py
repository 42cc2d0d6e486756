"""The operator's answers on orders, as keys of a screen: approve, veto, edit and undo of those that wait, and cancel of
those that were sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.errors import PaperdeskError
from engine.messages.commands import (
    Approve,
    CancelOrder,
    OrderCommand,
    PlaceOrder,
    ResizeOrder,
    RunCycle,
    TakeBackOrder,
    Undo,
    Veto,
)
from tui.desk.desk_app import report_action, report_answers
from tui.screens.ask import AskScreen
from tui.screens.dialog import facts_width
from tui.screens.frame import FramedScreen
from tui.text.plain_text import one_line
from tui.widgets.table import Table

if TYPE_CHECKING:
    from engine.domain.order import Order
    from engine.reports.documents.control_state import OpenOrder
    from tui.screens.confirm import Confirmation


class OrderActions(FramedScreen):
    """A screen from which the operator orders and has one symbol decided, with a table of orders, which are answered by
    key."""

    ORDERS = "orders"
    """The id of that table; its rows have the ids of orders."""

    def chosen_symbol(self) -> str:
        """The symbol that an order is meant for, and whose order where the table has not the focus."""
        raise NotImplementedError

    def action_run_symbol(self) -> None:
        """Decide one symbol alone for the last completed session, once that is confirmed where models may cost."""
        symbol, opened = self.chosen_symbol(), self.desk_app.bridge.present().opened
        if not self._in_present():
            return
        if opened is None or symbol not in opened.symbols:
            refused = "the desk is still opening" if opened is None else f"the desk does not decide {symbol}"
            self.notify(refused, markup=False, timeout=3)
            return
        from tui.screens.confirm import ConfirmScreen, cycle_confirmation

        def answered(key: str | None) -> None:
            if key and self._send(RunCycle(symbol)):
                said = f"a cycle for {symbol} alone requested"
                report_action(self.app, said, "--daily", "--symbol", symbol)

        question = cycle_confirmation(symbol, opened.label, opened.usd_per_day)
        if question is None:
            answered("y")
        else:
            self.app.push_screen(ConfirmScreen(question), answered)

    def action_order(self) -> None:
        """Fill in a ticket, and give the order."""
        if not self._in_present():
            return
        from tui.screens.order_ticket import OrderTicket

        def answered(wanted: PlaceOrder | None) -> None:
            if wanted is not None and self._send(wanted):
                self._report(wanted)

        self.app.push_screen(OrderTicket(self.chosen_symbol()), answered)

    def _report(self, wanted: PlaceOrder) -> None:
        size, opened = wanted.size, self._view.opened
        seconds = 0 if opened is None else opened.undo_seconds
        flag = "--amount" if size.money else "--quantity"
        number = f"{size.number:f}"
        report_action(
            self.app,
            f"{wanted.description} will be sent in {seconds:g} seconds: u undoes it",
            *("order", wanted.side, wanted.symbol, flag, number, "--yes"),
        )

    def action_approve(self) -> None:
        """Approve the order that waits, once that is confirmed."""
        self._ask(self._waiting_order(), approve=True)

    def action_veto(self) -> None:
        """Veto the order that waits, once that is confirmed."""
        self._ask(self._waiting_order(), approve=False)

    def action_edit_order(self) -> None:
        """Ask for another size of the order that waits."""
        if (one := self._waiting_order()) is not None:
            self._edit(one.order.id, lambda: None)

    def action_cancel_order(self) -> None:
        """Cancel the order that was sent, once that is confirmed."""
        sent = self._view.controls.sent
        one = self._meant(sent, "this order was not sent" if sent else "no open order at the broker")
        if one is None:
            return
        from tui.screens.confirm import ConfirmScreen, cancellation

        def answered(key: str | None) -> None:
            if key:
                self._give(CancelOrder(one.order.id))

        self.app.push_screen(ConfirmScreen(cancellation(one)), answered)

    def action_undo(self) -> None:
        """Take back the operator's last order, else the last answer, or edit, of one that was not sent yet."""
        if self._view.own_orders:
            if self._send(TakeBackOrder()):
                self.app.clear_notifications()  # that it is to be sent holds no more
            return
        from tui.screens.confirm import undoable_order

        if not self._in_present():
            return
        one = undoable_order(self._view, self.chosen_symbol())
        if one is not None:
            self._give(Undo(one.order.id))
        else:
            self.notify("nothing to undo: answered orders are sent or have ended", markup=False, timeout=3)

    @property
    def _facts_width(self) -> int:
        return facts_width(self.app.size.width)

    def _ask(self, one: OpenOrder | None, *, approve: bool) -> None:
        if one is None:
            return
        from tui.screens.confirm import ConfirmScreen, order_confirmation

        order, counted = one.order, list(self._view.controls.waiting)
        confirmation = order_confirmation(self._view, order.id, self._facts_width, approve=approve)
        if confirmation is None:
            return
        answers: dict[str, Callable[[], None]] = {
            "y": lambda: self._give(Approve(order.id) if approve else Veto(order.id)),
            "e": lambda: self._edit(order.id, lambda: self._ask(one, approve=approve)),
            "u": lambda: self._give(Undo(order.id)),
            "r": lambda: self._veto_with_reason(order),
        }

        def answered(key: str | None) -> None:
            if key == "A":
                self._give(*(Approve(each.order.id) if approve else Veto(each.order.id) for each in counted))
            elif key:
                answers[key]()

        def as_it_is() -> Confirmation | None:
            view = self.desk_app.snapshot()
            counted[:] = view.controls.waiting  # all are those that the text counts
            return order_confirmation(view, order.id, self._facts_width, approve=approve)

        self.app.push_screen(ConfirmScreen(confirmation, as_it_is), answered)

    def _veto_with_reason(self, order: Order) -> None:
        def answered(text: str | None) -> None:
            if text:
                self._give(Veto(order.id, " ".join(text.split())))

        self.app.push_screen(AskScreen(f"PAPER  Veto {order.side} {order.symbol}: why?", "a reason"), answered)

    def _edit(self, order_id: str, then: Callable[[], None]) -> None:
        from tui.screens.confirm import open_order, size_note
        from tui.view.order_size import SIZE_HINT, order_size

        if (one := open_order(self.desk_app.snapshot(), order_id)) is None:
            return
        order = one.order

        def answered(text: str | None) -> None:
            if text:
                self._give(ResizeOrder(order.id, order_size(text)))
            then()

        now = f"${order.notional}" if order.notional is not None else f"{order.quantity:f}"
        title = f"PAPER  Edit {order.side} {order.symbol}"
        note = partial(size_note, self.desk_app.snapshot(), order.id, self._facts_width)

        async def refusal(typed: str) -> str:
            try:
                size = order_size(typed)
            except ValueError:
                return ""  # the note says how a size is written
            opened = self.desk_app.bridge.present().opened
            try:
                await opened.ask.forecast(ResizeOrder(order.id, size)) if opened is not None else None
            except PaperdeskError as error:
                return one_line(str(error))
            return ""

        ask = AskScreen(title, SIZE_HINT, text=now, check=order_size, note=note, refusal=refusal)
        self.app.push_screen(ask, answered)

    def _give(self, *commands: OrderCommand | ResizeOrder | CancelOrder) -> None:
        taken = [command for command in commands if self._send(command)]
        self.show_view(self.desk_app.snapshot())
        report_answers(self.app, taken)

    def _waiting_order(self) -> OpenOrder | None:
        waiting = self._view.controls.waiting
        return self._meant(
            waiting, "this order is not waiting for approval" if waiting else "no order waits for approval"
        )

    def _meant(self, orders: Sequence[OpenOrder], none: str) -> OpenOrder | None:
        """The one of some orders that is under the cursor of the table; from another pane that of the symbol, or the
        first. Where there is `none`, and in the past, the user is told."""
        if not self._in_present():
            return None
        if self._view.opened is None:
            self.notify("the desk is still opening", timeout=3)
            return None
        table = self.query_one(f"#{self.ORDERS}", Table)
        under = next((one for one in orders if one.order.id == table.cursor_key), None)
        if self.focused is not table:
            symbol = self.chosen_symbol()
            under = next((one for one in orders if one.order.symbol == symbol), next(iter(orders), None))
        if under is None:
            self.notify(none, timeout=3)
        return under
