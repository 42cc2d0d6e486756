"""The app uses what Textual makes public, so that any 8.x does: no private name of its classes is used or overridden,
and none of its private modules imported. What is reached through another object is ruff's to find (SLF001)."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

import tui

LIBRARIES = ("textual", "textual_serve")
MODULES = sorted(module.name for module in pkgutil.walk_packages(tui.__path__, "tui."))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def private_names(of: type) -> frozenset[str]:
    """The private methods and attributes that the source of a class defines or uses."""
    found = set[str]()
    for node in ast.walk(tree := ast.parse(dedent(inspect.getsource(of)))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}:
            found.add(node.attr)
    (body,) = tree.body
    assert isinstance(body, ast.ClassDef)
    found.update(
        node.target.id for node in body.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    )
    return frozenset(filter(is_private, found))


def used(module: str) -> Iterator[str]:
    loaded = importlib.import_module(module)
    for node in ast.walk(ast.parse(inspect.getsource(loaded))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES:
            names = [*(node.module or "").split("."), *(one.name for one in node.names)]
            yield from (f"{module} imports {node.module}" for name in names if is_private(name))
    for name, ours in vars(loaded).items():
        if isinstance(ours, type) and ours.__module__ == module:
            theirs = [one for one in ours.__mro__ if one.__module__.partition(".")[0] in LIBRARIES]
            taken = private_names(ours) & frozenset[str]().union(*map(private_names, theirs))
            yield from (f"{module}.{name} has {one}" for one in sorted(taken))


def test_no_private_name_of_textual_is_used() -> None:
    assert [one for module in MODULES for one in used(module)] == []


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
