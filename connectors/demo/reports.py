"""Writes the quarterly and annual filings of the demo market's companies."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

from connectors.demo.cast import Company, read_toml
from connectors.demo.draws import Dice
from connectors.demo.phrases import millions, moved, permille, quarter_name, written_date
from connectors.demo.quarters import Quarter
from engine.domain.market import Filing

_OUTLOOK = {1: "raised", 0: "kept", -1: "cut"}
_PLACES = ("Lindale", "Eastmere", "Greyfriars", "Corrib Sands")


@cache
def _templates() -> dict[str, Any]:
    return read_toml("filings.toml")


def filing_of(seed: int, company: Company, quarter: Quarter, session: date, closes: datetime) -> Filing:
    """The 10-Q or 10-K of a quarter, accepted on a session some time after its close."""
    dice = Dice(seed, company.symbol, "filing", quarter.number)
    forms = _templates()
    parts = [
        dice.pick(forms["results"]),
        dice.pick(forms["profit"]),
        dice.pick(forms["trend"]["up" if quarter.growth >= 0 else "down"]),
        dice.pick(forms["liquidity"]["texts"]),
        dice.pick(forms["outlook"][_OUTLOOK[quarter.guidance]]),
        dice.pick(forms["risks"]["texts"]),
    ]
    if quarter.form == "10-K":
        parts.insert(2, dice.pick(forms["annual"]["texts"]))
    summary = " ".join(parts).format_map(_fields(company, quarter, dice))
    name = f"{company.symbol.lower()}-{quarter.form.lower()}-{quarter.ended:%Y%m%d}-{dice.below(1 << 32):08x}"
    accepted = closes + timedelta(seconds=dice.between(4500, 8100))
    return Filing(
        id=name, symbol=company.symbol, form=quarter.form, date=session, available_at=accepted, summary=summary
    )


def _fields(company: Company, quarter: Quarter, dice: Dice) -> dict[str, str]:
    return {
        "name": company.name,
        "sector": company.sector,
        "product": dice.pick(company.products),
        "partner": dice.pick(company.partners),
        "place": dice.pick(_PLACES),
        "payout": " and dividends" if company.payout else "",
        "line": millions(company.revenue * dice.between(150, 400)),
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
