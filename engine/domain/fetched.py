"""Results of bringing data into the data folder, one for each file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.domain.market import Dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Changes that a fetch made to one file of the data folder.

    name: symbol or series.
    path: the file.
    added: rows that were not there.
    unchanged: rows that were there before.
    dropped: rows that cannot be used, by reason.
    complete: False where the fetch was stopped.
    differing: rows that differ from kept ones, which stayed.
    replaced: rows that differed from kept ones and took their place.
    """

    name: str
    path: Path
    added: int
    unchanged: int
    dropped: tuple[Dropped, ...] = ()
    complete: bool = True
    differing: int = 0
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """Changes that an import made to one file of the data folder; `unchanged` rows were there before."""

    path: Path
    added: int
    replaced: int
    unchanged: int
    dropped: tuple[Dropped, ...]
