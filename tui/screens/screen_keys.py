"""The keys that every screen has: to run, pause and halt the desk, through the past, for tables, for the search."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.screen import Screen

from engine.domain.text import counted
from engine.errors import PaperdeskError
from engine.messages.commands import Command, Halt, Pause, Resume, RunCycle, Unpause
from tui.desk.desk_app import report_action
from tui.screens.ask import AskScreen, session_of
from tui.settings.keys import DESK
from tui.view.desk_port import Source
from tui.view.snapshot import PAST, Snapshot, active_contexts
from tui.view.watchlist import present_group
from tui.widgets.agent_panes import OFFLINE
from tui.widgets.navigation_bars import TimeBar
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table

if TYPE_CHECKING:
    from tui.desk.desk_app import DeskApp
    from tui.playback.playback import Playback


class TableKeys(Screen[None]):
    """A screen with tables; the keys are for the one that has the focus, else for the screen's main table."""

    TABLES: ClassVar[Sequence[str]] = ()
    """Ids of main tables, of which the first is meant that is shown."""

    def _table(self) -> Table:
        """The table that the keys are for."""
        if isinstance(self.focused, Table):
            return self.focused
        tables = [self.query_one(f"#{name}", Table) for name in self.TABLES]
        return next((table for table in tables if table.display), tables[0])

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.notify(f"sorted {self._table().sort_next()}", markup=False, timeout=2)

    def action_filter(self) -> None:
        """Ask for a filter; an empty one shows all rows again."""
        table = self._table()

        def answered(text: str | None) -> None:
            if text is not None:
                table.set_filter(text)

        hint = table.filter_example
        fields = f"words and {', '.join(table.fields)}; a minus negates, an empty line shows all"
        self.app.push_screen(
            AskScreen(
                f"Filter {table.title}", hint, text=table.filter_text, check=table.filter_of, note=lambda text: fields
            ),
            answered,
        )

    def unfilter(self) -> bool:
        """Show all rows of the table that has the focus, else of the main one; False where all are shown."""
        tables = [self.focused, *(self.query_one(f"#{name}", Table) for name in self.TABLES)]
        table = next((one for one in tables if isinstance(one, Table) and one.display and one.filter_text), None)
        if table is not None:
            table.set_filter("")
        return table is not None


STOP_REASON = "from the app"


class ScreenKeys(TableKeys):
    """A screen that knows its app, shows snapshots, passes commands on to the desk, and says why one is refused."""

    SHOWS_ANY_SYMBOL = False
    """True where `show_symbol` takes symbols that the desk does not trade."""
    _view: Snapshot
    """The snapshot that is shown."""

    @property
    def desk_app(self) -> DeskApp:
        """The app, with its bridge."""
        return cast("DeskApp", self.app)

    def show_view(self, view: Snapshot) -> None:
        """Show a snapshot."""
        raise NotImplementedError

    # The desk

    def action_run_cycle(self) -> None:
        """Decide for the last completed session."""
        opened = self.desk_app.bridge.present().opened
        if not self._send(RunCycle()):
            return
        self.show_view(self.desk_app.snapshot())
        asked = "cycle requested"
        if opened is not None and opened.label != OFFLINE:
            from tui.screens.confirm import cost_limit

            about = f"{opened.label} is asked about {counted(len(opened.symbols), 'symbol')}"
            asked = f"{about}. {cost_limit(opened.usd_per_day)}"
        report_action(self.app, asked, "--daily")

    def action_next_session(self) -> None:
        """Have the desk decide what is due, else go on to its next session and decide for it."""

        def answered(key: str | None) -> None:
            if key and (refused := self.desk_app.bridge.next_session()):
                self.notify(refused, markup=False, timeout=6)
            elif key:
                self.show_view(self.desk_app.snapshot())
                report_action(self.app, "running the next session", "next")

        present = self.desk_app.bridge.present()
        if not present.controls.waiting or "demo" not in active_contexts(present):
            answered("y")
            return
        from tui.screens.confirm import ConfirmScreen, next_session_confirmation

        self.app.push_screen(ConfirmScreen(next_session_confirmation(present.controls)), answered)

    def action_pause(self) -> None:
        """Pause the desk, or end its pause."""
        pauses = self._view.controls.paused is None
        if self._send(Pause(STOP_REASON) if pauses else Unpause()):
            cli_equivalent = ("pause", "--reason", STOP_REASON) if pauses else ("resume", "--only", "pause")
            report_action(self.app, "the desk is paused" if pauses else "the desk is resumed", *cli_equivalent)

    def action_kill_switch(self) -> None:
        """Halt the desk, or resume it, once that is confirmed."""
        from tui.screens.confirm import ConfirmScreen, halt_confirmation

        controls = self.desk_app.bridge.present().controls
        halts = controls.halted is None

        def answered(key: str | None) -> None:
            if key and self._send(Halt(STOP_REASON) if halts else Resume()):
                cli_equivalent = ("halt", "--reason", STOP_REASON) if halts else ("resume", "--only", "halt")
                report_action(self.app, "the desk is halted" if halts else "the desk is resumed", *cli_equivalent)

        self.app.push_screen(ConfirmScreen(halt_confirmation(controls)), answered)

    def _send(self, command: Command) -> bool:
        """Pass a command on; False where it is refused, which is said."""
        refused = self.desk_app.bridge.send(command)
        if refused:
            self.notify(refused, markup=False, timeout=3)
        return not refused

    # The past

    def _in_present(self) -> bool:
        """False in the past, where nothing can be done, which is said."""
        past = self.desk_app.bridge.playback is not None
        if past:
            self.notify(PAST, markup=False, timeout=3)
        return not past

    def _in_past(self) -> Playback | None:
        """The playback, which begins here where the present was shown, or another record than this screen's that does
        not play; None where there is no history yet."""
        bridge, source = self.desk_app.bridge, self.past_source()
        shown = bridge.playback
        other = source is not None and shown is not None and shown.source.journal != source.journal
        if (shown is None or (other and not shown.place.speed)) and (refused := bridge.to_past(source)):
            self.notify(refused, markup=False, timeout=3)
            return None
        return bridge.playback

    def past_source(self) -> Source | None:
        """The record that goes with this screen; None for the desk's."""
        return None

    def action_past_step(self, by: int) -> None:
        """Go by one event; while it plays, faster or slower."""
        if playback := self._in_past():
            playback.step(by)

    def action_past_session(self, by: int) -> None:
        """Go by one session."""
        if playback := self._in_past():
            playback.step_session(by)

    def action_past_play(self) -> None:
        """Play the record, or stop."""
        if playback := self._in_past():
            playback.play()

    def action_past_date(self) -> None:
        """Ask for a session, and go to it."""

        def answered(text: str | None) -> None:
            if text and (playback := self._in_past()):
                playback.jump_to(session_of(text))

        self.app.push_screen(AskScreen("Go to a session", "YYYY-MM-DD", check=session_of), answered)

    def action_present(self) -> None:
        """Go back to the present."""
        self.desk_app.bridge.to_present()
        self.show_view(self.desk_app.snapshot())

    @on(TimeBar.Chosen)
    def _track_clicked(self, event: TimeBar.Chosen) -> None:
        self.jump_to_part(event.part)

    @on(CurvePlot.Picked)
    def _curve_clicked(self, event: CurvePlot.Picked) -> None:
        with suppress(ValueError):  # a label that is no date
            session = date.fromisoformat(event.label[:10])
            if playback := self._in_past():
                playback.jump_to(session)

    def jump_to_part(self, part: float) -> None:
        """Go to a part of the record that is shown, between 0 and 1."""
        if playback := self.desk_app.bridge.playback:
            playback.jump(part)

    # Symbols

    def show_symbol(self, symbol: str) -> None:
        """Show a symbol, on a screen that shows one at a time."""

    def action_search(self) -> None:
        """Search a symbol, and show it: here where any symbol can be, else on the Desk."""
        from tui.screens.symbol_search import SymbolSearchScreen

        app = self.desk_app
        bridge = app.bridge
        try:
            group = present_group(bridge.groups())
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=6)
            return

        def add(symbol: str) -> str:
            try:
                bridge.change_group(group, [symbol], [])
            except PaperdeskError as error:
                return str(error)
            report_action(self.app, f"watchlist {group} is changed", "watchlist", "add", group, symbol)
            self.group_changed(group)
            return ""

        async def answered(symbol: str | None) -> None:
            if not symbol:
                return
            if not self.SHOWS_ANY_SYMBOL:
                await self.app.switch_mode(DESK)
            cast("ScreenKeys", self.app.screen_stack[0]).show_symbol(symbol)

        screen = SymbolSearchScreen(bridge.present, group=group, add=None if app.settings.read_only else add)
        self.app.push_screen(screen, answered)

    def group_changed(self, name: str) -> None:
        """Show what is new in a group of the watchlist, on a screen that shows one."""
