"""Count the looks at a window: one row for every time that a strategy or a preset was evaluated on it.

A result means little without the number of tries that it was picked from. The rows lie in an index of their own, a
journal file in which every other table is empty, so that they stay when the journals of runs are pruned.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from engine.domain.run import LookKind, RunSpec, WindowLook
from engine.journal.codec import Row, moment, packed, to_json, unpacked
from engine.journal.row_reader import RowReader, where
from engine.journal.row_writer import RowWriter

DIGITS = 10
"""Decimal places of a stored return."""


class LookWriter(RowWriter):
    """Adds to the index of looks."""

    def add(self, looks: Iterable[WindowLook]) -> None:
        """Write looks, all or none. Raises TryAgainLater where another process holds the index."""
        with self.together():
            self._store.write(*(("looks", _look_row(look)) for look in looks))


class LookReader(RowReader):
    """Reads the index of looks."""

    def looks(self, first: date | None = None, last: date | None = None) -> tuple[WindowLook, ...]:
        """Every look at a window that has a session in common with `first` to `last`, in the order of writing."""
        narrow, values = where({"last >=": first, "first <=": last})
        return self._all(_look_of, f"SELECT * FROM looks{narrow} ORDER BY seq", *values)


def add_looks(index: Path, looks: Iterable[WindowLook]) -> None:
    """Add looks to the index at a path, which is made where there is none. Raises what LookWriter raises."""
    with LookWriter(index) as writer:
        writer.add(looks)


def spec_hash(spec: RunSpec) -> str:
    """SHA-256 (hex) over the canonical JSON of everything that decides a run; its name and its journal do not."""
    return hashlib.sha256(to_json(replace(spec, run="", journal=None)).encode()).hexdigest()


def _look_row(look: WindowLook) -> Row:
    return {
        "time": moment(look.time),
        "kind": look.kind.value,
        "run": look.run,
        "name": look.name,
        "symbols": to_json(look.symbols),
        "first": look.first.isoformat(),
        "last": look.last.isoformat(),
        "spec_hash": look.spec_hash,
        "returns": packed(to_json([round(value, DIGITS) for value in look.returns])),
    }


def _look_of(row: dict[str, Any]) -> WindowLook:
    return WindowLook(
        time=datetime.fromisoformat(row["time"]),
        kind=LookKind(row["kind"]),
        run=row["run"],
        name=row["name"],
        symbols=tuple(json.loads(row["symbols"])),
        first=date.fromisoformat(row["first"]),
        last=date.fromisoformat(row["last"]),
        spec_hash=row["spec_hash"],
        returns=tuple(json.loads(unpacked(row["returns"]))),
    )
