"""What the app writes to its terminal, and works, while nothing happens and the market is closed.

The real program on a terminal of 120 x 40, every screen in turn after a cycle on the demo desk. At most LIMIT bytes a
second: over a slow line each of them is felt. Run as `python -m tests.bench.bench_rest`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench.app_in_terminal import app, configured
from tests.bench.bench_loop import SCREENS

LIMIT = 1000
"""Bytes a second."""
SECONDS = 8.0


def main() -> int:
    """Print both for every screen; 1 where one writes more."""
    print(f"\nAt rest, market closed (at most {LIMIT} bytes a second)")
    most = 0.0
    with tempfile.TemporaryDirectory() as folder, app(configured(Path(folder))) as opened:
        opened.until("ORVL 1D")
        opened.rest(2)
        opened.press("r")
        opened.until("run done")
        for key, name in SCREENS.items():
            opened.press(key)
            opened.rest(4)
            worked = opened.processor()[0]
            written = opened.rest(SECONDS) / SECONDS
            part = (opened.processor()[0] - worked) / SECONDS
            most = max(most, written)
            print(f"  {name:12}{written:8.0f} bytes a second   {part:6.1%} of a core", flush=True)
    return 1 if most > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
