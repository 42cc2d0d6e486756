"""Data folders written from a market, for tests that read one back."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from connectors.files.prices import BarRow, actions_text, prices_text
from connectors.files.rows import write_text
from connectors.files.texts import filing_line, news_line
from engine.domain.market import PriceHistory
from engine.ports import BarSource, FilingSource, NewsSource


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
