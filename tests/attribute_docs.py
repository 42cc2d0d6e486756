"""The docstrings of a class's attributes, read from its source: settings are explained there and nowhere else."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent


def attribute_docs(kind: type) -> dict[str, str]:
    """The docstring below each annotated attribute, its bases' included, on one line; empty where there is none."""
    docs: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("engine."):
            docs |= _own_docs(one)
    return docs


def _own_docs(kind: type) -> dict[str, str]:
    (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    docs = {}
    for node, after in pairwise([*definition.body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            docs[node.target.id] = " ".join(str(text).split())
    return docs
