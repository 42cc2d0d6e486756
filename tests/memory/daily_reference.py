"""The rules of every preset written a second time, naively: each day rewrites every record. For comparison alone.

Nothing here comes from the package; the constants are typed from the papers' table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SHALLOW, INTERMEDIATE, DEEP, REFLECTION = "shallow", "intermediate", "deep", "reflection"
RUNGS = [SHALLOW, INTERMEDIATE, DEEP]

Q = {
    "investorbench": {SHALLOW: 14, INTERMEDIATE: 90, DEEP: 365, REFLECTION: 365},
    "investorbench-code": {SHALLOW: 14, INTERMEDIATE: 90, DEEP: 365, REFLECTION: 365},
    "finmem-code": {SHALLOW: 3, INTERMEDIATE: 90, DEEP: 365, REFLECTION: 365},
    "tradinggpt": {SHALLOW: 3, INTERMEDIATE: 90, DEEP: 365, REFLECTION: 365},
    "desk": {SHALLOW: 14, INTERMEDIATE: 90, DEEP: 365, REFLECTION: 365},
}
ALPHA = {
    "investorbench": {SHALLOW: 0.9, INTERMEDIATE: 0.967, DEEP: 0.988, REFLECTION: 0.988},
    "investorbench-code": {SHALLOW: 0.9, INTERMEDIATE: 0.967, DEEP: 0.988, REFLECTION: 0.988},
    "finmem-code": {SHALLOW: 0.92, INTERMEDIATE: 0.967, DEEP: 0.988, REFLECTION: 0.988},
    "tradinggpt": {SHALLOW: 1, INTERMEDIATE: 1, DEEP: 1, REFLECTION: 1},
    "desk": {SHALLOW: 0.9, INTERMEDIATE: 0.967, DEEP: 0.988, REFLECTION: 0.988},
}
ENTRY = {INTERMEDIATE: 50, DEEP: 70}
STANDING_WEIGHTS = {SHALLOW: (0.55, 0.45), INTERMEDIATE: (0.3, 0.7), DEEP: (0.3, 0.7), REFLECTION: (0.5, 0.5)}
CONSTANT = {SHALLOW: 40.0, INTERMEDIATE: 70.0, DEEP: 95.0, REFLECTION: 30.0}
FILINGS = {"8-K", "10-Q", "10-K"}


@dataclass(kw_only=True)
class Naive:
    """One record, rewritten as time passes."""

    kind: str
    layer: str
    importance: float
    at: float
    age: float = 0.0
    count: int = 0
    recency: float = 1.0
    birth_layer: str = field(default="")

    def __post_init__(self) -> None:
        self.birth_layer = self.layer


class DailyReference:
    """All records of one preset; `changes` says what the days did: (day, id, what)."""

    def __init__(self, preset: str) -> None:
        self.preset = preset
        self.alive: dict[str, Naive] = {}
        self.changes: list[tuple[float, str, str]] = []

    def born(self, name: str, kind: str, layer: str, importance: float, step: float) -> None:
        self.alive[name] = Naive(kind=kind, layer=layer, importance=importance, at=step)

    def reward(self, name: str, sign: int, step: float) -> None:
        if name not in self.alive:
            return
        record = self.alive[name]
        self._pass_time(record, step)
        if self.preset == "finmem-code":
            record.count += sign
            record.importance += 5 * record.count
        elif self.preset == "tradinggpt":
            record.count += 1
            record.importance += 25
        elif self.preset == "desk":
            record.count += sign
            record.importance += 5 * sign
        else:
            record.count += 1
            record.importance += 0 if sign < 0 and self.preset == "investorbench" else 5 * sign

    def day(self, day: int) -> None:
        """Decay, purge, jump, purge, for every record."""
        for name, record in list(self.alive.items()):
            self._pass_time(record, day)
            if self._faded(record):
                self._remove(day, name)
                continue
            before = record.layer
            up = self._climb(record)
            down = not up and self._sink(record)
            if (up or down) and self._faded(record):
                self._remove(day, name)
            elif up or down:
                self.changes.append((day, name, f"{'promoted' if up else 'demoted'} {before} {record.layer}"))

    def _remove(self, day: int, name: str) -> None:
        del self.alive[name]
        self.changes.append((day, name, "purged"))

    def _pass_time(self, record: Naive, step: float) -> None:
        gone_by = step - record.at
        record.at = step
        record.age += gone_by
        record.importance *= ALPHA[self.preset][record.layer] ** gone_by
        record.recency = math.exp(-record.age / Q[self.preset][record.layer])

    def _retention(self, record: Naive) -> float:
        a, c = STANDING_WEIGHTS[record.layer]
        return 100 * a * record.recency + c * min(max(record.importance, 0), 100)

    def _faded(self, record: Naive) -> bool:
        if self.preset == "tradinggpt":
            return self._retention(record) < 20
        return record.recency < 0.05 or record.importance < (4 if self.preset == "desk" else 5)

    def _climb(self, record: Naive) -> bool:
        climbed = False
        while record.layer in RUNGS[:2]:
            if self.preset == "desk":
                enough = record.count >= (2 if record.layer == SHALLOW else 3)
            else:
                value = self._retention(record) if self.preset == "tradinggpt" else record.importance
                enough = value >= (60 if record.layer == SHALLOW else 80)
            if not enough:
                break
            record.layer = RUNGS[RUNGS.index(record.layer) + 1]
            record.age, record.recency = 0.0, 1.0
            if self.preset == "desk":
                record.count = 0
                record.importance = max(record.importance, ENTRY[record.layer])
            climbed = True
            if self.preset == "tradinggpt":
                record.importance = CONSTANT[record.layer]
                break
        return climbed

    def _sink(self, record: Naive) -> bool:
        sunk = False
        while record.layer in RUNGS[1:] and self.preset != "investorbench":
            if self.preset == "desk":
                if record.kind in FILINGS and record.layer == record.birth_layer:
                    break
                low = record.importance < (20 if record.layer == INTERMEDIATE else 35)
            else:
                value = self._retention(record) if self.preset == "tradinggpt" else record.importance
                low = value < (60 if record.layer == INTERMEDIATE else 80)
            if not low:
                break
            record.layer = RUNGS[RUNGS.index(record.layer) - 1]
            if self.preset == "tradinggpt":
                record.age = 0.0
            record.recency = math.exp(-record.age / Q[self.preset][record.layer])
            if self.preset == "desk":
                record.count = 0
            sunk = True
            if self.preset == "tradinggpt":
                record.importance = CONSTANT[record.layer]
                break
        return sunk
