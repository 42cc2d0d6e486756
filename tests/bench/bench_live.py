"""What a live feed costs the app: 50 rows at 10 ticks a second, as messages of the websocket, in parts of a core.

The app runs headless at 120 x 60; the messages are read as the feed reads them. CPU of the whole process.
Run as `python -m tests.bench.bench_live`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tui"))

ROWS, TICKS = 50, 10
SECONDS = 15.0
LIMIT = 0.25
SYMBOLS = tuple(f"S{n:02}-USD" for n in range(ROWS))


class Ticker:
    """A feed whose websocket says every price of the list so often a second."""

    def __init__(self, per_second: int) -> None:
        from connectors.alpaca.live_feed import DataStream
        from connectors.alpaca.settings import AlpacaSettings

        settings = AlpacaSettings(
            key="key", secret="secret", trading_url="http://127.0.0.1:1", data_url="http://127.0.0.1:1"
        )
        self._protocol = DataStream(settings, "coins", SYMBOLS)
        self._per_second = per_second
        self.heard = 0

    async def follow(self, symbols: Sequence[str], on_message: Callable[[Any], None]) -> None:
        from fake_desk import NOW

        from engine.domain.live import Delivery, FeedState

        on_message(FeedState("coins", Delivery.STREAM, NOW))
        random = Random(7)
        messages = [self._message(random, NOW.isoformat()) for _ in range(40)]
        while self._per_second:
            for text in messages:
                for one in self._protocol.read(json.loads(text, parse_float=Decimal)):
                    on_message(one)
                    self.heard += 1
                await asyncio.sleep(1 / self._per_second)
        await asyncio.Event().wait()

    def _message(self, random: Random, moment: str) -> str:
        def quote(symbol: str) -> dict[str, Any]:
            price = round(40 + random.random() * 60, 2)
            return {"T": "q", "S": symbol.replace("-", "/"), "bp": price, "ap": round(price + 0.01, 2), "t": moment}

        return json.dumps([quote(symbol) for symbol in SYMBOLS])

    async def latest(self, symbols: Sequence[str]) -> Sequence[Any]:
        return ()


async def measure(per_second: int) -> tuple[float, int]:
    """CPU seconds a second of the whole app, and how many prices it heard."""
    from backtest_targets import short
    from fake_desk import FakeDesk

    from tui.app.app import PaperdeskApp

    with tempfile.TemporaryDirectory() as folder:
        desk, feed = FakeDesk(Path(folder), symbols=SYMBOLS), Ticker(per_second)
        desk.feed = feed
        app = PaperdeskApp(lambda: desk, short, images=Path())
        async with app.run_test(size=(120, 60)) as pilot:
            while app.bridge.snapshot().market is None:
                await pilot.pause(0.05)
            await asyncio.sleep(2)
            heard, began, used = feed.heard, time.perf_counter(), time.process_time()
            await asyncio.sleep(SECONDS)
            part = (time.process_time() - used) / (time.perf_counter() - began)
            return part, feed.heard - heard


def main() -> int:
    """Prints both figures and fails where the limit is passed."""
    idle, _ = asyncio.run(measure(0))
    busy, heard = asyncio.run(measure(TICKS))
    print(f"\nlive feed: {ROWS} rows, {heard / SECONDS:.0f} prices a second, app headless at 120 x 60")
    print(f"  a feed that says nothing  {idle:6.1%} of a core")
    print(f"  {TICKS} ticks a second          {busy:6.1%} of a core (to reach: {LIMIT:.0%})")
    return 0 if busy < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
