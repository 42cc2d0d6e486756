"""The app's part of a configuration whose whole was checked.

To read and to check one loads the classes of the configuration, a quarter of a second. That it was found right is kept
beside the app's state, with what the app needs of it, and holds for as long as nothing that was read has changed: so an
app paints without waiting for it. After a change another process checks it while this one imports Textual. The desk
reads the configuration once more when it opens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.settings import config_sources, places
from engine.settings.shipped_presets import shipped_presets
from tui.settings import app_state
from tui.settings.invocation import Invocation

if TYPE_CHECKING:
    from engine.settings.config_sources import Sources
    from tui.settings.app_settings import AppSettings

CHECKED = "checked configurations"
"""Part of the app's state."""


@dataclass(frozen=True, slots=True)
class _AppPart:
    """The values of the configuration that the app needs before its desk is open."""

    theme: str | None
    read_only: bool
    bindings: Mapping[str, str]


def check_beside(invocation: Invocation) -> Callable[[], object]:
    """Begin the check in a process of its own where it is due; return what waits for its end. A fault is found again,
    and said, by `checked_settings`. Raises ConfigError for a configuration that cannot be read."""
    if not invocation.configured or _known(invocation)[1] is not None:
        return lambda: None
    import subprocess

    command = "from tui.settings.checked_configuration import check_alone; check_alone()"
    arguments = [sys.executable, "-P", "-c", command, invocation.config_file or "", invocation.desk or ""]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(arguments, stdin=nowhere, stdout=nowhere, stderr=nowhere).wait


def check_alone() -> None:
    """Check the configuration whose file and desk are the arguments of this process, and keep that it is right."""
    _, file, desk = sys.argv
    _part(Invocation(config_file=file or None, desk=desk or None))


def checked_settings(invocation: Invocation, *, read_only: bool = False) -> AppSettings:
    """Check the configuration, so that a fault in it ends the command as it ends every other, and return the app's part
    of it. Raises ConfigError, CredentialsRefused and UsageError as loading it does."""
    from tui.settings.app_settings import app_settings

    if not invocation.configured:
        return app_settings(read_only=read_only)
    part = _part(invocation)
    return app_settings(part.theme, part.bindings, invocation.sources().origins, read_only=read_only or part.read_only)


def _part(invocation: Invocation) -> _AppPart:
    (name, mark), part = _known(invocation)
    if part is None:
        part = _checked(invocation)
        app_state.keep(CHECKED, {name: {"mark": mark, **asdict(part)}})
    return part


def _known(invocation: Invocation) -> tuple[tuple[str, str], _AppPart | None]:
    """The name and the mark under which a configuration is kept, and what was kept; None where it has to be checked."""
    sources = invocation.sources()
    name = f"{sources.file or ''} {invocation.desk or ''}".strip()
    mark = _mark(sources)
    return (name, mark), _kept(name, mark)


def _checked(invocation: Invocation) -> _AppPart:
    config = invocation.load().config
    if config.desk.preset not in shipped_presets():  # a shipped one is right, and to load it loads all agents
        from engine.preset import load_preset

        load_preset(config.desk.preset)
    return _AppPart(config.app.theme, config.app.read_only, config.bindings)


def _kept(name: str, mark: str) -> _AppPart | None:
    """The values that were kept under a name; None where their mark is another."""
    kept: Any = app_state.section(CHECKED).get(name)
    match kept:
        case {"mark": str(was), "theme": str() | None as theme, "read_only": bool(read_only), "bindings": dict(own)}:
            strings = all(isinstance(key, str) for key in own.values())
            return _AppPart(theme, read_only, own) if was == mark and strings else None
    return None


def _mark(sources: Sources) -> str:
    """A digest of everything that a check reads: the values, the files that they name, the keys' and the program's."""
    desk = sources.values.get("desk")
    preset = desk.get("preset") if isinstance(desk, dict) else None
    program = Path(config_sources.__file__)
    files = [places.keys_file(), program.with_name("config.py"), program.with_name("preset.py")]
    files += [Path(preset)] if isinstance(preset, str) else []
    read = repr((sources.values, sources.origins, [_stamp(file) for file in files]))
    return blake2b(read.encode(), digest_size=16).hexdigest()


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_mtime_ns
