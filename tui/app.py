"""The app: its screens and themes, a refresh from the engine a few times a second, and a quick end."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import tomllib
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.theme import Theme

from tui.bridge import Bridge
from tui.desk_follower import DeskOpener
from tui.keys import DESK, SCREENS, works
from tui.playback import SPEEDS
from tui.screens.frame import FramedScreen
from tui.snapshot import circumstances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual.screen import Screen

    from tui.backtest_run import Target

REFRESHES_PER_SECOND = 10
"""Streaming text comes in pieces of a tenth of a second."""

LEAVE_WITHIN = 1.8
"""Seconds that quitting waits for the engine."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the app as its own key does: what it was at work on is ended, and the terminal is as it was."""

_COLOURS = tomllib.loads(Path(__file__).with_name("themes.toml").read_text(encoding="utf-8"))
THEMES = tuple(Theme(name, **(next(iter(_COLOURS.values())) | colours)) for name, colours in _COLOURS.items())
"""The default theme, and one for the colour-blind."""


def _load(screen: str) -> Screen[None]:
    """Import a screen, given as `module:class`."""
    module, _, name = screen.partition(":")
    made: Screen[None] = getattr(import_module(module), name)()
    return made


class PaperdeskApp(App[str]):
    """Paperdesk in a terminal. Its return value is a line about what was still at work, empty for nothing."""

    TITLE = "Paperdesk"
    CSS_PATH = "app.tcss"
    DEFAULT_MODE = DESK
    # Screens are imported when they are first seen.
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        mode: partial(_load, screen) for mode, (_, _, screen) in SCREENS.items()
    }
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", "Quit", show=False, priority=True)]

    def __init__(
        self,
        open_desk: DeskOpener,
        backtest: Target,
        *,
        images: Path,
        plain: bool = False,
        options: Sequence[str] = (),
        leaving: Callable[[], None] = lambda: None,
    ) -> None:
        """`images` is the folder for screenshots, `plain` keeps to ASCII, `options` are the global options of the
        command, for those that the app runs beside itself; `leaving` is called when it begins to end."""
        self._leaving = leaving
        self.options = options
        self.bridge = Bridge(open_desk, backtest)
        self._images = images
        super().__init__()
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.set_class(plain, "-plain")

    def on_load(self) -> None:
        """Listen to signals before the terminal is taken over; where no signal arrives, in a thread, to none."""
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                asyncio.get_running_loop().add_signal_handler(number, self.call_later, self.action_quit)

    def on_mount(self) -> None:
        """Start the engine once the desk has been painted."""
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.bridge.start()
        self.set_interval(1 / REFRESHES_PER_SECOND, self._refresh_screen)

    def _refresh_screen(self) -> None:
        stack = self.screen_stack  # what lies under a page that is being read goes on; empty while closing
        if stack and isinstance(stack[0], FramedScreen):
            stack[0].show_view(self.bridge.snapshot())

    @property
    def bug(self) -> Exception | None:
        """The exception that ended the app."""
        return self._exception

    def _fatal_error(self) -> None:
        """Close the app; whoever runs it says what went wrong, once the terminal is as it was."""
        self._close_messages_no_wait()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """List what the palette runs: every key that works on the screen now, the speeds of a playback, the themes."""
        frame = self.screen_stack[0]
        view = self.bridge.snapshot()
        for key in works(self.current_mode, circumstances(view)):
            yield SystemCommand(key.meaning, f"key {key.shown}", partial(self.call_later, self._do, key.action, frame))
        for speed in SPEEDS if view.place is not None else ():
            yield SystemCommand(f"Play {speed}x", f"{speed} points a second", partial(self._play, speed))
        yield SystemCommand("Theme", "Choose the colours", self.action_change_theme)

    async def _do(self, action: str, frame: Screen[Any]) -> None:
        await self.run_action(action, frame)

    def _play(self, speed: int) -> None:
        if self.bridge.playback is not None:
            self.bridge.playback.play(speed)

    async def action_ask_quit(self) -> None:
        """Quit; while a paid run is at work only once that is confirmed."""
        from tui.screens.confirm import ConfirmScreen, quit_confirmation

        question = quit_confirmation(self.bridge.snapshot())
        if question is None:
            await self.action_quit()
            return

        def answered(key: str | None) -> None:
            if key:
                self.call_later(self.action_quit)

        self.push_screen(ConfirmScreen(question), answered)

    async def action_quit(self) -> None:
        """End what runs, within two seconds."""
        self._leaving()
        self.bridge.stop()
        ended = await asyncio.to_thread(self.bridge.wait, LEAVE_WITHIN)
        self.exit("" if ended else "the desk was still at work and was left; its journal holds what was done")

    def keep_image(self, name: str, image: bytes) -> Path:
        """Write a picture beside the screenshots; return its path. Raises OSError."""
        self._images.mkdir(parents=True, exist_ok=True)
        path = self._images / name
        path.write_bytes(image)
        return path

    def action_save_image(self) -> None:
        """Save the screen as SVG and notify the path."""
        try:
            self._images.mkdir(parents=True, exist_ok=True)
            taken = [int(n) for f in self._images.glob("paperdesk-*.svg") if (n := re.sub(r"\D", "", f.stem))]
            path = self._images / f"paperdesk-{max(taken, default=0) + 1:03}.svg"
            path.write_text(self.export_screenshot(title="Paperdesk"), encoding="utf-8")
        except OSError as error:
            self.notify(f"no image: {error.strerror}", severity="error", markup=False)
            return
        self.notify(f"saved {path}", markup=False)
