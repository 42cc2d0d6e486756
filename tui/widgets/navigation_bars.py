"""The bars of a screen that lead on: the tabs, the place in a recorded history, the key hints. All can be clicked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from tui.settings.keys import SCREENS, TABS, Hint, Key, hints
from tui.text.plain_text import cut, one_line
from tui.view.snapshot import Place, Snapshot, active_contexts
from tui.widgets.clickable import clickable

if TYPE_CHECKING:
    from tui.desk.desk_app import DeskApp

PLAYING, DONE, TO_COME = ">>", "=", "-"
"""Marks of the time bar; plain ones, which every terminal has."""
SHORTEST = 8
"""Cells at least of the track of a time bar."""
NEEDED = ("help", "quit")
"""Hints that are always shown."""
WIDE_GAP = " | "
"""The text between two tabs where there is room."""
PALETTE = Hint("^p", "commands", "app.command_palette")


class Tabs(Static):
    """The screens of the app, with the current one underlined. Where they do not fit, the others are keys alone."""

    def __init__(self, current: str) -> None:
        super().__init__("", markup=False)
        self._current = TABS[current]

    def on_resize(self) -> None:
        """Write the widest form that fits."""
        shown = {key.id: key.shown.split()[0] for key in _keys(self)}
        keys = [shown[f"screen.{mode}"] for mode in SCREENS]
        names = [f"{key} {name}" for key, (_, name, _) in zip(keys, SCREENS.values(), strict=True)]
        whole = sum(map(len, names)) + len(names) - 1 <= self.size.width
        texts = [
            clickable(
                Content.styled(text, "bold underline $primary")
                if mode == self._current
                else Content(text if whole else key),
                f"app.switch_mode('{mode}')",
            )
            for mode, key, text in zip(SCREENS, keys, names, strict=True)
        ]
        apart = sum(map(len, names)) + len(WIDE_GAP) * (len(names) - 1) <= self.size.width
        self.update(Content.styled(WIDE_GAP if apart else " ", "$foreground 30%").join(texts))


class TimeBar(Static):
    """The place in a recorded history, and the way back; hidden in the present. A click on the track goes to that part
    of it, one on the way back to the present."""

    class Chosen(Message):
        """A place was clicked: a part of the whole, between 0 and 1."""

        def __init__(self, part: float) -> None:
            super().__init__()
            self.part = part

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.place: Place | None = None
        self._track = (0, 0)
        """First column and width of the track."""

    def show(self, place: Place | None) -> None:
        """Show a place; None hides the bar."""
        if place != self.place:
            self.place = place
            self.display = place is not None
            self.on_resize()

    def on_resize(self) -> None:
        """Write the place, and a track over the room that is left."""
        place = self.place
        if place is None:
            return
        # While it plays the track alone says how far it is: a number that changes all the time cannot be read.
        where = f"{PLAYING} {place.speed}x" if place.speed else f"{place.number:,}/{place.count:,}"
        session = "" if place.session is None else f"{place.session}  "
        head = f" PAST {place.name}  {session}{where}  "
        back = "  \\ present "
        text = one_line(place.text)
        room = self.size.width - len(head) - len(back)
        track = min(40, room // 3) if room >= 20 else 0
        if not place.speed:  # while it plays, the track is as long for every event
            spare = room - len(text) - 2
            track = min(track, spare) if spare >= SHORTEST else 0
        passed = 1.0 if 0 < place.count == place.number else max(0, place.number - 1) / max(1, place.count - 1)
        done = int(track * passed)  # full at the last place alone
        self._track = (len(head), track)
        self.update(
            Content.assemble(
                (head, "bold"),
                (DONE * done, "$primary"),
                (TO_COME * (track - done), "$foreground 40%"),
                (f"  {cut(text, max(1, room - track - 2))}" if room > track + 4 else "", "$foreground 75%"),
                clickable(Content.styled(back, "bold $primary"), "present"),
            )
        )

    def on_click(self, event: Click) -> None:
        """Go to the place of the track that was clicked."""
        first, width = self._track
        if width and first <= event.x < first + width:
            self.post_message(self.Chosen((event.x - first) / max(1, width - 1)))


class Hints(Static):
    """The most useful keys of a screen that work now, as many as fit."""

    def __init__(self, screen: str) -> None:
        super().__init__("", markup=False)
        self._screen = screen
        self._works: frozenset[str] = frozenset({"present"})

    def show(self, view: Snapshot, own: frozenset[str] = frozenset()) -> None:
        """Show the keys that work at a snapshot, in the circumstances of their own screen."""
        works = active_contexts(view) | own
        if works != self._works:
            self._works = works
            self.on_resize()

    def on_resize(self) -> None:
        """Write the hints that fit into the width; help and quit are always among them."""
        every = [*hints(self._screen, self._works, _keys(self)), PALETTE]
        room = self.size.width - sum(_cells(hint) for hint in every if hint.text in NEEDED)
        texts = []
        for hint in every:
            if hint.text not in NEEDED:
                if _cells(hint) > room:
                    continue
                room -= _cells(hint)
            key = f"{hint.key} " if hint.key else ""
            texts.append(clickable(Content.assemble((key, "bold $primary"), hint.text), hint.action))
        self.update(Content("  ").join(texts))


def _keys(bar: Static) -> Sequence[Key]:
    """The keys of the app, as they are set now."""
    return cast("DeskApp", bar.app).settings.keys


def _cells(hint: Hint) -> int:
    return len(hint.key) + len(hint.text) + 3
