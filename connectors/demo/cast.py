"""Who is on the demo market: the companies, the coin and the fund of cast.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from engine.domain.market import Symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Something that trades. `price` at the start in cents, `volatility` of a day in parts per million, `tide`: how
    much of the market's move it takes, per thousand, `volume` of a quiet day."""

    symbol: Symbol
    name: str
    short: str
    price: int
    volatility: int
    tide: int
    volume: int
    products: tuple[str, ...]
    partners: tuple[str, ...]
    city: str
    chief: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Company(Listing):
    """A listing with a business behind it: revenue of a quarter in millions, its growth and the net margin per
    thousand, shares in millions, dividends per year per thousand of the price (0: none)."""

    sector: str
    revenue: int
    growth: int
    margin: int
    shares: int
    payout: int
    year_ends: int
    """Month in which the fiscal year ends."""
    before_open: bool
    """Whether results come before the open; else after the close."""
    split_above: int
    """Cents above which the board splits the shares."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Everything that trades: companies and the coin by symbol, and the fund that holds all the companies."""

    companies: Mapping[Symbol, Company]
    coin: Listing
    fund: Listing


@cache
def load_cast() -> Cast:
    """The cast of cast.toml."""
    data = read_toml("cast.toml")
    companies = [Company(**_tuples(entry)) for entry in data["company"]]
    return Cast(
        {company.symbol: company for company in companies},
        Listing(**_tuples(data["coin"])),
        Listing(**_tuples(data["fund"])),
    )


def read_toml(name: str) -> dict[str, Any]:
    """A data file of this folder."""
    return tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
