"""CPU seconds of whole commands, from the start of a process to its end, beside a whole process of backtesting.py.

`backtest --strategy sma-cross` with its baselines, document and journal, and as a light run, over a folder of generated
prices; backtesting.py runs that one strategy over the same files, symbol by symbol. A ratio above 1 is faster than it.
Then the agents of `desk` offline, once. Memory is the highest mark of the process. Run as `python -m
tests.bench.bench_commands [--symbols 20] [--sessions 2516] [--desk-sessions 112] [--repeats 3] [--only NAME,NAME]`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.market.trading_hours import exchange_calendar
from tests.bench.random_walk import walks

REPO = Path(__file__).resolve().parent.parent.parent
FAST, SLOW = 10, 30
LAST = date(2025, 12, 31)

THEIRS = f"""
import sys, pathlib, warnings
warnings.simplefilter("ignore")
import pandas as pd
from backtesting import Backtest, Strategy
from backtesting.lib import crossover

def mean(values, window):
    return pd.Series(values).rolling(window).mean()

class SmaCross(Strategy):
    def init(self):
        self.fast = self.I(mean, self.data.Close, {FAST})
        self.slow = self.I(mean, self.data.Close, {SLOW})
    def next(self):
        if crossover(self.fast, self.slow):
            self.buy()
        elif crossover(self.slow, self.fast):
            self.position.close()

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.csv")):
    frame = pd.read_csv(path, index_col="date", parse_dates=True).rename(columns=str.capitalize)
    print(Backtest(frame, SmaCross, cash=1_000_000, spread=10 / 1e4, finalize_trades=True).run())
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU seconds (user and system), and the highest resident memory in MB."""

    seconds: float
    memory_mb: float


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=int, default=20)
    parser.add_argument("--sessions", type=int, default=2516)
    parser.add_argument("--desk-sessions", type=int, default=112)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="backtesting.py,rule,light,desk")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        home, names = Path(folder), ",".join(f"S{n:02d}" for n in range(given.symbols))
        days = write_prices(home / "data", given.symbols, given.sessions)
        ours = ["-m", "paperdesk", "backtest", "--data", str(home / "data"), "--symbols", names, "--json"]
        ours += ["--to", str(days[-1]), "--from"]
        params = ["--strategy", "sma-cross", "--param", f"fast={FAST}", "--param", f"slow={SLOW}"]
        rule = [*ours, str(days[-given.sessions]), *params]
        commands = {
            "backtesting.py": ["-c", THEIRS, str(home / "data" / "prices")],
            "rule": rule,
            "light": [*rule, "--light"],
            "desk": [*ours, str(days[-given.desk_sessions]), "--preset", "desk", "--model", "offline"],
        }
        print(
            f"{given.symbols} symbols x {given.sessions} sessions, desk {given.desk_sessions}; best of {given.repeats}"
        )
        print(f"{'command':<16}{'CPU s':>8}{'ratio':>8}{'MB':>8}")
        theirs: float | None = None
        for name in given.only.split(","):
            repeats = 1 if name == "desk" else given.repeats
            found = min((measure(commands[name], home) for _ in range(repeats)), key=lambda one: one.seconds)
            theirs = found.seconds if name == "backtesting.py" else theirs
            ratio = "" if theirs is None or name == "desk" else f"{theirs / found.seconds:.2f}"
            print(f"{name:<16}{found.seconds:>8.2f}{ratio:>8}{found.memory_mb:>8.0f}", flush=True)
    return 0


def write_prices(folder: Path, symbols: int, sessions: int) -> Sequence[date]:
    """Write price files of a random walk, with some bars before the sessions to trade in; all sessions of them."""
    (folder / "prices").mkdir(parents=True)
    days = exchange_calendar().sessions(date(LAST.year - 1 - sessions // 200, 1, 1), LAST)[-sessions - 2 * SLOW :]
    for walk in walks(symbols, len(days)):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for n, day in enumerate(days):
            opened, high, low, close = (column[n] / 1e4 for column in (walk.open, walk.high, walk.low, walk.close))
            rows.append(f"{day},{opened:.4f},{high:.4f},{low:.4f},{close:.4f},{close:.4f},{walk.volume[n]}")
        (folder / "prices" / f"{walk.symbol}.csv").write_text("\n".join(rows) + "\n")
    return days


def measure(command: list[str], home: Path) -> Measured:
    """Run a command in a process of its own. Raises RuntimeError where it fails."""
    environment = {**os.environ, "PAPERDESK_HOME": str(home / "home"), "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=REPO, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"exit {os.waitstatus_to_exitcode(status)}: {' '.join(command)[:300]}")
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return Measured(used.ru_utime + used.ru_stime, used.ru_maxrss / scale)


if __name__ == "__main__":
    sys.exit(main())
