"""The rows of the fault table, read from its file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from engine.domain.market import Symbol
from engine.domain.text import did_you_mean
from engine.errors import UsageError
from engine.program_files import program_text

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row.

    name: by which it is asked for.
    fault: the fault in words.
    start: the broker's time at the beginning, UTC.
    symbols: the desk's.
    steps: as fault_table.toml explains them.
    settings: of the account (pay_dividends, crypto_fee) and of the desk's data: refresh, from an empty folder where
        `empty`, and own_data, which may be changed.
    ends: empty, or `as it is` where the faults stay to the end.
    """

    name: str
    fault: str
    start: datetime
    symbols: tuple[Symbol, ...]
    steps: tuple[Step, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    ends: str = ""

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes that the row's runs have to end with, in order."""
        return tuple(code for step in self.steps for code in codes_of(step))


def codes_of(step: Step) -> Sequence[int]:
    """The codes that the runs of a step have to end with."""
    if "runs" in step:
        return tuple(step["runs"])
    return (step["run"],) if "run" in step else ()


@cache
def fault_table() -> tuple[Row, ...]:
    """Every row, in the order in which they are tried."""
    text = program_text(Path(__file__).with_name("fault_table.toml"))
    document = tomllib.loads(text)
    rows = [document["defaults"] | row for row in document["row"]]
    return tuple(Row(**row | {"symbols": tuple(row["symbols"]), "steps": tuple(row["steps"])}) for row in rows)


def chosen(names: Sequence[str]) -> tuple[Row, ...]:
    """The rows of some names, all without one. Raises UsageError for a name that no row has."""
    known = {row.name: row for row in fault_table()}
    for name in names:
        if name not in known:
            raise UsageError(f"--only {name}: the drill has no such row; {did_you_mean(name, list(known))}")
    return tuple(row for row in known.values() if not names or row.name in names)
