"""Filings from a service into a data folder; what is there stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Protocol, TypeVar

from connectors.files.append import append_filings, stored_filings
from engine.domain.fetched import Fetched
from engine.domain.market import Dropped, Filing, Symbol, is_crypto, parse_symbol
from engine.services import FetchOptions

_AT_ONCE = 8  # filings that are written together: what a crash may cost


class Listed(Protocol):
    """A filing on a company's list."""

    @property
    def accession(self) -> str:
        """Its id."""
        ...

    @property
    def form(self) -> str:
        """Its form, such as 10-K."""
        ...

    @property
    def date(self) -> date:
        """The day on which it was filed."""
        ...


ListedT = TypeVar("ListedT", bound=Listed)


class FilingService(Protocol[ListedT]):
    """A service that lists a company's filings and reads each. Every question raises ConfigError, NetworkError and
    TryAgainLater."""

    async def number(self, symbol: Symbol) -> int | None:
        """The company's number, or None for crypto and for a symbol that is not known."""
        ...

    async def listed(self, number: int) -> Sequence[ListedT]:
        """The company's filings, oldest first."""
        ...

    async def read(self, symbol: Symbol, number: int, listed: ListedT) -> Filing | str:
        """One filing with its text, or the reason why it cannot be used."""
        ...

    def unknown(self, symbol: Symbol) -> Dropped:
        """The note of a symbol that is not known."""
        ...

    def dropped(self, symbol: Symbol, reason: str, count: int = 1) -> Dropped:
        """Filings that cannot be used, under the service's name."""
        ...


async def fetch_filings(
    source: FilingService[ListedT], options: FetchOptions, symbols: Sequence[Symbol]
) -> list[Fetched]:
    """Add the filings of symbols to filings/SYMBOL.jsonl, a few at a time; what was written before an error stays.
    Raises as the service does, and MalformedData."""
    done: list[Fetched] = []
    for symbol in map(parse_symbol, symbols):
        done.append(await _of_symbol(source, options, symbol))
        if not done[-1].complete:
            break
    return done


async def _of_symbol(source: FilingService[ListedT], options: FetchOptions, symbol: Symbol) -> Fetched:
    path = options.folder / "filings" / f"{symbol}.jsonl"
    number = await source.number(symbol)
    if number is None:
        reasons = () if is_crypto(symbol) else (source.unknown(symbol),)
        return Fetched(name=symbol, path=path, added=0, unchanged=0, dropped=reasons)
    listed, there = await source.listed(number), stored_filings(path)
    wanted = [one for one in listed if not there.contains(one.accession, one.form, one.date)]
    added, unusable, waiting, stopped = 0, Counter[str](), list[Filing](), False
    try:
        for at, one in enumerate(wanted):
            options.progress(f"{symbol} {one.form} {one.date}", at, len(wanted))
            stopped = options.stop()
            if stopped:
                break
            read = await source.read(symbol, number, one)
            if isinstance(read, Filing):
                waiting.append(read)
            else:
                unusable[read] += 1
            if len(waiting) == _AT_ONCE:
                added += append_filings(path, waiting)
                waiting.clear()
    finally:
        added += append_filings(path, waiting)
    options.progress(symbol, len(wanted), len(wanted))
    return Fetched(
        name=symbol,
        path=path,
        added=added,
        unchanged=len(listed) - len(wanted),
        dropped=tuple(source.dropped(symbol, why, count) for why, count in sorted(unusable.items())),
        complete=not stopped,
    )
