"""Averages over symbols and models as a percentage of buy and hold, by kind and size of model.

Source: InvestorBench Tables 2 to 4, figure 3 [I10].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from engine.domain.market import Symbol
from engine.lab.published_agents import PrintedModel
from engine.lab.published_tables import PublishedTable
from engine.reports.comparison import Cell, row_name
from engine.reports.performance import BENCHMARK

Figures = Mapping[tuple[str, Symbol, str], float]
"""A value by row, symbol and metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """The mean of a metric over a group of models and some symbols.

    group: a kind, a size, or a model by its row.
    of: the owner of the figures.
    mean: in the paper's unit.
    percent: of buy and hold's own mean; None where that is not above zero, as a share of a loss says nothing.
    """

    table: str
    symbols: tuple[Symbol, ...]
    group: str
    of: Literal["paper", "ours"]
    metric: str
    mean: float
    percent: float | None


def averages(table: PublishedTable, models: Sequence[PrintedModel], cells: Sequence[Cell]) -> list[Average]:
    """Of the printed rows by kind and size, then of each row of ours. A group with a gap in a metric has no average of
    it, as one over other symbols would not compare."""
    own = [cell for cell in cells if cell.table == table.name]
    printed = {(c.who, c.symbol, c.metric): float(c.paper) for c in own if c.paper is not None}
    ours = {(_row(c), c.symbol, c.metric): c.ours for c in own if c.ours is not None}
    rows = dict.fromkeys(_row(cell) for cell in own if cell.answered_by is not None)
    groups: list[tuple[str, Literal["paper", "ours"], tuple[str, ...], Figures]] = [
        *((group, "paper", members, printed) for group, members in _groups(models, printed)),
        *((row, "ours", (row,), ours) for row in rows),
    ]
    return [
        Average(table=table.name, symbols=symbols, group=group, of=of, metric=metric, mean=mean, percent=percent)
        for symbols in table.averaged
        for group, of, members, figures in groups
        for metric, mean, percent in _means(table.metrics(), symbols, members, figures)
    ]


def _row(cell: Cell) -> str:
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
