"""CPU seconds of whole commands, from the start of the process to its end, beside one of backtesting.py.

`backtest --strategy sma-cross` with its baselines and its journal, full and light, over a folder of generated prices;
backtesting.py runs that one strategy over the same files, symbol by symbol. A ratio above 1 is faster than it. Then the
agents of `desk` offline, over generated prices too. Memory is the highest mark of the process. Run as `python -m
tests.bench.bench_commands [--symbols 20] [--sessions 2516] [--desk-sessions 112] [--repeats 3] [--only NAME]`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.clock import LiveClock
from engine.market.trading_hours import exchange_calendar
from tests.bench.random_walk import walks

REPO = Path(__file__).resolve().parent.parent.parent
FAST, SLOW = 10, 30
LAST = LiveClock().now().date().replace(month=1, day=1)
"""The windows end before this day."""

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
    parser.add_argument("--only")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        home = Path(folder)
        first, last = write_prices(home / "data", given.symbols, given.sessions)
        desk_first, _ = write_prices(home / "data", given.symbols, given.sessions, traded=given.desk_sessions)
        symbols = ",".join(f"S{n:02d}" for n in range(given.symbols))
        ours = [
            "-m",
            "paperdesk",
            "backtest",
            "--data",
            str(home / "data"),
            "--symbols",
            symbols,
            "--to",
            last,
            "--json",
        ]
        rule = [*ours, "--from", first, "--strategy", "sma-cross", "--param", f"fast={FAST}", "--param", f"slow={SLOW}"]
        commands = {
            "backtesting.py": ["-c", THEIRS, str(home / "data" / "prices")],
            "rule": rule,
            "rule, light": [*rule, "--light"],
            "desk": [*ours, "--from", desk_first, "--preset", "desk", "--model", "offline"],
        }
        print(
            f"{given.symbols} symbols, {given.sessions} sessions ({given.desk_sessions} of desk), "
            f"best of {given.repeats}"
        )
        print(f"{'command':<16}{'CPU s':>8}{'ratio':>8}{'MB':>8}")
        theirs: float | None = None
        for name, command in commands.items():
            if given.only not in (None, name):
                continue
            found = min((measure(command, home) for _ in range(given.repeats)), key=lambda one: one.seconds)
            theirs = found.seconds if name == "backtesting.py" else theirs
            ratio = f"{theirs / found.seconds:>8.2f}" if theirs and name != "desk" else f"{'':>8}"
            print(f"{name:<16}{found.seconds:>8.2f}{ratio}{found.memory_mb:>8.0f}", flush=True)
    return 0


def write_prices(folder: Path, symbols: int, sessions: int, *, traded: int | None = None) -> tuple[str, str]:
    """Write price files of a random walk; the first and the last session to trade in."""
    (folder / "prices").mkdir(parents=True, exist_ok=True)
    days = exchange_calendar().sessions(LAST.replace(year=LAST.year - 1 - sessions // 200), LAST)[-sessions - 61 :]
    for walk in walks(symbols, len(days)):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for n, day in enumerate(days):
            opened, high, low, close = (column[n] / 1e4 for column in (walk.open, walk.high, walk.low, walk.close))
            rows.append(f"{day},{opened:.4f},{high:.4f},{low:.4f},{close:.4f},{close:.4f},{walk.volume[n]}")
        (folder / "prices" / f"{walk.symbol}.csv").write_text("\n".join(rows) + "\n")
    return str(days[-(traded or sessions)]), str(days[-1])


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
