"""Bars a second and peak memory of a backtest (SMA 10/30, long only, next open, 5 bp) beside two other engines.

Every engine runs in a process of its own over the same bars. The clock runs while an engine computes its signals,
trades and keeps its books; making the bars and putting them into an engine's own form does not count. Memory is the
highest mark of the process less the mark after the imports, so the bars count. Run as `python -m
tests.bench.bench_backtest [--symbols 50] [--bars 2520] [--repeats 3]`.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

FAST, SLOW = 10, 30
CASH_PER_SYMBOL = 1_000_000  # ample, for the engines that trade whole shares alone
SLIPPAGE_BP = 5
REPO = Path(__file__).resolve().parent.parent.parent

Outcome = tuple[int, float]
"""Number of trades (buys and sells) and final value."""


def paperdesk(symbols: int, bars: int) -> Callable[[], Outcome]:
    """The whole of `run_strategy`: checks, signals, clock, simulated broker, exact books at every close."""
    from array import array

    from engine.domain.market import PriceHistory
    from engine.domain.run import RunSpec
    from engine.lab.rule_backtest import run_strategy
    from engine.market.as_of import Market
    from engine.market.trading_hours import AroundTheClock
    from tests.bench.random_walk import days, walks

    mark_imports()
    dates = days(bars)
    ordinals = array("q", (day.toordinal() for day in dates))

    def nano(column: Any) -> array[int]:
        return array("q", (column * 100_000).tolist())

    histories = {
        walk.symbol: PriceHistory(
            symbol=walk.symbol,
            sessions=ordinals,
            open=nano(walk.open),
            high=nano(walk.high),
            low=nano(walk.low),
            close=nano(walk.close),
            adj_close=nano(walk.close),
            volume=array("d", walk.volume.astype(float).tolist()),
        )
        for walk in walks(symbols, bars)
    }
    calendars = dict.fromkeys(histories, AroundTheClock())
    market = Market(histories=histories, actions=dict.fromkeys(histories), news={}, filings={}, calendars=calendars)
    spec = RunSpec(
        symbols=tuple(histories),
        first=dates[0],
        last=dates[-1],
        strategy="sma-cross",
        params=(("fast", str(FAST)), ("slow", str(SLOW))),
        cash=Decimal(CASH_PER_SYMBOL * symbols),
        slippage_bp=Decimal(SLIPPAGE_BP),
    )

    def run() -> Outcome:
        result = run_strategy(spec, market)
        return len(result.test.fills), float(result.test.equity[-1].value)

    return run


def backtesting(symbols: int, bars: int) -> Callable[[], Outcome]:
    """backtesting.py, which knows one symbol at a time: one backtest per symbol, one after another."""
    import pandas as pd
    from backtesting import Backtest, Strategy
    from backtesting.lib import crossover

    from tests.bench.random_walk import days, walks

    mark_imports()

    def mean(values: Any, window: int) -> Any:
        return pd.Series(values).rolling(window).mean()

    class SmaCross(Strategy):
        def init(self) -> None:
            self.fast = self.I(mean, self.data.Close, FAST)
            self.slow = self.I(mean, self.data.Close, SLOW)

        def next(self) -> None:
            if crossover(self.fast, self.slow):
                self.buy()
            elif crossover(self.slow, self.fast):
                self.position.close()

    index = pd.DatetimeIndex(days(bars))
    frames = [
        pd.DataFrame(
            {
                "Open": walk.open / 1e4,
                "High": walk.high / 1e4,
                "Low": walk.low / 1e4,
                "Close": walk.close / 1e4,
                "Volume": walk.volume,
            },
            index=index,
        )
        for walk in walks(symbols, bars)
    ]

    def run() -> Outcome:
        trades, value = 0, 0.0
        for frame in frames:
            # It charges the whole of its spread on the way in: that is the slippage of both ways.
            spread = 2 * SLIPPAGE_BP / 1e4
            test = Backtest(frame, SmaCross, cash=CASH_PER_SYMBOL, spread=spread, finalize_trades=False)
            stats = test.run()
            closed = stats["# Trades"]
            trades += 2 * closed + len(stats["_strategy"].trades)
            value += stats["Equity Final [$]"]
        return trades, value

    return run


def backtrader(symbols: int, bars: int) -> Callable[[], Outcome]:
    """backtrader with all symbols in one portfolio, each trading with its own share of the cash."""
    import backtrader as bt
    import pandas as pd

    from tests.bench.random_walk import days, walks

    mark_imports()

    class SmaCross(bt.Strategy):  # type: ignore[misc]
        def __init__(self) -> None:
            self.cash = {data: float(CASH_PER_SYMBOL) for data in self.datas}
            self.crossed = {
                data: bt.ind.CrossOver(bt.ind.SMA(data.close, period=FAST), bt.ind.SMA(data.close, period=SLOW))
                for data in self.datas
            }
            self.filled = 0

        def notify_order(self, order: Any) -> None:
            if order.status == order.Completed:
                self.filled += 1
                self.cash[order.data] -= order.executed.size * order.executed.price

        def next(self) -> None:
            for data, crossed in self.crossed.items():
                held = self.getposition(data).size
                if crossed[0] > 0 and not held:
                    self.buy(data, size=0.98 * self.cash[data] / data.close[0])
                elif crossed[0] < 0 and held:
                    self.close(data)

    index = pd.DatetimeIndex(days(bars))
    frames = [
        pd.DataFrame(
            {
                "open": walk.open / 1e4,
                "high": walk.high / 1e4,
                "low": walk.low / 1e4,
                "close": walk.close / 1e4,
                "volume": walk.volume,
            },
            index=index,
        )
        for walk in walks(symbols, bars)
    ]

    def run() -> Outcome:
        cerebro = bt.Cerebro(stdstats=False)
        for frame in frames:
            cerebro.adddata(bt.feeds.PandasData(dataname=frame))
        cerebro.addstrategy(SmaCross)
        cerebro.broker.setcash(CASH_PER_SYMBOL * symbols)
        cerebro.broker.set_slippage_perc(SLIPPAGE_BP / 1e4)
        (strategy,) = cerebro.run()
        return strategy.filled, cerebro.broker.getvalue()

    return run


ENGINES = {"paperdesk": paperdesk, "backtesting": backtesting, "backtrader": backtrader}
_after_imports = 0.0


def mark_imports() -> None:
    """Marks the memory that the imports took."""
    global _after_imports  # noqa: PLW0603
    _after_imports = peak_mb()


def peak_mb() -> float:
    """The highest resident memory of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def measure(engine: str, symbols: int, bars: int, repeats: int) -> dict[str, Any]:
    """Runs an engine in this process: best time of the repeats, memory of the first."""
    warnings.simplefilter("ignore")
    run = ENGINES[engine](symbols, bars)
    best, memory, outcome = float("inf"), 0.0, (0, 0.0)
    for repeat in range(repeats):
        gc.collect()
        started = perf_counter()
        outcome = run()
        best = min(best, perf_counter() - started)
        if repeat == 0:
            memory = peak_mb() - _after_imports
    return {
        "seconds": best,
        "memory_mb": memory,
        "total_mb": memory + _after_imports,
        "trades": outcome[0],
        "value": outcome[1],
    }


def main() -> int:
    """Prints the table; with --engine measures one here and prints it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=int, default=50)
    parser.add_argument("--bars", type=int, default=2520)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", choices=ENGINES)
    given = parser.parse_args()
    if given.engine:
        print(json.dumps(measure(given.engine, given.symbols, given.bars, given.repeats)))
        return 0
    total = given.symbols * given.bars
    print(f"backtest: {given.symbols} symbols x {given.bars} bars, SMA {FAST}/{SLOW}, best of {given.repeats}")
    print(
        f"{'engine':<24}{'bars/s':>12}{'seconds':>10}{'MB above imports':>18}{'MB in all':>11}"
        f"{'trades':>9}{'value':>16}"
    )
    failed = False
    for engine in ENGINES:
        command = [sys.executable, "-m", "tests.bench.bench_backtest", "--engine", engine]
        command += ["--symbols", str(given.symbols), "--bars", str(given.bars), "--repeats", str(given.repeats)]
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
        if done.returncode:
            failed = True
            print(f"{engine:<24}failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        name = "paperdesk" if engine == "paperdesk" else f"{engine} {version(engine)}"
        print(
            f"{name:<24}{total / row['seconds']:>12,.0f}{row['seconds']:>10.2f}"
            f"{row['memory_mb']:>18.1f}{row['total_mb']:>11.1f}{row['trades']:>9,}{row['value']:>16,.0f}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
