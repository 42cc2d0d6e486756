"""The Desk: watchlist, candle chart, agents, positions, open orders, events; from 140 columns also the decision."""

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
from tui.chart_data import ChartData
from tui.keys import DESK, bindings
from tui.screens.frame import FramedScreen, Layout
from tui.snapshot import Snapshot
from tui.widgets.agent_panes import AgentPanes, DecisionSummary
from tui.widgets.candle_chart import CandleChart
from tui.widgets.desk_tables import ORDERS, POSITIONS, WATCHLIST, order_rows, position_rows, watchlist_rows
from tui.widgets.screen_bars import EventLog
from tui.widgets.table import Table

NO_CHART = ChartData()
TICK = 0.25
"""Seconds between two updates of everything but streaming text."""


class DeskScreen(FramedScreen):
    """The main screen: it watches the desk and runs a cycle."""

    MODE = DESK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DESK)]
    TABLE = "watchlist"
    PANES = ("watchlist", "chart", "agents", "positions", "orders", "why")

    def __init__(self) -> None:
        super().__init__()
        self.symbol = ""
        self._ticked = 0.0

    def compose_body(self) -> ComposeResult:
        """Mount the panes."""
        with Horizontal(id="desk"):
            with Vertical(id="left", classes="column"):
                yield Table(WATCHLIST, title="Watchlist", empty="opening the desk", id="watchlist", classes="pane")
                yield Table(POSITIONS, title="Positions", empty="no positions", id="positions", classes="pane")
                yield Table(ORDERS, title="Open orders", empty="no open orders", id="orders", classes="pane")
            with Vertical(id="middle", classes="column"):
                yield CandleChart(id="chart", classes="pane")
                yield AgentPanes(id="agents", classes="pane")
            yield DecisionSummary(id="why", classes="pane")
        yield EventLog(id="events")

    def on_mount(self) -> None:
        """Focus the watchlist."""
        self.focus_pane("watchlist")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the why column on a wide screen, and on a small one for open orders where there are any."""
        if pane.id == "orders":
            return self.form is not Layout.NARROW or bool(self._view.controls.orders)
        return pane.id != "why" or self.form is Layout.WIDE

    def show_body(self, view: Snapshot) -> None:
        """Show streaming text at once, the rest a few times a second."""
        self.query_one(AgentPanes).show(view.desk, self.symbol)
        now = time.monotonic()
        if now - self._ticked >= TICK:
            self._ticked = now
            self._show_all(view)

    def on_screen_resume(self) -> None:
        """Show everything at once."""
        self._ticked = 0.0
        super().on_screen_resume()

    def _show_all(self, view: Snapshot) -> None:
        watchlist = self.query_one("#watchlist", Table)
        closed = "the desk is not open" if view.trouble else "opening the desk"
        watchlist.show(watchlist_rows(view), "the desk has no symbols" if view.services else closed)
        if not self.symbol and watchlist.cursor_key:
            self._choose(watchlist.cursor_key)
        self._show_symbol(view)
        positions, books = self.query_one("#positions", Table), view.desk.books
        first = view.services is not None and books is None and not view.busy
        empty = "no positions:\npress r to run the first cycle" if first else "no positions yet"
        positions.show(position_rows(view.desk), empty)
        positions.border_subtitle = "" if books is None else "live" if books.live else f"close of {books.session}"
        self._show_orders(view)
        self.query_one(EventLog).show(view.desk.lines)

    def _show_orders(self, view: Snapshot) -> None:
        orders, controls = self.query_one("#orders", Table), view.controls
        if view.now is not None:
            orders.show(order_rows(controls, view.now))
        orders.border_subtitle = "a approve  x veto" if controls.waiting else ""
        if not self.single and orders.display is not self.has_room_for(orders):
            self.place_panes()

    def _show_symbol(self, view: Snapshot) -> None:
        self.query_one(CandleChart).show(view.market.charts.get(self.symbol, NO_CHART) if view.market else NO_CHART)
        self.query_one(AgentPanes).show(view.desk, self.symbol)
        self.query_one(DecisionSummary).show(view.desk, self.symbol)

    def _choose(self, symbol: str) -> None:
        self.symbol = symbol
        self.query_one("#watchlist", Table).point_at(symbol)
        self.query_one("#positions", Table).point_at(symbol)
        self._show_symbol(self._view)

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
        return next((one.order.symbol for one in self._view.controls.orders if one.order.id == key), self.symbol)

    def text_to_copy(self) -> str:
        """The content of the focused pane; of the chart, its newest bar; else the events."""
        if isinstance(self.focused, CandleChart) and len(self.focused.data):
            data = self.focused.data
            return (
                f"{data.title} {data.days[-1]} open {data.open[-1]} high {data.high[-1]} low {data.low[-1]} "
                f"close {data.close[-1]}"
            )
        return super().text_to_copy() or self.query_one(EventLog).as_text()

    def action_symbol(self, step: int) -> None:
        """Go to the next symbol, or the one before, around the end."""
        table = self.query_one("#watchlist", Table)
        keys = [row.key for row in table.rows]
        if keys:
            here = keys.index(self.symbol) if self.symbol in keys else 0
            self._choose(keys[(here + step) % len(keys)])

    def action_zoom(self, step: int) -> None:
        """Zoom the chart, or reset it (0), wherever the focus is."""
        self.query_one(CandleChart).action_zoom(step)

    def action_approve(self) -> None:
        """Approve the order that waits, once that is confirmed."""
        self._answer(Approve)

    def action_veto(self) -> None:
        """Veto the order that waits, once that is confirmed."""
        self._answer(Veto)

    def _answer(self, command: type[Approve] | type[Veto]) -> None:
        order, now, controls = self._chosen_order(), self._view.now, self._view.controls
        if order is None or now is None:
            return
        from tui.screens.confirm import ConfirmScreen, order_confirmation

        def answered(key: str | None) -> None:  # all are those that were counted in the text
            for one in controls.waiting if key == "A" else (order,) if key else ():
                self._send(command(one.order.id))
            self._ticked = 0.0
            self.show_view(self.desk_app.bridge.snapshot())

        confirmation = order_confirmation(order, controls, now, approve=command is Approve)
        self.app.push_screen(ConfirmScreen(confirmation), answered)

    def _chosen_order(self) -> OpenOrder | None:
        """The waiting order under the cursor of the orders; from another pane that of the symbol, or the first. Where
        none waits the user is told."""
        waiting, table = self._view.controls.waiting, self.query_one("#orders", Table)
        under = next((one for one in waiting if one.order.id == table.cursor_key), None)
        if self.focused is not table or not waiting:
            under = next((one for one in waiting if one.order.symbol == self.symbol), next(iter(waiting), None))
        if under is None:
            self.notify("this order does not wait for you" if waiting else "no order waits for approval", timeout=3)
        return under

    def action_why(self) -> None:
        """Open the trail of the symbol's latest decision."""
        sources = self._view.sources
        if not sources or not self.symbol:
            return
        from tui.screens.reading import TrailScreen

        self.app.push_screen(TrailScreen(sources[0], self.symbol))
