"""Runs every speed measurement of this folder, each in a process of its own: `python -m tests.bench [NAME ...]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(chosen: list[str]) -> int:
    """Runs the named benches (all without a name) one after another; they print their own tables."""
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = [name for name in chosen if name not in known]
    if unknown:
        print(f"unknown bench {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
    for name in chosen or known:
        done = subprocess.run([sys.executable, "-m", f"tests.bench.bench_{name}"], cwd=HERE.parent.parent, check=False)
        failed |= done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
