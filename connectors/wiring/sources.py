"""Where market data comes from: a data folder, or the demo market where none is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import Protocol

from connectors.wiring.broker import fetches_data
from engine import places
from engine.config import Config
from engine.domain.macro import MacroSeries
from engine.domain.market import Symbol
from engine.domain.run import DataSpec
from engine.errors import MissingData, StaleData
from engine.market.as_of import Market, load_market
from engine.market.coverage import check_coverage
from engine.market.trading_hours import calendar_for
from engine.ports import BarSource, Calendar, FilingSource, MacroSource, NewsSource


class Source(BarSource, NewsSource, FilingSource, Protocol):
    """One source of everything."""


def calendar_table() -> Path:
    """The file that keeps the exchange's sessions between processes."""
    return places.cache_dir() / "sessions-XNYS.json"


def calendars() -> Callable[[Symbol], Calendar]:
    """The calendar of each symbol."""
    return partial(calendar_for, table=calendar_table())


def open_source(data: DataSpec, through: date) -> Source:
    """The source that a data spec names; the demo market reaches `through`. Raises MissingData for a folder that
    does not exist."""
    if data.folder is None:
        from connectors.demo import DemoMarket

        return DemoMarket(data.demo_seed, calendars(), through)
    from connectors.files.market import FilesMarket

    return FilesMarket(Path(data.folder).expanduser(), calendars())


def fetch_folder(config: Config) -> Path | None:
    """The data folder of a desk, where its data is fetched to: the configured one, one of its own for a desk whose
    broker brings data, or None."""
    if config.data.folder is not None:
        return Path(config.data.folder).expanduser()
    return places.market_folder() if fetches_data(config) else None


def configured_data(config: Config) -> DataSpec:
    """The data that a configuration names: a folder, the one that its broker fills, or the demo market."""
    folder = config.data.folder or fetch_folder(config)
    return DataSpec(None if folder is None else str(folder), config.data.demo_seed, config.macro.series)


async def load_macro(data: DataSpec, through: date) -> Mapping[str, MacroSeries]:
    """The series of the economy that a data spec names and its folder or the demo market has; one that is not there
    is left out. Raises MalformedData naming file and line."""
    source: MacroSource
    if data.folder is None:
        from connectors.demo import DemoMarket

        source = DemoMarket(data.demo_seed, calendars(), through)
    else:
        from connectors.files.macro import FilesMacro

        source = FilesMacro(Path(data.folder).expanduser())
    found: dict[str, MacroSeries] = {}
    for name in data.macro:
        with suppress(MissingData):
            found[name] = await source.series(name)
    return found


async def load_window(
    source: Source,
    symbols: Sequence[Symbol],
    first: date,
    last: date,
    macro: Mapping[str, MacroSeries] | None = None,
) -> Market:
    """All data of some symbols, and figures of the economy that are there already. Raises StaleData where the data of
    a symbol ends before `last`, unless the symbol itself has stopped trading, which is no fault of the data."""
    market = await load_market(source, source, source, symbols, calendars(), macro=macro)
    for symbol, history in market.histories.items():
        covered = check_coverage(history, market.calendars[symbol], first, last)
        if covered.ends_early and not await _stopped_trading(source, symbol, covered.last):
            raise StaleData(
                f"{symbol}: its bars end on {covered.last}, before {last}: fetch newer ones, or end the window then"
            )
    return market


async def _stopped_trading(source: Source, symbol: Symbol, day: date) -> bool:
    """Whether a symbol whose bars end on a day has stopped trading: others go on, and none ends with it. Where several
    end on one day it is their data that ends."""
    goes_on = False
    for other in await source.symbols():
        history = await source.history(other)
        if other == symbol or not len(history):
            continue
        if history.session(-1) == day:
            return False
        goes_on = goes_on or history.session(-1) > day
    return goes_on
