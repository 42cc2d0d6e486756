"""Symbols of an answer by notation: prices write BTC/USD, news BTCUSD."""

from __future__ import annotations

from collections.abc import Iterable

from connectors.alpaca.symbols import to_wire
from engine.domain.market import Symbol


def compact(symbol: Symbol) -> str:
    """A symbol in the notation of news."""
    return to_wire(symbol).replace("/", "")


def by_wire(symbols: Iterable[Symbol]) -> dict[str, Symbol]:
    """Our symbols by each of Alpaca's notations."""
    return {name: symbol for symbol in symbols for name in (to_wire(symbol), compact(symbol))}
