"""Symbols as vendors write them, as the data folder has them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from connectors.files.columns import SUFFIXES
from engine.domain.market import Symbol, is_crypto, parse_symbol, slashless_pair
from engine.errors import UsageError

_COINS = "crypto"
_DIGITS = {"HK": 4, "SS": 6, "SZ": 6, "BJ": 6, "T": 4}
"""Digits of the symbols of an exchange, where zeros stand before smaller numbers."""
_BEFORE = re.compile(r"([A-Z]+):(.+)|(SH|SZ|BJ|HK|US|JP)\.([A-Z0-9.]+)|(SH|SZ|BJ)(\d{6})")
_BEHIND = re.compile(r"(.+)[. ]([A-Z]+)")
_CLASS = re.compile(r"([A-Z]{1,5})[-/ _.]([A-Z])")


@lru_cache(maxsize=1024)  # the rows of a file name the same few
def symbol_names(text: str) -> tuple[str, ...]:
    """The names in a cell with one or several, also as lists are written: AAPL,MSFT and ['AAPL', 'MSFT']."""
    if re.fullmatch(r"[A-Z.]+( [A-Z.]+)+", text) and foreign_symbol(text) is None:
        return tuple(text.split())
    return tuple(name for one in re.split(r"[,;|]", text) if (name := one.strip(" \t[](){}'\"")))


@lru_cache(maxsize=1024)
def foreign_symbol(text: str) -> Symbol | None:
    """The symbol of the data folder for one that a vendor writes; None for what cannot be one.

    AAPL.US, US.AAPL, NASDAQ:AAPL and AAPL.O are AAPL; sh600519 and 600519.XSHG are 600519.SS; BTCUSD, BTC/USD and
    BTC_USD are BTC-USD; BRK-B and BRK/B are BRK.B.
    """
    name, suffix = _parted(unicodedata.normalize("NFKC", text).strip().lstrip("$").upper().removesuffix(" EQUITY"))
    pair = slashless_pair(name.replace("XBT", "BTC").replace("_", "-")) if suffix in (None, _COINS) else None
    if pair is not None or suffix == _COINS:
        return pair
    if name.isdigit() and suffix in _DIGITS:
        name = f"{int(name):0{_DIGITS[suffix]}d}"
    try:
        found = parse_symbol(_CLASS.sub(r"\1.\2", name) if _CLASS.fullmatch(name) else name)
    except UsageError:
        return None
    return f"{found}.{suffix}" if suffix else found


def _parted(name: str) -> tuple[str, str | None]:
    """A symbol without its exchange, and the suffix of that; None where no known one is named."""
    if before := _BEFORE.fullmatch(name):
        market, rest = [one for one in before.groups() if one is not None]
        if market in SUFFIXES:
            return rest, SUFFIXES[market]
    elif (behind := _BEHIND.fullmatch(name)) and behind[2] in SUFFIXES:
        return behind[1], SUFFIXES[behind[2]]
    return name, None


def is_without_suffix(text: str, symbol: Symbol) -> bool:
    """True for a symbol of digits that has lost its suffix, and perhaps its zeros, and for a pair of any coin without
    its dash, or without its quote currency."""
    stem, _, _ = symbol.partition("-" if is_crypto(symbol) else ".")
    if is_crypto(symbol):
        return re.sub(r"[-/_ ]", "", _parted(text.upper())[0]) in (stem, symbol.replace("-", ""))
    return text.strip().isdigit() and stem.isdigit() and int(text) == int(stem)
