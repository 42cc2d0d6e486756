"""Data files of the arena: presets of markets and tables of agents, that ship by name or are files of the user's."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from engine.errors import UsageError
from engine.settings.values import Frozen, complaint

S = TypeVar("S", bound=Frozen)


def data_file_names(folder: Path) -> Sequence[str]:
    """Names of the files that ship in a folder."""
    return sorted(file.stem for file in folder.glob("*.toml"))


def read_data_file(kind: type[S], name: str, folder: Path, called: str) -> S:
    """The settings of a file by name or as a TOML file; `called` names it in errors. Raises UsageError for an unknown
    name or a faulty file."""
    file = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    try:
        return kind.model_validate(tomllib.loads(file.read_text("utf-8"), parse_float=Decimal))
    except OSError:
        choice = ", ".join(data_file_names(folder))
        raise UsageError(f"no {called} {name}: choose {choice} or a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None
    except ValidationError as error:
        raise UsageError(f"{file}: {complaint(kind, error)}") from None
