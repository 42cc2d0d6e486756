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
    "exchange_calendars",
)


ENGINE_BEFORE_FIRST_PAINT = (
    "engine.domain.",
    "engine.messages.",
    "engine.errors",
    "engine.settings.places",
    "engine.program_files",
    "engine.reports.amounts",
    "engine.reports.documents.control_state",
    "engine.reports.table",
)
"""How modules of the engine begin that the first screen needs: values, and tables of them. The app imports all others
once it is painted."""


def test_importing_the_app_and_its_first_screen_loads_nothing_heavy() -> None:
    program = "import sys, tui.commands.app, tui.app.app, tui.screens.desk; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPO, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"textual", "tui.screens.desk"} <= loaded
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
    own = {name for name in loaded if name.startswith(("engine.", "connectors.", "memory."))}
    packages = {name.rpartition(".")[0] for name in own}
    assert [name for name in sorted(own - packages) if not name.startswith(ENGINE_BEFORE_FIRST_PAINT)] == []
    assert not loaded & {"tui.desk.bridge", "tui.app.announcement", "tui.charts.symbol_chart"}
