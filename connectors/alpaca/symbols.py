"""Notations of symbols: BTC-USD at the desk, BTC/USD in Alpaca's orders, BTCUSD in its positions; shares alike."""

from __future__ import annotations

from engine.domain.market import Symbol, is_crypto

_QUOTES = ("USDT", "USDC", "USD")
_LONGEST_TICKER = 5
"""Letters of the longest ticker of a share: a longer name that ends in a currency is a pair."""


def to_wire(symbol: Symbol) -> str:
    """A symbol in the notation of Alpaca's orders."""
    return symbol.replace("-", "/") if is_crypto(symbol) else symbol


def from_wire(name: str, asset_class: str = "") -> Symbol:
    """A symbol of Alpaca's in the desk's notation; `asset_class` is its class where given. An unknown name stays as it
    is."""
    if "/" in name:
        return name.replace("/", "-")
    if asset_class == "crypto" or (not asset_class and name.isalpha() and len(name) > _LONGEST_TICKER):
        quote = next((q for q in _QUOTES if name.endswith(q) and len(name) > len(q)), None)
        if quote is not None:
            return f"{name.removesuffix(quote)}-{quote}"
    return name
