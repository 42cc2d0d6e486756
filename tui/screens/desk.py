"""The Desk: watchlist, candle chart, what the agents say, positions, open orders, events; above 140 columns also
why."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.messages.commands import Approve, Veto
from engine.reports.documents.control_state import OpenOrder
from tui.bridge import Snapshot
from tui.confirmations import Confirmation, approve_confirmation, veto_confirmation
from tui.keys import DESK, bindings
from tui.layout import Layout
from tui.screens.frame import FramedScreen
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.candle_chart import CandleChart
from tui.widgets.chart_data import ChartData
from tui.widgets.decision_summary import DecisionSummary
from tui.widgets.desk_tables import ORDERS, POSITIONS, WATCHLIST, order_rows, position_rows, watchlist_rows
from tui.widgets.event_log import EventLog
from tui.widgets.table import Table

TICK = 0.25
"""Seconds between two updates of everything but streaming text."""


class DeskScreen(FramedScreen):
    """Where the desk is watched and a cycle is run."""

    MODE = DESK
    CSS_PATH = ["frame.tcss", "desk.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DESK)]
    PANES = ("watchlist", "chart", "agents", "positions", "orders", "why")

    def __init__(self) -> None:
        super().__init__()
        self._symbol = ""
        self._ticked = 0.0

    def compose_body(self) -> ComposeResult:
        """The panes."""
        with Horizontal(id="desk"):
            with Vertical(id="left", classes="column"):
                yield Table(
                    WATCHLIST, empty="opening the desk", ascii_only=self.desk_app.plain, id="watchlist", classes="pane"
                )
                yield Table(
                    POSITIONS, empty="no positions", ascii_only=self.desk_app.plain, id="positions", classes="pane"
                )
                yield Table(ORDERS, empty="no open orders", ascii_only=self.desk_app.plain, id="orders", classes="pane")
            with Vertical(id="middle", classes="column"):
                yield CandleChart(ascii_only=self.desk_app.plain, id="chart", classes="pane")
                yield AgentPanes(ascii_only=self.desk_app.plain, id="agents", classes="pane")
            yield DecisionSummary(id="why", classes="pane")
        yield EventLog(id="events")

    def on_mount(self) -> None:
        """Titles; the watchlist has the focus."""
        self.query_one("#watchlist", Table).border_title = "Watchlist"
        self.query_one("#positions", Table).border_title = "Positions"
        self.query_one("#orders", Table).border_title = "Open orders"
        self.focus_pane("watchlist")

    def has_room_for(self, pane: Widget) -> bool:
        """The why column needs a wide screen; on a small one, open orders are shown where there are any."""
        if pane.id == "orders":
            return self.form is not Layout.NARROW or bool(self._view.controls.orders)
        return pane.id != "why" or self.form is Layout.WIDE

    @property
    def symbol(self) -> str:
        """The symbol that chart and agents show."""
        return self._symbol

    def show_body(self, view: Snapshot) -> None:
        """Streaming text at once, the rest a few times a second."""
        self.query_one(AgentPanes).show(view.desk, self._symbol)
        now = time.monotonic()
        if now - self._ticked >= TICK:
            self._ticked = now
            self._show_all(view)

    def on_screen_resume(self) -> None:
        """Back on this screen: everything at once."""
        self._ticked = 0.0
        super().on_screen_resume()

    def _show_all(self, view: Snapshot) -> None:
        watchlist = self.query_one("#watchlist", Table)
        empty = (
            "the desk has no symbols"
            if view.services
            else "the desk is not open"
            if view.trouble
            else "opening the desk"
        )
        watchlist.show(watchlist_rows(view), empty)
        if not self._symbol and watchlist.cursor_key:
            self._choose(watchlist.cursor_key)
        self._show_chart(view)
        positions = self.query_one("#positions", Table)
        positions.show(
            position_rows(view.desk),
            "no positions yet" if view.desk.books else "no positions:\npress r to run the first cycle",
        )
        held = view.desk.books
        positions.border_subtitle = f"close of {held.session}" if held else ""
        self._show_orders(view)
        self.query_one("#why", DecisionSummary).show(view.desk, self._symbol)
        self.query_one(EventLog).show(view.desk.lines)

    def _show_orders(self, view: Snapshot) -> None:
        orders, controls = self.query_one("#orders", Table), view.controls
        if view.services is not None:
            orders.show(order_rows(controls, view.services.clock.now()))
        orders.border_subtitle = "a approve  x veto" if controls.waiting else ""
        if not self.single and orders.display is not self.has_room_for(orders):
            self.place_panes()

    def _show_chart(self, view: Snapshot) -> None:
        chart = self.query_one(CandleChart)
        data = view.market.charts.get(self._symbol) if view.market else None
        if data is not None and data is not chart.data:
            if data.title == chart.data.title:
                chart.data = data
            else:
                chart.show(data)
            chart.border_title = None
        elif data is None and len(chart.data):
            chart.show(ChartData())

    def _choose(self, symbol: str) -> None:
        self._symbol = symbol
        self.query_one("#watchlist", Table).point_at(symbol)
        self.query_one("#positions", Table).point_at(symbol)
        view = self._view
        self._show_chart(view)
        self.query_one(AgentPanes).show(view.desk, symbol)
        self.query_one("#why", DecisionSummary).show(view.desk, symbol)

    @on(Table.Moved)
    def _moved(self, event: Table.Moved) -> None:
        self._choose(self._symbol_of(event.table, event.key))

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        self._choose(self._symbol_of(event.table, event.key))
        self.action_why()

    def _symbol_of(self, table: Table, key: str) -> str:
        """The symbol of a row: its key, or in the table of orders that of the order."""
        if table.id != "orders":
            return key
        return next((one.order.symbol for one in self._view.controls.orders if one.order.id == key), self._symbol)

    def main_table(self) -> Table | None:
        """The watchlist."""
        return self.query_one("#watchlist", Table)

    def text_to_copy(self) -> str:
        """The focused pane; of the chart, its newest bar; else the events."""
        if isinstance(self.focused, CandleChart) and len(self.focused.data):
            data = self.focused.data
            return (
                f"{data.title} {data.days[-1]} open {data.open[-1]} high {data.high[-1]} low {data.low[-1]} "
                f"close {data.close[-1]}"
            )
        if isinstance(self.focused, DecisionSummary):
            return self.focused.as_text()
        return super().text_to_copy() or self.query_one(EventLog).as_text()

    def action_symbol(self, step: int) -> None:
        """The next symbol, or the one before, around the end."""
        table = self.query_one("#watchlist", Table)
        keys = [row.key for row in table.rows]
        if keys:
            here = keys.index(self._symbol) if self._symbol in keys else 0
            self._choose(keys[(here + step) % len(keys)])

    def action_zoom(self, step: int) -> None:
        """Nearer, farther, or the usual size (0), wherever the focus is."""
        chart = self.query_one(CandleChart)
        if step:
            chart.action_zoom(step)
        else:
            chart.action_zoom_reset()

    def action_approve(self) -> None:
        """Approve the order that waits, once that is confirmed."""
        order = self._order_meant()
        if order is not None and self._view.services is not None:
            controls, now = self._view.controls, self._view.services.clock.now()
            halted = controls.halted is not None
            self._confirm(approve_confirmation(order, len(controls.waiting), now, halted), order, Approve)

    def action_veto(self) -> None:
        """Veto the order that waits, once that is confirmed."""
        order = self._order_meant()
        if order is not None and self._view.services is not None:
            waiting, now = len(self._view.controls.waiting), self._view.services.clock.now()
            self._confirm(veto_confirmation(order, waiting, now), order, Veto)

    def _order_meant(self) -> OpenOrder | None:
        """The waiting order under the cursor of the orders; from another pane that of the symbol, or the first. Says
        so where none waits."""
        waiting, table = self._view.controls.waiting, self.query_one("#orders", Table)
        under = next((one for one in waiting if one.order.id == table.cursor_key), None)
        if self.focused is not table or not waiting:
            under = next((one for one in waiting if one.order.symbol == self._symbol), next(iter(waiting), None))
        if under is None:
            self.notify("this order does not wait for you" if waiting else "no order waits for approval", timeout=3)
        return under

    def _confirm(self, confirmation: Confirmation, order: OpenOrder, command: type[Approve] | type[Veto]) -> None:
        from tui.screens.confirm import ConfirmScreen

        all_of_them = self._view.controls.waiting  # those that were counted in the text

        def answered(key: str | None) -> None:
            for one in all_of_them if key == "A" else (order,) if key else ():
                self._send(command(one.order.id))
            self._ticked = 0.0
            self.show_view(self.desk_app.bridge.snapshot())

        self.app.push_screen(ConfirmScreen(confirmation), answered)

    def action_why(self) -> None:
        """The whole trail of the symbol's latest decision."""
        sources = self._view.sources
        if not sources or not self._symbol:
            return
        from tui.screens.trail import TrailScreen

        self.app.push_screen(TrailScreen(sources[0], self._symbol))
