"""Quarterly and annual filings of the demo market's companies."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

from connectors.demo.listings import Company, read_toml
from connectors.demo.phrases import millions, moved, permille, quarter_name, written_date
from connectors.demo.quarters import Quarter
from connectors.demo.seeded_random import SeededRandom
from engine.domain.market import Filing

_OUTLOOK = {1: "raised", 0: "kept", -1: "cut"}
_PLACES = ("Lindale", "Eastmere", "Greyfriars", "Corrib Sands")


@cache
def _templates() -> dict[str, Any]:
    return read_toml("filings.toml")


def filing_of(seed: int, company: Company, quarter: Quarter, session: date, closes: datetime) -> Filing:
    """The 10-Q or 10-K of a quarter, accepted on a session some time after its close."""
    random = SeededRandom(seed, company.symbol, "filing", quarter.number)
    forms = _templates()
    parts = [
        random.pick(forms["results"]),
        random.pick(forms["profit"]),
        random.pick(forms["trend"]["up" if quarter.growth >= 0 else "down"]),
        random.pick(forms["liquidity"]["texts"]),
        random.pick(forms["outlook"][_OUTLOOK[quarter.guidance]]),
        random.pick(forms["risks"]["texts"]),
    ]
    if quarter.form == "10-K":
        parts.insert(2, random.pick(forms["annual"]["texts"]))
    summary = " ".join(parts).format_map(_fields(company, quarter, random))
    name = f"{company.symbol.lower()}-{quarter.form.lower()}-{quarter.ended:%Y%m%d}-{random.below(1 << 32):08x}"
    accepted = closes + timedelta(seconds=random.between(4500, 8100))
    return Filing(
        id=name, symbol=company.symbol, form=quarter.form, date=session, available_at=accepted, summary=summary
    )


def _fields(company: Company, quarter: Quarter, random: SeededRandom) -> dict[str, str]:
    return {
        "name": company.name,
        "sector": company.sector,
        "product": random.pick(company.products),
        "partner": random.pick(company.partners),
        "place": random.pick(_PLACES),
        "payout": " and dividends" if company.payout else "",
        "line": millions(company.revenue * random.between(150, 400)),
        "quarter": quarter_name(quarter),
        "year": str(quarter.fiscal_year),
        "ended": written_date(quarter.ended),
        "revenue": millions(quarter.revenue),
        "year_ago": millions(quarter.year_ago),
        "year_revenue": millions(quarter.year_revenue),
        "moved": moved(quarter.growth),
        "income": millions(quarter.income),
        "margin": permille(quarter.margin),
    }
