"""Code of the user's: a name out of a Python file, given as `FILE:NAME`."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.errors import ConfigError


def load_name(reference: str, folder: Path | None = None) -> Any:
    """The value that `FILE:NAME` names, a relative file being one of `folder`. Each file is run once in a process.
    Raises ConfigError, naming the reference, for a file or name that is not there and for code that fails."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ConfigError(f"{reference}: not of the form FILE.py:NAME")
    path = ((folder or Path()) / file).resolve()
    if not path.is_file():
        raise ConfigError(f"{reference}: there is no file {path}")
    try:
        module = _module(path)
    except Exception as error:  # anything may go wrong in code that others wrote
        raise ConfigError(f"{reference}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not hasattr(module, name):
        raise ConfigError(f"{reference}: the file defines no {name}")
    return getattr(module, name)


@cache
def _module(path: Path) -> ModuleType:
    """The module of a file, under a name that no other module has; dataclasses look their module up by it."""
    name = f"user_code_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as Python")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
