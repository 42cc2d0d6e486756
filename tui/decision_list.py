"""The decisions of a journal as the rows of a table: newest first, each with the change of the price afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from engine.reports.documents.decisions import FollowedDecision
from engine.reports.documents.trail import HORIZONS
from tui import amounts
from tui.plain_text import one_line
from tui.widgets.table import Cell, Column, Row

COLUMNS = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="ACTION", max_width=8),
    Column(title="SIZE%", right=True),
    *(Column(title=f"+{n}", right=True, drop_order=1) for n in HORIZONS),
    Column(title="CUT", drop_order=3, max_width=7),
    Column(title="WHY", stretch=True, min_width=12, drop_order=2),
)
_INKS = {"BUY": "up", "SELL": "down", "ABSTAIN": "warn"}


def rows(decided: Iterable[FollowedDecision]) -> list[Row]:
    """The rows of the table."""
    return [_row(one) for one in decided]


def row_key(one: FollowedDecision) -> str:
    """The key of a decision's row."""
    key = one.decision.key
    return f"{key.run}|{key.session}|{key.cycle}|{key.symbol}|{key.owner}"


def _row(one: FollowedDecision) -> Row:
    decision = one.decision
    action = decision.action.value
    return Row(
        row_key(one),
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
