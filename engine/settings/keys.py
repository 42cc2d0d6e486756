"""Keys of services from `keys.env`, a file that its owner alone can read, for users who keep none in the environment.

It is beside the configuration: one NAME=value a line, as a shell would set it. The environment comes first. A value
never appears in an error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from engine.errors import ConfigError, CredentialsRefused
from engine.settings import places

_LINE = re.compile(r"(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*)")
_SETTINGS = "PAPERDESK_"


def load_keys(environ: MutableMapping[str, str] = os.environ, file: Path | None = None) -> tuple[str, ...]:
    """Put the keys of the file into an environment that lacks them; return the names that were added.

    Does nothing where there is no such file. Raises CredentialsRefused for a file that others can read, ConfigError
    naming the line for one that has no meaning.
    """
    added = {name: value for name, value in stored_keys(file).items() if not environ.get(name)}
    environ.update(added)
    return tuple(added)


def stored_keys(file: Path | None = None) -> dict[str, str]:
    """The keys in the file that have a value, the first of each name; none where there is no such file. Raises as
    `load_keys` does."""
    path = places.keys_file() if file is None else file
    found: dict[str, str] = {}
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
        if value:
            found.setdefault(name, value)
    return found


def keep_keys(keys: Mapping[str, str], file: Path | None = None) -> None:
    """Write keys into the file, which its owner alone can read; the other lines stay, a key that is there is replaced.

    The file is written whole or not at all. Raises what `load_keys` raises for the file as it is, ConfigError for a
    value of several lines and where nothing can be written.
    """
    path = places.keys_file() if file is None else file
    strange = next((name for name, value in keys.items() if not value.isprintable() or value != value.strip()), None)
    if strange is not None:
        raise ConfigError(f"the value of {strange} is no key: it has spaces or control characters around or in it")
    kept = [
        line for line in _private_lines(path) if not ((match := _LINE.fullmatch(line.strip())) and match[1] in keys)
    ]
    write_private(path, "\n".join((*kept, *(f"{name}={value}" for name, value in keys.items()), "")))


def write_private(file: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner alone. Raises ConfigError."""
    fresh = file.with_name(f"{file.name}.new")
    try:
        places.make_folder(file.parent)
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            stream.write(text)
        fresh.replace(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written ({error.strerror})") from None


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
