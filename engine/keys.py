"""Keys of services from a file that its owner alone can read, for whoever keeps none in the environment.

`keys.env` lies beside the configuration: one NAME=value a line, as a shell would set it. What the environment says
comes first. A value never appears in an error.
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
    """Puts the keys of the file into an environment that does not have them; the names that it took from there.
    Nothing where there is no such file. Raises CredentialsRefused for a file that others can read, ConfigError naming
    the line for one that means nothing."""
    path = places.keys_file() if file is None else file
    try:
        if not path.is_file():
            return ()
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise CredentialsRefused(f"{path} can be read by others: chmod 600 {path}")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise CredentialsRefused(f"{path}: cannot be read: {reason}") from None
    taken: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if found is None:
            raise ConfigError(f"{path}, line {number}: not a key; write NAME=value")
        name, value = found.group(1), _unquoted(found.group(2))
        if name.startswith(_SETTINGS):
            raise ConfigError(f"{path}, line {number}: {name} is a setting: write it into the configuration")
        if value and not environ.get(name):
            environ[name] = value
            taken.append(name)
    return tuple(taken)


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" else value
