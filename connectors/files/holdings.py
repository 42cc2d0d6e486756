"""Reader and writer of holdings/FUND.csv: what a fund held on a day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from connectors.files.rows import csv_items, iso_date, malformed, number
from engine.domain.market import FundHolding, parse_symbol
from engine.errors import UsageError

HOLDING_COLUMNS = ("date", "symbol", "shares", "weight")


def read_holdings(path: Path) -> Sequence[FundHolding]:
    """All holdings of a fund's file, by date and symbol; none where there is no file. Raises MalformedData naming file
    and line."""
    found: dict[tuple[object, ...], FundHolding] = {}
    for line, holding in csv_items(path, HOLDING_COLUMNS, holding_row) if path.exists() else ():
        if found.setdefault((holding.date, holding.symbol), holding) is not holding:
            raise malformed(path, line, f"{holding.symbol} appears twice on {holding.date}; keep one row")
    return sorted(found.values(), key=lambda holding: (holding.date, holding.symbol))


def holding_row(cells: Sequence[str]) -> FundHolding:
    """A holding from its cells. Raises ValueError with the remedy."""
    if len(cells) != len(HOLDING_COLUMNS):
        raise ValueError(f"{len(cells)} cells, expected {len(HOLDING_COLUMNS)}")
    try:
        symbol = parse_symbol(cells[1])
    except UsageError as error:
        raise ValueError(str(error)) from None
    shares, weight = number("shares", cells[2]), number("weight", cells[3].strip().removesuffix("%"))
    if shares < 0:
        raise ValueError(f"shares {shares} are below zero; a fund's file lists what it holds")
    if not 0 <= weight <= 100:
        raise ValueError(f"weight {weight} is not a percentage of the fund; write 0 to 100")
    return FundHolding(iso_date(cells[0]), symbol, shares, weight)


def holdings_text(holdings: Iterable[FundHolding]) -> str:
    """The file of holdings, by date and symbol."""
    ordered = sorted(holdings, key=lambda one: (one.date, one.symbol))
    rows = (f"{one.date},{one.symbol},{one.shares:f},{one.weight:f}" for one in ordered)
    return "\n".join((",".join(HOLDING_COLUMNS), *rows)) + "\n"
