"""Keys of services from `keys.env`, a file that its owner alone can read, for users who keep none in the environment.

It is beside the configuration: one NAME=value a line, as a shell would set it. The environment comes first. A value
never appears in an error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import MutableMapping
from pathlib import Path

from engine import places
from engine.errors import ConfigError, CredentialsRefused

_LINE = re.compile(r"(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*)")
_SETTINGS = "PAPERDESK_"


def load_keys(environ: MutableMapping[str, str] = os.environ, file: Path | None = None) -> tuple[str, ...]:
    """Put the keys of the file into an environment that lacks them; return the names that were added.

    Does nothing where there is no such file. Raises CredentialsRefused for a file that others can read, ConfigError
    naming the line for one that has no meaning.
    """
    path = places.keys_file() if file is None else file
    added: list[str] = []
    for number, line in enumerate(_private_lines(path), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise ConfigError(f"{path}, line {number}: not a key; write NAME=value")
        name, value = match.group(1), _unquoted(match.group(2))
        if name.startswith(_SETTINGS):
            raise ConfigError(f"{path}, line {number}: {name} is a setting: write it into the configuration")
        if value and not environ.get(name):
            environ[name] = value
            added.append(name)
    return tuple(added)


def _private_lines(path: Path) -> list[str]:
    """Lines of a file that its owner alone can read; none where there is no such file."""
    try:
        if not path.is_file():
            return []
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise CredentialsRefused(f"{path} can be read by others: chmod 600 {path}")
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise CredentialsRefused(f"{path}: cannot be read: {reason}") from None


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" else value
