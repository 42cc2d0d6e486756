"""Keys of the operator's own orders: the ticket, and the last one taken back before it is on its way."""

from __future__ import annotations

from engine.messages.commands import PlaceOrder, TakeBackOrder
from tui.bridge import PAST
from tui.screens.frame import FramedScreen
from tui.twins import report_action


class OwnOrderKeys(FramedScreen):
    """A screen from which the operator orders."""

    def chosen_symbol(self) -> str:
        """The symbol that an order is meant for, as far as the screen shows one."""
        raise NotImplementedError

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
        size, services = wanted.size, self._view.services
        seconds = 0 if services is None else services.undo_seconds
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
            self._send(TakeBackOrder())
        else:
            self.notify("nothing can be taken back: what was ordered is on its way", markup=False, timeout=3)
