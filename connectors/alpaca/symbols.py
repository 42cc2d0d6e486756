"""How symbols are written: BTC-USD at the desk, BTC/USD in orders there, BTCUSD in positions; shares alike."""

from __future__ import annotations

from engine.domain.market import Symbol, is_crypto

_QUOTES = ("USDT", "USDC", "USD")
_LONGEST_TICKER = 5
"""Letters of the longest name of a share: what is longer and ends in a currency is a pair."""


def to_wire(symbol: Symbol) -> str:
    """A symbol of the desk's as an order there names it."""
    return symbol.replace("-", "/") if is_crypto(symbol) else symbol


def from_wire(name: str, asset_class: str = "") -> Symbol:
    """A name of theirs as the desk writes it; `asset_class` is their word where there is one. What is no pair that is
    known stays as it is."""
    if "/" in name:
        return name.replace("/", "-")
    if asset_class == "crypto" or (not asset_class and name.isalpha() and len(name) > _LONGEST_TICKER):
        quote = next((q for q in _QUOTES if name.endswith(q) and len(name) > len(q)), None)
        if quote is not None:
            return f"{name.removesuffix(quote)}-{quote}"
    return name
