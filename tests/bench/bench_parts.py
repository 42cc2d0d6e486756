"""Parts of the desk alone: processor time beside what was aimed at, and how it grows with what a part is given.

A part that can be given more is measured on its usual input and, in the same run, on eight times as much. More
than sixteen times the time is a slip into quadratic work on any machine, and fails the bench. Parts that read real
data are left out where PAPERDESK_TEST_DATA names none. Run as `python -m tests.bench.bench_parts [WORD ...]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from time import process_time

import numpy as np

from connectors.charts.painter import MatplotlibPainter
from connectors.demo.market import DemoMarket
from connectors.files.market import FilesMarket
from connectors.filings.document_text import plain_text
from connectors.wiring.sources import calendars
from engine.conventions.metrics import METRICS, Track
from engine.domain.chart import Candles, ChartSpec, Panel
from engine.domain.market import Bar, PriceHistory
from engine.market import indicators
from engine.offline import intelligence, memories, moves, reflections
from engine.strategies.catalog import make_strategy
from tests.bench.random_walk import days, walks
from tests.engine.agents import evidence_samples as samples
from tests.engine.agents.samples import outcome
from tests.golden.recorder import data_folder

MORE, SLIP = 8, 16
"""How much more a part is given, and how many times longer it may then take."""
LEAST_RUNS, LEAST_SECONDS = 5, 0.2
TEN_YEARS = 2520
Work = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Part:
    """`made` gives the work on so many times the usual input; `aim` is in milliseconds."""

    name: str
    aim: float
    made: Callable[[int], Work]
    grows: bool = True


def seconds(work: Work) -> float:
    """Processor time of the best of some runs: at least a few, and for at least a while."""
    times: list[float] = []
    while len(times) < LEAST_RUNS or sum(times) < LEAST_SECONDS:
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


def of_indicators() -> Iterator[Part]:
    """Every indicator over ten years, and a rule that reads one."""

    def computed(name: str, columns: int) -> Callable[[int], Work]:
        def made(times: int) -> Work:
            (walk,) = walks(1, TEN_YEARS * times)
            prices = [column / 1e4 for column in (walk.high, walk.low, walk.close)][-columns:]
            return lambda: getattr(indicators, name)(*prices)

        return made

    for name, columns in {"macd": 1, "rsi": 1, "kdj": 3, "bollinger": 1}.items():
        yield Part(name=f"{name}, ten years", aim=1.0, made=computed(name, columns))
    yield Part(name="sma-cross, ten years", aim=1.0, made=lambda times: _signals(TEN_YEARS * times))


def _signals(rows: int) -> Work:
    (walk,) = walks(1, rows)
    bars = [
        Bar(session=day, open=price, high=price, low=price, close=price, volume=Decimal(1))
        for day, price in zip(days(rows), (Decimal(int(close)) / 10_000 for close in walk.close), strict=True)
    ]
    history, strategy = PriceHistory.of("AAA", bars), make_strategy("sma-cross")
    return lambda: strategy.signals(history)


def of_results() -> Iterator[Part]:
    """The desk's metrics of a year against a benchmark."""

    def grown(rows: int, seed: int) -> np.ndarray:
        returns = np.random.default_rng(seed).normal(0.001, 0.01, rows)
        return 1000.0 * np.concatenate([[1.0], np.cumprod(1.0 + returns)])

    def made(times: int) -> Work:
        track = Track(equity=grown(250 * times, 1), benchmark=grown(250 * times, 2))
        return lambda: METRICS["desk"](track)

    yield Part(name="metrics of a year", aim=10.0, made=made)


def of_pages() -> Iterator[Part]:
    """Pages of filings that are broken in every way, as a reader sees them."""

    def made(piece: str) -> Callable[[int], Work]:
        return lambda times: lambda: plain_text(piece * 20_000 * times)

    for piece in ("<", "<!--", "<p", "<ix:header>", "&", "</p>", "<td>" * 3):
        yield Part(name=f"a page of 20,000 {piece}", aim=100.0, made=made(piece))


def of_the_offline_model() -> Iterator[Part]:
    """The rules' answers as every agent of one decision, on eleven items and twenty memories."""

    def made(times: int) -> Work:
        texts = (f"Microsoft: revenue rose by {n} % on {n} orders." for n in range(11 * times))
        recalled = tuple(
            samples.recollection(f"m{n}", f"{n} orders: revenue fell by {n} %.") for n in range(20 * times)
        )
        outcomes = [outcome(n) for n in range(10, 1, -1)]
        asked = samples.intelligence_view(*texts)
        decided = samples.evidence_view(**samples.FULL | {"recollections": recalled})

        def answers() -> None:
            intelligence.judge(asked)
            memories.summarize(samples.past_view(*recalled))
            moves.reflect(samples.low_level_view())
            reflections.on_decisions(samples.high_level_view(*outcomes))
            reflections.decide(decided)

        return answers

    yield Part(name="a decision of the rules", aim=30.0, made=made)


def of_charts() -> Iterator[Part]:
    """A chart of sixty sessions."""
    painter = MatplotlibPainter()

    def made(times: int) -> Work:
        rows = 60 * times
        (walk,) = walks(1, rows)
        prices = (walk.open, walk.high, walk.low, walk.close)
        spec = ChartSpec(
            kind="kline",
            title="AAA",
            symbol="AAA",
            sessions=tuple(day.isoformat() for day in days(rows)),
            candles=Candles(*(tuple((column / 1e4).tolist()) for column in prices)),
            panels=(Panel("Volume", bars=tuple(walk.volume.astype(float).tolist())),),
        )
        return lambda: asyncio.run(painter.paint(spec))

    yield Part(name="a chart of 60 sessions", aim=100.0, made=made)


def of_markets() -> Iterator[Part]:
    """The demo market from its first day to the end of 2025, and the folder of real data."""

    async def every(market: DemoMarket | FilesMarket) -> None:
        for symbol in await market.symbols():
            await market.history(symbol)

    def demo() -> None:
        asyncio.run(every(DemoMarket(8, calendars(), date(2025, 12, 31))))

    def files(folder: Path) -> None:
        asyncio.run(every(FilesMarket(folder, calendars())))

    def news(folder: Path) -> None:
        asyncio.run(FilesMarket(folder, calendars()).news("MSFT"))

    yield Part(name="the demo market opens", aim=200.0, made=lambda _: demo, grows=False)
    folder = data_folder()
    if folder is not None:
        yield Part(name="all real prices are read", aim=1000.0, made=lambda _: lambda: files(folder), grows=False)
        yield Part(name="MSFT's real news is read", aim=500.0, made=lambda _: lambda: news(folder), grows=False)


GROUPS = (of_indicators, of_results, of_pages, of_the_offline_model, of_charts, of_markets)


def main(words: list[str]) -> int:
    """Prints a row per part whose name has one of the words (all without one); 1 where one grows as its square."""
    print(f"\nParts alone (processor time, best run; growth on {MORE} times the input, at most {SLIP})")
    slips = 0
    for part in (part for group in GROUPS for part in group()):
        if words and not any(word in part.name for word in words):
            continue
        usual = seconds(part.made(1))
        growth = seconds(part.made(MORE)) / usual if part.grows else None
        slips += growth is not None and growth > SLIP
        told = "" if growth is None else f", growth {growth:.1f}{'  SLIP' if growth > SLIP else ''}"
        print(f"  {part.name:32}{usual * 1000:9.2f} ms   (aim {part.aim:g}{told})", flush=True)
    return 1 if slips else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
