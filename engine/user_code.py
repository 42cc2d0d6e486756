"""Code of the user's: a name out of a Python file, given as `FILE:NAME`, and its failures by file and line."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.errors import ConfigError, PaperdeskError

_PREFIX = "user_code_"


def load_name(
    reference: str,
    folder: Path | None = None,
    *,
    absent: type[PaperdeskError] = ConfigError,
    failed: type[PaperdeskError] = ConfigError,
) -> Any:
    """The value that `FILE:NAME` names, a relative file being one of `folder`. Each file is run once in a process.
    Raises `absent`, naming the reference, for a file or name that is not there, and `failed`, naming file and line, for
    code that fails."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise absent(f"{reference}: not of the form FILE.py:NAME")
    path = ((folder or Path()) / Path(file).expanduser()).resolve()
    if not path.is_file():
        raise absent(f"{reference}: there is no file {path}")
    try:
        module = _module(path)
    except Exception as error:  # anything may go wrong in code that others wrote
        raise failed(_located(error, str(path))) from error
    if not hasattr(module, name):
        raise absent(f"{reference}: the file defines no {name}")
    return getattr(module, name)


@contextmanager
def failures_of(user_class: type, failed: type[PaperdeskError]) -> Iterator[None]:
    """Turn what a class of the user's raises into `failed`, naming file and line; a class of ours raises as it does."""
    module = sys.modules[user_class.__module__]
    if not module.__name__.startswith(_PREFIX):
        yield
        return
    try:
        yield
    except PaperdeskError:
        raise
    except Exception as error:  # anything may go wrong in code that others wrote
        raise failed(_located(error, str(module.__file__))) from error


def line_at_work() -> str:
    """FILE:LINE of the innermost code of the user's on the stack; empty where there is none."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if str(frame.f_globals.get("__name__")).startswith(_PREFIX):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return ""


@cache
def _module(path: Path) -> ModuleType:
    """The module of a file, under a name that no other module has; dataclasses look their module up by it."""
    name = f"{_PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
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


def _located(error: Exception, file: str) -> str:
    """The error on one line, after the innermost line of the file that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename == file:
        lines, message = [error.lineno], error.msg
    place = f"{file}:{lines[-1]}" if lines else file
    return f"{place}: {type(error).__name__}: {' '.join(message.split())}"
