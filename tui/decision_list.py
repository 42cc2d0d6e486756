"""The decisions of a journal as the rows of a table: newest first, each with what the price did afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.domain.decision import Decision, DecisionKey
from engine.domain.market import NANO
from tui import amounts
from tui.plain_text import one_line
from tui.widgets.table import Cell, Column, Row

if TYPE_CHECKING:
    from pathlib import Path

    from engine.domain.market import PriceHistory
    from engine.market.as_of import MarketAsOf

AFTER = (1, 5, 20)
"""Sessions after which the outcome is told."""

COLUMNS = (
    Column(title="SESSION"),
    Column(title="SYM", most=9),
    Column(title="ACTION", most=8),
    Column(title="SIZE%", right=True),
    *(Column(title=f"+{n}", right=True, yields=1) for n in AFTER),
    Column(title="CUT", yields=3, most=7),
    Column(title="WHY", fills=True, least=12, yields=2),
)
_INKS = {"BUY": "up", "SELL": "down", "ABSTAIN": "warn"}

ALL_BARS = 100_000


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision and the change of its symbol's close after 1, 5 and 20 sessions, as fractions; None where not
    known yet."""

    decision: Decision
    changes: tuple[float | None, ...]

    @property
    def key(self) -> str:
        """What names its row."""
        key = self.decision.key
        return f"{key.run}|{key.session}|{key.cycle}|{key.symbol}|{key.owner}"


def read_decisions(journal: Path, run: str | None, known: MarketAsOf | None) -> tuple[Decided, ...]:
    """The decisions of a journal (of one run of it, or of all), newest first; where the market lacks a symbol, its
    closes come from the books. Raises what JournalReader raises; takes as long as the journal is long."""
    if not journal.is_file():
        return ()
    from engine.journal.reader import JournalReader

    with JournalReader(journal) as reader:
        decisions = reader.decisions(run)
        closes = {symbol: _closes(known, symbol) for symbol in dict.fromkeys(d.key.symbol for d in decisions)}
        for symbol in [symbol for symbol, found in closes.items() if not found]:
            closes[symbol] = {h.session: h.price for h in reader.holdings(run, symbol) if h.price is not None}
    order = {symbol: sorted(found) for symbol, found in closes.items()}
    listed = [Decided(d, _changes(d.key, closes[d.key.symbol], order[d.key.symbol])) for d in decisions]
    # The journal has each session's symbols in their order: only the sessions are turned around.
    return tuple(sorted(listed, key=lambda one: one.decision.key.session, reverse=True))


def rows(decided: Sequence[Decided]) -> list[Row]:
    """The rows of the table."""
    return [_row(one) for one in decided]


def _row(one: Decided) -> Row:
    decision = one.decision
    action = decision.action.value
    return Row(
        one.key,
        (
            Cell(decision.key.session.isoformat() + (f" {decision.key.cycle}" if decision.key.cycle > 1 else "")),
            Cell(decision.key.symbol, "strong"),
            Cell("abstain" if decision.abstained else action, _INKS.get(action, "text")),
            Cell(amounts.size(decision.size), order=decision.size),
            *(Cell(amounts.percent(c, 1), _ink(c), order=c) for c in one.changes),
            Cell("cut" if decision.cuts else "", "warn"),
            Cell(one_line(decision.reason), "muted"),
        ),
    )


def _ink(change: float | None) -> str:
    return "muted" if not change else "up" if change > 0 else "down"


def _closes(known: MarketAsOf | None, symbol: str) -> dict[date, Decimal]:
    if known is None or symbol not in known.symbols or not known.count(symbol):
        return {}
    bars: PriceHistory = known.bars(symbol, ALL_BARS)
    return {bars.session(n): Decimal(bars.close[n]) / NANO for n in range(len(bars))}


def _changes(key: DecisionKey, closes: Mapping[date, Decimal], order: Sequence[date]) -> tuple[float | None, ...]:
    from bisect import bisect_left

    start = closes.get(key.session)
    row = bisect_left(order, key.session)
    if not start:
        return tuple(None for _ in AFTER)
    return tuple(float(closes[order[row + n]] / start - 1) if row + n < len(order) else None for n in AFTER)
