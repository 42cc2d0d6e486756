"""The journal's part of an account at a broker: a reconciliation, whole or not at all, and adopted differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

from engine.account.disagreement import CASH, disagreement
from engine.account.reconciliation import Reconciler, ReconciliationReport, journal_snapshot, order_as
from engine.account.time_weighted import ADOPTED_SPLIT
from engine.domain.brokerage import Activity, BrokerOrder, Difference
from engine.domain.market import Symbol, from_nano
from engine.domain.order import CENT, EXACT, ZERO, Fill, Order, OrderState, OrderUpdate, Portfolio, is_final
from engine.domain.run import Adoption, CashFlow, EquityPoint, carried_forward
from engine.errors import ConfigError, MissingData
from engine.execution.venue import SettledSession
from engine.journal.entries import BoundAccount
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.trading_hours import session_after
from engine.messages.events import Event
from engine.ports import Calendar, Clock, Orders

ROUNDING = "rounding"
CENTS_LEFT = Decimal("0.10")
"""Most that rounding leaves of the cash of orders that filled in parts."""
NO_RUN = ""
"""Enters an account's activity that is booked ahead of the run that it belongs to."""
NEVER_SEEN = "the broker says that it has never seen it"
NEVER_ARRIVED = "it never arrived at the broker, and its session has passed"


BY_YOU = "canceled by you"


@dataclass(frozen=True, slots=True)
class Booking:
    """The writer of one run's reconciliation, or of one ahead of a run.

    journal, reader: the desk's journal, to write and to read
    run: id of the run
    ahead: True where the run has not come yet: it did not enter the activity itself, and publishes none of it
    kind: the broker's
    market: values positions at raw closes
    calendar: the desk's sessions
    clock: when things are written, UTC
    canceled: orders that the operator has asked the broker to cancel
    """

    journal: JournalWriter
    reader: JournalReader
    _: KW_ONLY
    run: str
    kind: str
    market: Market
    calendar: Calendar
    clock: Clock
    ahead: bool = False
    canceled: frozenset[str] = frozenset()

    def require_agreement(self, report: ReconciliationReport, desk: str, patience: timedelta) -> None:
        """Raises BooksDisagree where both sides differ, EntryAwaited where an entry of the account's history may still
        explain it within `patience`."""
        error = report.error(desk, since=self.reader.awaited_since(), now=self.clock.now(), patience=patience)
        if error is not None:
            raise error

    def orders(self, report: ReconciliationReport, session: date) -> None:
        """Write the states of our orders; one that never arrived expires once its session is not the latest."""
        for order, theirs in report.order_states:
            with self.journal.together():
                if theirs is not None:
                    self.journal.broker_order(order.id, theirs.broker_id)
                    self._move(order, theirs)
                elif order.state in (OrderState.SUBMITTING, OrderState.UNKNOWN) and order.session < session:
                    expired = order.moved(OrderState.EXPIRED)
                    self.journal.order_moved(expired, self.clock.now(), detail=NEVER_ARRIVED)

    def lost(self, report: ReconciliationReport) -> None:
        """End orders that the journal has as taken and the broker says it never saw."""
        for order, theirs in report.order_states:
            if theirs is None and order.state in (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED):
                self.journal.order_moved(order.moved(OrderState.EXPIRED), self.clock.now(), detail=NEVER_SEEN)

    def opened(self, report: ReconciliationReport, session: date, adopted: str = "") -> tuple[Adoption, ...]:
        """Open the desk's books with what the broker has: cash alone, or positions too that a person has `adopted`,
        giving a reason. The account's history up to now comes before them."""
        account = report.account
        portfolio = Portfolio(account.cash.quantize(CENT), dict(account.positions))
        before = [line.activity for line in report.activity.all]
        bound = BoundAccount(self.kind, account.id, self.clock.now())
        return self.opened_with(portfolio, session, bound, before, adopted)

    def opened_with(
        self, portfolio: Portfolio, session: date, bound: BoundAccount, before: Iterable[Activity], reason: str
    ) -> tuple[Adoption, ...]:
        """Open the desk's books at a session's close; positions are adopted for a reason, and what was `before` is not
        booked. Raises MissingData for a position without a price."""
        point = self._point(session, portfolio)
        taken = tuple(
            Adoption(
                session=session,
                symbol=symbol,
                before=ZERO,
                after=held.quantity,
                price=held.average_cost,
                reason=reason,
            )
            for symbol, held in sorted(portfolio.positions.items())
        )
        with self.journal.together():
            self.journal.account_bound(bound)
            for one in before:
                self.journal.activity(self.run, one, booked=False)
            for adopted in taken:
                self._enter(adopted)
            self.journal.session_settled(self.run, point)
        return taken

    def book(
        self,
        report: ReconciliationReport,
        adoptions: Sequence[Adoption | CashFlow] = (),
        events: Sequence[Event] = (),
    ) -> None:
        """Book new activity, with the rest that rounding left, what a person has adopted, and the events of it."""
        journal = self.journal
        entered_by = NO_RUN if self.ahead else self.run
        with journal.together():
            for line in report.activity.all:
                journal.activity(entered_by, line.activity, booked=line.entry is not None)
                if line.entry is not None:
                    self._enter(line.entry, line.activity.id)
                for reversal in line.reversals:
                    self._enter(reversal)
            if report.rounding:
                sessions = [line.entry.session for line in report.activity.booked if line.entry is not None]
                session = max(*sessions, report.journal.first_open or date.min)
                description = "parts of a cent that the broker counts and the journal does not"
                journal.cash_flow(
                    self.run,
                    CashFlow(
                        session=session, symbol="", kind=ROUNDING, amount=report.rounding, description=description
                    ),
                )
            for adopted in adoptions:
                self._enter(adopted)
            for event in events:
                journal.event(event)

    def _enter(self, entry: Fill | CashFlow | Adoption, execution: str | None = None) -> None:
        if isinstance(entry, Fill):
            self.journal.fill(self.run, entry, execution)
        elif isinstance(entry, CashFlow):
            self.journal.cash_flow(self.run, entry, execution)
        else:
            self.journal.adopted(self.run, entry, self.clock.now())

    def due(self, books: EquityPoint, session: date) -> list[SettledSession]:
        """The books of every session after the last closed one, out of what the journal holds; nothing is written."""
        snapshot, played = journal_snapshot(self.reader), list[SettledSession]()
        for day in self.calendar.sessions(books.session + timedelta(days=1), session):
            before = books
            fills = tuple(f for f in snapshot.fills if before.session < f.session <= day)
            flows = tuple(f for f in snapshot.flows if before.session < f.session <= day)
            adoptions = [a for a in snapshot.adoptions if before.session < a.session <= day]
            books = self._point(day, carried_forward(before.portfolio, fills, flows, adoptions))
            played.append(SettledSession(before, books, fills, flows, tuple(adoptions)))
        return played

    def close(self, played: Iterable[SettledSession]) -> None:
        """Write the books of sessions."""
        for one in played:
            self.journal.session_settled(self.run, one.after)

    def _move(self, order: Order, theirs: BrokerOrder) -> None:
        moved, update = order_as(order, theirs)
        if update is None:
            return
        booked = self.reader.order_moves(order.id)[-1].filled_quantity
        if update.state is order.state and update.filled_quantity == booked:
            return
        by_you = order.id in self.canceled and update.state is OrderState.CANCELED
        detail = update.detail or (BY_YOU if by_you else self._why_untraded(order, update))
        self.journal.order_moved(moved, self.clock.now(), filled=update.filled_quantity, detail=detail)

    def _why_untraded(self, order: Order, update: OrderUpdate) -> str:
        """The reason of an order that ended without a trade where the broker gives none; empty for any other."""
        if update.filled_quantity or update.state not in (OrderState.EXPIRED, OrderState.CANCELED):
            return ""
        day = session_after(self.calendar, order.session)
        if self.clock.now() < self.calendar.closes_at(day):
            return f"{update.state} at the broker without a trade"
        history = self.market.histories.get(order.symbol)
        if history is not None and history.rows_through(day) == history.rows_through(day - timedelta(days=1)):
            return f"{update.state} at the broker: {order.symbol} did not trade in the session of {day}, as when halted"
        return f"{update.state} at the broker without a trade in the session of {day}"

    def _point(self, session: date, portfolio: Portfolio) -> EquityPoint:
        prices = closes(self.market, session, portfolio)
        return EquityPoint(session, portfolio.value(prices), portfolio, prices)


def closes(market: Market, session: date, portfolio: Portfolio) -> dict[Symbol, Decimal]:
    """The raw close of each position in a session, or the last one before it. Raises MissingData."""
    return {symbol: _close(market, symbol, session) for symbol in portfolio.positions}


def _close(market: Market, symbol: Symbol, session: date) -> Decimal:
    history = market.histories.get(symbol)
    row = -1 if history is None else history.rows_through(session) - 1
    if history is None or row < 0:
        raise MissingData(f"{symbol} is held at the broker and has no price by {session}: fetch or import its prices")
    return from_nano(history.close[row])


async def cancel_ended_orders(
    broker: Orders, reconciler: Reconciler, report: ReconciliationReport, desk: str
) -> ReconciliationReport:
    """Cancel orders that are open at the broker and ended in the journal, and reconcile again. Raises BooksDisagree
    for an open order that is not the desk's: whoever placed it has to cancel it."""
    orders = report.journal.orders
    strange = {f"order {o.order_id}" for o in report.open_orders if o.order_id not in orders}
    strangers = [one for one in report.differences if one.what in strange]
    if strangers:
        raise disagreement(
            desk, strangers, "cancel what is not the desk's at the broker, or let it fill, and adopt then"
        )
    ghosts = [o for o in report.open_orders if o.order_id in orders and is_final(orders[o.order_id].state)]
    for order in ghosts:
        await broker.cancel(order.order_id)
    return await reconciler.reconcile() if ghosts else report


@dataclass(frozen=True, slots=True)
class Adopted:
    """The broker's side as it is taken: each difference as it is `taken`, and how it is `booked`: trades of the desk's
    orders and splits, as far as they explain it, each in its session with its cash, all else as it is taken."""

    taken: tuple[Adoption, ...]
    booked: tuple[Adoption | CashFlow, ...]


def adoptions(report: ReconciliationReport, calendar: Calendar, session: date, reason: str) -> Adopted:
    """The broker's side in every difference as it would be taken; nothing is written. `session` is the last completed
    one: what nothing explains belongs to it. A desk without books opens them with what the account holds."""
    if report.journal.bound is None:
        held = [Difference(symbol, ZERO, one.quantity) for symbol, one in sorted(report.account.positions.items())]
        taken = tuple(_adoption(one, report, session, reason) for one in held)
        return Adopted(taken, taken)
    books = report.journal.books
    assert books is not None  # a bound desk has books
    first = session_after(calendar, books.session)
    differing = [one for one in report.differences if one.amount is not None]
    taken = tuple(_adoption(one, report, max(first, session), reason) for one in differing)
    if any(one.what not in report.explanations for one in differing):
        return Adopted(taken, taken)
    return Adopted(taken, tuple(_explained_parts(taken, report, calendar, first)))


def _explained_parts(
    taken: Iterable[Adoption], report: ReconciliationReport, calendar: Calendar, first: date
) -> Iterator[Adoption | CashFlow]:
    """Differences that are explained, each part in the session in which it came about, at the earliest the `first` that
    is open, where the rest of the cash belongs; cents that rounding left are the last trade's."""
    cash, last = report.journal.portfolio(report.activity).cash, first
    money = Adoption(session=first, symbol="", before=cash, after=cash, price=ZERO, reason="")
    for one in taken:
        if not one.symbol:
            money = replace(money, after=one.after)
        money, why = replace(money, reason=one.reason), report.explanations[one.symbol or CASH]
        if why.ex_date is not None:
            yield CashFlow(
                session=max(first, session_after(calendar, why.ex_date - timedelta(days=1))),
                symbol=one.symbol,
                kind=ADOPTED_SPLIT,
                amount=ZERO,
                quantity=why.split,
                description=one.reason,
            )
        held = EXACT.add(one.before, why.split)
        for trade in report.unbooked_trades if why.traded else ():
            if trade.order.symbol == one.symbol:
                day = max(first, session_after(calendar, trade.order.session))
                last = max(last, day)
                yield replace(one, session=day, before=held, after=EXACT.add(held, trade.shares))
                held, cash = EXACT.add(held, trade.shares), money.before + trade.cash
                if trade.cash:
                    yield replace(money, session=day, after=cash)
                money = replace(money, before=cash)
    if money.after != money.before:
        yield replace(money, session=last) if abs(money.after - money.before) <= CENTS_LEFT else money


def adopt(report: ReconciliationReport, booking: Booking, session: date, reason: str) -> tuple[Adoption, ...]:
    """Take the broker's side in every difference and book what else is new: adoption rows say what was before and
    after. `session` is the last completed one. A desk without books opens them with what the account holds. Raises
    ConfigError without a reason."""
    if not reason.strip():
        raise ConfigError("an adoption needs a reason")
    booking.orders(report, session)
    booking.lost(report)
    found = adoptions(report, booking.calendar, session, reason)
    if report.journal.bound is None:
        return booking.opened(report, session, reason)
    booking.book(report, found.booked)
    return found.taken


def _adoption(one: Difference, report: ReconciliationReport, session: date, reason: str) -> Adoption:
    before, after = one.journal or ZERO, one.broker or ZERO
    if one.what == CASH:
        return Adoption(
            session=session, symbol="", before=before, after=after.quantize(CENT), price=ZERO, reason=reason
        )
    held = report.account.positions.get(one.what)
    return Adoption(
        session=session,
        symbol=one.what,
        before=before,
        after=after,
        price=ZERO if held is None else held.average_cost,
        reason=reason,
    )
