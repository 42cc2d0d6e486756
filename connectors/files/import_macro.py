"""Macro series and holdings of funds of foreign files, as the data folder will have them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

from connectors.files.foreign_file import ForeignFile, Planned, cell, writing
from connectors.files.foreign_rows import Row
from connectors.files.holdings import holding_row, holdings_text, read_holdings
from connectors.files.macro import MACRO_COLUMNS, macro_row, merged_macro
from connectors.files.reading import Reading
from connectors.files.stamps import stamp_text
from engine.domain.fetched import Imported
from engine.domain.macro import MacroObservation, MacroSeries
from engine.domain.market import FundHolding, Symbol
from engine.errors import MalformedData

NO_HOLDING = "no ticker: cash, or a remark below the table"


def plan_macro(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Figures of macro series, each with its release: without that it could be read too early, so it is refused."""
    new: dict[Symbol, list[MacroObservation]] = {}

    def add(name: Symbol, row: Row) -> None:
        if not cell(row, "known_from"):
            raise ValueError("there is no known_from; write the day or the time of the release")
        stamps = {column: stamp_text(cell(row, column), reading.zone) for column in ("date", "known_from")}
        new.setdefault(name, []).append(macro_row([stamps.get(one) or cell(row, one) for one in MACRO_COLUMNS]))

    for name in foreign.each(add):
        path = folder / "macro" / f"{name}.csv"
        try:
            series = MacroSeries.of(name, new[name])
            text, more = merged_macro(path, series)
        except ValueError as problem:
            raise MalformedData(f"{name}: {problem}") from None
        yield Planned(
            symbol=name,
            imported=Imported(path, more, 0, len(series.observations) - more, foreign.dropped(name)),
            write=writing(path, text, needed=more > 0),
        )


def plan_holdings(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Holdings of funds by day."""
    new: dict[Symbol, dict[tuple[date, Symbol], FundHolding]] = {}

    def add(fund: Symbol, row: Row) -> str | None:
        if not cell(row, "holding"):
            return NO_HOLDING
        day = stamp_text(cell(row, "date"), reading.zone)
        held = holding_row([day, cell(row, "holding"), cell(row, "shares"), cell(row, "weight")])
        if new.setdefault(fund, {}).setdefault((held.date, held.symbol), held) is not held:
            raise ValueError(f"{held.symbol} stands twice on {held.date}; keep one row")
        return None

    for fund in foreign.each(add):
        path, added = folder / "holdings" / f"{fund}.csv", new[fund]
        old = {(held.date, held.symbol): held for held in read_holdings(path)}
        same, more = sum(old.get(key) == held for key, held in added.items()), len(added.keys() - old.keys())
        yield Planned(
            symbol=fund,
            imported=Imported(path, more, len(added) - more - same, same, foreign.dropped(fund)),
            write=writing(path, holdings_text((old | added).values()), needed=same < len(added)),
        )
