"""From key to paint: alone, beside a cycle, beside a backtest, and beside fifty symbols at ten ticks a second.

The real program on a terminal of 120 x 40; a key goes to another symbol and is answered once the chart names that.
Beside a load the 95th percentile is compared with that without it in the same run. The time that a cycle's key takes to
answer is measured too. What the program waited for a core is printed beside each figure: where others work on the
machine, that is most of it. Run as `python -m tests.bench.bench_keys`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median, quantiles

from tests.bench.app_in_terminal import AppInTerminal, app, configured

KEYS = 240
"""Keys for each figure."""

Taken = tuple[float, float]
"""Seconds from a key to its paint, and those in which the program waited for a core."""


def taken(opened: AppInTerminal, key: str, sign: str) -> Taken:
    """The time from a key to its sign."""
    waited = opened.processor()[1]
    pressed = opened.press(key)
    painted = opened.until(sign)
    return painted - pressed, opened.processor()[1] - waited


def key_times(opened: AppInTerminal, symbols: Sequence[str], go_on: Callable[[], object] = bool) -> list[Taken]:
    """The times of keys that ask for another chart; `go_on` keeps a load going."""
    random, times, at = Random(7), list[Taken](), 0
    for _ in range(KEYS):
        go_on()
        opened.rest(0.08 + random.random() * 0.1)
        step = 1 if at == 0 or (at < len(symbols) - 1 and random.random() < 0.5) else -1
        at += step
        times.append(taken(opened, "]" if step > 0 else "[", f"{symbols[at]} 1D"))
    for _ in range(at):
        opened.press("[")
        opened.rest(0.1)
    return times


def ended(journal: Path) -> int:
    """The runs of a desk that have ended."""
    from engine.journal.reader import JournalReader

    with JournalReader(journal) as reader:
        return sum(run.outcome is not None for run in reader.runs())


class Cycles:
    """Cycles of a demo desk, the next session's as soon as the one before has ended."""

    def __init__(self, opened: AppInTerminal, journal: Path) -> None:
        self._opened, self._journal = opened, journal
        self._asked = 0

    def go_on(self) -> None:
        """Begin the next one unless one is at work."""
        if (runs := ended(self._journal)) >= self._asked:
            self._opened.rest(0.5)  # it is written down before the desk is ready for the next
            self._opened.press("n")
            self._opened.rest(0.5)
            self._asked = runs + 1


def on_the_demo() -> dict[str, list[Taken]]:
    """The times on the demo desk: `n`, `r`, alone, beside cycles, beside a backtest."""
    from connectors.demo.market import DEFAULT_WATCHLIST as SYMBOLS
    from engine.settings import places

    found: dict[str, list[Taken]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = configured(Path(folder))
        os.environ["PAPERDESK_HOME"] = folder
        journal = places.desk_journal("demo")
        with app(home) as opened:
            opened.until("ORVL 1D")
            opened.rest(2)
            before = ended(journal)
            found["n, the first cycle"] = [taken(opened, "n", "Cycle")]
            opened.rest(120, lambda: ended(journal) > before)
            opened.rest(2)
            found["r"] = [taken(opened, "r", "Cycle")]
            opened.until("is decided already")
            opened.rest(2)
            found["alone"] = key_times(opened, SYMBOLS)
            found["beside a cycle"] = key_times(opened, SYMBOLS, Cycles(opened, journal).go_on)
            opened.press("4")
            opened.until("Decides")
            opened.rest(1)
            opened.press("\x12")
            opened.until(" left")
            opened.press("1")
            opened.rest(1)
            found["beside a backtest"] = key_times(opened, SYMBOLS)
    return found


def on_a_ticking_desk() -> dict[str, list[Taken]]:
    """The times with fifty symbols, without ticks and with them."""
    from tests.bench.bench_live import SYMBOLS, TICKS

    found: dict[str, list[Taken]] = {}
    for name, per_second in (("alone, 50 symbols", 0), ("beside 500 ticks a second", TICKS)):
        program = ("-m", "tests.bench.ticking_desk", str(per_second))
        with tempfile.TemporaryDirectory() as folder, app(Path(folder), program, rows=60) as opened:
            opened.until("S00-USD 1D")
            opened.rest(2)
            found[name] = key_times(opened, SYMBOLS)
    return found


def show(found: dict[str, list[Taken]]) -> None:
    """Print figures; the first one of them that says `alone` is what those after it are compared with."""
    alone = 0.0
    for name, times in found.items():
        if len(times) == 1:
            (took, waited), *_ = times
            print(f"  {name:26}{took * 1000:6.1f} ms, {waited * 1000:.1f} of them waiting")
            continue
        all_of_it, own = [took for took, _ in times], [took - waited for took, waited in times]
        late = quantiles(all_of_it, n=20)[-1]
        alone = late if name.startswith("alone") else alone
        print(
            f"  {name:26}p50 {median(all_of_it) * 1000:6.1f}  p95 {late * 1000:6.1f} ms, {late / alone:.2f} times that"
            f" alone; without waiting p50 {median(own) * 1000:5.1f}  p95 {quantiles(own, n=20)[-1] * 1000:5.1f}"
        )


def main() -> None:
    """Print all figures."""
    print(f"\nFrom key to paint (load of the machine before: {os.getloadavg()[0]:.1f})", flush=True)
    show(on_the_demo())
    show(on_a_ticking_desk())


if __name__ == "__main__":
    main()
