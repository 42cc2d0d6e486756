"""Corporate actions by ex-date: cash dividends, splits and stock dividends, and the unsupported ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from connectors.alpaca.data.names import by_wire
from connectors.alpaca.data.pages import AlpacaPages
from connectors.alpaca.symbols import to_wire
from engine.domain.market import ActionKind, CorporateAction, Symbol, SymbolActions, is_crypto

_PAGE = "1000"
_AT_ONCE = 50  # symbols of one request: their names stand in its address
_BEFORE, _AFTER = timedelta(days=10), timedelta(days=370)
"""Margins of a request: the service selects by the day of processing, a dividend's by the day of its payment, weeks or
months after its ex-date."""

_SPLITS = ("forward_splits", "reverse_splits")
_OTHERWISE = {
    "spin_offs": "source_symbol",
    "rights_distributions": "source_symbol",
    "unit_splits": "old_symbol",
}
"""Unsupported actions that change the value of a share, with the field that names the share."""
FOREIGN_CURRENCY = "dividend in another currency"


async def corporate_actions(
    pages: AlpacaPages, symbols: Sequence[Symbol], first: date, last: date
) -> dict[Symbol, SymbolActions]:
    """All actions with an ex-date within a period, both days included, for every share; crypto has none."""
    shares = [symbol for symbol in symbols if not is_crypto(symbol)]
    actions: dict[Symbol, list[_ActionRow]] = {symbol: [] for symbol in shares}
    for at in range(0, len(shares), _AT_ONCE):
        some = shares[at : at + _AT_ONCE]
        params = {
            "symbols": ",".join(map(to_wire, some)),
            "start": (first - _BEFORE).isoformat(),
            "end": (last + _AFTER).isoformat(),
            "limit": _PAGE,
            "sort": "asc",
        }
        names = by_wire(some)
        async for page in pages.follow("/v1/corporate-actions", params, _action_rows):
            for name, one in page:
                if name in names and first <= one.ex_date <= last:
                    actions[names[name]].append(one)
    return {symbol: _summary(symbol, rows) for symbol, rows in actions.items()}


@dataclass(frozen=True, slots=True)
class _ActionRow:
    """One action of the service; `kind` None for an unsupported one. The service may list one twice, with the same
    id."""

    id: str
    ex_date: date
    kind: ActionKind | None
    value: Decimal
    description: str = ""


def _action_rows(page: dict[str, Any]) -> list[tuple[str, _ActionRow]]:
    groups: Mapping[str, Sequence[Mapping[str, Any]]] = page["corporate_actions"] or {}
    rows: list[tuple[str, _ActionRow]] = []
    for row in groups.get("cash_dividends") or ():
        if (row.get("currency") or "USD") == "USD":
            rows.append((row["symbol"], _one(row, ActionKind.DIVIDEND, _positive(row["rate"]))))
        else:
            rows.append((row["symbol"], _one(row, None, Decimal(0), FOREIGN_CURRENCY)))
    for group in _SPLITS:
        for row in groups.get(group) or ():
            ratio = _positive(row["new_rate"]) / _positive(row["old_rate"])
            rows.append((row["symbol"], _one(row, ActionKind.SPLIT, ratio)))
    for row in groups.get("stock_dividends") or ():
        rows.append((row["symbol"], _one(row, ActionKind.SPLIT, 1 + _positive(row["rate"]))))
    for group, named in _OTHERWISE.items():
        for row in groups.get(group) or ():
            rows.append((row[named], _one(row, None, Decimal(0), group.removesuffix("s").replace("_", "-"))))
    return rows


def _one(row: Mapping[str, Any], kind: ActionKind | None, value: Decimal, description: str = "") -> _ActionRow:
    day = row.get("ex_date") or row.get("effective_date") or row["process_date"]
    return _ActionRow(str(row["id"]), date.fromisoformat(day), kind, value, description)


def _summary(symbol: Symbol, rows: Sequence[_ActionRow]) -> SymbolActions:
    """Actions by day: two dividends of a day are added, two splits multiplied."""
    values: dict[tuple[date, ActionKind], Decimal] = {}
    unsupported: set[tuple[date, str]] = set()
    for one in {one.id: one for one in rows}.values():
        if one.kind is None:
            unsupported.add((one.ex_date, one.description))
            continue
        key = one.ex_date, one.kind
        if key not in values:
            values[key] = one.value
        elif one.kind is ActionKind.DIVIDEND:
            values[key] += one.value
        else:
            values[key] *= one.value
    actions = (CorporateAction(symbol, day, kind, value) for (day, kind), value in sorted(values.items()))
    return SymbolActions(tuple(actions), tuple(sorted(unsupported)))


def _positive(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not value > 0:
        raise TypeError(f"{str(value)[:40]!r} is no rate above zero")
    return Decimal(value)
