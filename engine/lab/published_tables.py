"""Paper tables as data: the printed rows, or the symbols and metrics of a window for which none are printed.

The figures are in `paper_tables/*.toml`, digit by digit, with a note where a row cannot be had and why;
`engine.reports.comparison` puts ours beside them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from engine.domain.market import ActionKind, CorporateAction, Symbol
from engine.errors import UsageError
from engine.program_files import program_text

BENCHES = ("finvision", "finagent", "investorbench", "tradinggpt")
"""The benches of papers' windows; each is also the name of its convention."""
UNPRINTED = "tradinggpt"
"""The one whose paper prints no results: it runs on any symbols."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """One printed figure.

    symbol: the symbol.
    strategy: one of our rules; None where the row is a model's.
    model: a model or an agent; None where the row is a rule's.
    metric: name of the metric.
    value: in the paper's unit; None where it prints none.
    note: the reason why ours differs or cannot be computed.
    """

    symbol: Symbol
    strategy: str | None
    model: str | None
    metric: str
    value: Decimal | None
    note: str | None = None

    @property
    def who(self) -> str:
        """The strategy or the model."""
        return self.strategy or self.model or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of a paper.

    name: paper and number.
    convention: its formulas and execution rule, which also say which sessions of the test are valued.
    first, last: the test period that the paper gives.
    cells: the printed figures.
    warm_up_from: the beginning of the training before it; None where there is none.
    averaged: the symbols that its averages are taken over, group by group.
    dividends: those that a row reinvests where the prices are not adjusted.
    """

    name: str
    convention: str
    first: date
    last: date
    cells: tuple[PublishedCell, ...]
    warm_up_from: date | None
    averaged: tuple[tuple[Symbol, ...], ...] = ()
    dividends: tuple[CorporateAction, ...] = ()

    @property
    def begin(self) -> date:
        """The first session of all, of the training or else of the test."""
        return self.warm_up_from or self.first

    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols of the table in its order."""
        return tuple(dict.fromkeys(cell.symbol for cell in self.cells))

    def strategies(self) -> tuple[str, ...]:
        """The rule strategies of the table in its order."""
        return tuple(dict.fromkeys(cell.strategy for cell in self.cells if cell.strategy))

    def models(self) -> tuple[str, ...]:
        """The rows of models and agents in the table's order."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells if cell.model))

    def metrics(self) -> tuple[str, ...]:
        """The metrics of the table in its order."""
        return tuple(dict.fromkeys(cell.metric for cell in self.cells))


def published(bench: str) -> tuple[PublishedTable, ...]:
    """The printed tables of a bench, in the paper's order. Raises UsageError for one without printed rows."""
    if bench not in BENCHES:
        raise UsageError(f"no published tables for {bench}; there are those of {', '.join(BENCHES)}")
    return _tables(bench)


@cache
def paper_file(bench: str) -> Mapping[str, Any]:
    """The data file of a bench that there is."""
    text = program_text(Path(__file__).parent / "paper_tables" / f"{bench}.toml")
    # Decimal keeps the digits as printed, trailing zeros included.
    return tomllib.loads(text, parse_float=Decimal)


@cache
def _tables(bench: str) -> tuple[PublishedTable, ...]:
    data = paper_file(bench)
    return tuple(_table(data, table) for table in data["table"])


def _table(paper: Mapping[str, Any], table: Mapping[str, Any]) -> PublishedTable:
    window = table.get("window", paper["window"])
    cells = [cell for row in table.get("row", ()) for cell in _cells(row, paper.get("note", []))]
    cells += _unprinted(table.get("symbols", ()), table.get("unprinted", ()))
    name = f"{paper['paper']} {'' if 'unprinted' in table else 'Table '}{table['name']}"
    return PublishedTable(
        name=name,
        convention=paper["convention"],
        first=window["first"],
        last=window["last"],
        cells=tuple(cells),
        warm_up_from=window["warm_up_from"],
        averaged=tuple(map(tuple, table.get("averaged", ()))),
        dividends=tuple(CorporateAction(kind=ActionKind.DIVIDEND, **paid) for paid in table.get("dividend", ())),
    )


def elsewhere(
    table: PublishedTable,
    symbols: Sequence[Symbol],
    window: tuple[date, date] | None,
    warm_up_from: date | None,
) -> PublishedTable:
    """A table without printed figures on other symbols (empty: its own), or in another window, which has the training
    that is named and else none."""
    first, last = window or (table.first, table.last)
    return replace(
        table,
        cells=tuple(_unprinted(symbols or table.symbols(), table.metrics())),
        first=first,
        last=last,
        warm_up_from=warm_up_from or (table.warm_up_from if window is None else None),
    )


def _unprinted(symbols: Sequence[Symbol], metrics: Sequence[str]) -> list[PublishedCell]:
    """Cells of buy and hold."""
    return [
        PublishedCell(symbol=symbol, strategy="buy-and-hold", model=None, metric=metric, value=None)
        for symbol in symbols
        for metric in metrics
    ]


def _cells(row: Mapping[str, Any], notes: list[dict[str, Any]]) -> list[PublishedCell]:
    strategy, model = row.get("strategy"), row.get("model")
    return [
        PublishedCell(
            symbol=symbol,
            strategy=strategy,
            model=model,
            metric=metric,
            value=value,
            note=_note(notes, symbol, strategy, model, metric),
        )
        for symbol, figures in row.items()
        if symbol not in ("strategy", "model")
        for metric, value in figures.items()
    ]


def _note(notes: list[dict[str, Any]], symbol: str, strategy: str | None, model: str | None, metric: str) -> str | None:
    found = [
        note["text"]
        for note in notes
        if note.get("symbol", symbol) == symbol
        and metric in note.get("metrics", [metric])
        and _is(note.get("strategy"), strategy, "model" in note)
        and _is(note.get("model"), model, "strategy" in note)
    ]
    return "; ".join(found) or None


def _is(wanted: str | None, actual: str | None, other_kind: bool) -> bool:
    """True where a note's strategy (or model) fits: `*` is any, and none given is any unless the other is given."""
    if wanted is None:
        return actual is None or not other_kind
    return actual is not None and wanted in ("*", actual)
