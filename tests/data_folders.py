"""The demo market drawn once per test process, its texts written as JSON once, and data folders written from a
market."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Protocol

from connectors.demo.listings import Listing
from connectors.demo.market import DemoMarket
from connectors.demo.price_path import PricePath
from connectors.files.prices import BarRow, actions_text, prices_text
from connectors.files.texts import filing_line, news_line
from engine.domain.json_text import to_json
from engine.domain.macro import MacroSeries, end_of_vintage
from engine.domain.market import FilingBatch, NewsBatch, NewsItem, PriceHistory, Symbol
from engine.market.trading_hours import calendar_for
from engine.ports import BarSource, FilingSource, NewsSource
from engine.settings.places import write_whole

_DRAWN: dict[Hashable, Any] = {}
_LONGEST = date(2026, 12, 31)
_WRITTEN: dict[int, tuple[NewsItem, str]] = {}
_MOST = 50_000


class DrawnOnce(DemoMarket):
    """The demo market. Texts and figures of a seed are made once per process, through the end of 2026, however many
    runs open it through whatever day: a shorter market is the beginning of a longer one (see test_demo_market)."""

    async def news(self, symbol: Symbol) -> NewsBatch:
        whole = await self._once("news", symbol, lambda market: market.news(symbol))
        return NewsBatch(tuple(item for item in whole.items if item.date <= self._through))

    async def filings(self, symbol: Symbol) -> FilingBatch:
        whole = await self._once("filings", symbol, lambda market: market.filings(symbol))
        return FilingBatch(tuple(filing for filing in whole.items if filing.date <= self._through))

    async def series(self, name: str) -> MacroSeries:
        whole: MacroSeries = await self._once("series", name, lambda market: market.series(name))
        return whole.cut(end_of_vintage(self._through))

    def _draw(self, listing: Listing) -> PricePath:
        key = ("path", self._seed, self._through, listing.symbol)
        if key not in _DRAWN:
            _DRAWN[key] = super()._draw(listing)
        path: PricePath = _DRAWN[key]
        return path

    async def _once(self, kind: str, name: str, ask: Callable[[DemoMarket], Awaitable[Any]]) -> Any:
        market = self._long()
        key = (kind, market, name)
        if key not in _DRAWN:
            _DRAWN[key] = await ask(market)
        return _DRAWN[key]

    def _long(self) -> DemoMarket:
        key = ("market", self._seed, max(self._through, _LONGEST))
        if key not in _DRAWN:
            _DRAWN[key] = DemoMarket(self._seed, self._calendar_for, key[2])
        market: DemoMarket = _DRAWN[key]
        return market


def to_json_once(value: Any) -> str:
    """What `to_json` writes; a news item that it has written before is not encoded anew. Every run hashes the thousands
    of items that the demo market has, and they are the same objects in all runs of a process."""
    if isinstance(value, NewsItem):
        written = _WRITTEN.get(id(value))
        if written is None:
            if len(_WRITTEN) >= _MOST:
                _WRITTEN.clear()
            # The item is kept with its text: another could come to its address.
            written = _WRITTEN[id(value)] = (value, to_json(value))
        return written[1]
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{to_json_once(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(to_json_once, value)) + "]"
    return to_json(value)


def read_once(read: Callable[..., Any]) -> Callable[..., Any]:
    """A reader of files that reads one again only once it has changed: hundreds of tests read the same folders."""
    known: dict[Hashable, tuple[Any, ...]] = {}

    def reader(path: Path, *about: Any) -> Any:
        stat = path.stat()
        key = (path, stat.st_ino, stat.st_ctime_ns, *(one if isinstance(one, str) else id(one) for one in about))
        if key not in known:
            known[key] = (read(path, *about), about)  # kept with it: another could come to its address
        return known[key][0]

    return reader


class MarketData(BarSource, NewsSource, FilingSource, Protocol):
    """Bars, actions, news and filings of a market."""


def rows_of(history: PriceHistory) -> list[BarRow]:
    """Rows of a history as a price file has them."""
    prices = (history.open, history.high, history.low, history.close, history.adj_close)
    return list(zip(history.sessions, *prices, history.volume, strict=True))


async def write_folder(market: MarketData, folder: Path, news_from: date = date.min) -> None:
    """Write all symbols of a market as a data folder, news from a day on."""
    for symbol in await market.symbols():
        write_whole(folder / "prices" / f"{symbol}.csv", prices_text(rows_of(await market.history(symbol))))
        actions = await market.actions(symbol)
        if actions is not None:
            write_whole(folder / "actions" / f"{symbol}.csv", actions_text(actions))
        news = [item for item in (await market.news(symbol)).items if item.date >= news_from]
        if news:
            write_whole(folder / "news" / f"{symbol}.jsonl", "".join(map(news_line, news)))
        filings = (await market.filings(symbol)).items
        if filings:
            write_whole(folder / "filings" / f"{symbol}.jsonl", "".join(map(filing_line, filings)))


async def write_demo(folder: Path, through: date) -> None:
    """Write the demo market with seed 7 through a day as a data folder, with the news of its last half year."""
    await write_folder(DrawnOnce(7, calendar_for, through), folder, through - timedelta(days=180))
