"""Every key of the app, from one table, `keys.toml`: for dispatch, the hints at the foot of a screen, and the menu."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from textual.binding import Binding

from engine.program_files import program_text

_TABLE = tomllib.loads(program_text(Path(__file__).with_suffix(".toml")))

SCREENS = {row["mode"]: (row["key"], row["name"], row["screen"]) for row in _TABLE["screen"] if "key" in row}
"""The screens that have a tab, by mode: key and name on it, and `module:class`, imported when it is first shown."""
MODES = {row["mode"]: row["screen"] for row in _TABLE["screen"]}
"""All screens by mode, also those behind the tab of another, which has a key to them: `module:class`."""
TABS = {row["mode"]: row.get("tab", row["mode"]) for row in _TABLE["screen"]}
"""The mode that each has the tab of."""
DESK, WHY, BOOK, LAB, OPS, ARENA, MEMORY = "desk", "why", "book", "lab", "ops", "arena", "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One thing that a key does.

    id: its name for key maps.
    keys: as Textual names them, comma-separated.
    action: Textual's.
    shown: the keys as the menu writes them.
    meaning: for the menu and the palette; empty for one that stands in neither.
    group: of keys that belong together.
    screens: modes of the screens where it acts.
    hint: text at the foot of those screens; empty for none.
    when: contexts in which the key works, all of these: in the `present`, in the `past`, where `orders` wait,
        others were `sent` and are open, or `answered` ones can be undone, on a `demo` desk that has another session,
        while a backtest is `running`, where one that was `stopped` is chosen, where there are several `runs`, where the
        screen has a `row` to act on, a `report` to open or `groups` of symbols to go to, shows what was `decided`, or
        belongs to a `record` that can be gone through; empty: always.
    hinted: contexts beyond these in which the hint is shown: where one pane stands `alone`, or the chart does
        (`charted`); one after a minus must not hold; empty: always.
    writes: True where it changes something, which an app that is opened read-only refuses.
    """

    id: str
    keys: str
    action: str
    shown: str
    meaning: str
    group: str
    screens: tuple[str, ...] = tuple(MODES)
    hint: str = ""
    when: str = ""
    hinted: str = ""
    writes: bool = False


class Hint(NamedTuple):
    """A hint at the foot of a screen; the key is empty where the text names it."""

    key: str
    text: str
    action: str


def _screen_key(row: dict[str, str]) -> Key:
    action, meaning = f"app.switch_mode('{row['mode']}')", f"{row['name']}: {row['meaning']}"
    return Key(
        id=f"screen.{row['mode']}",
        keys=row["key"],
        action=action,
        shown=row["key"],
        meaning=meaning,
        group="Screens",
    )


URGENT = ("orders", "answered", "running")
"""Contexts in which something waits for a key: its hints come first."""

KEYS = (*(_screen_key(row) for row in _TABLE["screen"] if "key" in row), *(Key(**row) for row in _TABLE["key"]))


def bindings(screen: str) -> list[Binding]:
    """The bindings of a screen, by its mode."""
    return [Binding(key.keys, key.action, key.meaning, show=False, id=key.id) for key in KEYS if screen in key.screens]


def pane_bindings(pane: str) -> list[Binding]:
    """The bindings of a pane that answers keys itself."""
    return [Binding(keys, action, meaning, show=False) for keys, action, meaning in _TABLE["panes"][pane]]


def works(screen: str, contexts: Collection[str], keys: Sequence[Key] = KEYS) -> list[Key]:
    """The keys of a table that do something on a screen, by its mode, in some contexts."""
    return [key for key in keys if screen in key.screens and set(contexts).issuperset(key.when.split())]


def menu(screen: str, contexts: Collection[str], keys: Sequence[Key] = KEYS) -> list[Key]:
    """The keys that work on a screen, in the order in which they are wanted: first those of its contexts, then its own,
    but for the Desk, where cycles are run."""

    def rank(key: Key) -> int:
        if key.group == "Screens":
            return 3
        here = key.hinted and set(contexts).issuperset(key.hinted.split())
        if here or key.when in URGENT or ("past" in contexts and key.group == "Past"):
            return 0
        return 1 if screen != DESK and len(key.screens) < len(MODES) else 2

    return sorted((key for key in works(screen, contexts, keys) if key.meaning), key=rank)


def hints(screen: str, contexts: Collection[str] = ("present",), keys: Sequence[Key] = KEYS) -> list[Hint]:
    """Hints for the foot of a screen, as few may fit, in the order of the menu."""
    there = {*contexts, *(f"-{key.when}" for key in KEYS if key.when not in contexts)}
    shown = [key for key in menu(screen, contexts, keys) if key.hint and there.issuperset(key.hinted.split())]
    return [Hint("" if key.hint[0] in "[<{" else key.shown.split()[0], key.hint, key.action) for key in shown]
