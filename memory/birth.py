"""Birth of a record: the layer and importance that an item begins with."""

from __future__ import annotations

from memory.errors import InvalidRecord
from memory.presets import MemoryPreset
from memory.record import Item, MemoryRecord, Vector


def new_record(
    preset: MemoryPreset, record_id: str, item: Item, now: float, vector: Vector, *, sequence: int
) -> MemoryRecord:
    """The record of an item written at a step. Raises InvalidRecord for a rating beyond [0, 1], UnknownPreset for a
    kind of source that the preset has not."""
    if item.rating is not None and not 0 <= item.rating <= 1:
        raise InvalidRecord(f"{item.kind} of {item.symbol}: the rating is {item.rating}; give 0 to 1")
    # The draw is the record's own: the same on every machine and however often it is written.
    chance = int(record_id[:13], 16) / 16**13
    layer, importance = preset.initial_state(item.kind, item.rating, item.layer, chance)
    preset.rule(layer)
    return MemoryRecord(
        id=record_id,
        owner=item.owner,
        symbol=item.symbol,
        kind=item.kind,
        text=item.text,
        query_text=item.query_text,
        source=item.source,
        born_step=float(item.born(now)),
        available_at=float(max(now, item.seen_until) if item.seen_until is not None else now),
        hindsight=item.seen_until is not None,
        birth_layer=layer,
        importance=float(importance if item.importance is None else item.importance),
        rests_on=item.rests_on,
        labels=item.labels,
        vector=vector,
        sequence=sequence,
    )
