"""Ours beside what a paper prints, cell by cell: rules and agents, with what repeats of an agent spread over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from engine.domain.market import Symbol
from engine.lab.published_tables import PublishedCell, PublishedTable


@dataclass(frozen=True, slots=True)
class Spread:
    """One metric over `count` repeats: its least, greatest and median value; None where it is undefined in all."""

    low: float | None
    high: float | None
    median: float | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A printed figure beside ours; either may be None, not both. `rel_diff` is (ours - paper) / |paper|, None where
    one is missing or the paper prints zero. `answered_by` is the spec of the model that answered our agents, None for a
    rule and where ours is missing; `spread` is there where ours stands for several repeats."""

    table: str
    symbol: Symbol
    strategy: str | None
    model: str | None
    metric: str
    ours: float | None
    paper: Decimal | None
    rel_diff: float | None
    note: str | None
    answered_by: str | None = None
    spread: Spread | None = None

    @property
    def who(self) -> str:
        """The strategy or the model."""
        return self.strategy or self.model or ""

    @property
    def as_printed(self) -> bool:
        """Whether ours, rounded as the paper's figure is, lies within one unit of its last digit."""
        if self.ours is None or self.paper is None:
            return False
        unit = Decimal(1).scaleb(int(self.paper.as_tuple().exponent))
        return abs(Decimal(repr(self.ours)) - self.paper) < unit


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """What an agent of ours came to on a symbol, for the row `model` of a table: the printed one of that name, or one
    of our own. `metrics` are empty where the row cannot be had; `note` says why, or what a reader has to know."""

    symbol: Symbol
    model: str
    answered_by: str
    metrics: Mapping[str, float | None]
    note: str | None = None
    spreads: Mapping[str, Spread] = field(default_factory=dict)


def row_name(who: str, answered_by: str | None) -> str:
    """A row of ours by its name and the model that answered, where that is not in the name already."""
    return who if answered_by is None or who.startswith(answered_by) else f"{who} ({answered_by})"


def compare(ours: Mapping[tuple[Symbol, str], Mapping[str, float | None]], table: PublishedTable) -> list[Cell]:
    """Our metrics, by symbol and strategy (or model), beside a table's, in its order.

    Every strategy or model that we have for any symbol is compared for all symbols of the table; where ours
    is missing it is None and the note says why, if that is known.
    """
    shown = {who for _, who in ours}
    return [
        _beside(table, cell, ours.get((cell.symbol, cell.who), {}).get(cell.metric), cell.note)
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
    return [*cells, *(_beside(table, cell, None, cell.note) for cell in alone)]


def _row(row: AgentRow, printed: Mapping[str, PublishedCell], table: PublishedTable) -> Iterator[Cell]:
    for metric in table.metrics():
        value, spread = row.metrics.get(metric), row.spreads.get(metric)
        beside = printed.get(metric)
        if beside is not None:
            note = "; ".join(filter(None, (row.note, beside.note))) or None
            yield _beside(table, beside, value, note, row.answered_by, spread)
        else:
            yield Cell(
                table=table.name,
                symbol=row.symbol,
                strategy=None,
                model=row.model,
                metric=metric,
                ours=value,
                paper=None,
                rel_diff=None,
                note=row.note,
                answered_by=row.answered_by,
                spread=spread,
            )


def _beside(
    table: PublishedTable,
    cell: PublishedCell,
    ours: float | None,
    note: str | None,
    answered_by: str | None = None,
    spread: Spread | None = None,
) -> Cell:
    paper = float(cell.value)
    apart = None if ours is None or paper == 0.0 else (ours - paper) / abs(paper)
    return Cell(
        table=table.name,
        symbol=cell.symbol,
        strategy=cell.strategy,
        model=cell.model,
        metric=cell.metric,
        ours=ours,
        paper=cell.value,
        rel_diff=apart,
        note=note,
        answered_by=answered_by,
        spread=spread,
    )
