"""Filings from a service into a data folder; stored ones stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Protocol, TypeVar

from connectors.files.texts import append_filings, stored_filings
from engine.domain.fetched import Fetched
from engine.domain.market import Dropped, Filing, Symbol, is_crypto, parse_symbol
from engine.services import FetchOptions

_AT_ONCE = 8  # filings that are written together: what a crash may cost


class Listed(Protocol):
    """A filing on a company's list: its id, its form such as 10-K, the day on which it was filed."""

    @property
    def accession(self) -> str: ...
    @property
    def form(self) -> str: ...
    @property
    def date(self) -> date: ...


ListedT = TypeVar("ListedT", bound=Listed)


class FilingService(Protocol[ListedT]):
    """A service that lists a company's filings and reads each. Every request raises ConfigError, NetworkError and
    TryAgainLater."""

    name: str
    """The service's name, under which unusable filings are counted."""

    async def listed(self, symbol: Symbol) -> Sequence[ListedT] | None:
        """The company's filings, oldest first; None for a symbol that is not known."""

    async def read(self, symbol: Symbol, listed: ListedT) -> Filing | str:
        """One filing with its text, or the reason why it cannot be used."""


async def fetch_filings(
    source: FilingService[ListedT], options: FetchOptions, symbols: Sequence[Symbol]
) -> list[Fetched]:
    """Add the filings of symbols to filings/SYMBOL.jsonl, a few at a time; crypto has none. What was written before an
    error stays. Raises as the service does, and MalformedData."""
    done: list[Fetched] = []
    for symbol in map(parse_symbol, symbols):
        done.append(await _of_symbol(source, options, symbol))
        if not done[-1].complete:
            break
    return done


async def _of_symbol(source: FilingService[ListedT], options: FetchOptions, symbol: Symbol) -> Fetched:
    path = options.folder / "filings" / f"{symbol}.jsonl"
    stored, added, unusable, waiting, stopped = stored_filings(path), 0, Counter[str](), list[Filing](), False
    listed = () if is_crypto(symbol) else await source.listed(symbol)
    if listed is None:
        unusable[f"symbol unknown to {source.name}"] += 1
        listed = ()
    wanted = [one for one in listed if one.accession not in stored and (one.form, one.date) not in stored]
    try:
        for at, one in enumerate(wanted):
            options.progress(f"{symbol} {one.form} {one.date}", at, len(wanted))
            stopped = options.stop()
            if stopped:
                break
            read = await source.read(symbol, one)
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
        dropped=tuple(Dropped(f"{source.name}/{symbol}", why, count) for why, count in sorted(unusable.items())),
        complete=not stopped,
    )
