"""A run as a value: a frozen, picklable description goes in, a result comes out.

The briefing of a desk's agents: what the user adds to a preset, kept with a run so that it can be run again.

Books carried forward: a portfolio after trades, cash flows and adopted differences.

Execution rules of a market as a value: how orders become trades.

The treatment of a desk's orders: its configuration says which of three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from engine.domain.decision import Decision, Opinion
from engine.domain.market import Dropped, Symbol
from engine.domain.model_call import NO_OPTIONS, AnswerOptions, Usage
from engine.domain.order import CENT, EXACT, ZERO, Fill, Portfolio, Position


class RunKind(StrEnum):
    """The kind of a run: a backtest, a desk's daily run, a cycle within the session that follows one, a run after the
    close that decides one symbol alone, or the run of an operator's own order, which decides nothing."""

    BACKTEST = "backtest"
    DAILY = "daily"
    INTRADAY = "session"
    SYMBOL = "symbol"
    ORDER = "order"


class RunOutcome(StrEnum):
    """The end of a run. WAITING has orders that need approval, HALTED was stopped by a person or by books that
    disagree, PAUSED was kept from deciding by a person, SKIPPED is a session that passed without a run; DONE and
    SKIPPED are final, the others can go on."""

    DONE = "done"
    WAITING = "waiting"
    HALTED = "halted"
    PAUSED = "paused"
    FAILED = "failed"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"


class RunTrigger(StrEnum):
    """The start of a desk's run: by a command in a terminal, by one without a terminal as cron calls it, by `--watch`,
    or in the app."""

    TERMINAL = "terminal"
    CRON = "cron"
    WATCH = "watch"
    APP = "app"


class TrialKind(StrEnum):
    """The kind of evaluation of a window."""

    BACKTEST = "backtest"
    TUNE_TRIAL = "tune trial"
    ABLATION = "ablation"
    REDECISION = "redecision"
    AUDIT = "audit"
    BENCH = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One evaluation of a strategy or a preset on a window: the more of them, the less the best one means.

    time: when it was made, UTC.
    run: the run that made it, empty where it has none of its own.
    name: the strategy or the preset.
    first, last: the first and the last session of the window.
    spec_hash: equal for trials that decide in the same way.
    returns: of the portfolio from close to close as fractions, net of deposits; empty where nothing was traded.
    """

    time: datetime
    kind: TrialKind
    name: str
    symbols: tuple[Symbol, ...]
    first: date
    last: date
    spec_hash: str
    run: str = ""
    returns: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Source of market data: a folder, or (None) the demo market of a seed; `macro` names the macro series that are
    read, as far as there are any."""

    folder: str | None = None
    demo_seed: int = 0
    macro: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything that decides what a backtest does; None means the value of the convention, preset or configuration.

    first, last: the first and last session of filling and valuing.
    warm_up_from: the first session of the warm-up, None without one.
    preset, strategy: exactly one is set.
    params: parameters of the strategy as texts.
    without: steps of the preset that are left out.
    cash, commission: in the quote currency, as a fraction of the amount traded.
    slippage_bp: basis points against the trader.
    run, journal: the id of the run and its file; they decide nothing.
    sample: tells repeats of one run apart, since it is part of every question.
    briefing, embedder, rules: the configuration's once a run has begun; `rules` are all fills and costs.
    preset_text: the whole preset as JSON once a run has begun: its file may change later.
    data_fingerprint, version: of the data through the window and of the program; they decide nothing.
    options: go with every question.
    model: answers every agent; `models` by agent where several do, once a run has begun and `model` is None.
    batch: the agents that read the market alone are asked in batches; it decides nothing.
    """

    symbols: tuple[Symbol, ...]
    first: date
    last: date
    warm_up_from: date | None = None
    preset: str | None = None
    strategy: str | None = None
    params: tuple[tuple[str, str], ...] = ()
    data: DataSpec = DataSpec()
    model: str | None = None
    without: tuple[str, ...] = ()
    convention: str = "desk"
    cash: Decimal | None = None
    commission: Decimal | None = None
    slippage_bp: Decimal | None = None
    seed: int = 0
    run: str = "run"
    journal: str | None = None
    sample: int = 0
    briefing: Briefing | None = None
    embedder: str | None = None
    rules: ExecutionRules | None = None
    preset_text: str | None = None
    data_fingerprint: str = ""
    version: str = ""
    options: AnswerOptions = NO_OPTIONS
    models: tuple[tuple[str, str], ...] = ()
    batch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CashFlow:
    """Cash, or shares, that moved without a trade. A position that stopped trading is sold, so it is a fill.

    symbol: empty where the flow concerns the whole account.
    kind: `dividend`, `cash in lieu` (of the part of a share that a split left) or `borrow cost` (of shares that were
        sold short); in an account at a broker also `split`, `fee`, `interest`, `transfer`, `rounding` or `other`.
    amount: the signed change of cash, in the quote currency.
    quantity: the signed change of shares, by a split.
    description: the broker's, empty on the simulated market.
    book: the owner whose book it changes, empty where the desk has one book only.
    """

    session: date
    symbol: Symbol
    kind: str
    amount: Decimal
    quantity: Decimal = Decimal(0)
    description: str = ""
    book: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A difference between journal and broker in which a person took the broker's side.

    session: the close after which it counts.
    symbol: empty for cash.
    before, after: the quantity, or the cash, by the journal and by the broker.
    price: the average cost that is assumed of a share, in the quote currency.
    time: when it was taken, UTC; None before it is written.
    """

    session: date
    symbol: Symbol
    before: Decimal
    after: Decimal
    price: Decimal
    reason: str
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class EquityPoint:
    """The books at a session's close: `value` is cash plus every position at `prices`; `book` names the owner whose
    book it is, empty for the desk's one book, or all of its books together."""

    session: date
    value: Decimal
    portfolio: Portfolio
    prices: dict[Symbol, Decimal]
    book: str = ""


def total_cost(costs: Iterable[Decimal | None]) -> Decimal | None:
    """The sum of some costs; None as soon as one of them is not known."""
    every = list(costs)
    known = [cost for cost in every if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(every) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """The use of models by a run.

    spec: the models, as they are named.
    calls, cached_calls: answers of models, and recorded answers that cost nothing.
    abstentions, refusals: questions that no valid answer came to, and those that a vendor refused to answer.
    repairs: of answers, by form or type, where one thing alone could be meant.
    usage: as far as tokens were counted.
    uncounted_calls: calls whose tokens the service did not tell.
    preflight_calls, failed_calls: further calls, before the first answer and of those that failed; their tokens and
        cost count.
    estimated_calls: those of them whose tokens and cost are an estimate: streams that were cut.
    cost: USD, None where a price or the tokens of a call that is not free are unknown.
    training_cutoff: the month until which the models know the world, or `unknown`; empty for the rules.
    prices_as_of: the date of the prices that the cost was counted by; empty where they are the user's own, or unknown.
    tier: the vendors' tiers that answered and that they billed by, where they name any.
    agents: the use by each agent, and by the embedder.
    models, months: the use of each model, and in each month (UTC, YYYY-MM) in which it was asked, where that is known.
    """

    spec: str
    calls: int = 0
    cached_calls: int = 0
    abstentions: int = 0
    refusals: int = 0
    repairs: int = 0
    usage: Usage = field(default_factory=Usage)
    uncounted_calls: int = 0
    preflight_calls: int = 0
    failed_calls: int = 0
    estimated_calls: int = 0
    cost: Decimal | None = Decimal(0)
    training_cutoff: str = ""
    prices_as_of: str = ""
    tier: str = ""
    agents: Mapping[str, ModelUse] = field(default_factory=dict)
    models: Mapping[str, ModelUse] = field(default_factory=dict)
    months: Mapping[str, ModelUse] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """One part of a run, the warm-up or the test, each sequence in order.

    initial_value: the money that the part began with, in the quote currency.
    equity: the books at each close; of a desk whose owners have books of their own all books together.
    decisions: what was decided after opinions were combined and limited.
    adoptions: differences with an account at a broker in which a person took the broker's side.
    opinions: the opinion of every owner; none of a rule strategy.
    books: the owners' own books at each close, where they have any.
    book_fills: the trades that were allocated to those books.
    target_weights: by symbol the share of the portfolio that a strategy wants from each close of `equity` to the next;
        None of agents, and where orders fill at the next open.
    """

    initial_value: Decimal
    equity: tuple[EquityPoint, ...] = ()
    fills: tuple[Fill, ...] = ()
    cash_flows: tuple[CashFlow, ...] = ()
    decisions: tuple[Decision, ...] = ()
    adoptions: tuple[Adoption, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    books: tuple[EquityPoint, ...] = ()
    book_fills: tuple[Fill, ...] = ()
    target_weights: Mapping[Symbol, tuple[float, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a backtest.

    model: the use of models, None for a strategy.
    notes: remarks that a reader has to know (no actions file, a symbol that stopped).
    interrupted: True where sessions of the window are missing.
    extra: further results in JSON's types.
    """

    spec: RunSpec
    test: RunPart
    warm_up: RunPart | None = None
    model: ModelUse | None = None
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpertNote:
    """An expert's note about a symbol on a day. Source: FinAgent §4.4 [A7]."""

    day: date
    symbol: Symbol
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The user's additions to a preset. Source: InvestorBench A.1 [I6]; FinAgent §4.4 [A7, A8].

    profiles: descriptions of assets and their sectors by symbol [I6].
    currency: what the portfolio is quoted in.
    risk: the risk character; None: the preset's.
    preference: the trader's preference [A8]; None: the preset's.
    tools: rule strategies that the decision reads; None: the preset's.
    instruction: a text at the head of every decision with evidence.
    guidance: experts' notes; each decision gets those that were dated by then.
    """

    profiles: tuple[tuple[Symbol, str], ...] = ()
    risk: str | None = None
    preference: str | None = None
    tools: tuple[str, ...] | None = None
    instruction: str = ""
    guidance: tuple[ExpertNote, ...] = ()
    currency: str = ""


def carried_forward(
    portfolio: Portfolio,
    fills: Iterable[Fill] = (),
    flows: Iterable[CashFlow] = (),
    adoptions: Iterable[Adoption] = (),
) -> Portfolio:
    """The portfolio after a session's events.

    Shares that moved without a trade come first, since splits take place before the market opens. Then come trades,
    then cash, and adoptions last.
    """
    flows, changes = tuple(flows), dict[Symbol, Decimal]()
    for flow in flows:
        if flow.quantity and flow.symbol:
            # Summed up first: a split may come as the old shares that go and the new ones that come.
            changes[flow.symbol] = EXACT.add(changes.get(flow.symbol, ZERO), flow.quantity)
    for symbol, change in changes.items():
        portfolio = _with_shares(portfolio, symbol, change)
    for fill in fills:
        portfolio = portfolio.filled(fill)
    paid = sum((portfolio.money(flow.amount) for flow in flows), ZERO)
    portfolio = replace(portfolio, cash=portfolio.cash + paid)
    for adopted in adoptions:
        portfolio = _with_adoption(portfolio, adopted)
    return portfolio


def _with_shares(portfolio: Portfolio, symbol: Symbol, change: Decimal) -> Portfolio:
    """The portfolio after a change of shares without a trade; the cost of the whole position is unchanged."""
    before = portfolio.positions.get(symbol, Position(ZERO, ZERO))
    held, after = dict(portfolio.positions), EXACT.add(before.quantity, change)
    held.pop(symbol, None)
    if after:
        held[symbol] = Position(after, before.average_cost * before.quantity / after)
    return replace(portfolio, positions=held)


def _with_adoption(portfolio: Portfolio, adopted: Adoption) -> Portfolio:
    change = EXACT.subtract(adopted.after, adopted.before)
    if not adopted.symbol:
        return replace(portfolio, cash=portfolio.cash + change)
    held = dict(portfolio.positions)
    after = EXACT.add(portfolio.quantity(adopted.symbol), change)
    held.pop(adopted.symbol, None)
    if after:
        held[adopted.symbol] = Position(after, adopted.price)
    return replace(portfolio, positions=held)


class FillAt(StrEnum):
    """Price of an order that was decided after the close of t."""

    NEXT_OPEN = "next open"
    SAME_CLOSE = "same close"
    """The close that it was decided on: nobody can trade so; some papers do."""


class PriceBasis(StrEnum):
    """Basis of the prices at which a run trades and values."""

    RAW = "raw"
    ADJUSTED = "adjusted"
    """adj_close, with the bar's other prices scaled alike."""
    REBASED = "rebased"
    """adj_close scaled to equal close on the last session of the window's data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRules:
    """Fills, costs and limits of a simulated market. Costs are on by default.

    slippage_bp: basis points against the trader.
    commission_rate: fraction of the amount.
    commission_per_order, commission_per_share: in the quote currency.
    volume_cap: the largest fraction of a bar's volume for one order; None: no cap.
    borrow_rate: yearly cost of shares that are sold short, as a fraction of their value.
    money_step: the unit to which amounts are rounded, in the quote currency.
    """

    fill_at: FillAt = FillAt.NEXT_OPEN
    slippage_bp: Decimal = Decimal(5)
    commission_rate: Decimal = Decimal(0)
    commission_per_order: Decimal = Decimal(0)
    commission_per_share: Decimal = Decimal(0)
    volume_cap: Decimal | None = None
    fractional: bool = True
    allow_short: bool = False
    borrow_rate: Decimal = Decimal(0)
    money_step: Decimal = CENT

    @property
    def cost_rate(self) -> Decimal:
        """Slippage and commission of a trade as a fraction of its amount, without what is charged per order or
        share."""
        return self.commission_rate + self.slippage_bp / 10_000


class TradingMode(StrEnum):
    """The configured treatment of a desk's orders: AUTO sends them, ASK waits for approval, OBSERVE sends none."""

    AUTO = "auto"
    ASK = "ask"
    OBSERVE = "observe"
