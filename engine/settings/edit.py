"""Change one value of a configuration's file: its comments and its order stay."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import ValidationError

from engine.domain.text import did_you_mean
from engine.errors import ConfigError, UsageError
from engine.settings.config import Config, Loaded
from engine.settings.config_sources import PREFIX, put, read_sources
from engine.settings.keys import write_private
from engine.settings.values import complaint, kinds_of

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

SCHEMA = 1
THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
WITH_DOTS = "bindings"
"""The section whose keys have dots of their own."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a configuration, as anybody may see it, and its origin: `default`, a file, a variable or a flag."""

    key: str
    value: Any
    origin: str


def values_of(loaded: Loaded, prefix: str = "") -> list[Value]:
    """Every value, or those of one key or section. Raises UsageError where there is none."""
    shown = dict(_leaves(loaded.config.shown()))
    found = [
        Value(key, value, loaded.origins.get(key, "default"))
        for key, value in shown.items()
        if not prefix or key == prefix or key.startswith(f"{prefix}.")
    ]
    if not found:
        hint = did_you_mean(prefix, [*shown, *loaded.config.shown()], "see paperdesk config list")
        raise UsageError(f"no key {prefix}; {hint}")
    return found


def choices_of(key: str) -> tuple[str, ...]:
    """The values that a key can have, where they are few and known; none for any other."""
    kinds = kinds_of(Config, key.split("."))
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    members = [one.value for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for one in kind]
    return (*words, *members, *(("true", "false") if bool in kinds else ()))


def change_value(
    file: Path,
    key: str,
    text: str | None,
    *,
    check: Callable[[Config], object] = lambda config: None,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """Write a value into the file, which is made where there is none, or (None) take it out: the document of it.

    The text is read as a variable of the environment is: a list has commas, and here a number may have them between its
    thousands. Raises UsageError for a key or a value that cannot be, also where `check` refuses it, ConfigError for a
    file that is not TOML or that another of its values spoils, and as `check` does for what the configuration would be.
    """
    section, *rest = key.split(".")
    path = (section, ".".join(rest)) if section == WITH_DOTS else (section, *rest)
    if not all(path) or len(path) < 2:
        raise UsageError(f"{key}: write SECTION.KEY, such as desk.cash")
    values = dict(read_sources(file, {}).values)
    before, seen = _at(values, path), _seen(values, path)
    if text is not None:
        if THOUSANDS.fullmatch(text) and any(kind in (Decimal, int, float) for kind in kinds_of(Config, path)):
            text = text.replace(",", "")
        try:
            put(values, path, text, key)
        except ConfigError as error:
            raise UsageError(str(error)) from None
    elif before is None:
        raise UsageError(f"{key} is not set in {file}")
    else:
        del _at(values, path[:-1])[path[-1]]
    config = _checked(values, path, file)
    try:
        check(config)
    except ConfigError as error:
        raise UsageError(str(error)) if text is not None and key in str(error) else error from None
    checked = _at(config.model_dump(), path)
    new = None if text is None else _plain(text if checked is None else checked)
    document = _edited(file, path, new)
    _checked(document.unwrap(), path, file)
    write_private(file.resolve(), document.as_string())
    variable = PREFIX + "__".join(path).upper()
    return {
        "schema": SCHEMA,
        "file": str(file),
        "key": key,
        "before": seen,
        "value": None if text is None else _at(config.shown(), path),
        "overridden_by": variable if variable in environ else None,
    }


def _checked(values: Mapping[str, Any], path: tuple[str, ...], file: Path) -> Config:
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        at = tuple(map(str, error.errors()[0]["loc"]))
        if at == path[: len(at)] or at[: len(path)] == path:
            raise UsageError(complaint(Config, error)) from None
        raise ConfigError(f"{file}: {complaint(Config, error)}") from None


def _seen(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """A value that is set, as anybody may see it; None for one of a configuration that is refused as a whole."""
    if _at(values, path) is None:
        return None
    try:
        return _at(Config.model_validate(values).shown(), path)
    except ValidationError:
        return None


def _edited(file: Path, path: tuple[str, ...], new: Any) -> TOMLDocument:
    """The file with a value, which takes the place of the comment that has its key, or (None) without it."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    try:
        document = tomlkit.parse(text)
        if new is not None and _at(document, path) is None:
            document = tomlkit.parse(_uncommented(text, path))
    except TOMLKitError as error:
        raise ConfigError(f"{file}: not TOML: {error}") from None
    table: Any = document
    for part in path[:-1]:
        if part not in table:
            table[part] = tomlkit.table()
        table = table[part]
    if new is None:
        del table[path[-1]]
    else:
        table[path[-1]] = tomlkit.value(f"{new:f}") if isinstance(new, Decimal) else new
    return document


def _uncommented(text: str, path: tuple[str, ...]) -> str:
    """A text whose first comment of a key, in the key's own section, is the key."""
    section, lines, key = "", text.splitlines(keepends=True), path[-1]
    for number, line in enumerate(lines):
        if header := re.match(r"(?:# )?\[([^\]]+)\]", line):
            section = "" if line.startswith("#") else header[1].strip()
        elif section == ".".join(path[:-1]) and re.match(rf"# {re.escape(key)} = ", line):
            lines[number] = f'"{key}" = 0\n' if "." in key else f"{key} = 0\n"
            break
    return "".join(lines)


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _plain(value: Any) -> Any:
    """A checked value as TOML has it."""
    match value:
        case Enum():
            return value.value
        case tuple() | list():
            return [_plain(one) for one in value]
        case Mapping():
            return {name: _plain(one) for name, one in value.items()}
    return value


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
