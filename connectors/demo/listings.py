"""Listings of the demo market with their profiles: the companies, the crypto asset and the fund of listings.toml."""

from __future__ import annotations

import tomllib
from calendar import month_name
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.domain.market import Symbol, is_crypto
from engine.program_files import program_text


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


@cache
def load_listings() -> Mapping[Symbol, Listing]:
    """The listings of listings.toml: companies, one crypto asset, and one fund that holds all the companies."""
    data = read_toml("listings.toml")
    companies = [Company(**_tuples(entry)) for entry in data["company"]]
    others = [Listing(**_tuples(data[kind])) for kind in ("crypto", "fund")]
    return {listing.symbol: listing for listing in (*companies, *others)}


def fund_symbol() -> Symbol:
    """The symbol of the fund that holds all the companies."""
    return next(symbol for symbol, one in load_listings().items() if type(one) is Listing and not is_crypto(symbol))


def profile_of(symbol: Symbol) -> str:
    """Business and sector of a listing in a few sentences; empty for a symbol that is not on this market."""
    listings = load_listings()
    listing = listings.get(symbol)
    if listing is None:
        return ""
    products, partners = _joined(listing.products), _joined(listing.partners)
    if isinstance(listing, Company):
        when = "before the open" if listing.before_open else "after the close"
        pays = "pays a dividend" if listing.payout else "pays no dividend"
        return (
            f"{listing.name}, sector {listing.sector}, of {listing.city}, led by {listing.chief}. It sells "
            f"{products}. It depends on {partners}. Its fiscal year ends in "
            f"{month_name[listing.year_ends]}, it reports {when}, and it {pays}."
        )
    if is_crypto(symbol):
        return (
            f"{listing.name} is a crypto asset that trades around the clock, kept up by {listing.city}; it swings "
            f"more than shares. Around it: {products}. Who uses it: {partners}."
        )
    names = sorted(one.short for one in listings.values() if isinstance(one, Company))
    return f"{listing.name} holds all companies of its market in equal parts: {_joined(names)}."


def _joined(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def read_toml(name: str) -> dict[str, Any]:
    """A data file of this folder."""
    return tomllib.loads(program_text(Path(__file__).with_name(name)))


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
