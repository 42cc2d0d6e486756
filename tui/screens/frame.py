"""The frame of every screen: status bar, tabs, error bar and hints around a body, its layout, and panes for tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from string import ascii_lowercase
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from tui.desk.desk_app import ShowsFailures
from tui.screens.dialog import Dialog
from tui.screens.screen_keys import ScreenKeys
from tui.settings.keys import menu
from tui.view.desk_port import Source
from tui.view.snapshot import Retry, Snapshot, active_contexts
from tui.widgets.border_text import fit_borders
from tui.widgets.navigation_bars import Hints, Tabs, TimeBar
from tui.widgets.screen_bars import ErrorBar, StatusBar
from tui.widgets.table import Table
from tui.widgets.text_lines import TextPane

if TYPE_CHECKING:
    from tui.screens.trail import Wanted


class JumpScreen(Dialog[str]):
    """Letters over another screen. Ends with the name of the pane that was chosen, with an empty text by any other key
    or a click beside the panes."""

    AUTO_FOCUS: ClassVar[str] = ""

    def __init__(self, panes: Mapping[str, Region]) -> None:
        """`panes` are places on the screen by the names of panes: one row each, which the label covers."""
        super().__init__()
        self._panes = dict(zip(ascii_lowercase, panes.items(), strict=False))

    def compose(self) -> ComposeResult:
        """Mount a label in the corner of every pane."""
        for letter, (name, place) in self._panes.items():
            label = Static(f" {letter} {name} ", name=name, classes="jump", markup=False)
            label.styles.offset = place.offset
            label.styles.width = max(len(name) + 4, place.width)
            yield label

    def on_click(self, event: events.Click) -> None:
        """Choose the pane whose label is clicked, or that is clicked itself; leave by a click beside them."""
        label, _ = self.get_widget_at(*event.screen_offset)
        under, _ = self.app.screen_stack[-2].get_widget_at(*event.screen_offset)
        clicked = {node.id for node in under.ancestors_with_self}
        self.dismiss(label.name or next((name for name, _ in self._panes.values() if name in clicked), ""))

    def on_key(self, event: events.Key) -> None:
        """Choose a pane, or leave."""
        event.stop()
        name, _ = self._panes.get(event.character or "", ("", None))
        self.dismiss(name)


LEAST_COLUMNS, LEAST_ROWS = 40, 10
"""The smallest terminal that has room for a pane."""
TALL = 34
"""Rows from which the events have four lines."""


class Layout(StrEnum):
    """The layouts, from the smallest to the widest; the value is the class that the style sheet knows."""

    LINE = "-line"
    """Below 40 x 10: a status line, and the size that it takes for more."""
    SINGLE = "-single"
    """Below 80 x 20: one pane at a time; tab goes to the next."""
    NARROW = "-narrow"
    """80 to 99 columns: orders where there are any."""
    USUAL = "-usual"
    """100 to 139 columns."""
    WIDE = "-wide"
    """From 140 columns: the decision and its agents in a column on the right."""


LAYOUT_CLASSES = frozenset({*Layout, "-tall"})


def layout_of(columns: int, rows: int) -> Layout:
    """The layout for a terminal of a size."""
    if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
        return Layout.LINE
    if columns < 80 or rows < 20:
        return Layout.SINGLE
    if columns < 100:
        return Layout.NARROW
    return Layout.USUAL if columns < 140 else Layout.WIDE


class FramedScreen(ShowsFailures, ScreenKeys):
    """A screen of the desk. A subclass names its `MODE`, composes its body and shows snapshots in it."""

    MODE: ClassVar[str] = ""
    PANES: ClassVar[Sequence[str]] = ()
    """Ids of the panes in the order in which tab walks them; those with the class `pane` can stand alone."""
    AUTO_FOCUS = ""
    # Only dialogs have a layout for few rows; a class that is set after the first layout would style all widgets twice.
    VERTICAL_BREAKPOINTS = []

    def __init__(self) -> None:
        super().__init__()
        self.form = Layout.USUAL
        self._zoomed = False
        self._alone = ""
        self._view = Snapshot()
        self._built = self._shows_past = False
        self._appearing: list[Widget] = []
        """Widgets that the next layout shows."""

    def compose(self) -> ComposeResult:
        """Mount the frame around the body; its layout first, so that nothing is styled twice."""
        self._fit(self.app.size)
        yield StatusBar(read_only=self.desk_app.settings.read_only)
        yield Tabs(self.MODE)
        yield ErrorBar()
        yield TimeBar()
        yield Hints(self.MODE)
        quits = next(key.shown.split()[0] for key in self.desk_app.settings.keys if key.id == "go.quit")
        small = f"too small: needs {LEAST_COLUMNS} columns and {LEAST_ROWS} rows\n{quits} quits"
        yield Static(small, markup=False, id="too-small")
        with Container(id="body"):
            yield from self.compose_body()

    def compose_body(self) -> ComposeResult:
        """Mount the widgets inside the frame."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Show the snapshot that came before the widgets. A subclass's own handler has run already."""
        self._built = True
        self.screen_layout_refresh_signal.subscribe(self, self._tell_sizes)
        self.place_panes()
        self.show_view(self.desk_app.snapshot())

    def on_unmount(self) -> None:
        """Stop showing snapshots."""
        self._built = False

    def show_view(self, view: Snapshot) -> None:
        """Show a snapshot; before the screen is built, and once it is gone, nothing happens."""
        self._view = view
        if self._built and self.is_attached and self.app.is_running:
            self.query_one(StatusBar).show(view)
            offer = None if self.desk_app.set_up is None else self.desk_app.set_up.after(view.trouble)
            mends = offer.hint if offer is not None and offer.mends(view.trouble) else ""
            again = "" if view.retry is None else "open again" if view.retry is Retry.REOPEN else "try again"
            self.query_one(ErrorBar).show(view.trouble, mends=mends, again=again)
            self.query_one(TimeBar).show(view.place)
            if self._shows_past is (view.place is None):
                self._shows_past = not self._shows_past
                for table in self.query(Table):
                    table.keep_widths(not self._shows_past)
            self.show_body(view)
            self.query_one(Hints).show(view, self.own_contexts())

    def show_body(self, view: Snapshot) -> None:
        """Show a snapshot inside the frame."""
        raise NotImplementedError

    # Size and panes

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the size. A status line has no pane for the focus, which comes back to the one it was
        in: Textual would give it to a field beside it, which takes the keys."""
        before = self.form
        self._fit(event.size)
        if self.form is Layout.LINE:
            self.set_focus(None)
        self.place_panes()
        if before is Layout.LINE is not self.form:
            self.focus_pane(self._alone)

    def _fit(self, size: Size) -> None:
        """Set the classes for a size."""
        self.form = layout_of(size.width, size.height)
        wanted = {self.form.value} | ({"-tall"} if size.height >= TALL else set())
        self.remove_class(*LAYOUT_CLASSES - wanted)
        self.add_class(*wanted)

    def on_screen_resume(self, event: events.ScreenResume | None = None) -> None:
        """Show the latest snapshot. The styles are those of the last time: the app renews them where colours change."""
        if event is not None:
            event.refresh_styles = False
        if self._built:  # keys may have been set meanwhile
            self.query_one(Tabs).on_resize()
            self.query_one(Hints).on_resize()
        self.place_panes()
        self.show_view(self.desk_app.snapshot())

    @property
    def single(self) -> bool:
        """True where one pane stands alone."""
        return self._zoomed or self.form in (Layout.SINGLE, Layout.LINE)

    def place_panes(self) -> None:
        """Show all panes that the layout has room for, or the one that stands alone."""
        if not self._built:
            return
        panes = [self.query_one(f"#{name}") for name in self.PANES]
        around = self.focused.ancestors_with_self if self.focused is not None else ()
        focused = next((node.id for node in around if node.id in self.PANES), None)
        self._alone = focused or self._alone or self.PANES[0]
        for pane in panes:
            alone = pane.id == self._alone
            self.set_display(pane, alone if self.single else self.has_room_for(pane))
        for parent in self.query(".part, .column"):
            held = any(pane.display and parent in pane.ancestors for pane in panes)
            self.set_display(parent, held or not (self.single or parent.has_class("part")))
        self.query_one(Hints).show(self._view, self.own_contexts())

    def mark(self, name: str, holds: bool, *panes: str) -> bool:
        """Have a class where something holds, and return whether that has changed. It gives these panes another size;
        the styles of all others stay, for those of a whole screen take half as long as to open it."""
        changed = self.has_class(name) is not holds
        if changed:
            self.set_class(holds, name, update=False)
            self.app.stylesheet.update_nodes([self.query_one(f"#{pane}") for pane in panes])
        return changed

    def set_display(self, widget: Widget, shown: bool) -> None:
        """Show a widget or hide it. One that is shown is told its size, and all in it: Textual takes it for one that
        knows it where somebody asks for a region between that and the next layout, after something was scrolled."""
        if shown and not widget.display:
            self._appearing.append(widget)
        widget.display = shown

    def _tell_sizes(self, _: Screen[None]) -> None:
        for pane in self.query(".pane"):
            fit_borders(pane)
        shown, self._appearing = self._appearing, []
        for top in shown:
            for widget in top.walk_children(Widget, with_self=True):
                widget.post_message(events.Resize(widget.size, widget.virtual_size, widget.container_size))

    def own_contexts(self) -> frozenset[str]:
        """Contexts of what this screen shows that keys depend on, as their table names them."""
        return frozenset(name for name, holds in self.contexts().items() if holds) if self._built else frozenset()

    def contexts(self) -> dict[str, object]:
        """Contexts by name, true where they hold. A screen adds its own, and whether it shows what was decided."""
        return {"record": self._view.place is not None or self._view.desk.run, "alone": self.single}

    def has_room_for(self, pane: Widget) -> bool:
        """True for a pane that is shown when none stands alone."""
        return True

    def focus_pane(self, name: str) -> None:
        """Focus a pane."""
        self._alone = name
        pane = self.query_one(f"#{name}")
        if self.single:
            self.set_display(pane, True)
        self.set_focus(_focusable(pane))
        self.place_panes()

    def _open_panes(self) -> list[Widget]:
        """The panes that can have the focus."""
        panes = [self.query_one(f"#{name}") for name in self.PANES]
        return [pane for pane in panes if self.single or (pane.display and _focusable(pane) is not None)]

    def action_pane(self, step: int) -> None:
        """Go to the next pane, or the one before."""
        names = [str(pane.id) for pane in self._open_panes()]
        here = self._alone if self._alone in names else names[0]
        self.focus_pane(names[(names.index(here) + step) % len(names)])

    def on_descendant_focus(self) -> None:
        """Follow a click to another pane."""
        if not self.single:
            self.place_panes()

    # Keys that every screen answers

    def action_copy(self) -> None:
        """Copy the error where there is one, else the content of the focused pane."""
        text = self.query_one(ErrorBar).text or self.text_to_copy()
        if text:
            self.app.copy_to_clipboard(text)
            self.notify("copied", timeout=2)
        else:
            self.notify("no text to copy in this pane", timeout=2)

    def text_to_copy(self) -> str:
        """The content of the focused pane."""
        focused = self.focused
        return focused.as_text() if isinstance(focused, Table | TextPane) else ""

    def action_back(self) -> None:
        """Dismiss the error, then a filter, then a pane that stands alone."""
        if self.query_one(ErrorBar).text:
            self.desk_app.bridge.dismiss()
            self.show_view(self.desk_app.snapshot())
        elif not self.unfilter() and self._zoomed:
            self.action_zoom_pane()

    def action_zoom_pane(self) -> None:
        """Show the focused pane alone, or all again."""
        self._zoomed = not self._zoomed
        self.set_class(self._zoomed, "-zoomed")
        self.place_panes()

    def action_retry(self) -> None:
        """Repeat what failed: opening the desk, reading its configuration and keys, or the cycle."""
        bridge = self.desk_app.bridge
        match self._view.retry:
            case Retry.OPEN:
                bridge.start()
            case Retry.REOPEN:
                self.desk_app.reopen(cycle=False)
            case Retry.RUN_CYCLE:
                bridge.forget_trouble()
                if refused := bridge.repeat_cycle():
                    self.notify(refused, markup=False, timeout=3)
            case None:
                self.notify("nothing to retry: no cycle failed", timeout=3)

    def action_log(self) -> None:
        """Show the log."""
        from tui.screens.reading import ReadingScreen, log_text

        self.app.push_screen(ReadingScreen("Log, times in UTC", log_text(self._view.desk.lines)))

    def open_trail(self, wanted: Wanted, source: Source | None = None) -> None:
        """Open the trail of a decision of a record; of the desk's where none is named."""
        from tui.screens.trail import TrailScreen

        source = source or next(iter(self._view.sources), None)
        if source is None:
            self.notify("the desk is still opening", timeout=3)
        else:
            self.app.push_screen(TrailScreen(source, wanted))

    def action_jump(self) -> None:
        """Show a letter over every pane, and focus the one that is chosen."""
        places = {
            str(p.id): Region(2, 3 + n, 0, 1) if self.single else Region(*p.region.offset, p.region.width, 1)
            for n, p in enumerate(self._open_panes())
        }

        def answered(name: str | None) -> None:
            if name:
                self.focus_pane(name)

        self.app.push_screen(JumpScreen(places), answered)

    def action_settings(self) -> None:
        """Show every setting that is in force, to change it."""
        from tui.screens.settings import SettingsScreen

        self.app.push_screen(SettingsScreen())

    def action_model(self) -> None:
        """Choose the model of the desk, or of an agent."""
        from tui.screens.settings import choose

        choose(self.app)

    def action_help(self) -> None:
        """Show what can be done here, and do what is chosen."""
        from tui.screens.menu import MenuScreen

        contexts = active_contexts(self._view) | self.own_contexts()
        keys = menu(self.MODE, contexts, self.desk_app.settings.keys)

        async def answered(action: str | None) -> None:
            if action:
                await self.app.run_action(action, self)

        self.app.push_screen(MenuScreen(keys), answered)


def _focusable(pane: Widget) -> Widget | None:
    """The pane, or the first in it, that can have the focus."""
    return pane if pane.focusable else next((child for child in pane.query("*") if child.focusable), None)
