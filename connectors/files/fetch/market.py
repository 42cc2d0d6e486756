"""A MarketFetch over a data folder, which one process at a time fills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date

from connectors.files.fetch.bars import BarsFetch
from connectors.files.fetch.job import FetchJob, FetchLog
from connectors.files.fetch.news import fetch_news
from connectors.files.prices import read_rows
from engine.domain.fetched import Fetched
from engine.domain.market import Symbol
from engine.errors import TryAgainLater
from engine.ports import Calendar, Clock, MarketDataService
from engine.services import FetchOptions
from engine.settings import places

_PATIENCE = 30
"""Seconds for which a fetch waits for another one into the same folder."""


class FolderFetch:
    """MarketFetch from one service into one folder."""

    def __init__(self, job: FetchJob) -> None:
        self._job = job
        self.vendor = job.source.vendor
        self.feed = job.source.feed

    async def bars(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Add bars, and the actions that adj_close is computed from."""
        return await BarsFetch(self._job, since).bars(symbols)

    async def actions(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Merge corporate actions."""
        return await BarsFetch(self._job, since).actions(symbols)

    async def news(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Add news."""
        return await fetch_news(self._job, symbols, since)

    def late(self, symbols: Sequence[Symbol], session: date) -> list[Symbol]:
        """Symbols whose bars do not reach a session. A crypto pair's day may end later than the session."""
        late = []
        for symbol in symbols:
            stored = read_rows(self._job.file("prices", symbol)).bars
            needed = min(session, self._job.last_session(symbol))
            if not stored or date.fromordinal(stored[-1][0]) < needed:
                late.append(symbol)
        return late

    def without_filings(self, symbols: Sequence[Symbol], day: date) -> list[Symbol]:
        """Symbols whose filings were not fetched on a day."""
        return [symbol for symbol in symbols if self._job.log.of(symbol).filings_on != str(day)]

    def note_filings(self, symbols: Sequence[Symbol], day: date) -> None:
        """Note that filings were fetched on a day."""
        for symbol in symbols:
            self._job.log.note(symbol, filings_on=str(day))


@asynccontextmanager
async def open_folder_fetch(
    source: MarketDataService, options: FetchOptions, calendar_for: Callable[[Symbol], Calendar], clock: Clock
) -> AsyncIterator[FolderFetch]:
    """A fetch into a folder that no other process fills until the block ends. Raises TryAgainLater where another
    fetch does not end."""
    from filelock import FileLock, Timeout

    folder = options.folder
    places.make_folder(folder)
    lock = FileLock(folder / ".fetch.lock")
    for waited in range(_PATIENCE + 1):
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            if waited == _PATIENCE:
                raise TryAgainLater(f"another fetch fills {folder} (lock {lock.lock_file}); try again later") from None
            await asyncio.sleep(1)
    try:
        log = FetchLog(folder)
        yield FolderFetch(FetchJob(source=source, options=options, log=log, calendar_for=calendar_for, clock=clock))
    finally:
        lock.release()
