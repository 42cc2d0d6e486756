"""Keys about the symbol that is shown: a run of its own, the ticket of an order, and the last order taken back before
it is on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.desk.twins import report_action
from tui.screens.frame import FramedScreen
from tui.view.snapshot import PAST

if TYPE_CHECKING:
    from engine.messages.commands import PlaceOrder


class OwnOrderKeys(FramedScreen):
    """A screen from which the operator orders, and has one symbol decided."""

    def chosen_symbol(self) -> str:
        """The symbol that an order is meant for, as far as the screen shows one."""
        raise NotImplementedError

    def action_run_symbol(self) -> None:
        """Decide one symbol alone for the last completed session, once that is confirmed where models may cost."""
        symbol, opened = self.chosen_symbol(), self.desk_app.bridge.present().opened
        if self.desk_app.bridge.playback is not None:
            self.notify(PAST, markup=False, timeout=3)
            return
        if opened is None or symbol not in opened.symbols:
            refused = "the desk is still opening" if opened is None else f"the desk does not decide {symbol}"
            self.notify(refused, markup=False, timeout=3)
            return
        from engine.messages.commands import RunCycle
        from tui.screens.confirm import ConfirmScreen, cycle_confirmation

        def answered(key: str | None) -> None:
            if key and self._send(RunCycle(symbol)):
                said = f"a cycle for {symbol} alone is asked for"
                report_action(self.app, said, "--daily", "--symbol", symbol)

        question = cycle_confirmation(symbol, opened.label, opened.usd_per_day)
        if question is None:
            answered("y")
        else:
            self.app.push_screen(ConfirmScreen(question), answered)

    def action_order(self) -> None:
        """Fill in a ticket, and give the order."""
        if self.desk_app.bridge.playback is not None:
            self.notify(PAST, markup=False, timeout=3)
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
            f"{wanted.description} goes in {seconds:g} seconds: u takes it back",
            *("order", wanted.side, wanted.symbol, flag, number, "--yes"),
        )

    def action_undo(self) -> None:
        """Take back the order that was given last, where it is not on its way."""
        if self._view.own_orders:
            from engine.messages.commands import TakeBackOrder

            if self._send(TakeBackOrder()):
                self.app.clear_notifications()  # that it is to be sent holds no more
        else:
            self.notify("nothing can be taken back: what was ordered is on its way", markup=False, timeout=3)
