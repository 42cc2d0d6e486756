"""Map values to rows of the journal's tables and back: a field is a column of its name, its type says how it is stored.

Numbers and texts are stored as they are, decimals, dates and enums as text, every other value as one JSON document.
The few values that are spread over several tables have functions of their own.
"""

from __future__ import annotations

import json
import types
import typing
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import fields
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar

from engine.domain.decision import Decision, DecisionKey, Opinion, Proposal, Recollection
from engine.domain.json_text import from_json, to_json, type_hints, typed
from engine.domain.model_call import UnansweredCall, Usage
from engine.domain.order import ZERO, Order, Portfolio, Position
from engine.domain.run import EquityPoint
from engine.errors import InvariantBroken
from engine.journal.database import UNREADABLE, damaged, reading
from engine.journal.entries import Holding
from engine.messages import commands

T = TypeVar("T")
Row = dict[str, Any]
"""One row of a table, by column."""

FLATTENED = frozenset({DecisionKey, Order, Proposal, Recollection, UnansweredCall, Usage})
"""Classes whose fields are columns of the row that such a value is a part of."""

PACKED: Mapping[str, tuple[str, ...]] = {
    "answers": (
        *("messages", "system", "prompt_hash", "prompt_version", "charts", "view", "reason"),
        *("failure_detail", "answer", "raw", "text"),
    ),
    "charts": ("json",),
    "opinions": ("reason", "evidence"),
    "events": ("json",),
    "recalls": ("memories",),
    "run_states": ("model",),
    "documents": ("json",),
    "chunks": ("text",),
    "debates": ("advice", "comments"),
}
"""Columns of long texts, by table: together they lie in the row's column `packed`, a JSON object compressed by zlib."""

LEAST_PACKED = 200
"""Texts of a row that have fewer characters, all together, stay in their columns."""

RENAMED: Mapping[type, Mapping[str, str]] = {
    Decision: {"unresolved_figures": "unresolved"},
    Opinion: {"unresolved_figures": "unresolved"},
    Proposal: {
        "action": "proposed_action",
        "size": "proposed_size",
        "rule": "proposed_rule",
        "abstained_because": "abstained",
    },
    Recollection: {"id": "memory", "session": "written"},
}
"""Columns that are not named as their field, by class."""


def row_of(value: Any, *without: str) -> Row:
    """The fields of a value as columns, without those named."""
    renamed = RENAMED.get(type(value), {})
    row: Row = {}
    for name in value.__dataclass_fields__:
        if name in without:
            continue
        part = getattr(value, name)
        if type(part) in FLATTENED:
            row |= row_of(part)
        else:
            row[renamed.get(name, name)] = part
    return row


def value_of(kind: Callable[..., T], row: Mapping[str, Any], **given: Any) -> T:
    """The value of a class from its columns; the fields `given` are taken as they are."""
    read = ((name, build(row)) for name, build in _builders(kind) if name not in given)
    return kind(**dict(read), **given)


def stored(value: Any) -> Any:
    """A value as a column holds it, in text that UTF-8 can hold: models do answer with half of a surrogate pair.
    Raises InvariantBroken for a time without a zone."""
    match value:
        case None:
            return value
        case Decimal():
            return str(value)
        case Enum():
            return value.value
        case str():
            return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
        case int() | float() | bytes():
            return value
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
    return to_json(value)


def pack(table: str, row: Row) -> Row:
    """A stored row with its long texts together in `packed` and empty in their columns."""
    if table not in PACKED:
        return row
    texts = {name: row[name] for name in PACKED[table] if row.get(name)}
    if sum(map(len, texts.values())) < LEAST_PACKED:
        return row | {"packed": None}
    return row | dict.fromkeys(texts, "") | {"packed": packed(json.dumps(texts, ensure_ascii=False))}


def unpack(row: MutableMapping[str, Any]) -> None:
    """Put the texts of a row back into their columns. Raises ValueError or zlib.error for bytes that `pack` did not
    write."""
    if row.get("packed") is not None:
        row.update(json.loads(unpacked(row.pop("packed"))))


def packed(text: str) -> bytes:
    """A text, compressed. Prompts and answers come down to a quarter at little cost."""
    return zlib.compress(text.encode(), 4)


def unpacked(data: bytes) -> str:
    """The text that `packed` was given."""
    return zlib.decompress(data).decode()


def positions_text(point: EquityPoint) -> str:
    """Holdings at a close, and every other price that was known, in the order of the prices."""
    held, found = point.portfolio.positions, {}
    for symbol in {**point.prices, **held}:
        price = [str(point.prices[symbol]) if symbol in point.prices else None]
        own = held.get(symbol)
        found[symbol] = price if own is None else [*price, str(own.quantity), str(own.average_cost)]
    return json.dumps(found)


def holdings_of(row: Mapping[str, Any]) -> Iterator[Holding]:
    """The holdings in the row of a close, and every other price that was known."""
    with reading(row):
        session = date.fromisoformat(row["session"])
        for symbol, (price, *own) in json.loads(row["positions"]).items():
            quantity, cost = map(Decimal, own) if own else (ZERO, None)
            known = None if price is None else Decimal(price)
            yield Holding(
                run=row["run"],
                session=session,
                symbol=symbol,
                quantity=quantity,
                price=known,
                average_cost=cost,
                book=row["book"],
            )


def equity_of(row: Mapping[str, Any]) -> EquityPoint:
    """The books at a close from their row."""
    holdings = tuple(holdings_of(row))
    positions = {
        one.symbol: Position(one.quantity, one.average_cost) for one in holdings if one.average_cost is not None
    }
    prices = {one.symbol: one.price for one in holdings if one.price is not None}
    with reading(row):
        portfolio = Portfolio(Decimal(row["cash"]), positions, Decimal(row["money_step"]))
    return value_of(EquityPoint, row, portfolio=portfolio, prices=prices)


def command_of(row: Mapping[str, Any]) -> tuple[datetime, commands.Command]:
    """A command from its row, with its time."""
    with reading(row):
        kind: type[commands.Command] = getattr(commands, row["type"])
        return datetime.fromisoformat(row["time"]), from_json(kind, row["json"])


def version_name(kind: str, number: int) -> str:
    """The kind under which a version of a document is stored, counted from 0."""
    return f"{kind}{number or ''}"


def _moment(time: datetime) -> str:
    """A point in time as text that sorts: UTC, microseconds always there."""
    if time.tzinfo is None:
        raise InvariantBroken(f"the time {time} has no zone: the journal keeps aware times only")
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@cache
def _builders(kind: Any) -> tuple[tuple[str, Callable[[Mapping[str, Any]], Any]], ...]:
    """The fields of a class, each with the function that makes its value of a row."""
    hints, renamed = type_hints(kind), RENAMED.get(kind, {})
    return tuple(
        (
            field.name,
            partial(value_of, hints[field.name])
            if hints[field.name] in FLATTENED
            else partial(_field_of, renamed.get(field.name, field.name), _converter(hints[field.name])),
        )
        for field in fields(kind)
    )


def _field_of(column: str, convert: Callable[[Any], Any] | None, row: Mapping[str, Any]) -> Any:
    try:
        value = row[column]
        return value if value is None or convert is None else convert(value)
    except UNREADABLE as error:
        raise damaged(row, column) from error


def _converter(hint: Any) -> Callable[[Any], Any] | None:
    """The way from a column to a value of a type; None where the column has the value itself."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if hint in (str, int, float):
        return None
    if hint in (date, datetime):
        read: Callable[[Any], Any] = hint.fromisoformat
        return read
    if hint in (bool, Decimal) or (isinstance(hint, type) and issubclass(hint, Enum)):
        converted: Callable[[Any], Any] = hint
        return converted
    return lambda text: typed(hint, json.loads(text))
