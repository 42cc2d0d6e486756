"""Books of several owners within one account: orders are netted before they are sent, and what the account did is
allocated back to the books.

Opposite orders of two books in one symbol are never sent as a wash trade: what they have in common crosses inside, at
the fill price of the net order, or at the session's first price where the net is too small to send. Where the net order
was sent and did not fill, nothing crosses: all orders of the session expire together. The books always add up to the
account: shares exactly, cash to the cent.

The books of this moment: those of the last close with everything that was booked since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date
from decimal import ROUND_DOWN, Decimal

from engine.account.time_weighted import SPLITS, net_deposits
from engine.domain.market import Symbol
from engine.domain.order import CENT, EXACT, SHARE_STEP, ZERO, Fill, Order, Portfolio, Position, Side, is_closing
from engine.domain.run import Adoption, CashFlow, EquityPoint, carried_forward
from engine.errors import InvariantBroken
from engine.execution.limits import SMALLEST_ORDER
from engine.execution.venue import SettledSession

ROUNDING = "rounding"
Price = Callable[[Symbol], Decimal]


@dataclass(frozen=True, slots=True)
class Allocation:
    """The books after a session, and what was traded and paid in each of them."""

    books: Mapping[str, Portfolio]
    fills: tuple[Fill, ...] = ()
    cash_flows: tuple[CashFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class _Netting:
    """The orders of all books in one symbol. `bought` and `sold` are shares by book at the price of the decision,
    `crossing` the shares that they have in common, `net` positive where the account has to buy."""

    bought: Mapping[str, Decimal]
    sold: Mapping[str, Decimal]

    @property
    def crossing(self) -> Decimal:
        return min(_total(self.bought), _total(self.sold))

    @property
    def net(self) -> Decimal:
        return _total(self.bought) - _total(self.sold)


def open_books(account: Portfolio, weights: Mapping[str, Decimal]) -> dict[str, Portfolio]:
    """The books at the start: each owner's share of the account's cash and positions by its weight."""
    cash = _parts(account.cash, weights, account.money_step)
    shares = {symbol: _parts(held.quantity, weights, SHARE_STEP) for symbol, held in account.positions.items()}
    return {
        owner: Portfolio(
            cash[owner],
            {
                symbol: Position(parts[owner], account.positions[symbol].average_cost)
                for symbol, parts in shares.items()
                if parts[owner]
            },
            account.money_step,
        )
        for owner in weights
    }


def net_orders(
    orders: Sequence[Order],
    price: Price,
    name: Callable[[Symbol, Side], str],
    *,
    whole_shares: frozenset[Symbol] = frozenset(),
) -> tuple[Order, ...]:
    """The orders that the account sends for those of its books, in the order of the symbols. `price` is what was
    decided on, `name` gives the id of a net order."""
    found = []
    for symbol in dict.fromkeys(order.symbol for order in orders):
        own = [order for order in orders if order.symbol == symbol]
        order = _net_order(own, price(symbol), name, whole=symbol in whole_shares)
        if order is not None:
            found.append(order)
    return tuple(found)


def allocate(
    books: Mapping[str, Portfolio],
    orders: Sequence[Order],
    settled: SettledSession,
    *,
    price: Price,
    first_price: Callable[[Symbol], Decimal | None],
    sent: frozenset[Symbol],
) -> Allocation:
    """Allocate what the account did in a session to its books.

    `orders` are those of the books for that session, `price` what they were decided on, `first_price` the session's
    first price (None where a symbol does not trade), `sent` the symbols whose net order was sent. Raises
    InvariantBroken where the books do not add up to the account.
    """
    after = {owner: _restated(owner, books, settled) for owner in books}
    flows = list(_flows(books, settled))
    fills = [
        *_closings(after, settled),
        *(
            fill
            for symbol in dict.fromkeys(order.symbol for order in orders)
            for fill in _fills(
                [order for order in orders if order.symbol == symbol],
                [fill for fill in settled.fills if fill.symbol == symbol and not is_closing(fill.order_id)],
                price(symbol),
                None if symbol in sent else first_price(symbol),
                settled,
            )
        ),
    ]
    for flow in flows:
        after[flow.book] = replace(after[flow.book], cash=after[flow.book].cash + flow.amount)
    for fill in fills:
        after[fill.book] = after[fill.book].filled(fill)
    rounding = _rounding(after, settled, len(fills) + len(flows))
    for flow in rounding:
        after[flow.book] = replace(after[flow.book], cash=after[flow.book].cash + flow.amount)
    _check(after, settled.after.portfolio)
    return Allocation(after, tuple(fills), (*flows, *rounding))


def marked(allocation: Allocation, account: EquityPoint) -> tuple[EquityPoint, ...]:
    """The books at the account's close."""
    return tuple(
        EquityPoint(account.session, book.value(account.prices), book, account.prices, owner)
        for owner, book in allocation.books.items()
    )


def _netting(orders: Iterable[Order], price: Decimal) -> _Netting:
    bought: dict[str, Decimal] = {}
    sold: dict[str, Decimal] = {}
    for order in orders:
        side = bought if order.side is Side.BUY else sold
        shares = order.quantity
        if shares is None:  # in whole steps, or a sale of all that crosses a purchase would leave a part of one
            shares = EXACT.divide(order.notional or ZERO, price).quantize(SHARE_STEP, ROUND_DOWN, EXACT)
        side[order.book] = side.get(order.book, ZERO) + shares
    return _Netting(bought, sold)


def _net_order(
    orders: Sequence[Order], price: Decimal, name: Callable[[Symbol, Side], str], *, whole: bool
) -> Order | None:
    netting = _netting(orders, price)
    side = Side.BUY if netting.net > 0 else Side.SELL
    order = Order(
        id=name(orders[0].symbol, side),
        symbol=orders[0].symbol,
        side=side,
        session=orders[0].session,
        quantity=abs(netting.net),
        reason="; ".join(dict.fromkeys(one.reason for one in orders if one.side is side and one.reason)),
    )
    if not netting.sold or not netting.bought:
        return replace(order, quantity=_sum(orders, "quantity"), notional=_sum(orders, "notional"))
    if EXACT.multiply(abs(netting.net), price) < SMALLEST_ORDER:
        return None
    if side is Side.BUY and not whole:
        spent = EXACT.subtract(_total_notional(orders), EXACT.multiply(_total(netting.sold), price))
        return replace(order, quantity=None, notional=spent.quantize(CENT, ROUND_DOWN, EXACT))
    shares = abs(netting.net).quantize(Decimal(1) if whole else SHARE_STEP, ROUND_DOWN, EXACT)
    return replace(order, quantity=shares) if shares else None


def _sum(orders: Iterable[Order], field: str) -> Decimal | None:
    amounts = [amount for order in orders if (amount := getattr(order, field)) is not None]
    return sum(amounts, ZERO) if amounts else None


def _total_notional(orders: Iterable[Order]) -> Decimal:
    return sum((order.notional or ZERO for order in orders if order.side is Side.BUY), ZERO)


def _fills(
    orders: Sequence[Order],
    fills: Sequence[Fill],
    decided: Decimal,
    first_price: Decimal | None,
    settled: SettledSession,
) -> Iterable[Fill]:
    """The books' fills in one symbol: their parts of the account's, and what crosses inside."""
    netting = _netting(orders, decided)
    quantity = sum((fill.quantity for fill in fills), ZERO)
    if quantity:
        price = EXACT.divide(sum((EXACT.multiply(f.quantity, f.price) for f in fills), ZERO), quantity)
        fee = sum((fill.fee for fill in fills), ZERO)
    elif first_price is not None:
        price, fee = first_price, ZERO
    else:
        return
    # What buyers meant to spend buys fewer shares at a higher price: the sellers keep the rest.
    crossing = netting.crossing * min(Decimal(1), decided / price)
    crossing = crossing.quantize(SHARE_STEP, ROUND_DOWN, EXACT)
    for side, weights in ((Side.BUY, netting.bought), (Side.SELL, netting.sold)):
        sent = bool(fills) and fills[0].side is side
        traded = crossing + (quantity if sent else ZERO)
        if not traded:
            continue
        shares, fees = _parts(traded, weights, SHARE_STEP), _parts(fee if sent else ZERO, weights, CENT)
        for order in orders:
            if order.side is side and shares[order.book]:
                yield Fill(
                    order_id=order.id,
                    symbol=order.symbol,
                    side=side,
                    session=settled.after.session,
                    quantity=shares[order.book],
                    price=price,
                    fee=fees[order.book],
                    reason=order.reason,
                    book=order.book,
                    time=max((fill.time for fill in fills if fill.time is not None), default=None),
                )


def _closings(books: Mapping[str, Portfolio], settled: SettledSession) -> Iterable[Fill]:
    """The books' parts of positions that were closed because their symbol stopped trading."""
    for fill in settled.fills:
        if not is_closing(fill.order_id):
            continue
        held = {owner: book.quantity(fill.symbol) for owner, book in books.items()}
        for owner, shares in _parts(fill.quantity, held, SHARE_STEP).items():
            if shares:
                yield replace(fill, quantity=shares, book=owner)


def _restated(owner: str, books: Mapping[str, Portfolio], settled: SettledSession) -> Portfolio:
    """A book after the session's splits: every change of shares that no trade explains, by what each book held."""
    book = books[owner]
    held = dict(book.positions)
    for symbol, position in book.positions.items():
        before = settled.before.portfolio.quantity(symbol)
        after = settled.after.portfolio.quantity(symbol) - _traded(settled, symbol)
        if after == before:
            continue
        weights = {name: one.quantity(symbol) for name, one in books.items()}
        shares = _parts(after, weights, SHARE_STEP)[owner]
        if shares:
            held[symbol] = Position(shares, position.average_cost * position.quantity / shares)
        else:
            del held[symbol]
    return replace(book, positions=held)


def _traded(settled: SettledSession, symbol: Symbol) -> Decimal:
    own = [fill for fill in settled.fills if fill.symbol == symbol]
    return sum((fill.quantity if fill.side is Side.BUY else -fill.quantity for fill in own), ZERO)


def _flows(books: Mapping[str, Portfolio], settled: SettledSession) -> Iterable[CashFlow]:
    """The books' parts of the account's cash flows: of a symbol by the shares held before the session's trades, of the
    whole account by cash."""
    for flow in settled.cash_flows:
        weights = {owner: book.quantity(flow.symbol) for owner, book in books.items()} if flow.symbol else {}
        if not any(weights.values()):
            weights = {owner: book.cash for owner, book in books.items()}
        for owner, amount in _parts(flow.amount, weights, CENT).items():
            if amount:
                yield replace(flow, amount=amount, quantity=ZERO, book=owner)


def _rounding(books: Mapping[str, Portfolio], settled: SettledSession, parts: int) -> tuple[CashFlow, ...]:
    """The cents that rounding every part by itself has left, in the book with the most cash."""
    rest = settled.after.portfolio.cash - sum((book.cash for book in books.values()), ZERO)
    if abs(rest) > CENT * (parts + 1):
        raise InvariantBroken(f"the books of {settled.after.session} miss {rest} of the account's cash")
    owner = max(books, key=lambda name: books[name].cash)
    flow = CashFlow(session=settled.after.session, symbol="", kind=ROUNDING, amount=rest, book=owner)
    return (flow,) if rest else ()


def _check(books: Mapping[str, Portfolio], account: Portfolio) -> None:
    symbols = {symbol for book in (*books.values(), account) for symbol in book.positions}
    for symbol in sorted(symbols):
        held = sum((book.quantity(symbol) for book in books.values()), ZERO)
        if held != account.quantity(symbol):
            raise InvariantBroken(f"the books hold {held} {symbol} and the account {account.quantity(symbol)}")


def _total(shares: Mapping[str, Decimal]) -> Decimal:
    return sum(shares.values(), ZERO)


def _parts(total: Decimal, weights: Mapping[str, Decimal], step: Decimal) -> dict[str, Decimal]:
    """A total in parts by weight, each a multiple of the step; what is left over goes to the largest weights, so that
    the parts add up to the total exactly."""
    whole = sum(weights.values(), ZERO)
    if not whole:
        weights, whole = dict.fromkeys(weights, Decimal(1)), Decimal(len(weights))
    parts = {
        owner: EXACT.divide(EXACT.multiply(total, weight), whole).quantize(step, ROUND_DOWN, EXACT)
        for owner, weight in weights.items()
    }
    rest = total - sum(parts.values(), ZERO)
    first = max(weights, key=lambda owner: weights[owner])
    parts[first] += rest
    return parts


@dataclass(frozen=True, slots=True)
class Since:
    """Everything that was booked after a close.

    books: carried forward, dated with the latest session in which something was booked, and valued at the last price
        that the journal knows: of a trade since, else the close.
    fills: the number of trades.
    deposits: less withdrawals, which are no profit.
    """

    books: EquityPoint
    _: KW_ONLY
    fills: int
    deposits: Decimal


def since_close(
    last: EquityPoint, fills: Iterable[Fill], flows: Iterable[CashFlow], adoptions: Iterable[Adoption] = ()
) -> Since | None:
    """Everything that was booked in the account after the close of `last`; None where nothing was."""
    fills = [one for one in fills if one.session > last.session]
    flows = [one for one in flows if one.session > last.session]
    adoptions = [one for one in adoptions if one.session > last.session]
    everything: list[Fill | CashFlow | Adoption] = [*fills, *flows, *adoptions]
    sessions: list[date] = [one.session for one in everything]
    if not sessions:
        return None
    portfolio = carried_forward(last.portfolio, fills, flows, adoptions)
    known = _prices_restated(last, flows) | {one.symbol: one.price for one in adoptions if one.symbol}
    known |= {one.symbol: one.price for one in fills}
    prices = {symbol: known.get(symbol, ZERO) for symbol in portfolio.positions}
    books = EquityPoint(max(sessions), portfolio.value(prices), portfolio, prices)
    deposits = sum((one.amount for one in net_deposits((last, books), flows, adoptions)), ZERO)
    return Since(books, fills=len(fills), deposits=deposits)


def _prices_restated(last: EquityPoint, flows: Sequence[CashFlow]) -> dict[Symbol, Decimal]:
    """The closes in the shares of now: a split changes what a share is."""
    prices = dict(last.prices)
    for symbol, held in last.portfolio.positions.items():
        split = sum((one.quantity for one in flows if one.symbol == symbol and one.kind in SPLITS), ZERO)
        if split and held.quantity + split and symbol in prices:
            prices[symbol] = prices[symbol] * held.quantity / (held.quantity + split)
    return prices
