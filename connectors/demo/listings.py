"""Listings of the demo market: the companies, the crypto asset and the fund of listings.toml."""

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
    """A tradable listing.

    short: its name in headlines.
    price: at the start, in cents.
    volatility: of a day, in parts per million.
    beta: share of the market factor's move, per thousand.
    volume: shares of a quiet day.
    products, partners, city, chief: for texts.
    """

    symbol: Symbol
    name: str
    short: str
    price: int
    volatility: int
    beta: int
    volume: int
    products: tuple[str, ...]
    partners: tuple[str, ...]
    city: str
    chief: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Company(Listing):
    """A listing with a business.

    revenue: of a quarter, in millions.
    growth, margin: per thousand.
    shares: in millions.
    payout: dividends per year, per thousand of the price (0: none).
    year_ends: month in which the fiscal year ends.
    before_open: True where results come before the open; else after the close.
    split_above: price in cents above which the shares are split.
    """

    sector: str
    revenue: int
    growth: int
    margin: int
    shares: int
    payout: int
    year_ends: int
    before_open: bool
    split_above: int


@dataclass(frozen=True, slots=True)
class Listings:
    """All listings: companies by symbol, the crypto asset, and the fund that holds all the companies."""

    companies: Mapping[Symbol, Company]
    crypto: Listing
    fund: Listing


@cache
def load_listings() -> Listings:
    """The listings of listings.toml."""
    data = read_toml("listings.toml")
    companies = [Company(**_tuples(entry)) for entry in data["company"]]
    return Listings(
        {company.symbol: company for company in companies},
        Listing(**_tuples(data["crypto"])),
        Listing(**_tuples(data["fund"])),
    )


def read_toml(name: str) -> dict[str, Any]:
    """A data file of this folder."""
    return tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
