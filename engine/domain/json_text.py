"""Encode frozen values as JSON, and back to equal values; decimals and dates become text.

One codec for events, the journal's documents and recorded inputs: a second one would drift from what is on disk.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: Any) -> str:
    """One line of ASCII (a model may answer with characters that no encoding takes), keys sorted so that equal
    values are equal text. A chart's text is the one that its fingerprint is made of."""
    return json.dumps(value, default=_plain, sort_keys=True, separators=(",", ":"))


def from_json(kind: type[T], text: str) -> T:
    """The value of a dataclass that `to_json` was given."""
    return typed(kind, json.loads(text))


def plain_of(value: Any) -> Any:
    """A value in JSON's own types, the fields of a dataclass in their order."""
    return json.loads(json.dumps(value, default=_plain))


def typed(kind: type[T], plain: Any) -> T:
    """The value of a type that `plain_of` was given."""
    hint: Any = kind
    built: T = _reader(hint)(plain)
    return built


@cache
def type_hints(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields; resolving them takes longer than all the rest."""
    return typing.get_type_hints(kind)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass in their order, None for another type: of thousands of values a day's data is made."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _plain(value: Any) -> Any:
    names = _field_names(value.__class__)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """The function that makes a value of a type; finding it out for every value takes longer than all the rest. Unions
    of the same types are one to the cache, whatever their order: none here has two types beside None."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        inner = _reader(next(part for part in parts if part is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        return _tuple_reader(parts)
    if origin in (Mapping, dict):
        read_key, read_item = map(_reader, parts)
        return lambda value: {read_key(key): read_item(item) for key, item in value.items()}
    if not isinstance(hint, type):
        return _as_it_is
    if is_dataclass(hint):
        return partial(_built, hint)
    if hint in (date, datetime):
        read: Callable[[Any], Any] = hint.fromisoformat
        return read
    return hint if hint is Decimal or issubclass(hint, Enum) else _as_it_is


def _tuple_reader(parts: tuple[Any, ...]) -> Callable[[Any], Any]:
    # Series of plain numbers are most of a chart, and need no conversion.
    if parts[-1] is ... and parts[0] in (float, float | None, str):
        return tuple
    readers = [_reader(part) for part in parts if part is not ...]
    if parts[-1] is ...:
        return lambda value: tuple(map(readers[0], value))
    return lambda value: tuple(read(item) for read, item in zip(readers, value, strict=True))


def _built(kind: Callable[..., Any], value: Mapping[str, Any]) -> Any:
    readers = _field_readers(kind)
    return kind(**{name: readers[name](part) for name, part in value.items()})


@cache
def _field_readers(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    return {name: _reader(hint) for name, hint in type_hints(kind).items()}


def _as_it_is(value: Any) -> Any:
    return value
