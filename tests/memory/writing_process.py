"""A desk that does nothing but remember, to be killed by a test: `python -m tests.memory.writing_process FOLDER DAYS`.

It goes on from the last day in the store, writes that day again, and says each day on a line of its own.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from memory.lancedb_store import LanceStore
from memory.recall import LayeredMemory
from memory.record import Item
from tests.memory.chosen_vectors import ChosenVectors

EMBEDDER = ChosenVectors()


def live(memory: LayeredMemory, first: int, last: int, *, said: bool = False) -> None:
    """Days whose events follow from the day alone, so that an interrupted run can be held against a whole one."""
    for day in range(first, last + 1):
        chance = random.Random(day)
        memory.sweep(day)
        kinds = [chance.choice(("news", "news", "10-Q", "10-K", "reflection")) for _ in range(3)]
        names = memory.remember(
            [Item(symbol="MSFT", kind=kind, text=f"{kind} {day} {n} " * 20) for n, kind in enumerate(kinds)], day
        )
        memory.recall("MSFT", {"": f"news {day}"}, day)
        memory.cite(names, day + 0.5, f"decision {day}")
        memory.reinforce(names, chance.choice((1, -1)), day + 0.5, f"reward {day}")
        if day % 10 == 0:
            memory.optimize()
        if said:
            print(day, flush=True)


def last_day(memory: LayeredMemory) -> int:
    """The day that the store has come to."""
    return max((int(scored.record.born_step) for scored in memory.scored_records(1e6)), default=1)


if __name__ == "__main__":
    with LayeredMemory(LanceStore(Path(sys.argv[1]), EMBEDDER, writing=True), EMBEDDER, "finagent") as memory:
        print("open", flush=True)
        live(memory, last_day(memory), int(sys.argv[2]), said=True)
