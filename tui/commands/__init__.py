"""The commands, registered by the first lines of the module that brings them.

Such a line is the command in backticks, its group in brackets, a colon, and its line in `paperdesk --help`. It is read
without importing the module, so that `--help` stays quick; the module brings the click command as `NAME_command`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GROUPS = {
    "research": "Research",
    "desk": "The desk",
    "controls": "Operator controls",
    "data": "Data and services",
    "set-up": "Set-up",
}
"""Groups in the order of `--help`, with their titles; within a group commands are sorted by name."""

_LINE = re.compile(r'(?:""")?`paperdesk ([a-z-]+)` \(([a-z-]+)\): (.+?)\.?(?:""")?\n')


@dataclass(frozen=True, slots=True)
class Registered:
    """A command: the module that brings it, its group, and its line in `--help`."""

    name: str
    module: str
    group: str
    summary: str


@cache
def registered() -> Mapping[str, Registered]:
    """Every command by name, in the order of `--help`."""
    found = []
    for file in Path(__file__).parent.glob("*.py"):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                match = _LINE.fullmatch(line)
                if match is None:
                    break
                name, group, summary = match.groups()
                found.append(Registered(name, f"{__name__}.{file.stem}", group, summary))
    order = list(GROUPS)
    return {one.name: one for one in sorted(found, key=lambda one: (order.index(one.group), one.name))}
