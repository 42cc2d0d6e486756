"""The symbols that a desk knows of, and the prices of those that it does not trade."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from engine.app.research.market_data import load_prices
from engine.app.upkeep.watchlists import DESK, read_groups
from engine.domain.known_symbol import KnownSymbol
from engine.domain.market import Symbol
from engine.errors import MissingData, PaperdeskError
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.reports.documents.records import PROBED, latest_backtests
from engine.services import Services
from engine.settings import places

DATA, RUNS = "data", "runs"
"""The places of a symbol beside the desk and the groups of the watchlist."""


class SymbolIndex:
    """The symbols of the desk, of the watchlists, of the market data, and of recorded runs."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def all(self) -> Sequence[KnownSymbol]:
        """Every known symbol, the desk's first, then by name; takes tens of milliseconds. Raises MalformedData for a
        file of watchlists that holds something else."""
        found: dict[Symbol, list[str]] = {}
        for name, symbols in self._places():
            for symbol in symbols:
                found.setdefault(symbol, []).append(name)
        own = [symbol for symbol in found if DESK in found[symbol]]
        ordered = dict.fromkeys((*own, *sorted(found)))
        data, name_of = self._services.data, self._services.name_of
        return [KnownSymbol(one, name_of(data, one), tuple(dict.fromkeys(found[one]))) for one in ordered]

    async def benchmark(self) -> Symbol | None:
        """The index fund that accounts are compared with; None where the data has none."""
        fund = self._services.index_fund(self._services.data)
        return fund if fund in await self._of_data() else None

    def market(self, symbols: Sequence[Symbol], now: datetime) -> Market:
        """The prices of symbols from the desk's data, for a look at `now`; a symbol whose prices cannot be had is left
        out."""
        return load_prices(self._services, self._services.data, symbols, now.date())

    def _places(self) -> Iterator[tuple[str, Iterable[Symbol]]]:
        yield DESK, self._services.symbols
        yield from read_groups().items()
        yield DATA, asyncio.run(self._of_data())
        yield RUNS, self._of_runs()

    async def _of_data(self) -> Sequence[Symbol]:
        services = self._services
        with suppress(MissingData):  # a folder without prices knows no symbol
            source = services.open_source(services.data, services.clock.now().date())
            return await source.symbols()
        return ()

    def _of_runs(self) -> Iterator[Symbol]:
        for run in latest_backtests(PROBED):
            # One that is just beginning, or was killed then, has no journal worth the name yet.
            with suppress(PaperdeskError), JournalReader(places.run_journal(run)) as reader:
                yield from reader.run(run).symbols
        with suppress(MissingData), JournalReader(places.desk_journal(self._services.desk)) as reader:
            for entry in reader.runs():
                yield from entry.symbols
