"""Strategies of a user's own, loaded from `FILE:CLASS`, and their exceptions as one line that names file and line."""

from __future__ import annotations

import sys
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from engine.errors import MalformedData, PaperdeskError, UsageError
from engine.strategies.parameters import nearest
from engine.strategies.strategy import Strategy

_PREFIX = "paperdesk_strategy_"
"""Modules of users' files are known under this name, so that none takes the place of another module."""


def load_class(text: str) -> type[Strategy]:
    """The class that `FILE:CLASS` names. Raises UsageError for a file or class that is not there and for one that is
    no strategy, MalformedData naming file and line where the file cannot be run."""
    file, colon, name = text.rpartition(":")
    path = Path(file).expanduser()
    if not colon or not name.isidentifier():
        raise UsageError(f"--strategy {text}: write it as FILE:CLASS, such as my_strategy.py:MyStrategy")
    if not path.is_file():
        raise UsageError(f"--strategy {text}: there is no file {path}")
    module = _module(path.resolve(), path.stat().st_mtime_ns)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = [known for known, value in vars(module).items() if _is_strategy(value)]
        raise UsageError(f"--strategy {text}: {path} has no class {name}{nearest(name, classes)}")
    if not _is_strategy(found):
        raise UsageError(f"--strategy {text}: {name} is no strategy: it has neither weights(view) nor signals(history)")
    if not hasattr(found, "name"):
        found.name = name  # type: ignore[attr-defined]
    strategy: type[Strategy] = found
    return strategy


@contextmanager
def in_file(strategy: type) -> Iterator[None]:
    """Turn an exception of a user's strategy into MalformedData with its place; our own pass as they are."""
    module = strategy.__module__
    if not module.startswith(_PREFIX):
        yield
        return
    try:
        yield
    except PaperdeskError:
        raise
    except Exception as error:
        raise _at_its_place(error, str(sys.modules[module].__file__)) from error


@cache
def _module(path: Path, changed: int) -> ModuleType:
    """The module of a file, run once for each state of the file: `changed` is when it was written."""
    name = f"{_PREFIX}{zlib.crc32(str(path).encode()):08x}_{changed}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--strategy {path}: it is no Python file (.py)")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it is being run
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _at_its_place(error, str(path)) from error
    return module


def _is_strategy(value: object) -> bool:
    return isinstance(value, type) and any(callable(getattr(value, name, None)) for name in ("weights", "signals"))


def _at_its_place(error: Exception, file: str) -> MalformedData:
    """The error in one line, at the innermost line of the file that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    place = f"{file}:{lines[-1]}" if lines else file
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return MalformedData(" ".join(f"{place}: {type(error).__name__}: {text}".split()))
