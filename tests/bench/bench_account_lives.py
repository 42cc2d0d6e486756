"""10,000 lives of a desk in an account: cut, disturbed and failing by chance, each looked at after every run.

See tests/engine/account/account_life.py. The first seed is drawn, printed, and may be given with the number of lives:
`python -m tests.bench.bench_account_lives [SEED [LIVES]]`. A life that fails is printed, cut down to what it takes.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from time import perf_counter

from tests.engine.account.account_life import TALLY
from tests.engine.account.account_schedules import fault_of, report, schedule_of

LIVES = 10_000
AT_ONCE = 100
"""Lives that a process takes on."""
SHOWN = 5
"""Failures that are cut down and printed."""


def lived(seeds: range) -> tuple[list[int], Counter[str]]:
    """The seeds whose lives fail, and what the runs of all came to."""
    TALLY.clear()
    failing = [seed for seed in seeds if fault_of(schedule_of(seed)) is not None]
    return failing, Counter(TALLY)


def main(arguments: list[str]) -> int:
    """Lives them on all cores."""
    first = int(arguments[0]) if arguments else int.from_bytes(os.urandom(3), "big") * 1000
    count = int(arguments[1]) if len(arguments) > 1 else LIVES
    print(f"\nLives of a desk in an account (seeds {first} to {first + count - 1})")
    begun, failing, came_to = perf_counter(), list[int](), Counter[str]()
    parts = [range(n, min(n + AT_ONCE, first + count)) for n in range(first, first + count, AT_ONCE)]
    with ProcessPoolExecutor() as pool:
        for some, tally in pool.map(lived, parts):
            failing += some
            came_to += tally
    print(f"  {count} lives in {perf_counter() - begun:.0f} s, {len(failing)} fail")
    print(f"  runs: {', '.join(f'{n} {what}' for what, n in came_to.most_common())}")
    for seed in islice(failing, SHOWN):
        print(report(seed))
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
