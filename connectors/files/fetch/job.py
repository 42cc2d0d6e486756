"""A fetch into the data folder: the service that is asked, the folder that is filled, the count of what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from connectors.files.fetch.log import FetchLog
from connectors.files.merge import Merged
from engine.domain.fetched import Fetched
from engine.domain.market import Dropped, Symbol
from engine.ports import Calendar, Clock, MarketDataService
from engine.services import FetchOptions

_SYMBOLS_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchJob:
    """One fetch of market data.

    source: the service that is asked.
    options: the folder, and how it is filled.
    log: how far the service was asked before.
    calendar_for: the trading calendar of a symbol.
    clock: the time by which sessions are over.
    """

    source: MarketDataService
    options: FetchOptions
    log: FetchLog
    calendar_for: Callable[[Symbol], Calendar]
    clock: Clock

    def file(self, kind: str, symbol: Symbol, suffix: str = "csv") -> Path:
        """A symbol's file of prices, actions or news."""
        return self.options.folder / kind / f"{symbol}.{suffix}"

    def last_session(self, symbol: Symbol) -> date:
        """The last session of a symbol that is over."""
        return self.calendar_for(symbol).last_closed(self.clock.now())


@dataclass(slots=True)
class Tally:
    """Count of what is done to one file."""

    name: str
    path: Path
    merged: Merged = field(default_factory=Merged)
    dropped: Counter[str] = field(default_factory=Counter)
    complete: bool = True

    def count(self, more: Merged) -> None:
        """Add a further merge."""
        self.merged = self.merged.plus(more)

    def fetched(self) -> Fetched:
        """The count so far."""
        source = f"{self.path.parent.name}/{self.path.name}"
        dropped = tuple(Dropped(source, why, count) for why, count in sorted(self.dropped.items()))
        done = self.merged
        return Fetched(
            name=self.name,
            path=self.path,
            added=done.added,
            unchanged=done.unchanged,
            dropped=dropped,
            complete=self.complete,
            differing=done.differing,
            replaced=done.replaced,
        )


def in_parts(symbols: Sequence[Symbol]) -> Iterator[Sequence[Symbol]]:
    """Parts of a list of symbols, each as many as one request may name."""
    for at in range(0, len(symbols), _SYMBOLS_AT_ONCE):
        yield symbols[at : at + _SYMBOLS_AT_ONCE]
