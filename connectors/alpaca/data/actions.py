"""Corporate actions by ex-date: cash dividends, splits and stock dividends, and what cannot be told as one of them."""

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
"""The service selects by the day of processing, a dividend's by the day on which it is paid: weeks after its ex-date,
sometimes months."""

_SPLITS = ("forward_splits", "reverse_splits")
_OTHERWISE = {
    "spin_offs": "source_symbol",
    "rights_distributions": "source_symbol",
    "unit_splits": "old_symbol",
}
"""What changes the worth of a share without being a split or cash; the field that names the share."""
FOREIGN_CURRENCY = "dividend in another currency"


async def corporate_actions(
    pages: AlpacaPages, symbols: Sequence[Symbol], first: date, last: date
) -> dict[Symbol, SymbolActions]:
    """Everything with an ex-date from one day to another, both included, for every share asked for; coins have none."""
    shares = [symbol for symbol in symbols if not is_crypto(symbol)]
    found: dict[Symbol, list[_Said]] = {symbol: [] for symbol in shares}
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
        async for page in pages.follow("/v1/corporate-actions", params, _said):
            for name, one in page:
                if name in names and first <= one.ex_date <= last:
                    found[names[name]].append(one)
    return {symbol: _summary(symbol, said) for symbol, said in found.items()}


@dataclass(frozen=True, slots=True)
class _Said:
    """One action as the service has it; `kind` None where it is neither a split nor cash. The service may list one
    twice: its id tells."""

    id: str
    ex_date: date
    kind: ActionKind | None
    value: Decimal
    words: str = ""


def _said(page: dict[str, Any]) -> list[tuple[str, _Said]]:
    groups: Mapping[str, Sequence[Mapping[str, Any]]] = page["corporate_actions"] or {}
    found: list[tuple[str, _Said]] = []
    for row in groups.get("cash_dividends") or ():
        if (row.get("currency") or "USD") == "USD":
            found.append((row["symbol"], _one(row, ActionKind.DIVIDEND, _positive(row["rate"]))))
        else:
            found.append((row["symbol"], _one(row, None, Decimal(0), FOREIGN_CURRENCY)))
    for group in _SPLITS:
        for row in groups.get(group) or ():
            ratio = _positive(row["new_rate"]) / _positive(row["old_rate"])
            found.append((row["symbol"], _one(row, ActionKind.SPLIT, ratio)))
    for row in groups.get("stock_dividends") or ():
        found.append((row["symbol"], _one(row, ActionKind.SPLIT, 1 + _positive(row["rate"]))))
    for group, named in _OTHERWISE.items():
        for row in groups.get(group) or ():
            found.append((row[named], _one(row, None, Decimal(0), group.removesuffix("s").replace("_", "-"))))
    return found


def _one(row: Mapping[str, Any], kind: ActionKind | None, value: Decimal, words: str = "") -> _Said:
    day = row.get("ex_date") or row.get("effective_date") or row["process_date"]
    return _Said(str(row["id"]), date.fromisoformat(day), kind, value, words)


def _summary(symbol: Symbol, said: Sequence[_Said]) -> SymbolActions:
    """Two dividends of a day are paid together, and two splits multiply."""
    values: dict[tuple[date, ActionKind], Decimal] = {}
    untold: set[tuple[date, str]] = set()
    for one in {one.id: one for one in said}.values():
        if one.kind is None:
            untold.add((one.ex_date, one.words))
            continue
        key = one.ex_date, one.kind
        if key not in values:
            values[key] = one.value
        elif one.kind is ActionKind.DIVIDEND:
            values[key] += one.value
        else:
            values[key] *= one.value
    actions = (CorporateAction(symbol, day, kind, value) for (day, kind), value in sorted(values.items()))
    return SymbolActions(tuple(actions), tuple(sorted(untold)))


def _positive(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not value > 0:
        raise TypeError(f"{str(value)[:40]!r} is no rate above zero")
    return Decimal(value)
