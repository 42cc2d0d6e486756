"""Services that data is fetched from, as a configuration names them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import date

from connectors.wiring.broker import open_data
from connectors.wiring.sources import calendars
from engine import places
from engine.config import Config
from engine.domain.fetched import Fetched
from engine.domain.market import Symbol
from engine.ports import Clock
from engine.services import FetchOptions, MarketFetch


@dataclass(frozen=True, slots=True)
class ConfiguredFetch:
    """FetchService over a broker's market data, SEC EDGAR and FRED."""

    config: Config

    @asynccontextmanager
    async def market(self, options: FetchOptions, clock: Clock) -> AsyncIterator[MarketFetch]:
        """A fetch of market data until the block ends: from the desk's broker, or from Alpaca where it brings none."""
        from connectors.files.fetch.market import open_folder_fetch

        async with (
            aclosing(open_data(self.config)) as source,
            open_folder_fetch(source, options, calendars(), clock) as fetch,
        ):
            yield fetch

    async def filings(self, options: FetchOptions, symbols: Sequence[Symbol], since: date | None) -> list[Fetched]:
        """Add filings from EDGAR, as [filings] has it. Raises ConfigError where filings.user_agent names no contact."""
        from connectors.files.fetch.filings import fetch_filings
        from connectors.filings.edgar import EdgarFilings

        edgar = EdgarFilings(self.config.filings, places.edgar_responses(), since=since)
        async with aclosing(edgar) as source:
            return await fetch_filings(source, options, symbols)

    async def macro(self, options: FetchOptions) -> list[Fetched]:
        """Merge the configured series from FRED. Raises CredentialsRefused without FRED_API_KEY."""
        from connectors.files.macro import fetch_macro
        from connectors.macro.fred import KEY_VARIABLE, FredMacro

        async with aclosing(FredMacro(os.environ.get(KEY_VARIABLE), address=self.config.macro.address)) as source:
            return await fetch_macro(source, options, self.config.macro.series)

    @property
    def has_macro_key(self) -> bool:
        """True where FRED's key is set."""
        from connectors.macro.fred import KEY_VARIABLE

        return bool(os.environ.get(KEY_VARIABLE))
