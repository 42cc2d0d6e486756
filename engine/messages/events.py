"""Events as plain values in the past tense; each goes to JSON and comes back equal.

`time` is the clock's, UTC: the simulated moment in a backtest. Deltas are the only events that may be lost. Names and
fields are those of the journals on disk.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar

from engine.domain.run import RunKind, RunOutcome


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events: the run, and the time by the run's clock."""

    run: str
    time: datetime

    durable: ClassVar[bool] = True


Publish = Callable[[Event], None]
"""Publishes an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began; `label` introduces who decides, `steps` are the questions
    that its agents are asked about a symbol, in order (none where nobody is asked)."""

    kind: RunKind
    name: str
    label: str
    symbols: tuple[str, ...]
    first: date
    last: date
    sessions: int
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(Event):
    """The run turned to a decision session: number `index` (from 1) of `total`; `part` is warm-up or test."""

    session: date
    index: int
    total: int
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """A step of the cycle began for a symbol."""

    session: date
    symbol: str
    owner: str
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSaid(Event):
    """A piece of text as it streams from a model."""

    session: date
    symbol: str
    owner: str
    step: str
    text: str

    durable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswered(Event):
    """An agent's answer is complete (or it abstained): `text` is for a person; cost in USD."""

    session: date
    symbol: str
    owner: str
    step: str
    text: str
    model: str
    abstained: bool
    cached: bool
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionFormed(Event):
    """An owner formed an opinion that was combined with others'; `size` in percent of the portfolio, as asked."""

    session: date
    symbol: str
    owner: str
    action: str
    size: Decimal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionMade(Event):
    """A decision was final after the limits; `size` in percent of the portfolio, `cut` the changes by limits."""

    session: date
    symbol: str
    owner: str
    action: str
    size: Decimal
    reason: str
    cut: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMoved(Event):
    """An order entered a state."""

    order_id: str
    session: date
    symbol: str
    side: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilled(Event):
    """A trade happened."""

    order_id: str
    session: date
    symbol: str
    side: str
    quantity: Decimal
    price: Decimal
    fee: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettled(Event):
    """A session's books were closed.

    positions: (symbol, quantity, price).
    brought: deposits less withdrawals in it, which are no profit.
    """

    session: date
    value: Decimal
    cash: Decimal
    positions: tuple[tuple[str, Decimal, Decimal], ...]
    brought: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Noticed(Event):
    """A notice for a person: level is `info`, `warning` or `error`."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """A run ended; `detail` is the reason."""

    outcome: RunOutcome
    value: Decimal | None
    detail: str


TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        RunStarted,
        SessionOpened,
        StepStarted,
        AgentSaid,
        AgentAnswered,
        OpinionFormed,
        DecisionMade,
        OrderMoved,
        OrderFilled,
        SessionSettled,
        Noticed,
        RunFinished,
    )
}


def to_plain(event: Event) -> dict[str, Any]:
    """An event as JSON-ready values, its class under `type`; decimals and dates become text."""
    return {"type": type(event).__name__} | {f.name: _plain(getattr(event, f.name)) for f in fields(event)}


def from_plain(plain: dict[str, Any]) -> Event:
    """The event that `to_plain` was made from, also of an older program that did not know all of its fields.

    Raises KeyError for an unknown type.
    """
    kind = TYPES[plain["type"]]
    hints = typing.get_type_hints(kind)
    known = (f for f in fields(kind) if f.name in plain or f.default is MISSING)
    return kind(**{f.name: _typed(plain[f.name], hints[f.name]) for f in known})


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _typed(value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        inner = next(a for a in typing.get_args(hint) if a is not type(None))
        return None if value is None else _typed(value, inner)
    if origin is tuple:
        parts = typing.get_args(hint)
        if len(parts) == 2 and parts[1] is ...:
            return tuple(_typed(v, parts[0]) for v in value)
        return tuple(_typed(v, p) for v, p in zip(value, parts, strict=True))
    if hint is Decimal:
        return Decimal(value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    if hint is date:
        return date.fromisoformat(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    return value
