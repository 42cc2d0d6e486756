"""The app uses what Textual makes public, so that any 8.x does: no private name of its classes is used or overridden,
and none of its private modules imported. What is reached through another object is ruff's to find (SLF001)."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
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
