"""Reader of actions/SYMBOL.csv: splits and cash dividends by ex-date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

from connectors.files.prices import iso_date, number
from connectors.files.rows import check_header, csv_rows, malformed
from engine.domain.market import ActionKind, CorporateAction, Symbol

ACTION_COLUMNS = ("ex_date", "kind", "value")

_MOST = Decimal(1_000_000)  # above any split or dividend ever made; a larger one is a slip


def read_actions(path: Path, symbol: Symbol) -> tuple[CorporateAction, ...]:
    """All actions of a file, in order of ex-date; the rows may be in any order.

    Raises MalformedData at the first bad row, and for two of one kind on a date.
    """
    rows = csv_rows(path)
    check_header(path, next(rows, None), ACTION_COLUMNS)
    found: dict[tuple[date, ActionKind], CorporateAction] = {}
    for line, cells in rows:
        try:
            action = action_row(symbol, cells)
        except ValueError as problem:
            raise malformed(path, line, str(problem)) from None
        if (action.ex_date, action.kind) in found:
            raise malformed(path, line, f"a second {action.kind} on {action.ex_date}; keep one row")
        found[action.ex_date, action.kind] = action
    return in_order(found.values())


def in_order(actions: Iterable[CorporateAction]) -> tuple[CorporateAction, ...]:
    """Actions by ex-date; on one date the dividend is before the split."""
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.kind)))


def action_row(symbol: Symbol, cells: Sequence[str]) -> CorporateAction:
    """One checked action from the texts of its cells, in the order of ACTION_COLUMNS.

    Raises ValueError with the problem and its remedy.
    """
    if len(cells) != len(ACTION_COLUMNS):
        raise ValueError(f"{len(cells)} cells where {len(ACTION_COLUMNS)} belong; write ex_date,kind,value")
    day, kind, text = cells
    if kind not in tuple(ActionKind):
        raise ValueError(f"kind {kind[:40]!r} is unknown; write {' or '.join(ActionKind)}")
    value = number("value", text)
    if not 0 < value < _MOST:
        raise ValueError(f"value {text[:40]} is not between 0 and {_MOST}; correct the row")
    return CorporateAction(symbol, iso_date(day), ActionKind(kind), value)
