"""What a journal says changes with its version alone."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from engine.journal.chain import schema_hash
from engine.journal.schema import VERSION
from engine.journal.store import new_journal
from engine.messages.events import TYPES

WRITTEN = (19, "37bdfba4d7516552")
"""A change of the tables, of an event, or of a value in one: raise VERSION, and put both here as the test says them."""


def said_by(kind: Any) -> set[str]:
    """The fields of a class and of the classes in them, as they stand in the code."""
    if not is_dataclass(kind):
        return set[str]().union(*map(said_by, get_args(kind)))
    own = {f"{kind.__name__}.{one.name}: {one.type}" for one in fields(kind)}
    return own.union(*map(said_by, get_type_hints(kind).values()))


def test_a_change_of_what_a_journal_says_raises_its_version() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(new_journal())
        said = [schema_hash(connection).hex(), *sorted(set[str]().union(*map(said_by, TYPES.values())))]
    assert (VERSION, hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]) == WRITTEN
