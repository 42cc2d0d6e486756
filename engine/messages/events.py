"""Events in the past tense, with the values that they are about; each goes to JSON and comes back equal.

`time` is the clock's, UTC: the simulated moment in a backtest. Deltas are the only events that may be lost. Names and
fields are those of the journals on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from engine.domain.decision import Decision, Opinion
from engine.domain.json_text import plain_of, typed
from engine.domain.model_call import Usage
from engine.domain.order import Fill, Order
from engine.domain.run import EquityPoint, RunKind, RunOutcome


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
    """A run began.

    label: introduces who decides.
    symbols: all that are traded.
    first, last: sessions of the window, both included.
    sessions: their number.
    steps: questions to the agents about a symbol, in order; none where no agent is asked.
    """

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
    """An agent's answer is complete, or it abstained.

    step: the question.
    text: for a person.
    cached: True for a recorded answer.
    cost: USD; None where the price is not known.
    seconds: duration of the call.
    """

    session: date
    symbol: str
    owner: str
    step: str
    text: str
    model: str
    abstained: bool
    cached: bool
    usage: Usage
    cost: Decimal | None
    seconds: float


@dataclass(frozen=True, slots=True)
class OpinionFormed(Event):
    """An owner formed an opinion that was combined with others'."""

    opinion: Opinion


@dataclass(frozen=True, slots=True)
class DecisionMade(Event):
    """A decision was final after the limits."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class OrderMoved(Event):
    """An order entered the state that it has; `detail` is the reason, empty where none was given."""

    order: Order
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OrderFilled(Event):
    """A trade happened, published by the run that has booked it."""

    fill: Fill


@dataclass(frozen=True, slots=True)
class SessionSettled(Event):
    """A session's books were closed; `deposits` are those less withdrawals in it, which are no profit."""

    books: EquityPoint = field(hash=False)
    deposits: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class MemoryWritten(Event):
    """The desk's memory has come to a row: its number, which counts every write, and its hash. `open` while whoever
    published it may still write: a memory that has gone on from there is the desk's as well."""

    rows: int
    last: str
    open: bool


@dataclass(frozen=True, slots=True)
class Noticed(Event):
    """A notice for a person: level is `info`, `warning` or `error`."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandEnded(Noticed):
    """The notice of an operator's command that was carried out; level `error` where it was refused. `order` is the id
    of the order whose answer, edit or undo the journal has now; empty for every other command."""

    order: str = ""


@dataclass(frozen=True, slots=True)
class CycleFailed(Noticed):
    """The notice of a cycle that failed, or that could not begin; level `error`. It can be asked for again."""


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """A run ended; `detail` is the reason."""

    outcome: RunOutcome
    value: Decimal | None
    detail: str


def _kinds_of(kind: type[Event]) -> Iterator[type[Event]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds_of(one)


TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in _kinds_of(Event)}


def to_plain(event: Event) -> dict[str, Any]:
    """An event in JSON's own types, its class under `type`; decimals and dates become text."""
    return {"type": type(event).__name__, **plain_of(event)}


def from_plain(plain: dict[str, Any]) -> Event:
    """The event that `to_plain` was made from. Raises KeyError for an unknown type."""
    return typed(TYPES[plain["type"]], {name: value for name, value in plain.items() if name != "type"})
