"""Values that a reader gets from the journal where the domain has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from engine.domain.decision import Debate, Decision, DecisionKey, Opinion, Outcome, Recollection
from engine.domain.model_call import PREFLIGHT, AnswerRecord, UnansweredCall, Usage
from engine.domain.order import Fill, Order, OrderState
from engine.domain.run import ModelUse, RunKind, RunOutcome, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run in its present state; `outcome` and `ended` are None while it runs, or was killed.

    session: the decision session of a desk's run, None for a backtest.
    cycle: the number of the cycle that rests on that session; 1 is the daily run's.
    started, ended: UTC; a run that went on after a kill keeps its first start.
    value: the portfolio at the end, in the quote currency.
    model: what the models of the run were asked, and the cost in USD.
    """

    id: str
    kind: RunKind
    name: str
    started: datetime
    label: str = ""
    spec: RunSpec | None = None
    symbols: tuple[str, ...] = ()
    session: date | None = None
    cycle: int = 0
    ended: datetime | None = None
    outcome: RunOutcome | None = None
    value: Decimal | None = None
    detail: str = ""
    model: ModelUse | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """One call of a model by its cost in USD, None where the price is unknown; latency in seconds. `kind` and
    `estimated` are those of a call that no agent got an answer from; `refused` is one that the vendor refused to
    answer; `repairs` counts those of its answer; `month` (UTC, YYYY-MM) is empty where it is not known."""

    agent: str
    model: str
    abstained: bool
    cached: bool
    usage: Usage
    cost: Decimal | None
    latency: float
    kind: str = ""
    estimated: bool = False
    refused: bool = False
    tier: str = ""
    repairs: int = 0
    month: str = ""

    @property
    def line(self) -> str:
        """The line of a table of spending that it stands in: its agent's, or the preflights'."""
        return PREFLIGHT if self.kind == PREFLIGHT else self.agent


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredEntry:
    """A call of a model that no agent got an answer from; `key` and `agent` are those of the question that it was made
    for, `time` is when it ended, UTC."""

    key: DecisionKey
    time: datetime
    agent: str
    call: UnansweredCall


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call of a model whose answer an agent got, without its texts; `attempt` counts from 1, the `owner` of its key
    is the one whose agent it is."""

    key: DecisionKey
    agent: str
    attempt: int


@dataclass(frozen=True, slots=True)
class StatedAnswer:
    """The checked answer of an agent, without its question; the `owner` of its key is the one whose agent it is."""

    key: DecisionKey
    agent: str
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEntry:
    """An order in its present state and size, and the run that intended it.

    cycle: the number of the cycle that decided it.
    time: when it was intended, UTC.
    owner: the owner of the decision that it carries out, empty where that is not recorded.
    decided: the order in the size that was decided, where an operator has edited it; else None.
    ended: the reason that it was rejected, cancelled (also by a veto) or expired, empty where none was given.
    """

    order: Order
    run: str
    desk: str
    cycle: int
    time: datetime
    owner: str = ""
    decided: Order | None = None
    ended: str = ""


@dataclass(frozen=True, slots=True)
class OrderMove:
    """An order entered a state; `filled_quantity` counts shares filled by then, `detail` is the broker's reason."""

    order_id: str
    time: datetime
    state: OrderState
    filled_quantity: Decimal = Decimal(0)
    detail: str = ""


@dataclass(frozen=True, slots=True)
class BoundAccount:
    """The account at a broker that a desk trades in: `kind` is the broker's (`alpaca`), `account` its id, `time`
    since when (UTC)."""

    kind: str
    account: str
    time: datetime


@dataclass(frozen=True, slots=True)
class Note:
    """A remark that a reader of a run has to know; `time` is None for one that was noted with the result."""

    run: str
    level: str
    text: str
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Shares of a symbol at a session's close, in the desk's one book or all of its books together.

    quantity: negative where short, 0 where flat.
    price, average_cost: in the quote currency, None where not known.
    book: the owner whose book it is, where one is asked for.
    """

    run: str
    session: date
    symbol: str
    quantity: Decimal
    price: Decimal | None
    average_cost: Decimal | None
    book: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that was recalled for the opinion of `owner`; `cited` where the opinion says that it rests on it."""

    memory: Recollection
    cited: bool
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The way to one decision, and its outcome.

    answers: every call of a model for the opinions that it rests on, owner by owner, in order.
    orders, moves, fills: those of its symbol and book in its cycle, and the operator's own of that session.
    undecided: trades of its symbol in the session that followed which nobody ordered, as a forced cover.
    outcome: None until the next session has closed.
    closes: the symbol's closes since, as far as the books know them.
    recalled: the memories that were recalled for these opinions.
    opinions: the opinion of every owner on its symbol in its cycle.
    unanswered: calls of models for these opinions that no agent got an answer from.
    debate: of the owners on its symbol in its cycle; None where there was none.
    """

    decision: Decision
    answers: tuple[AnswerRecord, ...]
    orders: tuple[OrderEntry, ...]
    moves: tuple[OrderMove, ...]
    fills: tuple[Fill, ...]
    outcome: Outcome | None
    closes: tuple[tuple[date, Decimal], ...]
    recalled: tuple[Recalled, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    undecided: tuple[Fill, ...] = ()
    unanswered: tuple[UnansweredEntry, ...] = ()
    debate: Debate | None = None
