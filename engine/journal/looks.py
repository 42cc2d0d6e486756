"""Count the looks at a window: one row for every time that a strategy or a preset was evaluated on it.

A result means little without the number of tries that it was picked from. The rows lie in an index of their own, a
journal file in which every other table is empty, so that they stay when the journals of runs are pruned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from engine.domain.run import RunSpec, WindowLook
from engine.journal.codec import Row, moment, packed, to_json
from engine.journal.database import WAIT
from engine.journal.store import RowStore

DIGITS = 10
"""Decimal places of a stored return."""


def add_looks(index: Path, looks: Iterable[WindowLook], wait: float = WAIT) -> None:
    """Add looks to the index at a path, all or none; it is made where there is none. Raises TryAgainLater where another
    process holds it for longer than `wait` seconds, DataError where the disk refuses."""
    with closing(RowStore(index, batched=False, wait=wait)) as store:
        store.write(*(("looks", _look_row(look)) for look in looks))


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
