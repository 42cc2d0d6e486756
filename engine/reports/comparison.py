"""Our figures beside a paper's, cell by cell: rules and agents, with the spread of an agent's repeats, and
averages over symbols and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from itertools import combinations
from statistics import fmean, median, median_low
from typing import Any

import numpy as np

from engine.conventions.metrics import Metrics, paired_difference
from engine.domain.market import Symbol
from engine.lab.published_tables import PrintedModel, PublishedCell, PublishedTable
from engine.reports.performance import BENCHMARK


@dataclass(frozen=True, slots=True)
class Spread:
    """One metric over `count` repeats: its least, greatest and median value; None where it is undefined in all."""

    low: float | None
    high: float | None
    median: float | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(PublishedCell):
    """A printed figure beside ours; either may be None, both where ours is missing and the paper prints none.

    table: in which it stands.
    ours: in the paper's unit; the note says why it differs or is missing.
    answered_by: spec of the model that answered our agents; None for a rule and where ours is missing.
    spread: of the repeats that ours stands for, where there are several.
    """

    table: str
    ours: float | None
    answered_by: str | None = None
    spread: Spread | None = None

    @property
    def rel_diff(self) -> float | None:
        """(ours - paper) / |paper|; None where one is missing or the paper prints zero."""
        if self.ours is None or not self.paper:
            return None
        paper = float(self.paper)
        return (self.ours - paper) / abs(paper)

    @property
    def as_printed(self) -> bool:
        """True where ours, rounded as the paper's figure is, lies within one unit of its last digit."""
        if self.ours is None or self.paper is None:
            return False
        unit = Decimal(1).scaleb(int(self.paper.as_tuple().exponent))
        return abs(Decimal(repr(self.ours)) - self.paper) < unit


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """The metrics of an agent of ours on a symbol.

    model: name of the row, the printed one of that name or one of our own.
    answered_by: spec of the model that answered.
    metrics: empty where the row cannot be had.
    note: the reason for that, or a remark for a reader.
    spreads: by metric, where the row stands for several repeats.
    returns: of each session, as the convention measures them; of the repeat that it stands for.
    curve: its cumulative return by session.
    """

    symbol: Symbol
    model: str
    answered_by: str
    metrics: Mapping[str, float | None]
    note: str | None = None
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    returns: tuple[float, ...] = ()
    curve: Mapping[date, float] = field(default_factory=dict)


Curves = Mapping[tuple[str, Symbol], Mapping[str, Mapping[date, float]]]
"""By table and symbol, the cumulative return of each row of ours by session. Source: FinAgent figure 4 [A11]."""


def paired_rows(rows: Sequence[AgentRow], table: PublishedTable) -> list[dict[str, Any]]:
    """Every two rows of ours of a table that share symbols with as many sessions: `value` is the mean difference of a
    session's returns, as a fraction, paired over sessions and averaged over symbols."""
    by_row: dict[str, dict[Symbol, tuple[float, ...]]] = {}
    for row in rows:
        if row.returns:
            by_row.setdefault(row_name(row.model, row.answered_by), {})[row.symbol] = row.returns
    pairs = []
    for one, other in combinations(by_row, 2):
        shared = [symbol for symbol in by_row[one] if len(by_row[one][symbol]) == len(by_row[other].get(symbol, ()))]
        for length in dict.fromkeys(len(by_row[one][symbol]) for symbol in shared):
            symbols = tuple(symbol for symbol in shared if len(by_row[one][symbol]) == length)
            gaps = np.mean([np.subtract(by_row[one][s], by_row[other][s]) for s in symbols], axis=0)
            tested = paired_difference(gaps)
            head = {"table": table.name, "row": one, "other": other, "symbols": list(symbols)}
            pairs.append({**head, "value": tested.pop("mean"), **tested})
    return pairs


def row_name(who: str, answered_by: str | None) -> str:
    """A row of ours by its name and the model that answered, where that is not in the name already."""
    return who if answered_by is None or who.startswith(answered_by) else f"{who} ({answered_by})"


def median_repeat(repeats: Sequence[Metrics], sharpe: str = "SR") -> int:
    """The number of the repeat that stands for all: the one with the median Sharpe, which is also the one that holds
    every median where they fall together. Of an even number the lower of the middle two, of equal ones the first. An
    undefined Sharpe, of a run that never moved, ranks as zero. Source: InvestorBench §4.1 [I9]."""
    ratios = [metrics.get(sharpe) or 0.0 for metrics in repeats]
    return ratios.index(median_low(ratios))


def spreads(repeats: Sequence[Metrics]) -> Mapping[str, Spread]:
    """Every metric's least, greatest and median value over the repeats in which it is defined."""
    found = {}
    for metric in repeats[0]:
        values = [value for repeat in repeats if (value := repeat.get(metric)) is not None]
        low, high, middle = (min(values), max(values), median(values)) if values else (None, None, None)
        found[metric] = Spread(low, high, middle, len(repeats))
    return found


def compare(ours: Mapping[tuple[Symbol, str], Mapping[str, float | None]], table: PublishedTable) -> list[Cell]:
    """Our metrics, by symbol and strategy (or model), beside a table's, in its order.

    Every strategy or model that we have for any symbol is compared for all symbols of the table; where ours
    is missing it is None and the note says why, if that is known.
    """
    shown = {who for _, who in ours}
    return [
        _beside(table, cell, ours.get((cell.symbol, cell.who), {}).get(cell.metric))
        for cell in table.cells
        if cell.who in shown
    ]


def agent_cells(rows: Sequence[AgentRow], table: PublishedTable) -> list[Cell]:
    """The agents' part of a table: our rows in their order, each beside the printed row of its name where there is one,
    then the printed rows that we have nothing for."""
    printed: dict[tuple[Symbol, str], list[PublishedCell]] = {}
    for cell in table.cells:
        if cell.model is not None:
            printed.setdefault((cell.symbol, cell.model), []).append(cell)
    cells: list[Cell] = []
    for row in rows:
        cells += _row(row, {cell.metric: cell for cell in printed.get((row.symbol, row.model), ())}, table)
    ours = {(row.symbol, row.model) for row in rows}
    alone = (cell for key, found in printed.items() if key not in ours for cell in found)
    return [*cells, *(_beside(table, cell, None) for cell in alone)]


def _row(row: AgentRow, printed: Mapping[str, PublishedCell], table: PublishedTable) -> Iterator[Cell]:
    for metric in table.metrics():
        beside = printed.get(metric)
        notes = (row.note, None if beside is None else beside.note)
        yield Cell(
            table=table.name,
            symbol=row.symbol,
            strategy=None,
            model=row.model,
            metric=metric,
            ours=row.metrics.get(metric),
            paper=None if beside is None else beside.paper,
            note="; ".join(filter(None, notes)) or None,
            answered_by=row.answered_by,
            spread=row.spreads.get(metric),
        )


def _beside(table: PublishedTable, cell: PublishedCell, ours: float | None) -> Cell:
    return Cell(table=table.name, ours=ours, **{one.name: getattr(cell, one.name) for one in fields(cell)})


Figures = Mapping[tuple[str, Symbol, str], float]
"""A value by row, symbol and metric."""


def averages(table: PublishedTable, models: Sequence[PrintedModel], cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The means of metrics over groups of models and some symbols: of the printed rows by kind and size, then `of` each
    row of ours. A group with a gap in a metric has no average of it, as one over other symbols would not compare.
    `percent_of_buy_and_hold` is None where that is not above zero: a share of a loss says nothing."""
    own = [cell for cell in cells if cell.table == table.name]
    printed = {(c.who, c.symbol, c.metric): float(c.paper) for c in own if c.paper is not None}
    ours = {(_row_named(c), c.symbol, c.metric): c.ours for c in own if c.ours is not None}
    rows = dict.fromkeys(_row_named(cell) for cell in own if cell.answered_by is not None)
    groups: list[tuple[str, str, tuple[str, ...], Figures]] = [
        *((group, "paper", members, printed) for group, members in _groups(models, printed)),
        *((row, "ours", (row,), ours) for row in rows),
    ]
    return [
        {
            **{"table": table.name, "symbols": list(symbols), "group": group, "of": of},
            **{"metric": metric, "mean": mean, "percent_of_buy_and_hold": percent},
        }
        for symbols in table.averaged
        for group, of, members, figures in groups
        for metric, mean, percent in _means(table.metrics(), symbols, members, figures)
    ]


def _row_named(cell: Cell) -> str:
    return row_name(cell.who, cell.answered_by)


def _groups(models: Sequence[PrintedModel], printed: Figures) -> Iterator[tuple[str, tuple[str, ...]]]:
    there = {who for who, _, _ in printed}
    known = [model for model in models if model.name in there]
    for kind in dict.fromkeys(model.kind for model in known):
        yield kind, tuple(model.name for model in known if model.kind == kind)
    for size in ("large", "medium", "small"):
        # The paper compares sizes among the open models alone.
        members = tuple(m.name for m in known if m.kind == "open source" and m.size_class == size)
        if members:
            yield f"open source, {size}", members


def _means(
    metrics: Sequence[str], symbols: Sequence[Symbol], members: Sequence[str], figures: Figures
) -> Iterator[tuple[str, float, float | None]]:
    for metric in metrics:
        values = [figures.get((who, symbol, metric)) for who in members for symbol in symbols]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            continue
        held = [figures.get((BENCHMARK, symbol, metric)) for symbol in symbols]
        base = fmean(value for value in held if value is not None) if None not in held else 0.0
        mean = fmean(known)
        yield metric, mean, 100.0 * mean / base if base > 0 else None
