"""The commands of the palette: every key that works on the screen now, the speeds of a playback, and a few without a
key."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from engine.errors import PaperdeskError
from tui.playback.playback import READ, SPEEDS
from tui.screens.frame import FramedScreen
from tui.settings.keys import menu
from tui.view.snapshot import active_contexts

if TYPE_CHECKING:
    from textual.app import App

    from tui.desk.bridge import Bridge
    from tui.desk.desk_app import DeskApp
    from tui.set_up.set_up_offer import SetUpOffer


def commands(app: App[str], desk: DeskApp) -> Iterator[SystemCommand]:
    """List what can be run now; `desk` is the same app, as its screens know it."""
    frame, view = app.screen_stack[0], desk.snapshot()
    own = frame.own_contexts() if isinstance(frame, FramedScreen) else frozenset[str]()
    for key in menu(app.current_mode, active_contexts(view) | own, desk.settings.keys):
        run = partial(app.call_later, app.run_action, key.action, frame)
        yield SystemCommand(key.meaning, f"key {key.shown}", run)
    for speed in SPEEDS if view.place is not None else ():
        meaning = f"a session in {READ / speed:.2g} s"
        yield SystemCommand(f"Play {speed}x", meaning, partial(_play, desk.bridge, speed))
    if desk.set_up is not None:
        offer = desk.set_up.after(view.trouble)
        yield SystemCommand(offer.name, offer.meaning, partial(app.call_later, begin_set_up, app, offer))
    if desk.last_command:
        copy = partial(_copy_command, app, desk.last_command)
        yield SystemCommand("Copy the last action as a command", desk.last_command, copy)
    meaning = "the desk in six steps, to the trail of a decision"
    yield SystemCommand("Tour", meaning, partial(app.call_later, begin_tour, app, desk))
    yield SystemCommand("Theme", "Choose the colours", partial(_choose_theme, app))


async def begin_tour(app: App[str], desk: DeskApp) -> None:
    """Show the first step of the tour."""
    from tui.screens.tour import Tour

    desk.demo.leave()
    await Tour(app, desk.bridge).begin()


def _choose_theme(app: App[str]) -> None:
    from tui.screens.settings import choose

    choose(app, "app.theme")


def _play(bridge: Bridge, speed: int) -> None:
    if bridge.playback is not None:
        bridge.playback.play(speed)


async def begin_set_up(app: App[str], offer: SetUpOffer) -> None:
    """Ask the first question of a set-up."""
    from tui.screens.set_up import SetUpScreen

    try:
        set_up = await to_thread(offer.begin)
    except PaperdeskError as error:
        app.notify(str(error), markup=False, severity="warning")
        return
    app.push_screen(SetUpScreen(set_up))


def _copy_command(app: App[str], command: str) -> None:
    app.copy_to_clipboard(command)
    app.notify(f"copied: {command}", markup=False, timeout=3)
