"""Code of the user's: a name out of a Python file, given as `FILE:NAME`, or the entry point of a distribution, its
failures by file and line, its files and their hash. The program's own folders are closed to it: an earlier run's
journal knows what came later."""

from __future__ import annotations

import ast
import errno
import hashlib
import os
import sqlite3
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from engine.errors import ConfigError, PaperdeskError
from engine.program_files import PACKAGES, PROGRAM
from engine.settings import places

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PREFIX, _BROKER_PREFIX = "user_code_", "user_broker_"
_HOOKS = (__name__, "engine.app.audit.subjects")
"""Modules whose audit hooks stand on the stack of whoever opens a file."""
OPENING = ("open", "sqlite3.connect")
COMMANDS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
"""Events of an audit hook that open a file, named by their first argument, or run a command."""
_CONNECTED = "sqlite3.connect/handle"
_MOVING = ("os.link", "os.rename", "os.remove", "os.symlink", "os.truncate")
"""Events that give a file another name, or change it, named by their first arguments."""
SURROUNDINGS = frozenset({"argv", "orig_argv", "environ", "environb", "getenv", "getenvb"})
"""Names by which code tells where it runs: how it was called, and the environment."""


class Kind(StrEnum):
    """A kind of code that is brought; its entry points are in the group `paperdesk.KIND`."""

    STRATEGY = "strategies"
    AGENT = "agents"
    BROKER = "brokers"


def load_name(
    reference: str,
    kind: Kind,
    *,
    absent: type[PaperdeskError] = ConfigError,
    failed: type[PaperdeskError] = ConfigError,
) -> Any:
    """The value that `FILE:NAME` names, or the entry point of a kind. A file is run again only once it, or a file
    beside it that it imports, has changed. Raises `absent`, naming the reference, for what is not there, and `failed`,
    naming file and line, for code that fails."""
    if not is_file_reference(reference):
        return _entry(reference, kind, absent, failed)
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise absent(f"{reference}: not of the form FILE.py:NAME")
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise absent(f"{reference}: file not found: {path}")
    if kind is not Kind.BROKER:  # which keeps books of its own, and decides nothing
        _close_own_folders()
    try:
        module = _module(path, _BROKER_PREFIX if kind is Kind.BROKER else _PREFIX)
    except Exception as error:  # anything may go wrong in code that others wrote
        raise failed(_located(error, str(path))) from error
    if not hasattr(module, name):
        raise absent(f"{reference}: the file defines no {name}")
    return getattr(module, name)


def is_file_reference(name: str) -> bool:
    """True for what names a file rather than something that is registered."""
    return ":" in name or name.endswith(".py")


def entry_names(kind: Kind) -> tuple[str, ...]:
    """The names that installed distributions bring of a kind, sorted."""
    return tuple(sorted(one.name for one in _entries(kind)))


def _entries(kind: Kind, name: str | None = None) -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slower than all that is imported here

    return [one for one in entry_points(group=f"paperdesk.{kind}") if name in (None, one.name)]


def _entry(name: str, kind: Kind, absent: type[PaperdeskError], failed: type[PaperdeskError]) -> Any:
    found = next(iter(_entries(kind, name)), None)
    if found is None:
        raise absent(f"no installed distribution brings {name} among its paperdesk.{kind}")
    try:
        value = found.load()
    except Exception as error:
        raise failed(f"{name} ({found.value}): {type(error).__name__}: {' '.join(str(error).split())}") from error
    if kind is not Kind.BROKER:
        _adopt(found.module)
    return value


_ADOPTED: set[str] = set()
"""Modules of the user's that were imported by others, and from which a class was handed over."""


def adopt(user_class: type) -> None:
    """Take the module of a class that was handed over for the user's code."""
    _adopt(user_class.__module__)


def _adopt(module: str) -> None:
    _ADOPTED.add(module)
    _close_own_folders()


@contextmanager
def failures_of(user_class: type, failed: type[PaperdeskError]) -> Iterator[None]:
    """Turn what a class of the user's raises into `failed`, naming file and line; a class of ours raises as it does."""
    name = user_class.__module__
    if not name.startswith(_PREFIX) and name not in _ADOPTED:
        yield
        return
    try:
        yield
    except PaperdeskError:
        raise
    except Exception as error:  # anything may go wrong in code that others wrote
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        files = (frame.f_code.co_filename for frame in frames if frame.f_globals.get("__name__") == name)
        raise failed(_located(error, next(files, getattr(sys.modules.get(name), "__file__", None) or name))) from error


def code_files(references: Iterable[str], kind: Kind) -> tuple[Path, ...]:
    """The files of references, and those beside them that were imported up to now, in order; of an entry point that of
    its module."""
    files: set[Path] = set()
    for reference in references:
        if is_file_reference(reference):
            path = Path(reference.rpartition(":")[0]).expanduser().resolve()
            files.update(_LOADED[path].files if path in _LOADED else [path])
        else:
            modules = (sys.modules.get(one.module) for one in _entries(kind, reference))
            files.update(Path(str(one.__file__)) for one in modules if one is not None and one.__file__)
    if not files:
        return ()  # whatever was imported, it lies beside none
    folders = tuple(f"{str(file.parent).rstrip(os.sep)}{os.sep}" for file in files)
    others = (one for name, one in tuple(sys.modules.items()) if not name.startswith(_PREFIX))
    own = (str(getattr(one, "__dict__", {}).get("__file__")) for one in others)
    beside = (Path(one).resolve() for one in own if one.endswith(".py") and one.startswith(folders))
    return tuple(sorted(files.union(path for path in beside if not is_installed(path))))


def code_hash(files: Iterable[Path]) -> str | None:
    """SHA-256 (hex) over names and contents of files, wherever they lie; None of none."""
    digest, known = hashlib.sha256(), tuple(files)
    for path in known:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest() if known else None


def surroundings(files: Iterable[Path]) -> Iterator[str]:
    """The places, FILE:LINE and name, at which code reads how it was called or its environment."""
    for path in (one for one in files if one.suffix == ".py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            name = node.attr if isinstance(node, ast.Attribute) else node.name if isinstance(node, ast.alias) else ""
            if name in SURROUNDINGS:
                yield f"{path}:{getattr(node, 'lineno', 0)}: {name}"


def is_installed(path: Path | str) -> bool:
    """True for a file of Python, of its packages or of the program."""
    return str(path).startswith(_installed())


@cache
def _installed() -> tuple[str, ...]:
    program = [PROGRAM / name for name in PACKAGES]
    python = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    own = [sys.prefix] if sys.prefix != sys.base_prefix else []
    return tuple(f"{folder}{os.sep}" for folder in (*program, *(Path(one).resolve() for one in (*python, *own))))


def own_folders() -> tuple[Path, ...]:
    """The program's own folders and files that no code of the user's may read: journals, answers, logs, what was
    fetched, configuration, keys."""
    folders = places.data_dir(), places.logs_dir(), places.cache_dir()
    return tuple(one.resolve() for one in (*folders, places.config_file(), places.keys_file()))


@cache
def _close_own_folders() -> None:
    """Refuse the program's own folders to Python wherever code of the user's is at work, for the life of the
    process."""
    sys.addaudithook(_refuse_own)


def file_named(event: str, named: object) -> str:
    """The file that an argument of an event names, its links followed; empty for a descriptor."""
    if not isinstance(named, str | bytes | os.PathLike):
        return ""
    text = os.fsdecode(named)
    if event.startswith("sqlite3.") and text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return os.path.realpath(text)


def _refuse_own(
    event: str,
    arguments: tuple[Any, ...],
    # Bound here: as the interpreter ends, a module's names go before the hook does.
    heard: frozenset[str] = frozenset({*OPENING, *COMMANDS, *_MOVING, _CONNECTED}),
) -> None:
    if event not in heard or not line_at_work():
        return
    if event == _CONNECTED:
        arguments[0].set_authorizer(_no_attaching)
        return
    if event in COMMANDS:
        words = repr(arguments)
        closed = any(str(own) in words for own in own_folders())
    else:
        files = [file_named(event, named) for named in arguments[: 2 if event in _MOVING else 1]]
        words = next(filter(_is_own, files), "")
        closed = bool(words)
    if closed:
        raise PermissionError(errno.EACCES, "the program's own folders are closed to code of the user's", words)


def _is_own(file: str) -> bool:
    """True for a file in the program's own folders, and for a folder that they lie in: by its descriptor they could be
    opened, and with it they would be moved."""
    own = own_folders() if file else ()
    return any(Path(file).is_relative_to(one) or (one.is_relative_to(file) and Path(file).is_dir()) for one in own)


def _no_attaching(action: int, file: str | None, *_: object) -> int:
    """Deny what has no audit event of its own: a database that a statement attaches, unless its name shows that it is
    none of the program's."""
    if action == sqlite3.SQLITE_ATTACH and (file is None or _is_own(file_named(_CONNECTED, file))):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def line_at_work() -> str:
    """FILE:LINE of the innermost code of the user's on the stack, or the thread where nothing on it is ours: code of
    the user's may have others run its calls. Empty where there is none."""
    frame, ours, adopted = sys._getframe(), False, ""
    while frame.f_back is not None:
        frame = frame.f_back
        name = str(frame.f_globals.get("__name__"))
        if name.startswith(_PREFIX):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if name in _ADOPTED and not adopted:
            adopted = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if name.partition(".")[0] in PACKAGES and name not in _HOOKS:
            if adopted:
                return adopted  # called by us; what calls us is no strategy at work
            ours = True
    thread = threading.current_thread()
    alone = ours or thread is threading.main_thread() or not (_LOADED or _ADOPTED)
    return "" if alone else f"thread {thread.name}"


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A file that was run: its module, the files that it is made of, and their hash."""

    module: ModuleType
    files: tuple[Path, ...]
    digest: str | None


_LOADED: dict[Path, _Loaded] = {}
_LOADING = threading.RLock()


def code_version() -> int:
    """A number that changes with every file that is run: what was made of an older one may be of old code."""
    return len(_RUN)


_RUN: list[Path] = []
"""Every file that was run, in order."""


def _module(path: Path, prefix: str) -> ModuleType:
    """The module of a file as it is now."""
    with _LOADING:
        known = _LOADED.get(path)
        if known is None or known.digest != code_hash(file for file in known.files if file.exists()):
            known = _LOADED[path] = _run(path, prefix)
        return known.module


def _run(path: Path, prefix: str) -> _Loaded:
    """Run a file under a name that no other module has; dataclasses look their module up by it."""
    name = f"{prefix}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as Python")
    sys.modules[name] = module = module_from_spec(spec)
    _RUN.append(path)
    beside: list[Path] = []
    try:
        with _importable(path.parent, name, beside):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    files = (path, *beside)
    return _Loaded(module, files, code_hash(files))


@contextmanager
def _importable(folder: Path, alias: str, beside: list[Path]) -> Iterator[None]:
    """Let what lies in a folder be imported by its name until the block ends, whatever else is loaded under that name.
    It is called `alias.NAME` from then on, so that two folders may have files of one name, and its file is `beside`."""
    names = {one.stem for one in folder.iterdir() if one.suffix == ".py" or one.is_dir()} - {*PACKAGES}

    def loaded() -> dict[str, ModuleType]:
        found = {name: module for name, module in tuple(sys.modules.items()) if name.partition(".")[0] in names}
        files = {name: getattr(module, "__file__", None) for name, module in found.items()}
        return {name: found[name] for name, file in files.items() if file and not is_installed(file)}

    hidden = loaded()
    for name in hidden:
        del sys.modules[name]
    # Bytecode is told from that of an edit within the same second by the file's length alone.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(folder))
    invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        if str(folder) in sys.path:  # the code may have taken it out
            sys.path.remove(str(folder))
        for name, module in loaded().items():
            beside.append(Path(str(module.__file__)).resolve())
            _rename(module, name, f"{alias}.{name}")
        sys.modules.update(hidden)


def _rename(module: ModuleType, name: str, alias: str) -> None:
    """Give a module, and the classes of it, another name."""
    sys.modules[alias] = sys.modules.pop(name)
    module.__name__ = alias
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == name:
            value.__module__ = alias


def _located(error: Exception, file: str) -> str:
    """The error on one line, after the innermost line of the file that led to it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename == file:
        lines, message = [error.lineno], error.msg
    place = f"{file}:{lines[-1]}" if lines else file
    return f"{place}: {type(error).__name__}: {' '.join(message.split())}"
