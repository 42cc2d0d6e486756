"""What a fetch is given and what it says of itself: how far it is, whether to stop, what it did to each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connectors.files.fetch_log import FetchLog
from connectors.files.merging import Merged
from engine.domain.market import Dropped, Symbol
from engine.ports import Calendar, Clock, MarketDataService

OnProgress = Callable[[str, int, int], None]
"""Hears what is being fetched, how much of it is done, and how much there is."""
Stop = Callable[[], bool]

_SYMBOLS_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a fetch did to one file of the data folder; `unchanged` items were there before. Rows that differ from the
    kept ones are counted as `differing` where those stayed, as `replaced` where they did not. `complete` is False
    where it was stopped."""

    name: str
    path: Path
    added: int
    unchanged: int
    dropped: tuple[Dropped, ...] = ()
    complete: bool = True
    differing: int = 0
    replaced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """One fetch from a vendor into one folder. `again` asks for what is there as well, and replaces rows that differ;
    `clock` says which sessions are over."""

    source: MarketDataService
    folder: Path
    log: FetchLog
    calendar_for: Callable[[Symbol], Calendar]
    clock: Clock
    hear: OnProgress = lambda what, done, total: None
    stop: Stop = lambda: False
    again: bool = False

    def file(self, kind: str, symbol: Symbol, suffix: str = "csv") -> Path:
        """A symbol's file of prices, actions or news."""
        return self.folder / kind / f"{symbol}.{suffix}"


@dataclass(slots=True)
class Tally:
    """Counts what is done to one file."""

    name: str
    path: Path
    merged: Merged = field(default_factory=Merged)
    dropped: Counter[str] = field(default_factory=Counter)
    complete: bool = True

    def count(self, more: Merged) -> None:
        """Adds a further merge."""
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
    """As many symbols as one request may name."""
    for at in range(0, len(symbols), _SYMBOLS_AT_ONCE):
        yield symbols[at : at + _SYMBOLS_AT_ONCE]
