"""A fetch into the data folder: its service, the folder's log of earlier requests, the count of what was done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from connectors.files.merge import Counts
from connectors.files.rows import write_text
from engine.domain.fetched import Fetched
from engine.domain.market import Dropped, Symbol
from engine.ports import Calendar, Clock, MarketDataService
from engine.services import FetchOptions

_SYMBOLS_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolRequests:
    """Requests of one symbol so far, dates and moments as ISO 8601 text, empty where there was none.

    bars_from: first day of the requested bars.
    feed: the feed of the bars.
    computed: True where adj_close is ours, computed from the actions.
    news_from: beginning of the requested news, UTC.
    news_through: end of the requested news, UTC.
    filings_on: the day on which filings were requested last.
    """

    bars_from: str = ""
    feed: str = ""
    computed: bool = False
    news_from: str = ""
    news_through: str = ""
    filings_on: str = ""


class FetchLog:
    """Requests of one data folder in fetched.json, so that one without a result is not sent again.

    Only a shortcut: where it is lost or damaged, more is requested than had to be.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "fetched.json"
        self._requests = _read(self._path)

    def of(self, symbol: Symbol) -> SymbolRequests:
        """Requests of a symbol."""
        return self._requests.get(symbol, SymbolRequests())

    def note(self, symbol: Symbol, **changes: Any) -> SymbolRequests:
        """Write down a request, and return all of the symbol's."""
        changed = replace(self.of(symbol), **changes)
        if changed == self.of(symbol):
            return changed
        self._requests[symbol] = changed
        plain = {name: asdict(one) for name, one in sorted(self._requests.items())}
        write_text(self._path, json.dumps({"schema": 1, "symbols": plain}, indent=1) + "\n")
        return changed


def _read(path: Path) -> dict[Symbol, SymbolRequests]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))["symbols"]
        return {name: _requests(one) for name, one in plain.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _requests(plain: dict[str, Any]) -> SymbolRequests:
    """A log of a later program may hold more. Raises TypeError for values of another kind."""
    defaults = asdict(SymbolRequests())
    known = {name: value for name, value in plain.items() if name in defaults}
    if any(type(value) is not type(defaults[name]) for name, value in known.items()):
        raise TypeError
    return SymbolRequests(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchJob:
    """One fetch of market data.

    source: the service that is asked.
    options: the folder, and how it is filled.
    log: earlier requests.
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
    counts: Counts = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    complete: bool = True
    missing: tuple[date, ...] = ()
    impossible: dict[date, str] = field(default_factory=dict)

    def fetched(self) -> Fetched:
        """The count so far."""
        source = f"{self.path.parent.name}/{self.path.name}"
        dropped = tuple(Dropped(source, reason, count) for reason, count in sorted(self.dropped.items()))
        counts = {name: self.counts[name] for name in ("added", "unchanged", "differing", "replaced")}
        return Fetched(
            name=self.name,
            path=self.path,
            dropped=dropped,
            complete=self.complete,
            missing=self.missing,
            impossible=self.impossible,
            **counts,
        )


def in_parts(symbols: Sequence[Symbol]) -> Iterator[Sequence[Symbol]]:
    """Parts of a list of symbols, each as many as one request may name."""
    for at in range(0, len(symbols), _SYMBOLS_AT_ONCE):
        yield symbols[at : at + _SYMBOLS_AT_ONCE]
