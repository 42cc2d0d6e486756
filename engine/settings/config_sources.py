"""The values of a configuration as they were written, in a file and in the environment, before they are checked."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.errors import ConfigError

PREFIX = "PAPERDESK_"
NOT_CONFIG = frozenset({"PAPERDESK_HOME", "PAPERDESK_TEST_DATA"})
"""Variables with the prefix that are no configuration keys."""
LISTS = frozenset({"symbols", "forms", "series", "command", "tools", "watchlist"})
"""Keys whose value in the environment is a list, with commas."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The values of a configuration by section.

    values: those that are no defaults, not checked.
    origins: of every one of them (`section.key` to a file or a variable).
    file: the configuration's; None where there is none.
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    file: Path | None


def read_sources(file: Path | None, environ: Mapping[str, str] = os.environ, required: bool = False) -> Sources:
    """Read a file and the environment, which goes first. Raises ConfigError for a file that is not TOML or cannot be
    read, and for a variable without a section; with `required` also where there is no such file."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    there = file is not None and file.is_file()
    if file is not None and not there and file.exists():
        raise ConfigError(f"{file}: not a regular file; remove it, and `paperdesk init` writes one")
    if file is not None and there:
        try:
            values = tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not TOML: {error}") from None
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
        origins = {key: str(file) for key in _leaves(values)}
    elif required:
        raise ConfigError(f"{file}: file not found; `paperdesk init` writes one")
    for name, text in sorted(environ.items()):
        if sets_value(name):
            path = name.removeprefix(PREFIX).lower().split("__")
            put(values, path, text, f"environment {name}")
            origins[".".join(path)] = f"environment {name}"
    return Sources(values, origins, file if there else None)


def sets_value(variable: str) -> bool:
    """True for a variable of the environment that sets a value of the configuration."""
    return variable.startswith(PREFIX) and variable not in NOT_CONFIG


def _leaves(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key, value in values.items():
        keys += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"]
    return keys


def put(values: dict[str, Any], path: Sequence[str], text: str, name: str) -> None:
    """Put a text, as an environment has it, among the values of a configuration; `name` is where it comes from. Raises
    ConfigError for a path without a section."""
    if len(path) < 2:
        raise ConfigError(f"{name}: write PAPERDESK_SECTION__KEY, such as PAPERDESK_DESK__CASH")
    *sections, key = path
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{name}: {section} is a value, not a section")
        values = inner
    values[key] = _listed(text) if key in LISTS else text


def _listed(text: str) -> list[str]:
    """The parts between commas, or those of a list in brackets, as `config get` prints it."""
    if text.lstrip().startswith("["):
        with suppress(tomllib.TOMLDecodeError):
            return [str(part) for part in tomllib.loads(f"parts = {text}")["parts"]]
    return [part.strip() for part in text.split(",") if part.strip()]
