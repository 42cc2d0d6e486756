"""Poll broker and journal until their states agree or the retries are used up: cash to the cent, positions exactly.

Nothing is written here: the report is a value, which booking.py writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Protocol

from engine.account.activity import (
    DUE_WITHIN,
    AccountActivity,
    Actions,
    Explanation,
    OpenAdoption,
    expected_fees,
    explained,
    netted,
    open_adoptions,
    read_activity,
)
from engine.account.disagreement import CASH, REBUILD, BooksDisagree, EntryAwaited, disagreement, unexplained
from engine.account.time_weighted import SPLITS
from engine.domain.brokerage import ActivityKind, BrokerAccount, BrokerOrder, Difference
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import (
    CENT,
    EXACT,
    MOVES,
    ZERO,
    Fill,
    Order,
    OrderState,
    OrderUpdate,
    Portfolio,
    Side,
    is_final,
    read_order_id,
)
from engine.domain.run import Adoption, CashFlow, EquityPoint, carried_forward
from engine.errors import ConfigError
from engine.journal.entries import BoundAccount
from engine.journal.reader import JournalReader
from engine.ports import Account, Calendar, Clock, Orders, Pause


def compare(
    journal: Portfolio, account: BrokerAccount, foreign: Iterable[Difference], fresh: int
) -> tuple[tuple[Difference, ...], Decimal]:
    """Every difference, and the rest of cash that rounding explains: less than a cent for each of the `fresh` lines
    that were not compared before. `foreign` are orders and trades that the journal cannot place."""
    cash = journal.money(account.cash)
    rest = cash - journal.cash
    found: list[Difference] = []
    if abs(rest) > CENT * fresh:
        found.append(Difference(CASH, journal.cash, account.cash))
        rest = ZERO
    for symbol in sorted(journal.positions.keys() | account.positions.keys()):
        theirs = account.positions.get(symbol)
        ours, holds = journal.quantity(symbol), ZERO if theirs is None else theirs.quantity
        if ours != holds:
            found.append(Difference(symbol, ours, holds))
    return (*found, *foreign), rest


def foreign_orders(open_orders: Iterable[BrokerOrder], orders: Mapping[str, Order]) -> list[Difference]:
    """Orders that are open at the broker and should not be."""
    found = []
    for order in open_orders:
        ours = orders.get(order.order_id)
        if ours is None:
            note = f"open at the broker and not this desk's: {_in_words(order)}"
        elif is_final(ours.state):
            note = f"open at the broker and {ours.state} in the journal"
        else:
            continue
        found.append(Difference(f"order {order.order_id}", None, None, note))
    return found


def _in_words(order: BrokerOrder) -> str:
    amount = f"{order.quantity} shares" if order.quantity is not None else f"{order.notional} of money"
    return f"{order.side} {order.symbol}, {amount}"


PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between two comparisons: an account may be filling orders, and its history may lag behind its cash."""
OVERLAP = timedelta(days=1)
"""Overlap with the last known entry from which the history is read again, since clocks differ. A broker whose entries
come later reads back further by itself."""
ID_UNKNOWN_WITHIN = timedelta(days=14)
"""Time before the latest order from which an order that has ended is still looked up, where the broker's id of it is
not known yet."""


ADOPTED_WITHIN = timedelta(days=30)
"""Time after an adoption in which its entry is still looked for."""
AskActions = Callable[[Sequence[Symbol]], Awaitable[Actions]]


async def no_actions(symbols: Sequence[Symbol]) -> Actions:
    """For data without corporate actions."""
    return {}


class AccountReader(Account, Orders, Protocol):
    """The part of a Broker that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSnapshot:
    """The journal's side of an account.

    bound: the account that it is bound to
    books: the last closed ones
    orders: by our id
    sent: ids of the orders that were submitted
    ids: our order ids by the broker's
    entries: the account's entries by id, and their time, UTC
    fills, flows, adoptions: after the last closed books
    adopted: adoptions that no entry of the account's history has taken back
    splits: session of the last split in the journal by symbol
    crypto_fills: those whose fees may not be entered yet
    filled: shares, by its last known state, of each order whose trades may not be entered yet
    booked, paid: shares of each order in the journal's trades, and their amount in the quote currency
    """

    bound: BoundAccount | None = None
    books: EquityPoint | None = None
    orders: Mapping[str, Order] = field(default_factory=dict)
    sent: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, datetime] = field(default_factory=dict)
    fills: tuple[Fill, ...] = ()
    flows: tuple[CashFlow, ...] = ()
    adoptions: tuple[Adoption, ...] = ()
    adopted: tuple[OpenAdoption, ...] = ()
    splits: Mapping[Symbol, date] = field(default_factory=dict)
    crypto_fills: tuple[Fill, ...] = ()
    filled: Mapping[str, Decimal] = field(default_factory=dict)
    booked: Mapping[str, Decimal] = field(default_factory=dict)
    paid: Mapping[str, Decimal] = field(default_factory=dict)

    def portfolio(self, activity: AccountActivity | None = None) -> Portfolio:
        """The last closed books with everything later."""
        if self.books is None:
            return Portfolio(ZERO)
        more_fills, more_flows = ((), ()) if activity is None else (activity.fills, activity.flows)
        return carried_forward(
            self.books.portfolio, (*self.fills, *more_fills), (*self.flows, *more_flows), self.adoptions
        )

    @property
    def first_open(self) -> date | None:
        """The earliest day whose books are not closed; None before the first books."""
        return None if self.books is None else self.books.session + timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationReport:
    """Both sides of an account, compared.

    journal: the journal's side
    account: the broker's, as it was read last
    activity: new entries of the account's history
    order_states: every order that was sent, with the broker's state of it (None: it has never seen it)
    open_orders: all that are open at the broker
    differences: empty where both sides agree, up to `rounding`
    rounding: cash in the quote currency that rounding explains
    expected: fees that are taken and not entered yet, which are no differences
    explanations: of the differences that have one, by what differs: their entries may still come
    recoverable: orders of this desk by their ids that its journal does not have as sent
    strange: orders in the account that no desk has given; looked for, as the recoverable ones are, where the journal
        has nothing of the account yet, or something there is none of its orders
    """

    journal: JournalSnapshot
    account: BrokerAccount
    activity: AccountActivity
    order_states: tuple[tuple[Order, BrokerOrder | None], ...]
    open_orders: tuple[BrokerOrder, ...]
    differences: tuple[Difference, ...]
    rounding: Decimal = ZERO
    expected: tuple[Difference, ...] = ()
    explanations: Mapping[str, Explanation] = field(default_factory=dict)
    recoverable: tuple[BrokerOrder, ...] = ()
    strange: tuple[BrokerOrder, ...] = ()

    def error(
        self, desk: str, *, since: datetime | None, now: datetime, patience: timedelta
    ) -> BooksDisagree | EntryAwaited | None:
        """The error of both sides that differ, None where they agree: EntryAwaited where entries of the account's
        history may still explain all of it within `patience` of `since`, when a run saw it first (UTC)."""
        if not self.differences:
            return None
        if self.recoverable:
            return disagreement(desk, self.differences, REBUILD)
        awaited = {what: one.awaited(what) for what, one in self.explanations.items()}
        return unexplained(desk, self.differences, awaited, since=since, now=now, patience=patience)

    @property
    def unbooked(self) -> dict[Symbol, Decimal]:
        """Shares by symbol (signed) that our orders have traded at the broker and that no entry of its history has."""
        found: dict[Symbol, Decimal] = {}
        for one in self.unbooked_trades:
            found[one.order.symbol] = found.get(one.order.symbol, ZERO) + one.shares
        return found

    @property
    def unbooked_trades(self) -> list[UnbookedTrade]:
        """The trades of our orders at the broker that no entry of its history has."""
        booked, paid = dict(self.journal.booked), dict(self.journal.paid)
        for fill in self.activity.fills:
            booked[fill.order_id] = booked.get(fill.order_id, ZERO) + fill.quantity
            paid[fill.order_id] = paid.get(fill.order_id, ZERO) + EXACT.multiply(fill.quantity, fill.price)
        theirs = {order.id: one for order, one in self.order_states if one is not None}
        now = {name: one.filled_quantity for name, one in theirs.items()}
        found = []
        for name, quantity in {**self.journal.filled, **now}.items():
            order, missing = self.journal.orders[name], quantity - booked.get(name, ZERO)
            price = theirs[name].filled_average_price if name in theirs else None
            cash = ZERO if price is None else EXACT.multiply(quantity, price) - paid.get(name, ZERO)
            sign = 1 if order.side is Side.BUY else -1
            if missing:
                found.append(UnbookedTrade(order, sign * missing, (-sign * cash).quantize(CENT)))
        return found


@dataclass(frozen=True, slots=True)
class UnbookedTrade:
    """The trade of an order that no entry has: the signed changes of shares, and of cash as far as it is known."""

    order: Order
    shares: Decimal
    cash: Decimal


def journal_snapshot(reader: JournalReader | None) -> JournalSnapshot:
    """The journal's side; empty for a desk that never ran."""
    if reader is None:
        return JournalSnapshot()
    points = reader.equity()
    books = points[-1] if points else None
    closed = date.min if books is None else books.session
    adopted, fills = reader.adoptions(), reader.fills()
    flows = reader.cash_flows()
    orders = {entry.order.id: entry.order for entry in reader.orders()}
    unentered = [order.id for order in orders.values() if _entry_may_be_due(order.session, closed)]
    booked: dict[str, Decimal] = {}
    paid: dict[str, Decimal] = {}
    for fill in fills:
        booked[fill.order_id] = booked.get(fill.order_id, ZERO) + fill.quantity
        paid[fill.order_id] = paid.get(fill.order_id, ZERO) + EXACT.multiply(fill.quantity, fill.price)
    return JournalSnapshot(
        bound=reader.account(),
        books=books,
        orders=orders,
        sent=reader.orders_sent(),
        ids=reader.broker_orders(),
        entries=reader.activities(),
        fills=tuple(fill for fill in fills if fill.session > closed),
        flows=tuple(flow for flow in flows if flow.session > closed),
        adoptions=tuple(one for one in adopted if one.session > closed),
        adopted=open_adoptions(adopted, flows),
        splits={flow.symbol: flow.session for flow in flows if flow.kind in SPLITS},
        crypto_fills=tuple(
            fill for fill in fills if is_crypto(fill.symbol) and _entry_may_be_due(fill.session, closed)
        ),
        filled={order_id: reader.order_moves(order_id)[-1].filled_quantity for order_id in unentered},
        booked=booked,
        paid=paid,
    )


def _entry_may_be_due(session: date, closed: date) -> bool:
    """True where what was traded in a session, or its fee, may not be in the account's history yet."""
    return closed == date.min or session > closed - DUE_WITHIN


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Comparison of a desk's journal with its account at the broker, as often as it takes.

    broker: the account and its orders
    journal: None for a desk that never ran
    desk: name of the desk
    calendar: the desk's sessions
    clock: the time, UTC
    pause: waits so many seconds
    actions: the corporate actions of some symbols, asked for where shares differ
    """

    broker: AccountReader
    journal: JournalReader | None
    _: KW_ONLY
    desk: str
    calendar: Calendar
    clock: Clock
    pause: Pause
    actions: AskActions = no_actions

    async def reconcile(self) -> ReconciliationReport:
        """Compare both sides. Raises ConfigError for an account that is not the journal's, and what the broker's ports
        raise."""
        report = None
        for wait in (*PAUSES, None):
            report, still = await self._once()
            if (still and not report.differences) or wait is None:
                break
            await self.pause(wait)
        assert report is not None
        return report

    async def _once(self) -> tuple[ReconciliationReport, bool]:
        snapshot, broker = journal_snapshot(self.journal), self.broker
        before = await broker.account()
        self._check_account(snapshot, before)
        states = await self._states(snapshot)
        activities = await broker.activities(self._since(snapshot))
        open_orders = tuple(await broker.open_orders())
        after = await broker.account()
        ids = dict(snapshot.ids) | {theirs.broker_id: order.id for order, theirs in states if theirs is not None}

        def order_of(broker_id: str) -> Order | None:
            return snapshot.orders.get(ids.get(broker_id, ""))

        activity = read_activity(activities, order_of, snapshot.entries, self.calendar, snapshot.first_open)
        trades = any(one.entry is None and one.activity.kind is ActivityKind.FILL for one in activity.all)
        unknown = trades or any(order.order_id not in snapshot.orders for order in open_orders)
        now = dict(snapshot.orders) | {order.id: order_as(order, theirs)[0] for order, theirs in states}
        foreign = [*foreign_orders(open_orders, now), *_lost(states)]
        expected: tuple[Difference, ...] = ()
        if snapshot.bound is None:
            opening = Portfolio(after.cash.quantize(CENT))
            differences, rounding = compare(opening, after, foreign, 0)
        else:
            theirs = Portfolio(after.cash, dict(after.positions))
            activity = netted(activity, snapshot.adopted, snapshot.portfolio(activity), theirs)
            differences, rounding = compare(snapshot.portfolio(activity), after, foreign, len(activity.booked))
            traded = (*snapshot.crypto_fills, *activity.fills)
            differences, expected = expected_fees(differences, traded, self.clock.now().date())
        report = ReconciliationReport(
            journal=snapshot,
            account=after,
            activity=activity,
            order_states=tuple(states),
            open_orders=open_orders,
            differences=differences,
            rounding=rounding,
            expected=expected,
        )
        if unknown or snapshot.bound is None:
            report = await self._with_orders(report)
        report = replace(report, explanations=await self._explanations(report))
        if any(one.amount is not None and one.what not in report.explanations for one in report.differences):
            report = await self._with_orders(report)
        return report, _holdings(before) == _holdings(after)

    async def _states(self, snapshot: JournalSnapshot) -> list[tuple[Order, BrokerOrder | None]]:
        """Every order that was sent and may have moved, with the broker's state of it. A look-up by our id may fail for
        ever: one that it does not find is asked for by the broker's id, and looked for among all orders."""
        named = {ours: theirs for theirs, ours in snapshot.ids.items()}
        states = [(order, await self.broker.lookup(order.id)) for order in _sent(snapshot)]
        missing = [order for order, theirs in states if theirs is None]
        if not missing:
            return states
        first = datetime.combine(min(order.session for order in missing), time(), UTC)
        found = {one.order_id: one for one in await self.broker.orders_since(first)}
        for order in missing:
            if order.id not in found and order.id in named:
                theirs = await self.broker.lookup(order.id, named[order.id])
                found |= {} if theirs is None else {order.id: theirs}
        return [(order, found.get(order.id) if theirs is None else theirs) for order, theirs in states]

    async def _with_orders(self, report: ReconciliationReport) -> ReconciliationReport:
        """The report with the orders in the account that the journal does not have, or not as sent: this desk's by
        their ids, and those that no desk has given. Raises ConfigError for an order of another desk."""
        snapshot, account = report.journal, report.account
        if report.recoverable or report.strange:
            return report
        first = datetime.min.replace(tzinfo=UTC) if snapshot.bound is None else snapshot.bound.time - OVERLAP
        known = {order.id for order in snapshot.orders.values() if order.state is not OrderState.INTENDED}
        recoverable, strange = list[BrokerOrder](), list[BrokerOrder]()
        for order in await self.broker.orders_since(first):
            name = read_order_id(order.order_id)
            if name is None:
                strange.append(order)
            elif name.desk != self.desk:
                raise ConfigError(
                    f"the account {account.id} serves the desk {name.desk} already, whose order {order.order_id} is in "
                    f"it, and {self.desk} needs one of its own: use the keys of another account (or desk.name "
                    f"{name.desk} where that desk is this one)"
                )
            elif order.order_id not in known:
                recoverable.append(order)
        lost = {f"order {order.order_id}" for order in recoverable}
        others = [one for one in report.differences if one.what not in lost]
        return replace(
            report,
            differences=(*others, *map(_recoverable, recoverable)),
            recoverable=tuple(recoverable),
            strange=tuple(strange),
        )

    async def _explanations(self, report: ReconciliationReport) -> Mapping[str, Explanation]:
        snapshot, differing = report.journal, [one for one in report.differences if one.amount is not None]
        if snapshot.books is None:
            return {}
        unbooked = report.unbooked
        unclear = [one.what for one in differing if one.what != CASH and unbooked.get(one.what) != one.amount]
        actions = await self.actions(unclear) if unclear else {}
        return explained(
            differing,
            unbooked,
            actions,
            snapshot.splits,
            books=snapshot.books.portfolio,
            journal=snapshot.portfolio(report.activity),
            closed=snapshot.books.session,
            today=self.clock.now().date(),
        )

    def _check_account(self, snapshot: JournalSnapshot, account: BrokerAccount) -> None:
        if snapshot.bound is None and snapshot.books is not None:
            raise ConfigError(
                f"the desk {self.desk} has books of the simulated market: give the account at the broker a desk of "
                "its own (desk.name)"
            )
        if snapshot.bound is not None and snapshot.bound.account != account.id:
            raise ConfigError(
                f"the desk {self.desk} trades in the account {snapshot.bound.account} and the keys are those of "
                f"{account.id}: use the keys of its own account, or another desk.name"
            )

    def _since(self, snapshot: JournalSnapshot) -> datetime:
        """The time from which the history is read: never before the desk's first run, and since the last adoptions that
        an entry may still take back."""
        if snapshot.bound is None:
            return self.clock.now() - OVERLAP
        latest = max((snapshot.bound.time, *snapshot.entries.values()))
        adopted = [datetime.combine(one.session, time(), UTC) for one in snapshot.adopted]
        return min((latest, *(one for one in adopted if latest - one < ADOPTED_WITHIN))) - OVERLAP


def order_as(order: Order, theirs: BrokerOrder | None) -> tuple[Order, OrderUpdate | None]:
    """Our order in the state that the broker says it is in, and the update that takes it there; None where nothing
    has changed, or where the broker says an impossible state."""
    if theirs is None or theirs.state not in MOVES[order.state]:
        return order, None
    return order.moved(theirs.state), OrderUpdate(order.id, theirs.state, theirs.filled_quantity, theirs.detail)


def _sent(snapshot: JournalSnapshot) -> list[Order]:
    """Orders whose state may differ at the broker, and ended ones whose id there is not known yet, or whose trades the
    journal does not have."""
    named = set(snapshot.ids.values())
    latest = max((order.session for order in snapshot.orders.values()), default=date.min)

    def unnamed(order: Order) -> bool:
        late = latest - order.session < ID_UNKNOWN_WITHIN
        return late and order.id not in named and order.state is not OrderState.REJECTED

    sent = [order for order in snapshot.orders.values() if order.id in snapshot.sent]
    lacking = {name for name, filled in snapshot.filled.items() if filled != snapshot.booked.get(name, ZERO)}
    return [order for order in sent if not is_final(order.state) or unnamed(order) or order.id in lacking]


def _lost(states: Sequence[tuple[Order, BrokerOrder | None]]) -> list[Difference]:
    """Orders that the broker had acknowledged and no longer knows."""
    had = (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED)
    return [
        Difference(f"order {order.id}", None, None, f"{order.state} in the journal and unknown to the broker")
        for order, theirs in states
        if theirs is None and order.state in had
    ]


def _recoverable(order: BrokerOrder) -> Difference:
    """An order of this desk that its journal does not have."""
    note = f"this desk's by its id, {order.state} at the broker and not in the journal: {_in_words(order)}"
    return Difference(f"order {order.order_id}", None, None, note)


def _holdings(account: BrokerAccount) -> tuple[object, ...]:
    held = sorted((symbol, position.quantity) for symbol, position in account.positions.items())
    return account.cash, held
