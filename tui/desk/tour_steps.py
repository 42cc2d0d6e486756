"""The steps of the tour, which are in `tour.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from engine.program_files import program_text

REWIND, TRAIL = "rewind", "trail"
"""Actions of the desk for a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    mode: the screen that is shown.
    title, text: what is to be seen there.
    pane: the id of the pane that it points at; empty for none.
    does: REWIND, TRAIL or nothing.
    """

    mode: str
    title: str
    text: str
    pane: str = ""
    does: str = ""


STEPS = tuple(Step(**row) for row in tomllib.loads(program_text(Path(__file__).with_name("tour.toml")))["step"])
