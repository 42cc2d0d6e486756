"""Encode frozen values as JSON, and back to equal values; decimals and dates become text.

One codec for events, the journal's documents and recorded inputs: a second one would drift from what is on disk.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
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
    built: T = _typed(plain, kind)
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


def _typed(value: Any, hint: Any) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        inner = next(part for part in parts if part is not type(None))
        return None if value is None else _typed(value, inner)
    if origin is tuple:
        return _typed_tuple(value, parts)
    if origin in (Mapping, dict):
        return {_typed(key, parts[0]): _typed(item, parts[1]) for key, item in value.items()}
    if not isinstance(hint, type):
        return value
    if is_dataclass(hint):
        hints = type_hints(hint)
        return hint(**{name: _typed(part, hints[name]) for name, part in value.items()})
    if hint in (date, datetime):
        return hint.fromisoformat(value)
    if hint is Decimal or issubclass(hint, Enum):
        return hint(value)
    return value


def _typed_tuple(value: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    if parts[-1] is not ...:
        return tuple(_typed(item, part) for item, part in zip(value, parts, strict=True))
    # Series of plain numbers are most of a chart, and need no conversion.
    if parts[0] in (float, float | None, str):
        return tuple(value)
    return tuple(_typed(item, parts[0]) for item in value)
