"""Marks of an operator on a record: pinned to its layer, or forgotten. Each is a touch; another one takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.errors import InvalidRecord
from memory.record import Cause, MemoryRecord, State, Touch

OPPOSITE = {
    Cause.PINNED: Cause.UNPINNED,
    Cause.UNPINNED: Cause.PINNED,
    Cause.FORGOTTEN: Cause.RESTORED,
    Cause.RESTORED: Cause.FORGOTTEN,
}
"""The causes that are marks, each with the one that takes it back."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks of a record.

    state: the last one that it was alive in.
    faded: True where it was purged by the rule.
    pinned: True where it stays in its layer; once restored, for one that is forgotten.
    forgotten: the touch with which it was forgotten; None where it is not.
    """

    state: State
    faded: bool = False
    pinned: bool = False
    forgotten: Touch | None = None

    def has(self, cause: Cause) -> bool:
        """True where a mark holds already."""
        held = self.pinned if cause in (Cause.PINNED, Cause.UNPINNED) else self.forgotten is not None
        return held == (cause in (Cause.PINNED, Cause.FORGOTTEN))


def marks_of(record: MemoryRecord, touches: Sequence[Touch]) -> Marks:
    """Marks of a record after its touches, in the order of their sequence."""
    state, faded, pinned, forgotten = record.birth, False, False, None
    for touch in touches:
        if touch.cause in (Cause.PINNED, Cause.UNPINNED):
            pinned = touch.cause is Cause.PINNED
        if touch.cause in (Cause.FORGOTTEN, Cause.RESTORED):
            forgotten = touch if touch.cause is Cause.FORGOTTEN else None
        faded = touch.cause is Cause.PURGED
        state = state if touch.state.layer is None else touch.state
    return Marks(state, faded, pinned, forgotten)


def mark(record: MemoryRecord, marks: Marks, cause: Cause, now: float, key: str) -> Touch | None:
    """The touch of a mark at a step; None where it holds already. A restored record stands as it would have if it had
    never been forgotten. Raises InvalidRecord for a record that has faded, and for a pin on a forgotten one."""
    if marks.has(cause):
        return None
    if marks.faded:
        raise InvalidRecord(f"memory {record.id} has been purged: only live memories can be {cause.value}")
    if marks.forgotten is not None and cause is not Cause.RESTORED:
        raise InvalidRecord(f"memory {record.id} is forgotten: restore it before it is {cause.value}")
    layer = None if cause is Cause.FORGOTTEN else marks.state.layer
    return Touch(record.id, cause, replace(marks.state, step=now, layer=layer), key)
