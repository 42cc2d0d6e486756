"""The rule rows of a published table: each symbol is loaded alone, so that a missing one costs no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from engine.app.look_index import result_look
from engine.app.market_data import load_window
from engine.conventions.metrics import Metrics
from engine.domain.market import Symbol
from engine.domain.run import LookKind, WindowLook
from engine.errors import MissingData, StaleData
from engine.lab.published_runs import Override, measured, run_rule
from engine.lab.published_tables import PublishedTable
from engine.ports import Calendar, MarketSource

Say = Callable[[str], None]


class RuleRows:
    """Rules of tables, run; `found` are symbols with prices, `missing` says why others have none, `looks` are those
    that were taken at the tables' windows, dated `now` (UTC)."""

    def __init__(
        self,
        source: MarketSource,
        calendar_for: Callable[[Symbol], Calendar],
        changes: Sequence[Override],
        say: Say,
        *,
        now: datetime,
    ) -> None:
        self.found: set[Symbol] = set()
        self.missing: dict[Symbol, str] = {}
        self._source, self._calendar_for = source, calendar_for
        self._changes, self._say, self._now = changes, say, now
        self.looks: list[WindowLook] = []

    def of(self, table: PublishedTable) -> dict[tuple[Symbol, str], Metrics]:
        """The metrics of a table's rules by symbol and rule, empty where a symbol's prices are missing or stale.
        Raises MalformedData for a row of a file that cannot be read."""
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for symbol in table.symbols():
            self._say(f"{table.name}: {symbol}")
            try:
                ours |= self._rows(table, symbol)
                self.found.add(symbol)
            except (MissingData, StaleData) as error:
                ours |= {(symbol, rule): {} for rule in table.strategies()}
                self.missing[symbol] = str(error)
        return ours

    def _rows(self, table: PublishedTable, symbol: Symbol) -> dict[tuple[Symbol, str], Metrics]:
        market = asyncio.run(load_window(self._source, self._calendar_for, (symbol,), table.first, table.last))
        wanted = {cell.strategy for cell in table.cells if cell.symbol == symbol and cell.strategy}
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for rule in sorted(wanted):
            result = run_rule(table, symbol, rule, market, self._changes)
            self.looks.append(result_look(LookKind.BENCH, result, self._now))
            ours[symbol, rule] = measured(result, symbol, table.convention)
        return ours
