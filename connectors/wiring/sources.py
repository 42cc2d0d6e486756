"""Sources of market data, a data folder or the demo market, and the services that a folder is fetched from."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from connectors.wiring.broker import offers_data, open_data
from engine.domain.fetched import Fetched
from engine.domain.market import LISTED, Exchange, Exchanges, Symbol
from engine.domain.run import DataSpec
from engine.market.trading_hours import calendar_for
from engine.ports import Calendar, Clock, MacroFolder, MarketSource
from engine.services import FetchOptions, MarketFetch
from engine.settings import places
from engine.settings.config import Config

CalendarFor = Callable[[Symbol], Calendar]

INDEX_FUND = "SPY"
"""The fund that accounts are compared with where a data folder has its prices."""


def calendars(exchanges: Exchanges = LISTED) -> CalendarFor:
    """The calendar of each symbol, its sessions kept between processes."""
    return partial(calendar_for, tables=places.session_table, exchanges=exchanges)


def open_source(calendar_for: CalendarFor, data: DataSpec, through: date) -> MarketSource:
    """The source that a data spec names; the demo market reaches `through`. Raises MissingData for a folder that
    does not exist."""
    if data.folder is None:
        from connectors.demo.market import DemoMarket

        return DemoMarket(data.demo_seed, calendar_for, through)
    from connectors.files.market import FilesMarket

    return FilesMarket(Path(data.folder).expanduser(), calendar_for)


def open_macro(calendar_for: CalendarFor, data: DataSpec, through: date) -> MacroFolder:
    """The macro series that a data spec names; the demo market reaches `through`."""
    if data.folder is None:
        from connectors.demo.market import DemoMarket

        return DemoMarket(data.demo_seed, calendar_for, through)
    from connectors.files.macro import FilesMacro

    return FilesMacro(Path(data.folder).expanduser())


def profile_of(data: DataSpec, symbol: Symbol) -> str:
    """The profile of a listing of the demo market; empty for a data folder, which has none."""
    if data.folder is not None:
        return ""
    from connectors.demo.listings import profile_of as demo_profile

    return demo_profile(symbol)


def name_of(data: DataSpec, symbol: Symbol) -> str:
    """The company's name of a listing of the demo market; empty for a data folder, which has none."""
    if data.folder is not None:
        return ""
    from connectors.demo.listings import load_listings

    listing = load_listings().get(symbol)
    return "" if listing is None else listing.name


def index_fund(data: DataSpec) -> Symbol:
    """The fund that accounts are compared with: the demo market's, else INDEX_FUND."""
    if data.folder is not None:
        return INDEX_FUND
    from connectors.demo.listings import fund_symbol

    return fund_symbol()


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
            open_folder_fetch(source, options, calendars(self.config.exchanges), clock) as fetch,
        ):
            yield fetch

    async def filings(self, options: FetchOptions, symbols: Sequence[Symbol], since: date | None) -> list[Fetched]:
        """Add filings from EDGAR, as [filings] has it. Raises ConfigError where filings.user_agent names no contact."""
        from connectors.files.fetch.filings import fetch_filings
        from connectors.filings.edgar import EdgarFilings

        edgar = EdgarFilings(self.config.filings, since)
        async with aclosing(edgar) as source:
            return await fetch_filings(source, options, symbols)

    async def macro(self, options: FetchOptions) -> list[Fetched]:
        """Merge the configured series from FRED. Raises CredentialsRefused without FRED_API_KEY."""
        from connectors.files.macro import fetch_macro
        from connectors.macro.fred import KEY_VARIABLE, FredMacro

        async with aclosing(FredMacro(os.environ.get(KEY_VARIABLE), self.config.macro.address)) as source:
            return await fetch_macro(source, options, self.config.macro.series)

    def offers(self, exchange: Exchange) -> bool:
        """True where the service of `market` has the symbols of an exchange."""
        return offers_data(self.config, exchange)

    @property
    def has_macro_key(self) -> bool:
        """True where FRED's key is set."""
        from connectors.macro.fred import KEY_VARIABLE

        return bool(os.environ.get(KEY_VARIABLE))
