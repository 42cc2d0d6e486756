"""`python -m tests.golden record|compare|list`: writes golden results, or holds a program against them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from tests.golden.recorder import RECORDS, compare, data_folder, default_program, executed_by, record
from tests.golden.runs import Run, chosen


def main() -> int:
    """Ends with 0, with 1 where something differs, and with 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("action", choices=("record", "compare", "list"))
    parser.add_argument("--only", metavar="NAME,...", help="these runs; patterns such as demo/* are understood")
    parser.add_argument("--program", type=Path, default=default_program(), help="default: beside this Python")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the records")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    asked = parser.parse_args()
    try:
        runs = chosen(asked.only)
    except ValueError as error:
        parser.error(str(error))
    if asked.action == "list":
        print("\n".join(run.name for run in runs))
        return 0
    if data_folder() is None:
        for run in [run for run in runs if run.needs_data]:
            print(f"{run.name}: skipped, as there is no folder of real data (PAPERDESK_TEST_DATA)")
        runs = [run for run in runs if not run.needs_data]
    program, records = asked.program.absolute(), asked.records

    def carry_out(run: Run) -> int:
        started = perf_counter()
        lines: list[str] = []
        if asked.action == "record":
            result = f"{record(run, program, records):,} bytes"
        else:
            lines = list(compare(run, executed_by(program), records))
            result = f"{len(lines)} differences" if lines else "the same"
        print("\n".join([*lines, f"{run.name}: {result}, {perf_counter() - started:.1f} s"]), flush=True)
        return len(lines)

    return 1 if sum(_each(carry_out, runs, asked.jobs)) else 0


def _each(work: Callable[[Run], int], runs: list[Run], jobs: int) -> list[int]:
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(work, runs))


if __name__ == "__main__":
    sys.exit(main())
