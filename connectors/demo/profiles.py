"""Profiles of the demo market's listings: business and sector, in a few sentences."""

from __future__ import annotations

from calendar import month_name

from connectors.demo.listings import Company, load_listings
from engine.domain.market import Symbol


def profile_of(symbol: Symbol) -> str:
    """The profile of a listing; empty for a symbol that is not on this market."""
    listings = load_listings()
    company = listings.companies.get(symbol)
    if company is not None:
        return _company(company)
    crypto = listings.crypto
    if symbol == crypto.symbol:
        return (
            f"{crypto.name} is a crypto asset that trades around the clock, kept up by {crypto.city}; it swings "
            f"more than shares. Around it: {_listed(crypto.products)}. Who uses it: {_listed(crypto.partners)}."
        )
    if symbol == listings.fund.symbol:
        names = sorted(one.short for one in listings.companies.values())
        return f"{listings.fund.name} holds all companies of its market in equal parts: {_listed(names)}."
    return ""


def _company(company: Company) -> str:
    when = "before the open" if company.before_open else "after the close"
    pays = "pays a dividend" if company.payout else "pays no dividend"
    return (
        f"{company.name}, sector {company.sector}, of {company.city}, led by {company.chief}. It sells "
        f"{_listed(company.products)}. Its business hangs on {_listed(company.partners)}. Its fiscal year ends in "
        f"{month_name[company.year_ends]}, it reports {when}, and it {pays}."
    )


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
