"""Our rows of a published table: the agents' of runs that have ended, and the rules' of symbols loaded one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from engine.app.bench.jobs import Played
from engine.app.bench.plan import Plan, PlannedRow
from engine.app.look_index import result_look
from engine.app.market_data import load_window
from engine.conventions.metrics import Metrics
from engine.domain.decision import Action
from engine.domain.market import Symbol
from engine.domain.run import LookKind, Result, WindowLook
from engine.errors import MissingData, StaleData
from engine.lab.published_runs import Override, measured, run_rule
from engine.lab.published_tables import PublishedTable
from engine.ports import Calendar, MarketSource
from engine.reports.comparison import AgentRow, median_repeat, spreads

_NEWS_GAP = timedelta(days=30)
"""Shortest time without news at a window's begin or end that is noted."""

TextNotes = Mapping[tuple[Symbol, str], str]
"""Notes on news that the folder lacks, by symbol and table."""


def agent_rows(made: Plan, played: Mapping[int, Played], texts: TextNotes) -> Iterator[tuple[PublishedTable, AgentRow]]:
    """The rows whose runs have all ended."""
    whole: dict[tuple[object, ...], AgentRow] = {}
    for planned in made.rows:
        ended = [played[number] for number in planned.jobs if number in played]
        if len(ended) < len(planned.jobs):
            continue
        row = _row(planned, ended, made.agents.measured, texts.get((planned.symbol, planned.table.name)))
        beside = (planned.table.name, planned.symbol, planned.backbone)
        if planned.ablation is None:
            whole[beside] = row
        elif row.metrics and beside in whole and row.metrics == whole[beside].metrics:
            row = replace(row, note=f"{row.note}; what it leaves out changed nothing")
        yield planned.table, row


def _row(planned: PlannedRow, ended: Sequence[Played], by: Literal["books", "decisions"], text: str | None) -> AgentRow:
    """One row of its repeats: figures and notes, or the note alone."""
    results = [one.result for one in ended if one.result is not None]
    trouble = next((one.trouble for one in ended if one.trouble), None)
    row = AgentRow(
        symbol=planned.symbol, model=planned.model, answered_by=planned.backbone.spec, metrics={}, note=trouble
    )
    if not results:
        return row
    repeats = [measured(result, planned.symbol, planned.table.convention, by) for result in results]
    notes = (
        f"{planned.backbone.spec}: {planned.backbone.label}",
        text,
        None if trouble is None else f"{len(results)} of {len(ended)} repeats: {trouble}",
        _abstained(results),
        None if any(_acted(result, by) for result in results) else "it never traded",
        *dict.fromkeys(note for result in results for note in result.notes),
        None if planned.ablation is None else planned.ablation.note,
    )
    spread = spreads(repeats) if len(repeats) > 1 else {}
    return replace(row, metrics=repeats[median_repeat(repeats)], note="; ".join(filter(None, notes)), spreads=spread)


def _acted(result: Result, by: Literal["books", "decisions"]) -> bool:
    if by == "books":
        return bool(result.test.fills)
    return any(decision.proposal.action in (Action.BUY, Action.SELL) for decision in result.test.decisions)


def _abstained(results: Sequence[Result]) -> str | None:
    count = sum(decision.abstained for result in results for decision in result.test.decisions)
    total = sum(len(result.test.decisions) for result in results)
    return f"{count} of {total} decisions abstained" if count else None


async def text_notes(source: MarketSource, tables: Sequence[PublishedTable]) -> TextNotes:
    """Notes on news of the tables' windows that the folder lacks. A symbol that it does not know is noted elsewhere."""
    known = set(await source.symbols())
    notes = {}
    for table in tables:
        for symbol in known.intersection(table.symbols()):
            items = (await source.news(symbol)).items
            days = sorted(d for item in items if table.warm_up_from <= (d := item.available_at.date()) <= table.last)
            if not days:
                notes[symbol, table.name] = f"no news of {symbol} from {table.warm_up_from} on: decided on prices alone"
                continue
            gaps = []
            if days[0] - table.warm_up_from > _NEWS_GAP:
                gaps.append(f"begin on {days[0]}")
            if table.last - days[-1] > _NEWS_GAP:
                gaps.append(f"end on {days[-1]}")
            if gaps:
                notes[symbol, table.name] = f"news of {symbol} {' and '.join(gaps)}"
    return notes


Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRows:
    """The rows of rules.

    source: prices.
    calendar_for: the trading calendar of a symbol.
    changes: parameters that the user has changed.
    report: hears of each symbol.
    now: date of the looks (UTC).
    priced: symbols with prices.
    missing: reasons why other symbols have none.
    looks: looks at the tables' windows.
    """

    source: MarketSource
    calendar_for: Callable[[Symbol], Calendar]
    changes: Sequence[Override]
    report: Report
    now: datetime
    priced: set[Symbol] = field(default_factory=set)
    missing: dict[Symbol, str] = field(default_factory=dict)
    looks: list[WindowLook] = field(default_factory=list)

    def of(self, table: PublishedTable) -> dict[tuple[Symbol, str], Metrics]:
        """The metrics of a table's rules by symbol and rule, empty where a symbol's prices are missing or stale.
        Raises MalformedData for a row of a file that cannot be read."""
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for symbol in table.symbols():
            self.report(f"{table.name}: {symbol}")
            try:
                ours |= self._rows(table, symbol)
                self.priced.add(symbol)
            except (MissingData, StaleData) as error:
                ours |= {(symbol, rule): {} for rule in table.strategies()}
                self.missing[symbol] = str(error)
        return ours

    def _rows(self, table: PublishedTable, symbol: Symbol) -> dict[tuple[Symbol, str], Metrics]:
        market = asyncio.run(load_window(self.source, self.calendar_for, (symbol,), table.first, table.last))
        wanted = {cell.strategy for cell in table.cells if cell.symbol == symbol and cell.strategy}
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for rule in sorted(wanted):
            result = run_rule(table, symbol, rule, market, self.changes)
            self.looks.append(result_look(LookKind.BENCH, result, self.now))
            ours[symbol, rule] = measured(result, symbol, table.convention)
        return ours
