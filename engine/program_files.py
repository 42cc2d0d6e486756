"""Data files that ship inside of the packages, and the errors of an installation that lacks one, or an extra."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ConfigError, InvariantBroken

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PROGRAM = Path(__file__).resolve().parents[1]
"""The folder that the program's packages lie in."""
PACKAGES = ("paperdesk", "tui", "engine", "connectors", "memory")


def program_text(file: Traversable) -> str:
    """The text of a file that ships. Raises InvariantBroken where it cannot be read: an OSError would be taken for one
    of a file of the user's."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise broken_installation([str(file)]) from error


def own_command() -> tuple[str, ...]:
    """The program's command in another process, which imports nothing from the folder that it is called in."""
    return sys.executable, "-P", "-c", "from tui.cli import main; main()"


def ships(file: Path) -> bool:
    """True for what lies inside of the program's packages."""
    return any(file.is_relative_to(PROGRAM / package) for package in PACKAGES)


def broken_installation(files: Sequence[str]) -> InvariantBroken:
    """The error of files of the program that are missing or cannot be read."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return InvariantBroken(
        f"a bug: the installation is broken: {files[0]}{more} missing or unreadable; install paperdesk again"
    )


def need_extra(extra: str, module: str, *, used_by: str) -> None:
    """Raise ConfigError where the module that an extra brings is not installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        package = module.replace("_", "-")
        raise ConfigError(f"{used_by} needs {package}, which is not installed: pip install 'paperdesk[{extra}]'")


def missing_files() -> list[str]:
    """The files of this installation that are gone, relative to PROGRAM; none where the program runs from a checkout,
    of which no record is kept."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution("paperdesk")
    except PackageNotFoundError:
        return []
    if installed.read_text("RECORD") is None or Path(str(installed.locate_file(""))).resolve() != PROGRAM:
        return []
    packaged = (file for file in installed.files or () if file.parts[0] in PACKAGES and file.suffix != ".pyc")
    return [str(file) for file in packaged if not (PROGRAM / file).exists()]
