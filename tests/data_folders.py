"""The demo market drawn once per test process, and data folders written from a market."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from connectors.demo.listings import Listing
from connectors.demo.market import DemoMarket
from connectors.demo.price_path import PricePath
from connectors.files.prices import BarRow, actions_text, prices_text
from connectors.files.rows import write_text
from connectors.files.texts import filing_line, news_line
from engine.domain.macro import MacroSeries
from engine.domain.market import FilingBatch, NewsBatch, PriceHistory, Symbol
from engine.market.trading_hours import calendar_for
from engine.ports import BarSource, FilingSource, NewsSource

_DRAWN: dict[Hashable, Any] = {}


class DrawnOnce(DemoMarket):
    """The demo market. The same seed and last day are drawn once per process, however many runs open them."""

    async def news(self, symbol: Symbol) -> NewsBatch:
        key = ("news", self._seed, self._through, symbol)
        if key not in _DRAWN:
            _DRAWN[key] = await super().news(symbol)
        batch: NewsBatch = _DRAWN[key]
        return batch

    async def filings(self, symbol: Symbol) -> FilingBatch:
        key = ("filings", self._seed, self._through, symbol)
        if key not in _DRAWN:
            _DRAWN[key] = await super().filings(symbol)
        batch: FilingBatch = _DRAWN[key]
        return batch

    async def series(self, name: str) -> MacroSeries:
        key = ("series", self._seed, self._through, name)
        if key not in _DRAWN:
            _DRAWN[key] = await super().series(name)
        series: MacroSeries = _DRAWN[key]
        return series

    def _draw(self, listing: Listing) -> PricePath:
        key = ("path", self._seed, self._through, listing.symbol)
        if key not in _DRAWN:
            _DRAWN[key] = super()._draw(listing)
        path: PricePath = _DRAWN[key]
        return path


class MarketData(BarSource, NewsSource, FilingSource, Protocol):
    """Bars, actions, news and filings of a market."""


def rows_of(history: PriceHistory) -> list[BarRow]:
    """Rows of a history as a price file has them."""
    prices = (history.open, history.high, history.low, history.close, history.adj_close)
    return list(zip(history.sessions, *prices, history.volume, strict=True))


async def write_folder(market: MarketData, folder: Path) -> None:
    """Write all symbols of a market as a data folder."""
    for symbol in await market.symbols():
        write_text(folder / "prices" / f"{symbol}.csv", prices_text(rows_of(await market.history(symbol))))
        actions = await market.actions(symbol)
        if actions is not None:
            write_text(folder / "actions" / f"{symbol}.csv", actions_text(actions))
        news = (await market.news(symbol)).items
        if news:
            write_text(folder / "news" / f"{symbol}.jsonl", "".join(map(news_line, news)))
        filings = (await market.filings(symbol)).items
        if filings:
            write_text(folder / "filings" / f"{symbol}.jsonl", "".join(map(filing_line, filings)))


async def write_demo(folder: Path, through: date) -> None:
    """Write the demo market with seed 7 through a day as a data folder."""
    await write_folder(DrawnOnce(7, calendar_for, through), folder)
