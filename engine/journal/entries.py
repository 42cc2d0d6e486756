"""What a reader gets from the journal where the domain has no value of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from engine.domain.chart import ChartSpec
from engine.domain.decision import Decision, DecisionKey, Outcome
from engine.domain.model_call import Message, ModelResult
from engine.domain.order import Fill, Order, OrderState
from engine.domain.recollection import Recollection
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
    """One call of a model by what it cost: USD, None where the price is unknown; latency in seconds."""

    agent: str
    model: str
    abstained: bool
    cached: bool
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    cost: Decimal | None
    latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEntry:
    """One call of a model, whole: what was asked for which decision, what came, and what was made of it.

    `outcome` is `answered`, `sent back` or `abstained`, `reason` why an answer was not taken, `answer` the checked
    answer. `charts` are those of the question; `seen` is False where the model read their figures as text instead.
    `attempt` counts from 1, `sample` tells repeats of one question apart, `view` is the view in a few words.
    """

    key: DecisionKey
    time: datetime
    agent: str
    attempt: int
    prompt_hash: str
    system: str
    messages: tuple[Message, ...]
    result: ModelResult
    outcome: str
    reason: str = ""
    answer: Mapping[str, Any] | None = None
    charts: tuple[ChartSpec, ...] = ()
    seen: bool = True
    sample: int = 0
    view: str = ""


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """An order as it stands, and which run of which desk, in which cycle, meant it."""

    order: Order
    run: str
    desk: str
    cycle: int
    time: datetime


@dataclass(frozen=True, slots=True)
class OrderMove:
    """An order entered a state; `filled_quantity` is what had been filled by then, `detail` the broker's words."""

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
    """Something that a reader of a run has to know; `time` is None for one that was noted with the result."""

    run: str
    level: str
    text: str
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Shares of a symbol at a session's close (negative: short), the close and the average cost, None where not
    known."""

    run: str
    session: date
    symbol: str
    quantity: Decimal
    price: Decimal | None
    average_cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that was recalled for a decision, and whether the decision names it as what it rests on."""

    memory: Recollection
    cited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """How one decision came about and what came of it: every answer in order, the orders of its symbol in its
    cycle, their moves and fills, the outcome once it is known, the symbol's closes since, as far as the books
    know them, and what memory brought up."""

    decision: Decision
    answers: tuple[AnswerEntry, ...]
    orders: tuple[OrderEntry, ...]
    moves: tuple[OrderMove, ...]
    fills: tuple[Fill, ...]
    outcome: Outcome | None
    closes: tuple[tuple[date, Decimal], ...]
    recalled: tuple[Recalled, ...] = ()
