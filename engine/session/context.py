"""The context of a run's sessions, made once, the moment that one of them is decided at, and a desk run's context.

An operator's pause within a session: a cycle begins only without one, and ends at one without a result.

Prices of a moment within a session, and the symbols that can be decided on them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, TradingHistory, Turn
from engine.domain.decision import Decision, Opinion
from engine.domain.market import ActionKind, Symbol
from engine.domain.order import DAILY, ZERO, Fill, Order, OrderState
from engine.domain.run import CashFlow, EquityPoint, ModelUse, RunKind, RunOutcome, RunTrigger, TradingMode
from engine.errors import OrdersRejected, PaperdeskError
from engine.execution.controls import CyclePaused, Halted, Paused
from engine.execution.frozen_symbols import FrozenSymbol, frozen_error, reasons
from engine.execution.submission import OrderRoute, SubmissionResult
from engine.execution.venue import SessionVenue, SettledSession, Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market, last_opened
from engine.market.trading_hours import books_close
from engine.messages.events import Event, Noticed
from engine.ports import Calendar, Clock, Pause
from engine.session.cost_meter import CostMeter
from engine.session.owner_books import BookSettlement, OwnerBooks
from engine.session.recorder import Recorder

Quotes = Callable[[Sequence[Symbol]], Awaitable[Mapping[Symbol, Decimal]]]
"""The prices of this moment, of those symbols that have one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """Everything that is the same for all sessions of a run.

    run: id of the run
    desk: name of the desk
    symbols: in the order in which they are decided
    market: all data of the run; a session sees it as of its moment
    calendar: the sessions that decisions rest on
    cycle: the agents' round of decisions
    venue: who keeps the books and fills the orders
    orders: how orders reach the venue
    recorder: what is kept of each step
    clock: when things are written; UTC
    publish: receives every event
    marks_at_decisions: True where the books are marked at the closes that decisions see, not at those of their session:
        they differ for crypto whose UTC day goes on
    """

    run: str
    desk: str
    symbols: tuple[Symbol, ...]
    market: Market
    calendar: Calendar
    cycle: Cycle
    venue: SessionVenue
    orders: OrderRoute = field(default_factory=OrderRoute)
    recorder: Recorder = field(default_factory=Recorder)
    clock: Clock
    publish: Callable[[Event], None] = lambda event: None
    marks_at_decisions: bool = False

    def warn(self, text: str) -> None:
        """Publish a warning."""
        self.publish(Noticed(self.run, self.clock.now(), "warning", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The moment of one cycle of decisions.

    session: last completed session, whose data is read
    cycle: 1 for the cycle after the close; those within the next session count on
    now: data is read as of this moment, UTC; None: the clock's, once quotes have come
    news_after: news up to here was read by earlier cycles, UTC
    symbols: the batch; None for all of the run
    until: nothing is sent from here on, UTC
    hindsight_until: in training, reflections see moves known by then, UTC; None in the test
    quotes: gives prices within a session
    prices: prices of the moment, in the quote currency, where they are known already
    waiting: cash that orders of other runs, which wait for approval, may still take, in the quote currency
    taken: cash by book that orders of symbols outside the batch have taken, in the quote currency
    """

    session: date
    cycle: int = 1
    now: datetime | None
    news_after: datetime
    symbols: tuple[Symbol, ...] | None = None
    until: datetime | None = None
    hindsight_until: datetime | None = None
    quotes: Quotes | None = None
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)
    waiting: Decimal = ZERO
    taken: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunState:
    """The past of a run, as a value that each session takes and gives back.

    history: opinions and outcomes so far
    awaiting: decisions whose outcome is not known yet
    opinions: opinions of owners who were combined, whose outcome is not known yet
    unlearned: holding periods that an earlier run settled and did not learn from, because it was killed in between, or
        because a close at their end was not known yet
    books: the owners' books, where each keeps its own
    """

    history: TradingHistory
    awaiting: tuple[Decision, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    unlearned: tuple[SettledSession, ...] = ()
    books: OwnerBooks = field(default_factory=OwnerBooks)


@dataclass(frozen=True, slots=True)
class Settled:
    """The sessions that were closed, and the owners' books after each, where there are any."""

    sessions: tuple[SettledSession, ...] = ()
    books: tuple[BookSettlement, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionResult:
    """One session: what was settled, the turn and its result, what came of the orders, the state afterwards, and the
    pause that kept it from deciding."""

    settled: Settled
    turn: Turn
    result: CycleResult
    submitted: SubmissionResult
    state: RunState
    paused: Paused | None = None


def run_id(desk: str, session: date, number: int = DAILY, *, only: Symbol | None = None) -> str:
    """The id of a desk's run: the same session, cycle and symbol (None: all of them), the same run."""
    if only is not None:
        return f"{RunKind.SYMBOL}-{desk}-{session:%Y%m%d}-{only}"
    if number == DAILY:
        return f"{RunKind.DAILY}-{desk}-{session:%Y%m%d}"
    return f"{RunKind.INTRADAY}-{desk}-{session:%Y%m%d}-{number}"


def about_run(broker: str, mode: TradingMode, label: str, trigger: RunTrigger | None) -> Mapping[str, str]:
    """The facts of a desk's run that a journal keeps beside its end; no trigger where none is known."""
    return {"broker": broker, "mode": mode, "label": label} | ({} if trigger is None else {"trigger": trigger})


def run_error(frozen: Iterable[FrozenSymbol], orders: Sequence[Order]) -> PaperdeskError | None:
    """The error of a run that froze symbols, or whose orders were all rejected as they were sent; None for none."""
    if to_mend := reasons(frozen):
        return frozen_error(to_mend)
    if orders and all(order.state is OrderState.REJECTED for order in orders):
        names = ", ".join(order.symbol for order in orders)
        return OrdersRejected(f"every order was rejected ({names}): `paperdesk orders` has the reasons")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRun(SessionContext):
    """The context of one run of a desk: its one session, and what its journal and its reports need.

    session: the last completed session, which is decided on
    number: the cycle's number; DAILY for a run after the close
    only: the one symbol that is decided; None for all of them
    decided: symbols that other runs after the close have decided: they are not decided again
    name: name of the preset
    label: how the model that decides is introduced
    meter: counts what the models cost
    journal: the desk's journal, to write
    reader: the same journal, to read
    pause: waits so many seconds
    mode: auto, ask or observe
    broker: the kind of broker, as configured
    trigger: what started the run; None where that is not known
    frozen: symbols that are not decided, because their data contradicts itself
    """

    venue: Venue
    session: date
    number: int = DAILY
    only: Symbol | None = None
    decided: frozenset[Symbol] = frozenset()
    name: str
    label: str
    meter: CostMeter
    journal: JournalWriter
    reader: JournalReader
    pause: Pause
    mode: TradingMode = TradingMode.AUTO
    broker: str = "simulated"
    trigger: RunTrigger | None = None
    frozen: tuple[FrozenSymbol, ...] = ()

    @property
    def kind(self) -> RunKind:
        """The kind of run."""
        if self.only is not None:
            return RunKind.SYMBOL
        return RunKind.DAILY if self.number == DAILY else RunKind.INTRADAY

    @property
    def about(self) -> Mapping[str, str]:
        """The facts of the run that are kept beside its end; `as_of` is the moment of its books (UTC), `exchange_close`
        that at which its session closed."""
        moments = {
            "as_of": books_close(self.calendar, self.symbols, self.session),
            "exchange_close": self.calendar.closes_at(self.session),
        }
        about = about_run(self.broker, self.mode, self.label, self.trigger)
        return {**about, **{name: time.isoformat() for name, time in moments.items()}}

    @property
    def due(self) -> tuple[Symbol, ...]:
        """The symbols that are to be decided."""
        return tuple(one for one in self.symbols if one not in self.decided and self.only in (None, one))

    @property
    def batch(self) -> tuple[Symbol, ...]:
        """The symbols that are decided: those that are due, without the frozen ones."""
        frozen = [one.symbol for one in self.frozen]
        return tuple(symbol for symbol in self.due if symbol not in frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRunResult:
    """The result of a desk's run.

    run: id of the run
    session: the session that was decided on
    books: the books at its close
    decisions: in the order of the symbols
    orders: in their present states
    fills: what was filled in the sessions that were settled, or, within a session, by this run
    cash_flows: what was paid in the sessions that were settled
    skipped: sessions that passed without a run: they are never traded late
    model: what the models were asked, and its cost
    outcome: done, waiting (orders need approval), halted or paused (by a person)
    waiting: orders that need approval
    halted, paused: the halt and the pause that a person has set, where it kept orders back, or the cycle from deciding
    frozen: the symbols that were left out, because their data contradicts itself
    undecided: the reason why models were asked and nothing usable was decided; empty where something was
    """

    run: str
    session: date
    books: EquityPoint
    decisions: tuple[Decision, ...]
    orders: tuple[Order, ...]
    fills: tuple[Fill, ...]
    cash_flows: tuple[CashFlow, ...]
    skipped: tuple[date, ...]
    model: ModelUse
    outcome: RunOutcome = RunOutcome.DONE
    waiting: tuple[Order, ...] = ()
    halted: Halted | None = None
    paused: Paused | None = None
    frozen: tuple[FrozenSymbol, ...] = ()
    undecided: str = ""

    @property
    def error(self) -> PaperdeskError | None:
        """The error that the run ends with although it did what it could; None for none."""
        return run_error(self.frozen, self.orders)


async def run_unless_paused(
    orders: OrderRoute, decide: Callable[[RunState], Awaitable[tuple[CycleResult, RunState]]], state: RunState
) -> tuple[CycleResult | None, RunState, Paused | None]:
    """Decide on a state, and return what came of it; at a pause None, the state as it was and the pause. Raises what
    `decide` raises."""
    pause = orders.pause()
    if pause is None:
        try:
            result, after = await decide(state)
        except CyclePaused as stopped:
            pause = stopped.pause
        else:
            return result, after, None
    return None, state, pause


async def quoted(
    context: SessionContext, symbols: Sequence[Symbol], quotes: Quotes
) -> tuple[tuple[Symbol, ...], Mapping[Symbol, Decimal]]:
    """The symbols that can be decided within a session, and the prices of this moment. A symbol that splits today is
    left out: bars and books are on the basis of before until its close is known."""
    wanted = tuple(dict.fromkeys((*symbols, *context.venue.portfolio.positions)))
    split = {symbol for symbol in wanted if _splits_today(context, symbol)}
    prices = await quotes([symbol for symbol in wanted if symbol not in split])
    for symbol in wanted:
        if symbol in split:
            context.warn(f"{symbol} splits in this session: it is decided again when its close is known")
        elif symbol not in prices:
            context.warn(f"{symbol} has no price at this moment: its last close is taken")
    return tuple(symbol for symbol in symbols if symbol not in split), prices


def _splits_today(context: SessionContext, symbol: Symbol) -> bool:
    """True where shares are counted anew since the last close."""
    calendar = context.market.calendars.get(symbol, context.calendar)
    now = context.clock.now()
    closed, opened = calendar.last_closed(now), last_opened(calendar, now)
    known = context.market.actions.get(symbol) or ()
    return any(one.kind is ActionKind.SPLIT and closed < one.ex_date <= opened for one in known)
