"""A look at both sides of a desk's account, the broker's and the journal's, until they agree or time is up.

Nothing is written here: what was found is a value, booked by whoever may (booking.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from engine.account.activity import AccountActivity, read_lines
from engine.account.comparison import compare, foreign_orders
from engine.domain.brokerage import BrokerAccount, BrokerOrder, Difference
from engine.domain.ledger import carried_forward
from engine.domain.order import MOVES, Fill, Order, OrderState, OrderUpdate, is_final
from engine.domain.portfolio import CENT, ZERO, Portfolio
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.errors import ConfigError
from engine.journal.entries import BoundAccount
from engine.journal.reader import JournalReader
from engine.ports import Account, Calendar, Clock, Orders, Pause

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between looks: an account may be filling orders, and its history may lag behind its cash."""
OVERLAP = timedelta(days=1)
"""Overlap with the last known entry from which the history is read again, since clocks differ. A broker whose entries
come later reads back further by itself."""
_RECENT = timedelta(days=14)


class AccountReader(Account, Orders, Protocol):
    """The part of a Broker that is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSnapshot:
    """The journal's side: what it knows of the account, its orders, and what stands after its last closed books."""

    bound: BoundAccount | None
    books: EquityPoint | None
    orders: Mapping[str, Order]
    sent: frozenset[str]
    ids: Mapping[str, str]
    known: Mapping[str, datetime]
    fills: tuple[Fill, ...]
    flows: tuple[CashFlow, ...]
    adoptions: tuple[Adoption, ...]

    def portfolio(self, lines: AccountActivity | None = None) -> Portfolio:
        """The last closed books with everything later."""
        if self.books is None:
            return Portfolio(ZERO)
        more_fills, more_flows = ((), ()) if lines is None else (lines.fills, lines.flows)
        return carried_forward(
            self.books.portfolio, (*self.fills, *more_fills), (*self.flows, *more_flows), self.adoptions
        )

    @property
    def first_open(self) -> date | None:
        """The earliest day whose books are not closed; None before the first books."""
        return None if self.books is None else self.books.session + timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationReport:
    """What a look came to. `standing` says of every order that was handed over how the broker has it (None: it has
    never seen it); `differences` is empty where both sides agree, up to `rounding`."""

    kept: JournalSnapshot
    account: BrokerAccount
    lines: AccountActivity
    standing: tuple[tuple[Order, BrokerOrder | None], ...]
    open_orders: tuple[BrokerOrder, ...]
    differences: tuple[Difference, ...]
    rounding: Decimal = ZERO


def journal_snapshot(journal: Path) -> JournalSnapshot:
    """Reads the journal's side; a desk that never ran has none."""
    if not journal.exists():
        return JournalSnapshot(
            bound=None, books=None, orders={}, sent=frozenset(), ids={}, known={}, fills=(), flows=(), adoptions=()
        )
    with JournalReader(journal) as reader:
        points = reader.equity()
        books = points[-1] if points else None
        closed = date.min if books is None else books.session
        return JournalSnapshot(
            bound=reader.account(),
            books=books,
            orders={entry.order.id: entry.order for entry in reader.orders()},
            sent=reader.orders_sent(),
            ids=reader.broker_orders(),
            known=reader.activities(),
            fills=tuple(fill for fill in reader.fills() if fill.session > closed),
            flows=tuple(flow for flow in reader.cash_flows() if flow.session > closed),
            adoptions=tuple(one for one in reader.adoptions() if one.session > closed),
        )


class Reconciler:
    """Compares a desk's journal with its account at the broker."""

    def __init__(
        self, broker: AccountReader, journal: Path, desk: str, calendar: Calendar, clock: Clock, pause: Pause
    ) -> None:
        self._broker = broker
        self._journal = journal
        self._desk = desk
        self._calendar = calendar
        self._clock = clock
        self._pause = pause

    async def look(self) -> ReconciliationReport:
        """Both sides. Raises ConfigError for an account that is not the journal's, and what the broker's ports
        raise."""
        found = None
        for wait in (*PAUSES, None):
            found, still = await self._once()
            if (still and not found.differences) or wait is None:
                break
            await self._pause(wait)
        assert found is not None
        return found

    async def _once(self) -> tuple[ReconciliationReport, bool]:
        kept, broker = journal_snapshot(self._journal), self._broker
        before = await broker.account()
        self._check_account(kept, before)
        standing = [(order, await broker.lookup(order.id)) for order in _handed_over(kept)]
        activities = await broker.activities(self._since(kept))
        open_orders = tuple(await broker.open_orders())
        after = await broker.account()
        ids = dict(kept.ids) | {theirs.broker_id: order.id for order, theirs in standing if theirs is not None}

        def order_of(broker_id: str) -> Order | None:
            return kept.orders.get(ids.get(broker_id, ""))

        lines = read_lines(activities, order_of, kept.known, self._calendar, kept.first_open)
        now = dict(kept.orders) | {order.id: order_as(order, theirs)[0] for order, theirs in standing}
        foreign = [*foreign_orders(open_orders, now), *_lost(standing)]
        if kept.bound is None:
            opening = Portfolio(after.cash.quantize(CENT))
            differences, rounding = compare(opening, after, foreign, 0)
        else:
            differences, rounding = compare(kept.portfolio(lines), after, foreign, len(lines.fills) + len(lines.flows))
        found = ReconciliationReport(
            kept=kept,
            account=after,
            lines=lines,
            standing=tuple(standing),
            open_orders=open_orders,
            differences=differences,
            rounding=rounding,
        )
        return found, _stands(before) == _stands(after)

    def _check_account(self, kept: JournalSnapshot, account: BrokerAccount) -> None:
        if kept.bound is None and kept.books is not None:
            raise ConfigError(
                f"the desk {self._desk} has books of the simulated market: give the account at the broker a desk of "
                "its own (desk.name)"
            )
        if kept.bound is not None and kept.bound.account != account.id:
            raise ConfigError(
                f"the desk {self._desk} trades in the account {kept.bound.account} and the keys are those of "
                f"{account.id}: use the keys of its own account, or another desk.name"
            )

    def _since(self, kept: JournalSnapshot) -> datetime:
        """From when on the history is read: never further back than at the desk's first look."""
        begun = self._clock.now() if kept.bound is None else kept.bound.time
        return (begun if kept.bound is None else max((begun, *kept.known.values()))) - OVERLAP


def order_as(order: Order, theirs: BrokerOrder | None) -> tuple[Order, OrderUpdate | None]:
    """Our order in the state that the broker says it is in, and the update that takes it there; None where nothing
    has changed, or where the broker says what cannot follow."""
    if theirs is None or theirs.state not in MOVES[order.state]:
        return order, None
    return order.moved(theirs.state), OrderUpdate(order.id, theirs.state, theirs.filled_quantity, theirs.detail)


def _handed_over(kept: JournalSnapshot) -> list[Order]:
    """Orders that may stand otherwise at the broker than here, and recent ones whose id there is not known yet."""
    named = set(kept.ids.values())
    latest = max((order.session for order in kept.orders.values()), default=date.min)

    def unnamed(order: Order) -> bool:
        return order.id not in named and order.state is not OrderState.REJECTED and latest - order.session < _RECENT

    sent = [order for order in kept.orders.values() if order.id in kept.sent]
    return [order for order in sent if not is_final(order.state) or unnamed(order)]


def _lost(standing: Sequence[tuple[Order, BrokerOrder | None]]) -> list[Difference]:
    """Orders that the broker had, and says that it never saw."""
    had = (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED)
    return [
        Difference(f"order {order.id}", None, None, f"{order.state} in the journal and unknown to the broker")
        for order, theirs in standing
        if theirs is None and order.state in had
    ]


def _stands(account: BrokerAccount) -> tuple[object, ...]:
    held = sorted((symbol, position.quantity) for symbol, position in account.positions.items())
    return account.cash, held
