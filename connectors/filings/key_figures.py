"""Key figures of a filing from EDGAR's company facts (XBRL), as the filing itself reported them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from engine.domain.decimal_text import plain
from engine.errors import MalformedData
from engine.program_files import program_text


@dataclass(frozen=True, slots=True)
class _Fact:
    end: date
    days: int  # 0 for a balance at a day
    value: Decimal


def key_figures(facts: Mapping[str, Any], accession: str, *, annual: bool) -> Sequence[str]:
    """One line per figure that the filing itself reported, with that of the year before where it has one.

    Only facts under the filing's own accession number are read: a later restatement has another one. Raises
    MalformedData for facts of another shape.
    """
    lines = []
    for figure in _figures():
        for concept in figure["concepts"]:
            if reported := list(_reported(facts, concept, figure["unit"], accession)):
                lines.append(f"{figure['label']}: {_summary(reported, figure['unit'], annual)}")
                break
    return lines


@cache
def _figures() -> list[dict[str, Any]]:
    text = program_text(Path(__file__).with_suffix(".toml"))
    figures: list[dict[str, Any]] = tomllib.loads(text)["figure"]
    return figures


def _reported(facts: Mapping[str, Any], concept: str, unit: str, accession: str) -> Iterator[_Fact]:
    try:
        rows = facts.get("facts", {}).get("us-gaap", {}).get(concept, {}).get("units", {}).get(unit, ())
        for row in rows:
            if row["accn"] == accession:
                end = date.fromisoformat(row["end"])
                start = date.fromisoformat(row["start"]) if "start" in row else end
                yield _Fact(end, (end - start).days, Decimal(row["val"]))
    except (AttributeError, TypeError, KeyError, ValueError, ArithmeticError) as error:
        raise MalformedData(
            f"SEC EDGAR's company facts have another shape at {concept} ({type(error).__name__}); report this"
        ) from None


def _summary(facts: list[_Fact], unit: str, annual: bool) -> str:
    last = max(fact.end for fact in facts)
    # A 10-Q reports the quarter beside the year so far, a 10-K the year, sometimes beside its last quarter.
    choose = max if annual else min
    now = choose((fact for fact in facts if fact.end == last), key=lambda fact: fact.days)
    text = f"{_amount(now.value, unit)} {_period(now)}"
    before = [f for f in facts if abs((now.end - f.end).days - 365) <= 10 and abs(f.days - now.days) <= 10]
    if before and now.days:
        text += f"; {_amount(before[0].value, unit)} a year earlier"
    return text


def _period(fact: _Fact) -> str:
    return f"in the {fact.days + 1} days to {fact.end}" if fact.days else f"on {fact.end}"


def _amount(value: Decimal, unit: str) -> str:
    if unit == "USD/shares":
        return f"{plain(value)} USD a share"
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:,.1f} million USD"
    return f"{value:,.0f} USD"
