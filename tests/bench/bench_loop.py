"""The longest callback of the screen's loop, from the first paint on: no key is answered while one is at work.

The real program on a terminal of 120 x 40: a cycle, every screen for the first and a second time, the pages over them,
the past. Judged is processor time: where cores are shared, time alone says more of the others. Run as
`python -m tests.bench.bench_loop`; with `-v` it prints where each slow callback was.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.app_in_terminal import AppInTerminal, app, configured
from tui.settings.keys import SCREENS as MODES

SCREENS = {key: mode for mode, (key, _, _) in (*list(MODES.items())[1:], *list(MODES.items())[:1])}
"""Modes by their keys, the first one last."""
PAGES = {"?": "help", ",": "settings", "`": "log", "\x10": "palette", "d": "trail"}


def go_through(opened: AppInTerminal) -> dict[str, float]:
    """Go through the app; return when each part began."""
    at = {"the opening": opened.until("Watchlist")}
    opened.until("ORVL 1D")
    at["a cycle"] = opened.press("r")
    opened.until("run done")
    opened.rest(1)
    for again in ("", " again"):
        for key, name in SCREENS.items():
            at[f"{name}{again}"] = opened.press(key)
            opened.rest(1.2)
    for key, name in PAGES.items():
        at[name] = opened.press(key)
        opened.rest(0.8)
        opened.press("\x1b")
        opened.rest(0.4)
    at["symbols"] = opened.press("]")
    for _ in range(12):
        opened.rest(0.1)
        opened.press("]")
    at["the past"] = opened.press("<")
    for key in ("<", "<", "{", ">", "}"):
        opened.rest(0.4)
        opened.press(key)
    opened.rest(0.5)
    opened.press("\\")
    opened.rest(1)
    at["the end"] = opened.end()
    return at


def main(arguments: list[str]) -> None:
    """Print the longest of every part."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        with app(configured(Path(folder)), ("-m", "tests.bench.observed_app", str(report))) as opened:
            begun = go_through(opened)
        found = json.loads(report.read_text())
    print(f"\nCallbacks of the screen's loop ({found['callbacks']})")
    longest = 0.0
    ends = [*list(begun.values())[1:], float("inf")]
    for (name, began), end in zip(begun.items(), ends, strict=True):
        slow = [one for one in found["slow"] if began <= one["at"] < end]
        longest = max([longest, *(one["processor"] for one in slow)])
        show(name, slow, places="-v" in arguments)
    pauses = [one["seconds"] for one in found["collections"] if one["at"] > begun["the opening"]]
    print(
        f"  longest {longest * 1000:.0f} ms; garbage: {len(pauses)} pauses above 20 ms, {max(pauses, default=0):.3f} s"
    )


def show(name: str, slow: list[dict[str, Any]], *, places: bool) -> None:
    """Print the longest of a part."""
    if not slow:
        return
    worst = max(slow, key=lambda one: one["processor"])
    took, worked = worst["seconds"] * 1000, worst["processor"] * 1000
    print(f"  {name:18}{worked:7.1f} ms   ({took:.0f} ms long, {len(slow)} above 20 ms)")
    for place in worst["in"] if places else ():
        print(f"      {place}")


if __name__ == "__main__":
    main(sys.argv[1:])
