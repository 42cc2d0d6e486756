"""The symbols that fit what is typed, those that begin with it first."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.market import KnownSymbol


def matching(symbols: Sequence[KnownSymbol], text: str) -> list[KnownSymbol]:
    """The symbols that have a text in them, or in their company's name: first those whose symbol begins with it, then
    those where a word of the name does, then the others; within each as given. An empty text fits all."""
    wanted = " ".join(text.upper().split())
    ranked = ((_rank(one, wanted), one) for one in symbols)
    found = [(rank, one) for rank, one in ranked if rank is not None]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _rank(one: KnownSymbol, wanted: str) -> int | None:
    """0 for the best fit; None for none."""
    symbol, name = one.symbol.upper(), one.name.upper()
    fits = (symbol.startswith(wanted), f" {name}".find(f" {wanted}") >= 0, wanted in symbol or wanted in name)
    return fits.index(True) if True in fits else None
