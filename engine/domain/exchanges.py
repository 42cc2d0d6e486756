"""Exchanges by the suffix of a symbol: the trading calendar, the currency and the time zone that it is quoted in.

A symbol without a suffix is a share of the United States, as are share classes (BRK.B), units and warrants. A pair
such as BTC-EUR trades around the clock in its quote currency. exchanges.toml holds the suffixes that are known; the
configuration adds others ([calendars.SUFFIX]).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from engine.domain.market import Symbol, is_crypto
from engine.errors import UsageError
from engine.program_files import program_text

AROUND_THE_CLOCK = "24/7"
"""Name of the calendar on which every UTC day is a session."""

_CLASSES = re.compile(r"[A-Z]|PR[A-Z]|W[SIT]?|RT|UN")
"""Suffixes of a share's class, or of a unit, warrant, right or preferred share, which name no exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The terms on which a symbol is quoted.

    calendar: the trading calendar, as exchange_calendars names it, or AROUND_THE_CLOCK.
    currency: of prices and cash, three letters or a coin's name.
    zone: the time zone of its days.
    periods: sessions in a year.
    minor: a hundredth of the currency, in which vendors may write prices (GBX); empty where there is none.
    """

    calendar: str
    currency: str
    zone: str = "UTC"
    periods: int = 252
    minor: str = ""

    @property
    def described(self) -> str:
        """`XNYS in USD`, `around the clock in EUR`."""
        where = "around the clock" if self.calendar == AROUND_THE_CLOCK else f"on {self.calendar}"
        return f"{where} in {self.currency}"


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Known exchanges by suffix; `own` are those of the configuration, which outrank the others."""

    own: Mapping[str, Exchange] = field(default_factory=dict)

    def of(self, symbol: Symbol) -> Exchange:
        """The exchange of a symbol. Raises UsageError for a suffix that is not known, and for a symbol of digits alone,
        which has lost its suffix."""
        if is_crypto(symbol):
            quote = re.split("[-/]", symbol)[-1]
            return Exchange(calendar=AROUND_THE_CLOCK, currency=quote, periods=365)
        _, dot, suffix = symbol.upper().rpartition(".")
        known = _by_suffix()
        if not dot:
            if symbol.isdigit():
                raise UsageError(f"{symbol} needs the suffix of its exchange, such as {symbol}.SS or {symbol}.T")
            return known[""]
        found = self.own.get(suffix) or known.get(suffix)
        if found is not None:
            return found
        if _CLASSES.fullmatch(suffix):
            return known[""]
        raise UsageError(
            f"{symbol}: no exchange is known by the suffix .{suffix}; name its calendar and currency in the "
            f'configuration ([calendars.{suffix}] calendar = "XLON", currency = "GBP")'
        )

    def of_portfolio(self, symbols: Iterable[Symbol]) -> Exchange:
        """The exchange of a portfolio: that of its shares, beside which crypto of the same currency may stand. Raises
        UsageError naming two symbols that cannot be in one portfolio, and as `of` does."""
        first: tuple[Symbol, Exchange] | None = None
        for symbol in symbols:
            here = self.of(symbol)
            if first is None:
                first = symbol, here
                continue
            other, there = first
            both_shares = AROUND_THE_CLOCK not in (here.calendar, there.calendar)
            if here.currency != there.currency or (both_shares and here.calendar != there.calendar):
                raise UsageError(
                    f"{other} trades {there.described} and {symbol} {here.described}: a portfolio has one currency and "
                    "one exchange calendar; trade them in portfolios of their own"
                )
            if there.calendar == AROUND_THE_CLOCK:
                first = symbol, here
        if first is None:
            return _by_suffix()[""]
        return first[1]


LISTED = Exchanges()
"""The exchanges of exchanges.toml alone."""


@cache
def _by_suffix() -> Mapping[str, Exchange]:
    """Exchanges of exchanges.toml by suffix; the empty one is the exchange of symbols without."""
    tables = tomllib.loads(program_text(Path(__file__).with_name("exchanges.toml")))
    found: dict[str, Exchange] = {}
    for calendar, table in tables.items():
        suffixes = table.pop("suffixes") or [""]
        found |= dict.fromkeys(suffixes, Exchange(calendar=calendar, **table))
    return found
