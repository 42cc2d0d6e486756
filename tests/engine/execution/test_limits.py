"""Limits over the whole batch in a fixed order: the cash floor, the range of sizes, and what is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.decision import Action
from engine.domain.order import Portfolio, Position, PositionContext, Side
from engine.domain.run import ExecutionRules
from engine.execution.limits import Approved, Batch, Funds, Refused, Request, Sized, cost, limit
from engine.preset import load_preset
from engine.simulation.simulated_broker import SimulatedBroker
from tests.engine.desks import bars

FINVISION = load_preset("finvision").sizing
SESSION, NEXT = date(2024, 3, 1), date(2024, 3, 4)
BATCH = Batch(desk="desk", session=SESSION, cycle=1, sizing=FINVISION)
BUY, SELL, HOLD, ABSTAIN = Action.BUY, Action.SELL, Action.HOLD, Action.ABSTAIN


def position(cash: str = "50000", quantity: str = "0", price: str = "100", value: str = "100000") -> PositionContext:
    return PositionContext(
        shares=Decimal(quantity),
        price=Decimal(price),
        average_cost=Decimal(price),
        cash=Decimal(cash),
        value=Decimal(value),
        gains_in_a_row=0,
    )


def context_of(book: Portfolio, symbol: str, prices: Mapping[str, Decimal]) -> PositionContext:
    """A book's position at the prices of a decision."""
    price, value = prices[symbol], book.value(prices)
    return PositionContext(shares=book.quantity(symbol), price=price, average_cost=price, cash=book.cash, value=value)


def asks(symbol: str, action: Action, size: str, where: PositionContext, queued: str = "0") -> Request:
    return Request(symbol=symbol, sized=Sized(action, Decimal(size)), position=where, queued=Decimal(queued))


def one(action: Action, size: str, where: PositionContext, queued: str = "0") -> Approved | Refused:
    return limit(BATCH, [asks("AAA", action, size, where, queued)])["AAA", ""]


def test_a_purchase_within_the_room_is_ordered_by_notional() -> None:
    approved = one(BUY, "7", position())

    assert isinstance(approved, Approved)
    assert (approved.size, approved.cuts) == (Decimal(7), ())
    assert (approved.order.side, approved.order.notional, approved.order.quantity) == (Side.BUY, Decimal("7000"), None)
    assert approved.order.id == "desk-20240301-1-AAA-B-1"


def test_a_purchase_is_cut_to_what_stands_above_the_floor() -> None:
    approved = one(BUY, "7", position(cash="13456.789"))

    assert isinstance(approved, Approved)
    assert approved.order.notional == Decimal("3456.78")
    assert approved.size == Decimal("3.4567")
    assert [(c.rule, c.asked, c.allowed) for c in approved.cuts] == [("cash floor", Decimal(7), Decimal("3.4567"))]


@pytest.mark.parametrize("cash", ["10000", "9000", "10999.99", "-5"])
def test_a_purchase_that_would_come_to_less_than_a_percent_is_refused(cash: str) -> None:
    refused = one(BUY, "7", position(cash=cash))

    assert isinstance(refused, Refused)
    assert [(c.rule, c.asked, c.allowed) for c in refused.cuts] == [("cash floor", Decimal(7), Decimal(0))]


@pytest.mark.parametrize("value", ["100000", "100000.37", "99999.99"])
def test_a_purchase_of_one_percent_is_the_smallest(value: str) -> None:
    room = Decimal(value) * Decimal("0.11")
    approved = one(BUY, "7", position(cash=str(room), value=value))

    assert isinstance(approved, Approved)
    assert approved.size == 1


def test_no_order_is_under_a_dollar() -> None:
    assert isinstance(one(BUY, "1", position(cash="50", value="99")), Refused)
    assert isinstance(one(BUY, "1", position(cash="50", value="100")), Approved)


def test_earlier_purchases_and_open_ones_are_reserved_and_sales_free_nothing() -> None:
    where = position(cash="22000", quantity="50")
    asked = [
        asks("AAA", SELL, "5", where),
        asks("BBB", BUY, "7", where),
        asks("CCC", BUY, "7", where),
        asks("DDD", BUY, "7", where),
    ]
    results = limit(BATCH, asked, {"": Decimal(2000)})

    notionals = {s: v.order.notional for (s, _), v in results.items() if isinstance(v, Approved)}
    assert notionals == {"AAA": None, "BBB": Decimal(7000), "CCC": Decimal(3000)}
    assert isinstance(results["DDD", ""], Refused)
    assert [symbol for symbol, _ in results] == ["AAA", "BBB", "CCC", "DDD"]
    # The order of the symbols decides, and nothing else.
    assert limit(BATCH, asked, {"": Decimal(2000)}) == results


def test_a_sale_is_by_quantity_and_never_more_than_is_free() -> None:
    whole = one(SELL, "3", position(quantity="100", price="7"))
    assert isinstance(whole, Approved)
    assert (whole.order.quantity, whole.size) == (Decimal(100), Decimal("0.7"))
    assert [(c.rule, c.asked, c.allowed) for c in whole.cuts] == [("holding", Decimal(3), Decimal("0.7"))]

    part = one(SELL, "3", position(quantity="1000", price="7"))
    assert isinstance(part, Approved)
    assert (part.order.quantity, part.size, part.cuts) == (Decimal("428.571428571"), Decimal(3), ())

    queued = one(SELL, "3", position(quantity="100", price="7"), queued="40")
    assert isinstance(queued, Approved)
    assert queued.order.quantity == Decimal(60)

    assert isinstance(one(SELL, "3", position(quantity="100"), queued="100"), Refused)
    assert isinstance(one(SELL, "3", position(quantity="0")), Refused)


def test_hold_and_abstain_give_no_entry() -> None:
    asked = [asks("AAA", HOLD, "0", position()), asks("BBB", ABSTAIN, "0", position())]
    assert limit(BATCH, asked) == {}


PRICE = st.decimals("0.01", 5000, places=4)
RULES = st.builds(
    ExecutionRules,
    slippage_bp=st.decimals(0, 300, places=1),
    commission_rate=st.sampled_from([Decimal(0), Decimal("0.001"), Decimal("0.02")]),
    commission_per_order=st.sampled_from([Decimal(0), Decimal("1.5"), Decimal(40)]),
    commission_per_share=st.sampled_from([Decimal(0), Decimal("0.005")]),
    fractional=st.booleans(),
)


@st.composite
def batches(
    draw: st.DrawFn,
) -> tuple[Portfolio, Mapping[str, tuple[Decimal, Decimal, Decimal]], list[tuple[str, Sized]]]:
    symbols = draw(st.permutations(["AAA", "BBB", "CCC", "DDD"]))
    prices = {s: (draw(PRICE), draw(PRICE), draw(PRICE)) for s in symbols}
    held = {s: Position(draw(st.decimals("0.000000001", 500, places=9)), Decimal(1)) for s in symbols[:2]}
    portfolio = Portfolio(draw(st.decimals(0, 200_000, places=2)), held)
    sizes = st.decimals(1, 10, places=3)
    asked = [(s, Sized(draw(st.sampled_from([BUY, BUY, SELL, HOLD, ABSTAIN])), draw(sizes))) for s in symbols]
    return portfolio, prices, asked


@given(batches(), RULES)
def test_a_batch_keeps_the_floor_the_range_and_the_holdings_through_the_market(
    drawn: tuple[Portfolio, Mapping[str, tuple[Decimal, Decimal, Decimal]], list[tuple[str, Sized]]],
    rules: ExecutionRules,
) -> None:
    portfolio, prices, asked = drawn
    decided_at = {s: p[0] for s, p in prices.items()}
    value = portfolio.value(decided_at)
    stand = {s: context_of(portfolio, s, decided_at) for s, _ in asked}
    results = limit(BATCH, [Request(symbol=s, sized=sized, position=stand[s]) for s, sized in asked])

    approved = {s: v for (s, _), v in results.items() if isinstance(v, Approved)}
    reserved = sum((v.order.notional or Decimal(0) for v in approved.values()), Decimal(0))
    floor = value * FINVISION.cash_floor
    assert not reserved or portfolio.cash - reserved >= floor
    for symbol, sized in asked:
        if symbol in approved:
            order, size = approved[symbol].order, approved[symbol].size
            assert order.side.value == sized.action.value
            assert size <= sized.size
            assert size >= 1 or order.side is Side.SELL
            assert (size < sized.size) == bool(approved[symbol].cuts)
            if order.side is Side.SELL:
                assert order.quantity is not None
                assert 0 < order.quantity <= portfolio.quantity(symbol)

    histories = {s: bars(s, [SESSION, NEXT], [p[0], (p[1], p[2])]) for s, p in prices.items()}
    broker = SimulatedBroker(rules, portfolio, histories, closed=SESSION)
    for result in approved.values():
        broker.submit(result.order)
    broker.open_session(NEXT)
    after, _ = broker.close_session(NEXT)
    proceeds = Decimal(0)
    for fill in broker.fills:
        amount = portfolio.money(fill.quantity * fill.price)
        if fill.side is Side.BUY:
            assert amount + fill.fee <= (approved[fill.symbol].order.notional or 0)
        else:
            proceeds += amount - fill.fee
    # What the sales brought apart, whatever the prices came to: the purchases left the floor standing.
    assert not reserved or after.portfolio.cash - proceeds >= floor
    assert all(p.quantity > 0 for p in after.portfolio.positions.values())
    assert after.portfolio.cash >= 0


def test_whole_shares_are_bought_with_room_for_the_night_and_reserved_so() -> None:
    batch = replace(BATCH, whole_shares=frozenset({"AAA", "BBB"}))
    where = position(cash="20000", price="101")
    results = limit(batch, [asks(symbol, BUY, "7", where) for symbol in ("AAA", "BBB", "CCC")])

    first, second, third = results["AAA", ""], results["BBB", ""], results["CCC", ""]
    assert isinstance(first, Approved) and isinstance(second, Approved)
    # 7,000 over 101 and five percent for the night are 66.006 shares; 10,000 stay, so 3,000.70 are left: 28.3.
    assert (first.order.quantity, first.order.notional) == (66, None)
    assert second.order.quantity == 28
    assert [cut.rule for cut in second.cuts] == ["cash floor", "whole shares"]
    assert isinstance(third, Refused)


def test_less_than_a_whole_share_is_refused_and_a_part_is_not_sold() -> None:
    batch = replace(BATCH, whole_shares=frozenset({"AAA"}))
    dear = limit(batch, [asks("AAA", BUY, "7", position(price="6900"))])["AAA", ""]
    assert isinstance(dear, Refused)
    assert dear.cuts[-1].rule == "whole shares"
    sold = limit(batch, [asks("AAA", SELL, "7", position(quantity="3.7"))])["AAA", ""]
    assert isinstance(sold, Approved)
    assert sold.order.quantity == 3


def test_an_order_of_a_book_names_its_owner_and_keeps_its_own_floor() -> None:
    book = position(cash="12000", value="20000")
    bull = Request(symbol="AAA", book="bull", sized=Sized(BUY, Decimal(7)), position=book)
    bear = Request(
        symbol="AAA", book="bear", sized=Sized(BUY, Decimal(7)), position=position(cash="2500", value="20000")
    )
    results = limit(replace(BATCH, funds=Funds(Decimal(14_500), Decimal(40_000))), [bull, bear])

    first, second = results["AAA", "bull"], results["AAA", "bear"]
    assert isinstance(first, Approved) and isinstance(second, Approved)
    assert (first.order.id, first.order.book) == ("desk-20240301-1-AAA-bull-B-1", "bull")
    assert (first.order.notional, second.order.notional) == (1400, 500)


def test_the_desks_floor_holds_where_the_books_together_have_less_cash_than_each_says() -> None:
    book = position(cash="12000", value="20000")
    asked = [Request(symbol="AAA", book=who, sized=Sized(BUY, Decimal(10)), position=book) for who in ("a", "b", "c")]
    # 6,000 of 60,000 stay, so 3,000 of the 9,000 that are there can be spent, whatever the books say.
    results = limit(replace(BATCH, funds=Funds(Decimal(9_000), Decimal(60_000))), asked)

    notionals = [one.order.notional for one in results.values() if isinstance(one, Approved)]
    assert notionals == [2000, 1000]
    assert isinstance(results["AAA", "c"], Refused)


OWNERS = [f"owner-{n}" for n in range(8)]
SYMBOLS = ["AAA", "BBB", "CCC", "DDD"]


@dataclass(frozen=True)
class Books:
    """Eight books and what each asks for: cash, shares and queued shares by owner; `missing` is cash that the desk has
    less than its books say, `taken` what orders of the batch have taken before."""

    prices: Mapping[str, Decimal]
    books: Mapping[str, Portfolio]
    queued: Mapping[tuple[str, str], Decimal]
    missing: Decimal
    taken: Mapping[str, Decimal]
    asked: Sequence[tuple[str, str, Sized]]
    whole_shares: frozenset[str]

    def request(self, symbol: str, owner: str, sized: Sized) -> Request:
        where, queued = context_of(self.books[owner], symbol, self.prices), self.queued.get((symbol, owner), Decimal(0))
        return Request(symbol=symbol, book=owner, sized=sized, position=where, queued=queued)

    @property
    def desk(self) -> Funds:
        cash = sum((book.cash for book in self.books.values()), Decimal(0)) - self.missing
        value = sum((book.value(self.prices) for book in self.books.values()), Decimal(0)) - self.missing
        return Funds(cash, value)


@st.composite
def eight_books(draw: st.DrawFn) -> Books:
    prices = {symbol: draw(PRICE) for symbol in SYMBOLS}
    money, shares = st.decimals(0, 50_000, places=2), st.decimals(0, 300, places=9)
    books: dict[str, Portfolio] = {}
    queued: dict[tuple[str, str], Decimal] = {}
    for owner in OWNERS:
        held = {symbol: draw(shares) for symbol in draw(st.lists(st.sampled_from(SYMBOLS), unique=True))}
        books[owner] = Portfolio(draw(money), {s: Position(q, Decimal(1)) for s, q in held.items() if q})
        queued |= {(s, owner): draw(st.sampled_from([Decimal(0), q / 2, q])) for s, q in held.items()}
    sized = st.builds(
        Sized, st.sampled_from([BUY, BUY, BUY, SELL, HOLD, ABSTAIN]), st.decimals(1, 100, places=3), st.just(())
    )
    return Books(
        prices=prices,
        books=books,
        queued=queued,
        missing=draw(st.sampled_from([Decimal(0), Decimal(0), Decimal(20_000)])),
        taken={owner: draw(money) for owner in draw(st.lists(st.sampled_from(OWNERS), unique=True, max_size=3))},
        asked=[(symbol, owner, draw(sized)) for symbol in draw(st.permutations(SYMBOLS)) for owner in OWNERS],
        whole_shares=frozenset(draw(st.lists(st.sampled_from(SYMBOLS), unique=True))),
    )


@given(eight_books())
def test_eight_owners_of_four_symbols_never_reserve_cash_twice_or_cross_a_floor(drawn: Books) -> None:
    values = {owner: book.value(drawn.prices) for owner, book in drawn.books.items()}
    batch = replace(BATCH, whole_shares=drawn.whole_shares, funds=drawn.desk)
    results = limit(batch, [drawn.request(*asked) for asked in drawn.asked], drawn.taken)

    orders = [result.order for result in results.values() if isinstance(result, Approved)]
    assert len({order.id for order in orders}) == len(orders)
    taken = dict(drawn.taken)
    buyers = {order.book for order in orders if order.side is Side.BUY}
    for order in orders:
        if order.side is Side.BUY:
            taken[order.book] = taken.get(order.book, Decimal(0)) + cost(order, drawn.prices[order.symbol])
        else:
            free = drawn.books[order.book].quantity(order.symbol)
            free -= drawn.queued.get((order.symbol, order.book), Decimal(0))
            assert order.quantity is not None
            assert 0 < order.quantity <= free
    for owner in buyers:
        assert drawn.books[owner].cash - taken[owner] >= values[owner] * FINVISION.cash_floor
    if buyers:
        assert drawn.desk.cash - sum(taken.values()) >= drawn.desk.value * FINVISION.cash_floor
