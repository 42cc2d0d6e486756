"""The owners' books of a run, each with a part of the account: settled with it, and traded through its net orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from engine.account.books import allocate, marked, net_orders, open_books
from engine.cycle.turn import CycleResult, OpenOrders, Turn
from engine.domain.market import Symbol, from_nano
from engine.domain.order import ZERO, Fill, Order, Portfolio, Side, order_id
from engine.domain.run import CashFlow, EquityPoint
from engine.execution.limits import cost
from engine.execution.venue import SettledSession
from engine.market.as_of import Market
from engine.preset import Preset


@dataclass(frozen=True, slots=True, kw_only=True)
class BookOrders:
    """The orders of all books from one cycle, and what became of them.

    session: the session that was decided on
    orders: of the books; each names its own
    prices: what was decided on, in the quote currency
    sent: symbols whose net order went to the market
    """

    session: date
    orders: tuple[Order, ...]
    prices: Mapping[Symbol, Decimal]
    sent: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class OwnerBooks:
    """The books by owner at the last close, and the orders that wait to be allocated; empty where the desk has one book
    only. `unallocated` are sessions that an earlier run settled and did not allocate, because it was killed."""

    points: Mapping[str, EquityPoint] = field(default_factory=dict)
    waiting: BookOrders | None = None
    unallocated: tuple[SettledSession, ...] = ()

    @property
    def portfolios(self) -> Mapping[str, Portfolio]:
        """Cash and positions by owner."""
        return {owner: point.portfolio for owner, point in self.points.items()}

    @property
    def open_orders(self) -> Mapping[str, OpenOrders]:
        """The claims of the orders that wait, on the book of each owner."""
        waiting = self.waiting
        return {} if waiting is None else {owner: _claims(waiting, owner) for owner in self.points}


@dataclass(frozen=True, slots=True)
class BookSettlement:
    """The books of one session: at its close, what was traded and paid in them, and each as a holding period."""

    points: tuple[EquityPoint, ...]
    fills: tuple[Fill, ...] = ()
    cash_flows: tuple[CashFlow, ...] = ()
    holding_periods: tuple[SettledSession, ...] = ()


def _claims(waiting: BookOrders, owner: str) -> OpenOrders:
    cash, shares = ZERO, dict[Symbol, Decimal]()
    for order in waiting.orders:
        if order.book == owner and order.side is Side.BUY:
            cash += cost(order, waiting.prices[order.symbol])
        elif order.book == owner:
            shares[order.symbol] = shares.get(order.symbol, ZERO) + (order.quantity or ZERO)
    return OpenOrders(cash, shares)


def has_books(preset: Preset) -> bool:
    """True where each owner keeps a book of its own."""
    return preset.combine == "books" and len(preset.owners) > 1


def opened(preset: Preset, session: date, portfolio: Portfolio, prices: Mapping[Symbol, Decimal]) -> OwnerBooks:
    """The books of the first session: each owner's share of the account's cash and positions by its weight, at the
    prices that the account is valued at."""
    weights = {name: owner.weight for name, owner in preset.owners.items()}
    points = {}
    for owner, book in open_books(portfolio, weights).items():
        held = {symbol: prices[symbol] for symbol in book.positions}
        points[owner] = EquityPoint(session, book.value(held), book, held, owner)
    return OwnerBooks(points)


def settled(
    books: OwnerBooks, sessions: Iterable[SettledSession], market: Market
) -> tuple[OwnerBooks, tuple[BookSettlement, ...]]:
    """The books after sessions of the account, and each session's settlement of them."""
    done, found = books, []
    for one in (*books.unallocated, *sessions):
        settlement = _session(done, one, market)
        done = OwnerBooks({point.book: point for point in settlement.points})
        found.append(settlement)
    return replace(done, unallocated=()), tuple(found)


def netted(turn: Turn, result: CycleResult) -> tuple[CycleResult, BookOrders]:
    """The result with the account's net orders in the place of the books' own, and those."""
    symbols = dict.fromkeys(order.symbol for order in result.orders)
    net = net_orders(
        result.orders,
        turn.price,
        lambda symbol, side: order_id(turn.desk, turn.session, turn.number, symbol, side),
        whole_shares=turn.whole_shares,
    )
    waiting = BookOrders(
        session=turn.session,
        orders=result.orders,
        prices={symbol: turn.price(symbol) for symbol in symbols},
        sent=tuple(order.symbol for order in net),
    )
    return replace(result, orders=net), waiting


def _session(books: OwnerBooks, account: SettledSession, market: Market) -> BookSettlement:
    session, waiting = account.after.session, books.waiting
    orders: Sequence[Order] = () if waiting is None else waiting.orders
    allocation = allocate(
        books.portfolios,
        orders,
        account,
        price=lambda symbol: waiting.prices[symbol] if waiting is not None else Decimal(0),
        first_price=lambda symbol: _open(market, symbol, session),
        sent=frozenset() if waiting is None else frozenset(waiting.sent),
    )
    points = marked(allocation, account.after)
    holding_periods = tuple(
        SettledSession(
            books.points[point.book],
            point,
            tuple(fill for fill in allocation.fills if fill.book == point.book),
            tuple(flow for flow in allocation.cash_flows if flow.book == point.book),
        )
        for point in points
    )
    return BookSettlement(points, allocation.fills, allocation.cash_flows, holding_periods)


def _open(market: Market, symbol: Symbol, session: date) -> Decimal | None:
    """The first price of a session that is over; None where the symbol did not trade in it."""
    history = market.histories[symbol]
    row = history.index(session)
    return None if row is None else from_nano(history.open[row])
