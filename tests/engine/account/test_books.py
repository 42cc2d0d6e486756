"""The books of several owners add up to the account, whatever they trade against each other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import ROUND_DOWN, Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.account.books import Allocation, allocate, net_orders, open_books
from engine.domain.market import ActionKind, CorporateAction
from engine.domain.order import CENT, SHARE_STEP, ZERO, Order, Portfolio, Side, order_id
from engine.domain.run import EquityPoint, ExecutionRules
from engine.execution.venue import SettledSession
from engine.simulation.simulated_broker import SimulatedBroker
from tests.engine.desks import WEEKDAYS, bars
from tests.examples import examples

DAYS = WEEKDAYS.sessions(date(2024, 3, 4), date(2024, 3, 22))
SYMBOLS = ("AAA", "BBB")
CASH = Decimal(100_000)
WEIGHTS = {"bear": Decimal(1), "bull": Decimal(2), "calm": Decimal("0.5")}
COSTS = ExecutionRules(slippage_bp=Decimal(5), commission_per_order=Decimal("1.25"), commission_rate=Decimal("0.001"))
ACTIONS = {
    "AAA": (CorporateAction("AAA", DAYS[5], ActionKind.SPLIT, Decimal("1.5")),),
    "BBB": (CorporateAction("BBB", DAYS[4], ActionKind.DIVIDEND, Decimal("0.37")),),
}


class Account:
    """An account at the simulated market with the books of its owners."""

    def __init__(self, prices: Mapping[str, list[tuple[float, float]]], rules: ExecutionRules = COSTS) -> None:
        self.prices = prices
        histories = {symbol: bars(symbol, DAYS, prices[symbol]) for symbol in SYMBOLS}
        self.broker = SimulatedBroker(rules, Portfolio(CASH), histories, ACTIONS)
        self.books: Mapping[str, Portfolio] = open_books(Portfolio(CASH), WEIGHTS)
        self.point = EquityPoint(DAYS[0], CASH, Portfolio(CASH), {})

    def live(self, day: int, orders: list[Order]) -> tuple[Allocation, tuple[Order, ...]]:
        """One session: what the books ordered, netted, traded and allocated."""
        decided, session = DAYS[day - 1], DAYS[day]

        def price(symbol: str) -> Decimal:
            return Decimal(str(self.prices[symbol][day - 1][1]))

        net = net_orders(orders, price, lambda symbol, side: order_id("desk", decided, 1, symbol, side))
        for order in net:
            self.broker.submit(order)
        opened = self.broker.open_session(session)
        after, closed = self.broker.close_session(session)
        settled = SettledSession(self.point, after, opened.fills + closed.fills, opened.cash_flows + closed.cash_flows)
        self.point = after
        allocation = allocate(
            self.books,
            orders,
            settled,
            price=price,
            first_price=lambda symbol: Decimal(str(self.prices[symbol][day][0])),
            sent=frozenset(order.symbol for order in net),
        )
        self.books = allocation.books
        return allocation, net


def wanted(account: Account, day: int, wishes: Mapping[tuple[str, str], int]) -> list[Order]:
    """Orders by book and symbol: above zero percents of the book's cash to spend, below percents of its shares."""
    orders = []
    for (book, symbol), percent in sorted(wishes.items()):
        side = Side.BUY if percent > 0 else Side.SELL
        named: dict[str, Any] = {
            "id": order_id("desk", DAYS[day - 1], 1, symbol, side, book=book),
            "symbol": symbol,
            "side": side,
            "session": DAYS[day - 1],
            "book": book,
        }
        if percent > 0:
            notional = (account.books[book].cash * percent / 250).quantize(CENT, ROUND_DOWN)
            if notional >= 1:
                orders.append(Order(**named, notional=notional))
        elif percent < 0:
            held = account.books[book].quantity(symbol)
            quantity = (held * -percent / 100).quantize(SHARE_STEP, ROUND_DOWN)
            if quantity:
                orders.append(Order(**named, quantity=quantity))
    return orders


percents = st.integers(-100, 100)
days = st.dictionaries(st.tuples(st.sampled_from(sorted(WEIGHTS)), st.sampled_from(SYMBOLS)), percents, max_size=6)
moves = st.lists(
    st.tuples(st.integers(2_000, 30_000), st.integers(2_000, 30_000)), min_size=len(DAYS), max_size=len(DAYS)
).map(lambda rows: [(a / 100, b / 100) for a, b in rows])


@examples(60)
@given(prices=st.fixed_dictionaries(dict.fromkeys(SYMBOLS, moves)), plan=st.lists(days, min_size=4, max_size=10))
def test_the_books_add_up_to_the_account(prices: Any, plan: Any) -> None:
    account = Account(prices)
    for day, wishes in enumerate(plan, 1):
        account.live(day, wanted(account, day, wishes))
        whole = account.broker.portfolio
        assert sum((book.cash for book in account.books.values()), ZERO) == whole.cash
        for symbol in SYMBOLS:
            assert sum((book.quantity(symbol) for book in account.books.values()), ZERO) == whole.quantity(symbol)
        for book in account.books.values():
            assert all(position.quantity > 0 for position in book.positions.values())
            # Fees come on top of what an order may spend only where the whole order was an exact amount of shares.
            assert book.cash > -1


def flat(price: float) -> list[tuple[float, float]]:
    return [(price, price)] * len(DAYS)


def test_opposite_orders_cross_inside_and_only_the_net_is_sent() -> None:
    free = ExecutionRules(slippage_bp=ZERO)
    account = Account({"AAA": flat(100), "BBB": flat(50)}, free)
    first, net = account.live(1, wanted(account, 1, {("bull", "BBB"): 100}))
    assert [order.book for order in net] == [""] and [fill.book for fill in first.fills] == ["bull"]

    bull, bear = account.books["bull"].quantity("BBB"), account.books["bear"].cash
    orders = wanted(account, 2, {("bull", "BBB"): -100, ("bear", "BBB"): 50})
    second, net = account.live(2, orders)

    bought = (bear * 50 / 250).quantize(CENT, ROUND_DOWN) / 50
    (order,) = net
    assert (order.side, order.quantity) == (Side.SELL, (bull - bought).quantize(SHARE_STEP, ROUND_DOWN))
    by_book = {fill.book: fill for fill in second.fills}
    assert by_book["bull"].quantity == bull
    assert by_book["bear"].quantity == bought.quantize(SHARE_STEP, ROUND_DOWN)
    assert {fill.price for fill in second.fills} == {Decimal(50)}


def test_what_nets_to_nothing_crosses_at_the_next_open_and_nothing_is_sent() -> None:
    free = ExecutionRules(slippage_bp=ZERO)
    rows = flat(50)
    rows[2] = (60, 55)
    account = Account({"AAA": flat(100), "BBB": rows}, free)
    account.live(1, wanted(account, 1, {("bull", "BBB"): 100}))
    shares = Decimal(100)
    decided = {"symbol": "BBB", "session": DAYS[1]}
    orders = [
        Order(id="a", side=Side.SELL, quantity=shares, book="bull", **decided),
        Order(id="b", side=Side.BUY, notional=shares * 50, book="bear", **decided),
    ]
    allocation, net = account.live(2, orders)
    assert net == ()
    # What the buyer meant to spend buys fewer shares at 60: the seller keeps the rest.
    assert [(fill.book, fill.price, fill.quantity) for fill in allocation.fills] == [
        ("bear", 60, (shares * 50 / 60).quantize(SHARE_STEP, ROUND_DOWN)),
        ("bull", 60, (shares * 50 / 60).quantize(SHARE_STEP, ROUND_DOWN)),
    ]


def test_where_the_net_order_does_not_fill_nothing_crosses() -> None:
    free = ExecutionRules(slippage_bp=ZERO)
    account = Account({"AAA": flat(100), "BBB": flat(50)}, free)
    account.live(1, wanted(account, 1, {("bull", "BBB"): 100}))
    orders = wanted(account, 2, {("bull", "BBB"): -100, ("bear", "BBB"): 50})
    settled = SettledSession(account.point, EquityPoint(DAYS[2], ZERO, account.point.portfolio, account.point.prices))
    allocation = allocate(
        account.books,
        orders,
        settled,
        price=lambda symbol: Decimal(50),
        first_price=lambda symbol: Decimal(50),
        sent=frozenset({"BBB"}),
    )
    assert allocation.fills == () and dict(allocation.books) == dict(account.books)
