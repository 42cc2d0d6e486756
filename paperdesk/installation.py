"""The check that the program's packages are its own: their names are common, and other distributions bring some."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

NAMES = ("tui", "engine", "connectors", "memory")
"""The packages that Paperdesk installs beside this one."""
_MARK = '"""Paperdesk'
"""The beginning of each of their files `__init__.py`; another distribution may have put its own in that place."""
_CONFIG = 78
"""The exit code of engine.errors.ConfigError, which may be somebody else's here."""


def shadowed() -> str:
    """One line on the first package that is not ours; empty where all are. None of them is imported for that."""
    for name in NAMES:
        spec, own = find_spec(name), Path(__file__).resolve().parents[1] / name / "__init__.py"
        found = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if found != own or not own.read_text(encoding="utf-8").startswith(_MARK):
            return (
                f"the package {name} is {found or 'missing'}, which is not Paperdesk's: install Paperdesk in an "
                "environment of its own (uv tool install, pipx or a venv), or rename that file if it is yours"
            )
    return ""


def refuse(fault: str) -> NoReturn:
    """End the command with 78, by one line and with `--json` a document; raise ImportError where it is a library."""
    if Path(sys.argv[0]).stem not in ("paperdesk", "-m"):  # as `python -m paperdesk` is called while this is imported
        raise ImportError(fault)
    sys.stderr.write(f"paperdesk: {fault}\n")
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"schema": 1, "error": fault, "exit_code": _CONFIG}) + "\n")
    sys.exit(_CONFIG)
