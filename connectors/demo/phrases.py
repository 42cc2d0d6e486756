"""Figures and names of the demo market in the form of its news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from connectors.demo.listings import Company, Listing
from connectors.demo.price_path import DIVIDEND, EARNINGS, Event
from connectors.demo.quarters import Quarter
from connectors.demo.seeded_random import SeededRandom

_ORDINALS = ("first", "second", "third", "fourth")
_MONTHS = ("Jan.", "Feb.", "March", "April", "May", "June", "July", "Aug.", "Sept.", "Oct.", "Nov.", "Dec.")
_OUTLOOKS = {
    1: ("outlook raised", "The company raised its full-year outlook."),
    0: ("outlook unchanged", "The company kept its full-year outlook."),
    -1: ("outlook cut", "The company cut its full-year outlook."),
}


def listing_fields(
    listing: Listing, random: SeededRandom, voices: Mapping[str, Sequence[str]], price: int
) -> dict[str, str]:
    """Template fields of a listing; `price` is the last known one, in cents."""
    sector = listing.sector if isinstance(listing, Company) else "digital-asset"
    return {
        "name": listing.name,
        "short": listing.short,
        "symbol": listing.symbol,
        "city": listing.city,
        "chief": listing.chief,
        "sector": sector,
        "sector_title": sector[0].upper() + sector[1:],
        "product": random.pick(listing.products),
        "partner": random.pick(listing.partners),
        "analyst": random.pick(voices["analysts"]),
        "person": random.pick(voices["people"]),
        "place": random.pick(voices["cities"]),
        "amount": _amount(listing, random),
        "percent": f"{random.between(2, 9)}%",
        "years": random.pick(("two", "three", "four", "five")),
        "count": str(random.between(4, 40) * 10),
        "price": dollars(price),
        "target": _round_dollars(price * random.between(1120, 1350) // 1000),
        "low_target": _round_dollars(price * random.between(700, 900) // 1000),
    }


def event_fields(event: Event) -> dict[str, str]:
    """Template fields of results, a dividend or a split; none for other events."""
    if event.kind == EARNINGS and event.quarter is not None:
        return _results(event.quarter, event.amount, event.per)
    if event.effective is None:
        return {}
    effective = written_date(event.effective)
    if event.kind == DIVIDEND:
        return {"dividend": dollars(event.amount), "effective": effective}
    return {"ratio": f"{event.amount}-for-{event.per}", "effective": effective}


def _results(quarter: Quarter, shares: int, per: int) -> dict[str, str]:
    short, outlook = _OUTLOOKS[quarter.guidance]
    return {
        "quarter": quarter_name(quarter),
        "eps": dollars(max(quarter.earnings * per // shares, 1)),
        "expected": dollars(max(quarter.expected * per // shares, 1)),
        "revenue": millions(quarter.revenue),
        "moved": moved(quarter.growth),
        "margin": permille(quarter.margin),
        "outlook_short": short,
        "outlook": outlook,
    }


def quarter_name(quarter: Quarter) -> str:
    """A name such as `third quarter`."""
    return f"{_ORDINALS[quarter.fiscal_quarter - 1]} quarter"


def dollars(cents: int) -> str:
    """An amount such as `$1,234.50`."""
    return f"${cents // 100:,}.{cents % 100:02d}"


def millions(thousands: int) -> str:
    """Thousands of dollars as millions or billions, such as `$2.14 billion`."""
    if thousands >= 1_000_000:
        hundredths = thousands // 10_000
        return f"${hundredths // 100}.{hundredths % 100:02d} billion"
    return f"${thousands // 1000} million"


def permille(value: int) -> str:
    """Parts per thousand as per cent, such as `12.5%`; without a sign."""
    return f"{abs(value) // 10}.{abs(value) % 10}%"


def moved(value: int) -> str:
    """The change of a figure, in parts per thousand, such as `rose 4.2%`."""
    return "was flat" if value == 0 else f"{'rose' if value > 0 else 'fell'} {permille(value)}"


def written_date(day: date) -> str:
    """A date such as `March 8, 2024`."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _amount(listing: Listing, random: SeededRandom) -> str:
    # One to six per cent of a year's revenue, or what a large holder of a coin has.
    year = listing.revenue * 4 if isinstance(listing, Company) else 2_000
    whole = year * random.between(10, 60) // 1000
    return f"${max(whole // 5 * 5, 5)} million" if whole < 1000 else f"${whole // 1000}.{whole % 1000 // 100} billion"


def _round_dollars(cents: int) -> str:
    return f"${max(cents // 100, 1):,}"
