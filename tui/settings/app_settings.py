"""Settings of the app: its colours, its keys, and whether anything can be changed from it."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textual.binding import Binding
from textual.keys import Keys
from textual.theme import BUILTIN_THEMES, Theme

from engine.errors import ConfigError
from engine.program_files import program_text
from tui.settings.invocation import Invocation, check_preset
from tui.settings.keys import KEYS, MODES, Key

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
            raise ConfigError(f"{where}: unknown id; {hint}")
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
            raise ConfigError(f"{where}: unknown key {key or '(empty)'}; write f5, E, ctrl+g or E,f5")
        if key in SAME:
            raise ConfigError(f"{where}: {key} is the same as {SAME[key]} in a terminal; choose another")
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
        screens = [screen for screen in MODES if screen in mine.screens and screen in other.screens]
        if other.id != mine.id and shared and screens:
            where = f"{origins.get(f'bindings.{mine.id}', 'config')}: bindings.{mine.id}"
            raise ConfigError(
                f"{where}: {shared[0]} is already bound to {other.id} on {screens[0]}; rebind that one too"
            )


_COLOURS = tomllib.loads(program_text(Path(__file__).with_name("themes.toml")))


_EIGHT_BIT = "eight_bit"
_DEFAULTS = next(iter(_COLOURS.values()))


def _theme(name: str, *parts: str) -> Theme:
    """A theme of the table, with its colours under `parts` over the others; a light one takes none of the default's,
    and the terminal's own are Textual's."""
    own = _COLOURS[name]
    if own.get("ansi"):
        return replace(BUILTIN_THEMES["ansi-dark"], name=name, **own)
    colours: dict[str, Any] = {}
    for table in (_DEFAULTS, own) if own.get("dark", True) else (own,):
        colours |= table
        for part in parts:
            colours |= table.get(part, {})
    colours.pop(_EIGHT_BIT, None)
    return Theme(name, **colours)


THEMES = {name: _theme(name) for name in _COLOURS}
"""The app's own themes by name, the default first."""
THEMES_OF_256 = {name: _theme(name, _EIGHT_BIT) for name in _COLOURS}
"""The same in colours of a terminal that has 256."""
DEFAULT_THEME = next(iter(THEMES))
SHORT_NAMES = {theme.removeprefix(f"{DEFAULT_THEME}-"): theme for theme in THEMES} | {"dark": DEFAULT_THEME}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """Settings that hold while the app is open.

    theme: its name.
    keys: the table of keys, as far as they may be used.
    keymap: keys by id that differ from the table's.
    read_only: True where nothing can be changed.
    eight_bit: True for a terminal of 256 colours.
    watchlist: the names of the columns of the watchlist; none for all.
    """

    theme: str = DEFAULT_THEME
    keys: tuple[Key, ...] = KEYS
    keymap: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    eight_bit: bool = False
    watchlist: tuple[str, ...] = ()


def app_settings(
    theme: str | None = None,
    bindings: Mapping[str, str] | None = None,
    origins: Mapping[str, str] | None = None,
    *,
    read_only: bool = False,
) -> AppSettings:
    """The settings by those of the configuration. Raises ConfigError for a theme, an id or a key that there is not, and
    for a key that would do two things."""
    origins = origins or {}
    keymap, keys = own_keys(bindings or {}, origins)
    return AppSettings(
        theme=DEFAULT_THEME if theme is None else theme_named(theme, origins["app.theme"]),
        keys=tuple(key for key in keys if not (read_only and key.writes)),
        keymap=keymap,
        read_only=read_only,
    )


def checked_settings(invocation: Invocation, *, read_only: bool = False) -> AppSettings:
    """Check the configuration, so that a fault in it ends the command as it ends every other, and return the app's part
    of it. Raises ConfigError, CredentialsRefused and UsageError as loading it does."""
    if not invocation.configured:
        return app_settings(read_only=read_only)
    loaded = invocation.load()
    check_preset(loaded)
    config = loaded.config
    read_only = read_only or config.app.read_only
    settings = app_settings(config.app.theme, config.bindings, loaded.origins, read_only=read_only)
    return replace(settings, watchlist=config.app.watchlist)


def theme_named(name: str, origin: str) -> str:
    """A theme by its name, our own without their prefix too. Raises ConfigError."""
    known = {**dict.fromkeys(BUILTIN_THEMES), **dict.fromkeys(THEMES)}
    if name in SHORT_NAMES or name in known:
        return SHORT_NAMES.get(name, name)
    ours = ", ".join(one for one in SHORT_NAMES if one != DEFAULT_THEME)
    raise ConfigError(f"{origin}: app.theme: unknown theme {name}; available: {ours}, and Textual's own")
