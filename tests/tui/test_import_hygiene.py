"""The app's first paint waits for nothing heavy: what a fresh interpreter has loaded says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
HEAVY = (
    "matplotlib",
    "pandas",
    "openai",
    "anthropic",
    "optuna",
    "plotext",
    "numpy",
    "sqlite_utils",
    "exchange_calendars",
)


AFTER_FIRST_PAINT = ("tui.bridge", "tui.announcement", "engine.messages.events", "engine.domain.run", "engine.ports")
"""Own modules that take long, mostly for their many values: the app imports them once it is painted."""


def test_importing_the_app_and_its_first_screen_loads_nothing_heavy() -> None:
    program = "import sys, tui.commands.app, tui.app, tui.screens.desk; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPO, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"textual", "tui.screens.desk"} <= loaded
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
    assert not loaded & set(AFTER_FIRST_PAINT)
