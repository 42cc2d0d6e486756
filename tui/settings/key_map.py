"""Keys of the user's own in place of those of the table, checked before the app opens."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from textual.binding import Binding
from textual.keys import Keys

from engine.errors import ConfigError
from tui.settings.keys import KEYS, SCREENS, Key

MODIFIERS = ("ctrl+", "shift+", "alt+", "super+", "meta+")
SAME = {"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+h": "backspace"}
"""Keys that a terminal cannot tell from others."""


def own_keys(own: Mapping[str, str], origins: Mapping[str, str]) -> tuple[dict[str, str], tuple[Key, ...]]:
    """The keys by id as Textual takes them, and the table with them. Raises ConfigError that names the origin."""
    by_id = {key.id: key for key in KEYS}
    keymap: dict[str, str] = {}
    for name, text in own.items():
        where = f"{origins.get(f'bindings.{name}', 'config')}: bindings.{name}"
        if name not in by_id:
            near = difflib.get_close_matches(name, by_id, 1)
            hint = f"did you mean {near[0]}?" if near else "the app's settings (the key ,) list the ids"
            raise ConfigError(f"{where}: there is no such id; {hint}")
        keymap[name] = ",".join(_names(text, where))
    table = tuple(
        replace(key, keys=keymap[key.id], shown=" ".join(own[key.id].replace(",", " ").split()), hint=_hint(key))
        if key.id in keymap
        else key
        for key in KEYS
    )
    for name in keymap:
        _check_alone(next(key for key in table if key.id == name), table, origins)
    return keymap, table


def _hint(key: Key) -> str:
    """The hint of a key without the keys of the table, which some begin with."""
    return key.hint.split(" ", 2)[2] if key.hint and key.hint[0] in "[<{" else key.hint


def _names(text: str, where: str) -> list[str]:
    """Keys as Textual names them. Raises ConfigError for one that there is not."""
    names = []
    for part in text.split(","):
        key = part.strip()
        plain = key
        while plain.startswith(MODIFIERS):
            plain = plain.partition("+")[2]
        if not key or (len(plain) != 1 and plain not in {one.value for one in Keys} and not _names_character(plain)):
            raise ConfigError(f"{where}: there is no key {key or 'of no name'}; write f5, E, ctrl+g or E,f5")
        if key in SAME:
            raise ConfigError(f"{where}: {key} cannot be told from {SAME[key]} in a terminal; take another")
        names += [key, f"upper_{key.lower()}"] if len(key) == 1 and key.isupper() else [_normal(key)]
    return names


def _normal(key: str) -> str:
    return next(iter(Binding.make_bindings([Binding(key, "")]))).key


def _names_character(name: str) -> bool:
    """True for the name of a character in the table of keys, such as question_mark."""
    return any(name in key.keys.split(",") for key in KEYS)


def _check_alone(mine: Key, table: tuple[Key, ...], origins: Mapping[str, str]) -> None:
    """Raise ConfigError where a key does something else on a screen of its own."""
    for other in table:
        shared = sorted(set(mine.keys.split(",")) & set(other.keys.split(",")))
        screens = [screen for screen in SCREENS if screen in mine.screens and screen in other.screens]
        if other.id != mine.id and shared and screens:
            where = f"{origins.get(f'bindings.{mine.id}', 'config')}: bindings.{mine.id}"
            raise ConfigError(
                f"{where}: {shared[0]} is the key of {other.id} on {screens[0]}; give that one another too"
            )
