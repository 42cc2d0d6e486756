"""The app: its screens and themes, a refresh from the engine a few times a second, and a quick end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import threading
from collections import Counter
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.constants import TEXTUAL_ANIMATIONS
from textual.css.stylesheet import Stylesheet

from engine.settings import places
from tui.app.shutdown import terminal_is_gone
from tui.screens.frame import FramedScreen
from tui.settings.app_settings import THEMES, THEMES_OF_256, AppSettings
from tui.settings.invocation import DEFAULT
from tui.settings.keys import DESK, KEYS, MODES, OPS
from tui.settings.pixels import Pixels
from tui.view.snapshot import Place, Snapshot
from tui.widgets.clickable import clicked_action
from tui.widgets.newest_reading import is_reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from textual.actions import ActionParseResult
    from textual.app import SystemCommand
    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.filter import LineFilter
    from textual.notifications import SeverityLevel
    from textual.screen import Screen

    from engine.reports.documents.opening import Stop
    from tui.app.announcement import Announcer
    from tui.app.deep_link import DeepLink, Link
    from tui.desk.backtest_process import Target
    from tui.desk.bridge import Bridge
    from tui.desk.demo_opening import DemoOpening
    from tui.desk.desk_follower import DeskOpener
    from tui.set_up.set_up_offer import SetUpOffer
    from tui.settings.configuration_file import ConfigurationFile
    from tui.settings.invocation import Invocation
    from tui.view.desk_port import Source


class ParsedOnce(Stylesheet):
    """A style sheet that is parsed again only with other colours."""

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._colours = variables
        self._outdated = False

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the colours; what was parsed with the same ones counts further."""
        if variables != self._colours:
            self._colours, self._outdated = variables, True
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse everything with colours that are new. Raises as Textual's own does."""
        if self._outdated:
            super().reparse()
            self._outdated = False


REFRESHES_PER_SECOND = 10
"""Streaming text comes in pieces of a tenth of a second."""

LEAVE_WITHIN = 1.8
"""Seconds that quitting waits for the engine."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the app as its own key does: what it was at work on is ended, and the terminal is as it was."""

LOOKS_AT_TERMINAL = 1.0
"""Seconds between two looks whether the terminal is still there."""

READ_ONLY = "read-only"
SHOWN_AT_MOST = 2
"""Times at most that the same toast is shown."""

AFTER_FIRST_PAINT = ("tui.desk.bridge", "tui.desk.demo_opening", "tui.app.announcement")
"""Modules that are imported once the first screen is painted, in a thread: with them comes much of the engine."""


def _load(screen: str) -> Screen[None]:
    """Import a screen, given as `module:class`."""
    module, _, name = screen.partition(":")
    made: Screen[None] = getattr(import_module(module), name)()
    return made


class PaperdeskApp(App[str]):
    """Paperdesk in a terminal. Its return value is a line about what was still at work, empty for nothing."""

    TITLE = "Paperdesk"
    CSS_PATH = ["app.tcss", "screens.tcss"]
    DEFAULT_MODE = DESK
    # Classes by the rows of the terminal, as the style sheet knows them: a dialog makes do with few.
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]
    # Screens are imported when they are first seen.
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        mode: partial(_load, screen) for mode, screen in MODES.items()
    }
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", "Quit", show=False, priority=True)]

    def __init__(
        self,
        open_desk: DeskOpener,
        backtest: Target,
        *,
        images: Path,
        first: Callable[[], Source | None] = lambda: None,
        plain: bool = False,
        invocation: Invocation = DEFAULT,
        set_up: SetUpOffer | None = None,
        cycle: bool = False,
        link: Link | None = None,
        settings: AppSettings | None = None,
        on_shutdown: Callable[[], None] = lambda: None,
        pixels: Pixels = Pixels.CELLS,
    ) -> None:
        """`first` gives the journal that is shown before the desk is open, `images` is the folder for screenshots,
        `plain` keeps to ASCII, `invocation` has the configuration that it changes, and the global options of the
        commands that it runs beside itself; with `cycle` a cycle runs as soon as the desk is open, `link` is the place
        that is shown then, `settings` its colours and keys. `on_shutdown` is called when it begins to end. `pixels` is
        the way in which the terminal shows pictures."""
        self._on_shutdown = on_shutdown
        self._ended = False
        self.settings = settings = settings or AppSettings()
        self.set_up = None if settings.read_only else set_up
        """The set-up that the palette offers."""
        self._cycle = cycle
        self._deep_link: DeepLink | None = None
        if link is not None:
            from tui.app.deep_link import DeepLink

            self._deep_link = DeepLink(link)
        self.reopening: tuple[str, ...] | None = None
        """The flags with which it is started again after its end; None where it is not."""
        self.invocation = invocation
        self.options: Sequence[str] = invocation.options
        self.last_command = ""
        self._notified = Counter[str]()
        """The toasts that were wanted, and how often."""
        self.pixels = pixels
        self._open_desk, self._backtest, self._first = open_desk, backtest, first
        self._plays = TEXTUAL_ANIMATIONS != "none" and link is None and not cycle and not settings.read_only
        self._led = False
        """True once a set-up has begun by itself."""
        self._begun = False
        """True once the desk is being opened."""
        self._images = images
        self._pressed = False
        """True once somebody has pressed a key."""
        self._start_refusal = ""
        self._place: Place | None = None
        """The place of a history that is shown; None in the present."""
        self.tell_terminal: Callable[[str], object] = bool
        """Writes to the terminal anything but the screen."""
        super().__init__()
        self.failure: BaseException | None = None
        """The exception that ended the app; whoever runs it says what went wrong."""
        self.error_console = Console(file=StringIO())  # Textual's traceback has values of variables, keys among them
        self.animation_level = "none"
        for theme in (THEMES_OF_256 if settings.eight_bit else THEMES).values():
            self.register_theme(theme)
        self.theme = settings.theme
        self.stylesheet = ParsedOnce(variables=self.get_css_variables())
        self.set_keymap(settings.keymap)
        self.set_class(plain, "-plain")
        self.set_class(settings.eight_bit, "-eight-bit")
        self._plain: list[LineFilter] = []
        if plain:
            from tui.widgets.plain_filter import PlainCharacters

            self._plain.append(PlainCharacters())

    @cached_property
    def bridge(self) -> Bridge:
        """The way to the desk."""
        from tui.desk.bridge import Bridge

        refusal = READ_ONLY if self.settings.read_only else ""
        return Bridge(self._open_desk, self._backtest, first=self._first, refusal=refusal)

    @cached_property
    def configuration(self) -> ConfigurationFile:
        """The configuration's file."""
        from tui.settings.configuration_file import ConfigurationFile

        return ConfigurationFile(self.invocation.file)

    @cached_property
    def demo(self) -> DemoOpening:
        """The first start on a demo desk; where a key was pressed before it, nothing begins to play."""
        from tui.desk.demo_opening import DemoOpening

        opening = DemoOpening(self.bridge, self._show_stop, self._offer_tour, plays=self._plays)
        if self._pressed:
            opening.pressed("")
        return opening

    @cached_property
    def _announcer(self) -> Announcer:
        from tui.app.announcement import Announcer

        return Announcer()

    def get_driver_class(self) -> type[Driver]:
        """A terminal driver that also announces waiting orders."""

        class Telling(super().get_driver_class()):  # type: ignore[misc]
            def __init__(self, app: PaperdeskApp, **more: Any) -> None:
                super().__init__(app, **more)
                app.tell_terminal = self.write

        return Telling

    def get_line_filters(self) -> Sequence[LineFilter]:
        """The last steps of painting: Textual's own, and on a terminal of plain characters ours."""
        return [*super().get_line_filters(), *self._plain]

    def snapshot(self) -> Snapshot:
        """Everything that screens show now; nothing before the desk is being opened."""
        return self.bridge.snapshot() if self._begun else Snapshot()

    def on_load(self) -> None:
        """Listen to signals before the terminal is taken over; where no signal arrives, in a thread, to none."""
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                asyncio.get_running_loop().add_signal_handler(number, self.call_later, self.action_quit)

    def on_mount(self) -> None:
        """Start the engine once the desk has been painted."""
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        self.call_after_refresh(self.run_worker, self._begin_with_engine)

    def take_settings(self, settings: AppSettings) -> None:
        """Take the colours and keys of a configuration that was changed just now."""
        self.settings = replace(settings, eight_bit=self.settings.eight_bit)
        self.set_keymap(settings.keymap)
        self.theme = settings.theme

    async def _begin_with_engine(self) -> None:
        await asyncio.to_thread(lambda: [import_module(name) for name in AFTER_FIRST_PAINT])
        if not self._ended:
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        self.bridge.start()
        if self._cycle:
            from engine.messages.commands import RunCycle

            if refused := self.bridge.send(RunCycle()):
                self.notify(refused, markup=False, timeout=8)
        self.set_interval(1 / REFRESHES_PER_SECOND, self._refresh_screen)
        terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None and not self.is_headless else None
        if terminal is not None and os.isatty(terminal):
            self.set_interval(LOOKS_AT_TERMINAL, partial(self._leave_with_terminal, terminal))

    def _leave_with_terminal(self, terminal: int) -> None:
        if terminal_is_gone(terminal) and not self._ended:
            self.call_later(self.action_quit)

    async def on_event(self, event: events.Event) -> None:
        """Note that somebody is there, whatever was pressed or clicked."""
        if isinstance(event, events.Key | events.MouseDown):
            self._pressed = True
            if self._begun:
                self.bridge.visited()
                self.demo.pressed(event.key if isinstance(event, events.Key) else "")
        await super().on_event(event)

    async def on_click(self, event: events.Click) -> None:
        """Do what a key would that a text names, in a widget or in its border."""
        if action := clicked_action(event):
            await self.run_action(action, self.screen)

    def _show_stop(self, stop: Stop) -> None:
        """Show what the film of a demo desk stops at."""
        from tui.desk.demo_opening import READS

        stack = self.screen_stack
        if stack and isinstance(stack[0], FramedScreen):
            stack[0].show_symbol(stop.symbol)
        self.notify(stop.text, title=str(stop.session), markup=False, timeout=READS)

    def _offer_tour(self, untouched: bool) -> None:
        """Offer the tour by a question where nobody has pressed a key; the log offers it to all."""
        from tui.app.palette import begin_tour
        from tui.screens.confirm import TOUR_QUESTION, ConfirmScreen

        def answered(key: str | None) -> None:
            if key:
                self.call_later(begin_tour, self, self)

        self.clear_notifications()  # the film is over, and so is what it stopped at
        if untouched and len(self.screen_stack) == 1:
            self.push_screen(ConfirmScreen(TOUR_QUESTION), answered)

    def _refresh_screen(self) -> None:
        self.demo.refresh()
        if not is_reading(self):  # a history that is played goes on once a place is shown whole
            self.bridge.play_on(self._place)
        view = self.bridge.snapshot()
        if self._start_refusal != (start_refusal := self.bridge.start_refusal):
            self._start_refusal = start_refusal
            if start_refusal and self.current_mode not in (DESK, OPS):  # those have the log
                self.notify(start_refusal, markup=False, timeout=6)
        if view.opened is None:
            self._lead_into_set_up(view.trouble)
        self._place = view.place
        stack = self.screen_stack  # what lies under a page that is being read goes on; empty while closing
        if stack and isinstance(stack[0], FramedScreen):
            stack[0].show_view(view)
            if announced := self._announcer.notification(view):
                self.tell_terminal(announced)
            if self._deep_link is not None and self._deep_link.advance(self):
                self._deep_link = None

    def _lead_into_set_up(self, trouble: str) -> None:
        """Begin by itself, once, the set-up without which the desk cannot be opened."""
        offer = None if self._led or self.set_up is None else self.set_up.after(trouble)
        if offer is not None and offer.mends(trouble):
            from tui.app.palette import begin_set_up

            self._led = True
            self.call_later(begin_set_up, self, offer)

    def notify(self, message: str, *, severity: SeverityLevel = "information", **more: Any) -> None:
        """Show a toast, which is not shown a third time unless it is an error."""
        self._notified[message] += 1
        if severity == "error" or self._notified[message] <= SHOWN_AT_MOST:
            super().notify(message, severity=severity, **more)

    def bell(self) -> None:
        """Ring, which Textual does too while it handles an exception that ends the app: that is kept."""
        if self.return_code and self.failure is None:
            self.failure = sys.exception()
        super().bell()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """List what the palette runs."""
        from tui.app.palette import commands

        return commands(self, self)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, unless it would change something in an app that is opened read-only."""
        if self.settings.read_only and any(
            key.writes and key.action == action and self.current_mode in key.screens for key in KEYS
        ):
            self.notify(READ_ONLY, timeout=3)
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def reopen(self, *, cycle: bool) -> None:
        """End, and start again with the configuration as it is now."""
        self.reopening = ("--cycle",) if cycle else ()
        self.call_later(self.action_ask_quit)

    async def action_ask_quit(self) -> None:
        """Quit; while a paid run is at work only once that is confirmed."""
        from tui.screens.confirm import ConfirmScreen, quit_confirmation

        question = quit_confirmation(self.bridge.present())
        if question is None:
            await self.action_quit()
            return

        def answered(key: str | None) -> None:
            if key:
                self.call_later(self.action_quit)
            else:
                self.reopening = None

        self.push_screen(ConfirmScreen(question), answered)

    async def action_quit(self) -> None:
        """End what runs, within two seconds."""
        ended = await self._end_work()
        self.exit("" if ended else "closed while the desk was still working; finished work is in its journal")

    async def on_unmount(self) -> None:
        """End what runs where the app was ended otherwise: a page in a browser that was closed, a bug."""
        if not self._ended:
            await self._end_work()

    async def _end_work(self) -> bool:
        """True where all has ended in time."""
        self._ended = True
        self._on_shutdown()
        if not self._begun:
            return True
        self.bridge.stop()
        return await asyncio.to_thread(self.bridge.wait, LEAVE_WITHIN)

    def keep_image(self, name: str, image: bytes) -> Path:
        """Write a picture beside the screenshots; return its path. Raises OSError."""
        places.make_folder(self._images)
        path = self._images / name
        path.write_bytes(image)
        return path

    def action_save_image(self) -> None:
        """Save the screen as SVG and notify the path."""
        try:
            places.make_folder(self._images)
            taken = [int(n) for f in self._images.glob("paperdesk-*.svg") if (n := re.sub(r"\D", "", f.stem))]
            path = self._images / f"paperdesk-{max(taken, default=0) + 1:03}.svg"
            path.write_text(self.export_screenshot(title="Paperdesk"), encoding="utf-8")
        except OSError as error:
            self.notify(f"no image: {error.strerror}", severity="error", markup=False)
            return
        self.notify(f"saved {path}", markup=False)
