"""The configuration of a desk that stays open, compared with the one that the desk was opened with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import PaperdeskError
from engine.settings.config import Config
from tui.settings.invocation import Invocation
from tui.text.plain_text import one_line

Stamp = tuple[int, int, int] | None
"""Time of its last change, size and number of a file, which show that it was written; None where it is not there."""


class ConfigurationChanges:
    """Says what has changed in the configuration since it was read, the settings of the app itself left out."""

    def __init__(self, invocation: Invocation, config: Config) -> None:
        self._invocation, self._file = invocation, invocation.file
        self._before = _values(config)
        self._stamp = _stamp(self._file)
        self._text = ""

    def __call__(self) -> str:
        """One line that names the keys that have changed, or the fault that the configuration has now; empty for none.
        Cheap where the file was not written since the last call."""
        stamp = _stamp(self._file)
        if stamp != self._stamp:
            self._stamp, self._text = stamp, self._compared()
        return self._text

    def _compared(self) -> str:
        try:
            now = _values(self._invocation.load().config)
        except PaperdeskError as error:
            return f"the configuration has changed; no cycle runs until it is valid: {one_line(str(error))}"
        every = self._before.keys() | now.keys()
        keys = ", ".join(sorted(key for key in every if self._before.get(key) != now.get(key)))
        if not keys:
            return ""
        what = f"{self._file} has changed since the desk was opened ({keys})"
        return f"{what}: no cycle runs until the desk is reopened"


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _values(config: Config) -> Mapping[str, Any]:
    """The values by `section.key`, those of a table in one."""
    sections = config.model_dump(exclude={"app", "bindings"}).items()
    return {f"{section}.{key}": value for section, values in sections for key, value in values.items()}
