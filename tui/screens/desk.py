"""The Desk: watchlist with what is held, open orders, equity, chart, the decision and its agents, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.domain.market import CORRECT_SYMBOLS
from engine.errors import PaperdeskError
from tui.charts.chart_data import NO_CHART
from tui.charts.plotting import PlotData
from tui.desk import book_curves
from tui.desk.desk_app import report_action
from tui.screens.ask import AskScreen
from tui.screens.chart_pane import ChartPane
from tui.screens.frame import TALL, Layout
from tui.screens.order_actions import OrderActions
from tui.settings.keys import DESK, bindings, works
from tui.view.market_view import MarketView
from tui.view.snapshot import OPENING, Snapshot, active_contexts, first_cycle_hint
from tui.view.watchlist import DESK as DESK_GROUP
from tui.view.watchlist import WatchedGroup, changes_of, keep_group, last_group
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.candle_chart import CandleChart
from tui.widgets.clickable import clickable_keys
from tui.widgets.desk_tables import ORDERS, order_rows, watchlist_columns, watchlist_rows
from tui.widgets.newest_reading import newest_reading
from tui.widgets.plot import CurvePlot
from tui.widgets.screen_bars import EventLog
from tui.widgets.table import Column, Table
from tui.widgets.trail_pane import trail_of

if TYPE_CHECKING:
    from engine.domain.decision import Decision


class DeskScreen(OrderActions):
    """The main screen: it watches the desk and runs a cycle."""

    MODE = DESK
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DESK)]
    TABLES = ("watchlist",)
    SHOWS_ANY_SYMBOL = True
    PANES = ("watchlist", "chart", "agents", "orders", "equity")

    def __init__(self) -> None:
        super().__init__()
        self.symbol = ""
        self._left = ""
        """The pane that had the focus before the chart stood alone."""
        self._groups: Mapping[str, tuple[str, ...]] = {}
        self._group = WatchedGroup()
        self._looked_up: tuple[object, ...] = ()
        """The symbols beyond the desk's, and the record, that prices were read for."""
        self._unbrought = ""
        """The reason why prices of watched symbols were not fetched that was shown last."""
        self._booked: tuple[object, ...] = ()
        """The part of the snapshot that the books behind the equity were read for."""
        self._trailed: tuple[object, ...] = ()
        """The decision whose trail is shown, and the record that it was read from."""

    def compose_body(self) -> ComposeResult:
        """Mount the panes."""
        with Horizontal(id="desk"):
            with Vertical(id="left", classes="column"):
                yield Table(self._columns, title="Watchlist", empty=OPENING, id="watchlist", classes="pane")
                yield Table(ORDERS, title="Open orders", empty=OPENING, id="orders", classes="pane")
                yield CurvePlot(id="equity", classes="pane")
            with Vertical(id="middle", classes="column"):
                yield ChartPane()
                yield AgentPanes(id="agents", classes="pane")
        yield EventLog(id="events")

    def on_mount(self) -> None:
        """Focus the watchlist, with the group that was shown last."""
        self.focus_pane("watchlist")
        if self._read_groups() and (name := last_group()) != DESK_GROUP:
            self._show_group(name)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return watchlist_columns(self.desk_app.settings.watchlist)

    def has_room_for(self, pane: Widget) -> bool:
        """True for the curve once there is one, and on a narrow screen for open orders where there are any; of a record
        that plays they would come and go."""
        if pane.id == "equity":
            return self.has_class("-curve")
        place = self._view.place
        shown = bool(self._view.controls.orders) and (place is None or not place.speed)
        return pane.id != "orders" or self.form is not Layout.NARROW or shown or self._first

    @property
    def _first(self) -> bool:
        """True before the first cycle."""
        return self._view.opened is not None and self._view.desk.books is None and not self._view.busy

    def show_body(self, view: Snapshot) -> None:
        """Show a snapshot in all panes, which draw what has changed."""
        self._show_agents()
        self._show_watchlist(view)
        self._show_chart(view)
        self._draw_equity(view)
        self._show_orders(view)
        self.query_one(EventLog).show(view.desk.lines, view.unopened or "nothing has happened yet")

    def _show_watchlist(self, view: Snapshot) -> None:
        watchlist = self.query_one("#watchlist", Table)
        rows, sums = watchlist_rows(view, self._group, self._columns)
        watchlist.show(rows, view.unopened or "the desk has no symbols")
        name = self._group.name
        title = "Watchlist" if name == DESK_GROUP else f"Watchlist: {name}"
        # A filter takes the room of the moment that the figures are of.
        watchlist.entitle(title if watchlist.filter_text else f"{title}{_as_of(view)}")
        set_subtitle(watchlist, sums)
        self._look_up(view)
        if not self.symbol and watchlist.cursor_key:
            self._choose(watchlist.cursor_key)

    def _show_chart(self, view: Snapshot) -> None:
        looked_up = self._group.looked_up.charts
        charts = looked_up if view.market is None or self.symbol in looked_up else view.market.charts
        self.chart.show(view, self.symbol, charts.get(self.symbol, NO_CHART))

    def _show_orders(self, view: Snapshot) -> None:
        orders, controls = self.query_one("#orders", Table), view.controls
        rows = [] if view.now is None else order_rows(controls, view.now)
        empty = f"no orders and no positions{first_cycle_hint(view)}" if self._first else "no open orders"
        orders.show(rows, view.unopened or empty)
        meant = "orders" if controls.waiting else "sent"
        keys = works(DESK, active_contexts(view), self.desk_app.settings.keys)
        answers = [key for key in keys if key.when == meant]
        set_subtitle(orders, clickable_keys([(f"{key.shown.split()[0]} {key.hint}", key.action) for key in answers], 2))
        if not self.single and orders.display is not self.has_room_for(orders):
            self.place_panes()

    def _choose(self, symbol: str) -> None:
        self.symbol = symbol
        self.query_one("#watchlist", Table).point_at(symbol)
        self._show_chart(self._view)
        # The answers are laid out anew, which takes longer than all the rest: the chart is painted before.
        self.call_after_refresh(self._show_agents)

    def _show_agents(self) -> None:
        """Show the agents at work and, once a cycle has ended, what was decided on the symbol."""
        if not self.is_attached:
            return
        view, pane = self._view, self.query_one(AgentPanes)
        made = () if view.desk.running else tuple(view.desk.decisions.get(self.symbol, {}).values())
        wanted = (made[0].key, view.sources[0]) if made and view.sources else ()
        if not wanted or wanted[:1] != self._trailed[:1]:
            pane.show_steps(view.desk, self.symbol)
        if wanted and wanted != self._trailed:
            pane.read(view.sources[0], partial(trail_of, decisions=made))
        self._trailed = wanted

    @on(Table.Moved)
    def _moved(self, event: Table.Moved) -> None:
        if event.key:  # a filter may leave no row: what is shown stays
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

    def show_symbol(self, symbol: str) -> None:
        """Choose a symbol, with its trail a key away; one that is in no row yet gets one under the group's."""
        if not any(row.key == symbol for row in self.query_one("#watchlist", Table).rows):
            self._group = replace(self._group, searched=symbol)
            self.show_view(self._view)
        self._choose(symbol)

    def group_changed(self, name: str) -> None:
        """Show what is new in the group, where it is the one that is shown."""
        if self._read_groups() and name == self._group.name:
            self._show_group(name)

    def action_watchlist(self) -> None:
        """Show the next group of symbols."""
        if not self._read_groups():
            return
        names = [DESK_GROUP, *self._groups]
        if len(names) == 1:
            self.notify("no group yet: W creates one", timeout=3)
        here = names.index(self._group.name) if self._group.name in names else 0
        self._show_group(names[(here + 1) % len(names)])

    def action_change_watchlist(self) -> None:
        """Ask for symbols to add to a group or to take out of it."""
        shown = self._group.name
        into = "a group" if shown == DESK_GROUP else f"the group {shown}"

        def answered(text: str | None) -> None:
            if text:
                self._change_group(*changes_of(text, shown))

        hint = "core: NVDA -AAPL" if shown == DESK_GROUP else "NVDA -AAPL"
        check = partial(changes_of, shown=shown)
        self.app.push_screen(
            AskScreen(f"Symbols for {into} to watch; -SYMBOL removes one", hint, check=check), answered
        )

    def _change_group(self, name: str, add: Sequence[str], remove: Sequence[str]) -> None:
        try:
            self.desk_app.bridge.change_group(name, add, remove)
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=6)
            return
        for action, symbols in (("add", add), ("remove", remove)):
            if symbols:
                report_action(self.app, f"watchlist {name} is changed", "watchlist", action, name, *symbols)
        if self._read_groups():
            self._show_group(name)

    def _read_groups(self) -> bool:
        """Read the groups of symbols; False, once it is said why, where they cannot be read."""
        try:
            self._groups = self.desk_app.bridge.groups()
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=6)
            return False
        return True

    def _show_group(self, name: str) -> None:
        """Show a group, which is the one that the next opening shows; the desk's own where there is none any more."""
        name = name if name in self._groups else DESK_GROUP
        self._group = replace(self._group, name=name, symbols=self._groups.get(name, ()), searched="")
        keep_group(name)
        watchlist = self.query_one("#watchlist", Table)
        self.show_view(self._view)
        if watchlist.cursor_key:  # keys are about the symbol under the cursor, in this group too
            self._choose(watchlist.cursor_key)

    def _look_up(self, view: Snapshot) -> None:
        """Have prices read of what the group has beyond the desk's symbols, where these may be others than before."""
        if view.market is None or view.now is None:
            return
        beyond = tuple(self._group.beyond(view.market.quotes))
        wanted = (beyond, view.sources[:1], view.market.as_of)
        if beyond and wanted != self._looked_up:
            self._looked_up = wanted
            self._read_prices(view, beyond, view.now)

    @work(group="watchlist", exclusive=True, exit_on_error=False, description="prices")
    async def _read_prices(self, view: Snapshot, symbols: Sequence[str], now: datetime) -> None:
        assert view.opened is not None
        ask = view.opened.ask
        self._show_looked_up(await ask.prices(symbols, now))
        try:
            found = await ask.prices(symbols, now, fetch=True)
        except (PaperdeskError, OSError) as error:
            found = await ask.prices(symbols, now)  # the others were fetched
            text = str(error).replace(CORRECT_SYMBOLS, "")
            if text != self._unbrought:  # once, however often it is tried
                self.notify(text, markup=False, severity="warning", timeout=6)
            self._unbrought = text
        self._show_looked_up(found)

    def _show_looked_up(self, found: MarketView | None) -> None:
        if found is not None:
            self._group = replace(self._group, looked_up=found)
            self.show_view(self.desk_app.snapshot())

    def _draw_equity(self, view: Snapshot) -> None:
        """Draw the equity where the books may have changed."""
        fresh = view.market is not None and not view.desk.decisions
        if self.mark("-fresh", fresh, "orders", "middle", "agents"):
            self.place_panes()
        if view.sources and (shown := book_curves.seen(view)) != self._booked:
            self._booked = shown
            self._read_book(view)

    @newest_reading
    async def _read_book(self, view: Snapshot) -> None:
        try:
            book = await book_curves.read_book(view)
        except PaperdeskError:  # what is wrong with a journal is said by the error bar
            book = None
        if book is not None and len(book.sessions) > 1:
            self._show_curve(book_curves.growth(book), book_curves.growth_title(book))
        elif view.market is not None:  # before there are books: the symbols, so that there is something to see
            data = book_curves.symbols_growth(view.market)
            first = data.labels[0] if data.labels else ""
            self._show_curve(data, f"Symbols, from {book_curves.START:g} on {first}")

    def _show_curve(self, data: PlotData, title: str) -> None:
        drawn = bool(data.series)
        if drawn:
            plot = self.query_one("#equity", CurvePlot)
            plot.show(data)
            set_title(plot, title)
        if self.mark("-curve", drawn, "watchlist"):
            self.place_panes()

    def action_symbol(self, step: int) -> None:
        """Go to the next symbol, or the one before, around the end."""
        table = self.query_one("#watchlist", Table)
        keys = [row.key for row in table.rows]
        if keys:
            here = keys.index(self.symbol) if self.symbol in keys else 0
            self._choose(keys[(here + step) % len(keys)])

    # The chart

    @property
    def chart(self) -> ChartPane:
        """The chart."""
        return self.query_one(ChartPane)

    @property
    def _charted(self) -> bool:
        """True where the chart has the screen to itself."""
        return self.single and self._alone == self.chart.id

    @property
    def _on_a_bar(self) -> bool:
        """True where a decision is meant that stands on the chart."""
        return self._charted or self.chart.candles.shown_view.cursor is not None

    def place_panes(self) -> None:
        """Show all panes that the layout has room for, or the one that stands alone; of the chart all there is where it
        does, and on a large screen."""
        super().place_panes()
        if self._built:
            large = self.form is Layout.WIDE and self.size.height >= TALL
            self.chart.give_room(self._charted or (large and not self.single))

    def action_zoom_pane(self) -> None:
        """Show the focused pane alone, the chart in the place of a table, or all again."""
        if not self._zoomed and isinstance(self.focused, Table):
            self._left = self._alone
            self.focus_pane("chart")
        elif self._zoomed and self._left:
            self._alone, self._left = self._left, ""
            self.set_focus(self.query_one(f"#{self._alone}"))
        super().action_zoom_pane()

    def action_back(self) -> None:
        """Remove the cursor of the chart, else what any screen does."""
        if isinstance(self.focused, CandleChart) and self.focused.shown_view.cursor is not None:
            self.focused.remove_cursor()
        else:
            super().action_back()

    def action_zoom(self, step: int) -> None:
        """Zoom the chart, or reset it (0), wherever the focus is."""
        self.chart.candles.action_zoom(step)

    def action_timeframe(self, step: int) -> None:
        """Go to a longer timeframe, or a shorter one."""
        self.chart.go_timeframe(step)

    def action_indicator(self) -> None:
        """Show the next indicator; the chart alone where none is shown."""
        if self.query_one("#indicator").display:
            self.chart.next_indicator()
        else:
            self.focus_pane("chart")
            self.action_zoom_pane()

    def action_compare(self) -> None:
        """Compare with the next symbol."""
        self.chart.compare_next()

    def action_image(self) -> None:
        """Show the chart that the model was shown for a decision."""
        from tui.screens.chart_image import show_image

        decision = self._decision()
        if decision is None or not self._view.sources:
            self.notify(f"{self.symbol} was not decided here", markup=False, timeout=3)
        else:
            show_image(self, self._view.sources[0], decision)

    def _decision(self) -> Decision | None:
        """The decision under the chart's cursor or, where that stands alone, the latest in view; else the symbol's
        latest."""
        if self._on_a_bar:
            return self.chart.decision()
        return next(iter(self._view.desk.decisions.get(self.symbol, {}).values()), None)

    def chosen_symbol(self) -> str:
        """The symbol that is shown."""
        return self.symbol

    def contexts(self) -> dict[str, object]:
        """Those of the symbol, groups of symbols to go to, and the chart alone."""
        own = {"decided": self._decision(), "groups": self._groups, "charted": self._charted}
        return {**super().contexts(), **own}

    def action_why(self) -> None:
        """Open the trail of the decision that is shown; of several owners' latest that of the symbol."""
        wanted = self._decision() if self._on_a_bar else self.symbol
        if wanted:
            self.open_trail(wanted)
        else:
            self.notify("no decision on this bar" if self.symbol else "the desk is still opening", timeout=3)


def _as_of(view: Snapshot) -> str:
    """The moment of the figures of the watchlist: that of the prices and of the profit where these are two."""
    books, newer = view.desk.books, view.newer_close
    if books is None:
        return ""
    return f", {books.as_of}" if newer is None else f" to {newer:%b %d}, P&L {books.session:%b %d}"
