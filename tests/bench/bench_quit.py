"""How long quitting takes while a call of a model hangs, a backtest computes, or nothing happens.

The real program on a terminal, its model a service on loopback that never answers. At most LIMIT seconds from the key
to the end of the process. Run as `python -m tests.bench.bench_quit`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.bench.app_in_terminal import AppInTerminal, app, configured
from tests.servers.fake_llm_server import Hang, fake_llm_server

LIMIT = 2.0
REPEATS = 3
MODEL = """
[models]
default = "near:tiny"
[endpoints.near]
base_url = "{url}"
"""


def quits(opened: AppInTerminal, key: str = "q") -> float:
    """Seconds from the key to the end of the process. Raises SystemExit where it does not end well."""
    pressed = opened.press(key)
    ended, code = opened.ended()
    if code != 0:
        raise SystemExit(f"the app ended with {code}")
    return ended - pressed


def at_rest(home: Path) -> float:
    """Nothing happens."""
    with app(configured(home)) as opened:
        opened.until("ORVL 1D")
        opened.rest(1)
        return quits(opened)


def while_a_call_hangs(home: Path) -> float:
    """A cycle waits for a model."""
    with fake_llm_server() as service:
        service.play(Hang())
        with app(configured(home, MODEL.format(url=service.openai_url))) as opened:
            opened.until("ORVL 1D")
            opened.press("r")
            opened.rest(60, lambda: bool(service.requests))
            if not service.requests:
                raise SystemExit("the model was never asked")
            opened.rest(0.5)
            opened.press("q")  # it asks, for the answer may cost something
            opened.until("Quit?")
            return quits(opened, "y")


def beside_a_backtest(home: Path) -> float:
    """A backtest is at work."""
    with app(configured(home)) as opened:
        opened.until("ORVL 1D")
        opened.press("4")
        opened.until("Decides")
        opened.rest(1)
        opened.press("\x12")
        opened.until(" left")
        opened.press("1")
        opened.until("Watchlist")
        return quits(opened)


def main() -> int:
    """Print all of them; 1 where one is beyond the limit."""
    print(f"\nQuitting (at most {LIMIT:.0f} s)")
    failed = False
    for name, measure in (
        ("at rest", at_rest),
        ("while a call hangs", while_a_call_hangs),
        ("beside a backtest", beside_a_backtest),
    ):
        times = []
        for _ in range(REPEATS):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                times.append(measure(Path(folder)))
                time.sleep(0.2)  # a process that it left has the folder until it is gone
        failed |= max(times) > LIMIT
        print(f"  {name:22}{', '.join(f'{one:.2f}' for one in times)} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
