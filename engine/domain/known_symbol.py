"""A symbol that a desk knows of, for those who search one."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.market import Symbol


@dataclass(frozen=True, slots=True)
class KnownSymbol:
    """A symbol; `name` is its company's, empty where that is not known, and `sources` are the places that have it, such
    as `desk`, `core` (a group of the watchlist), `data`, `runs`."""

    symbol: Symbol
    name: str = ""
    sources: tuple[str, ...] = ()
