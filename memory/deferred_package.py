"""Import a package's modules without its `__init__`, which runs once a name of the package itself is asked for."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any


def defer_package(name: str) -> None:
    """Let a package be imported without running its `__init__`; without effect where it is imported already or missing.

    Its modules are found and imported as ever. `importlib.util.LazyLoader` would run `__init__` as soon as one of them
    is imported.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, package = spec.loader, module_from_spec(spec)

    def whole(attribute: str) -> Any:
        if package.__dict__.pop("__getattr__", None) is None:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=package)
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = whole
    sys.modules.setdefault(name, package)
