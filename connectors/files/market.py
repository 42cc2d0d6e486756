"""The market of a data folder: prices, corporate actions, news and filings by symbol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from connectors.files.holdings import read_holdings
from connectors.files.prices import read_actions, read_prices
from connectors.files.texts import COMMENTARY, read_filings, read_news
from engine.domain.market import CorporateAction, FilingBatch, FundHolding, NewsBatch, PriceHistory, Symbol
from engine.errors import MissingData
from engine.ports import Calendar


class FilesMarket:
    """BarSource, NewsSource, FilingSource and FundSource over a folder.

    It has prices/SYMBOL.csv and, where they exist, actions/SYMBOL.csv, news/SYMBOL.jsonl, filings/SYMBOL.jsonl,
    commentary/FUND.jsonl and holdings/FUND.csv. Files are read anew each time. `calendar_for` gives a symbol's trading
    calendar. Raises MissingData where the folder does not exist.
    """

    def __init__(self, folder: Path, calendar_for: Callable[[Symbol], Calendar]) -> None:
        self._folder = folder
        self._calendar_for = calendar_for

    async def symbols(self) -> Sequence[Symbol]:
        """All symbols with a price file, sorted. Raises MissingData where there is none."""
        found = self._stems("prices", ".csv")
        if not found:
            raise MissingData(
                f"{self._folder} holds no prices: expected {self._folder / 'prices' / 'SYMBOL.csv'}; "
                "fill it with `paperdesk import prices`, or name another folder with --data"
            )
        return sorted(found)

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol."""
        known = await self.symbols()
        if symbol not in known:
            near = get_close_matches(symbol.upper(), known, n=3, cutoff=0.5) or known[:5]
            raise MissingData(
                f"no prices for {symbol!r} in {self._folder / 'prices'}, which has {len(known)} symbols "
                f"such as {', '.join(near)}; add it with `paperdesk import prices FILE --symbol {symbol}`"
            )
        return read_prices(self._folder / "prices" / f"{symbol}.csv", symbol)

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """Splits and dividends by ex-date, or None for a symbol without a file of them."""
        if symbol not in self._stems("actions", ".csv"):
            return None
        return read_actions(self._folder / "actions" / f"{symbol}.csv", symbol)

    async def news(self, symbol: Symbol) -> NewsBatch:
        """All news of a symbol in order of availability, and the dropped items."""
        if symbol not in self._stems("news", ".jsonl"):
            return NewsBatch()
        return read_news(self._folder / "news" / f"{symbol}.jsonl", symbol, self._calendar_for(symbol))

    async def filings(self, symbol: Symbol) -> FilingBatch:
        """All filings of a symbol in order of availability, and the dropped ones."""
        if symbol not in self._stems("filings", ".jsonl"):
            return FilingBatch()
        return read_filings(self._folder / "filings" / f"{symbol}.jsonl", symbol, self._calendar_for(symbol))

    async def commentary(self) -> NewsBatch:
        """Commentary of all funds in order of availability, and the dropped items."""
        path = self._folder / "commentary"
        funds = sorted(self._stems("commentary", ".jsonl"))
        batches = [read_news(path / f"{fund}.jsonl", fund, self._calendar_for(fund), COMMENTARY) for fund in funds]
        items = sorted((item for batch in batches for item in batch.items), key=lambda item: item.available_at)
        return NewsBatch(items, [dropped for batch in batches for dropped in batch.dropped])

    async def holdings(self) -> Mapping[str, Sequence[FundHolding]]:
        """Holdings by fund, by date and symbol."""
        path = self._folder / "holdings"
        return {fund: read_holdings(path / f"{fund}.csv") for fund in sorted(self._stems("holdings", ".csv"))}

    def _stems(self, kind: str, suffix: str) -> set[str]:
        # Only names that are listed are opened, so that no symbol can lead out of the folder.
        if not self._folder.is_dir():
            raise MissingData(
                f"no data folder at {self._folder}: expected prices/SYMBOL.csv in it (and optionally "
                "actions/SYMBOL.csv, news/SYMBOL.jsonl, filings/SYMBOL.jsonl); name another with --data"
            )
        return {path.stem for path in (self._folder / kind).glob(f"*{suffix}")}
