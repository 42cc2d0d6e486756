"""The sandbox's books are exact whatever is ordered: they follow from the activities alone, and from the file."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.sandbox.book import Book, Store
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.orders import read_ticket
from connectors.sandbox.protocol import ApiError
from engine.domain.run import ExecutionRules
from tests.connectors.alpaca.sandbox_markets import exchange, order
from tests.examples import examples

EXACT, CENT = Context(prec=80), Decimal("0.01")
SYMBOLS = ("AAA", "BBB", "BTC/USD")

quantities = st.integers(1, 200 * 10**9).map(lambda n: {"qty": f"{Decimal(n) / 10**9:f}"})
whole = st.integers(1, 200).map(lambda n: {"qty": str(n)})
notionals = st.integers(100, 4_000_000).map(lambda n: {"notional": f"{Decimal(n) / 100:f}"})
limits = st.integers(2000, 13000).map(lambda n: {"type": "limit", "limit_price": f"{Decimal(n) / 100:f}"})
tickets = st.builds(
    lambda symbol, side, size, limit: (
        order(symbol, side, **size, **limit) | ({"time_in_force": "gtc"} if symbol == "BTC/USD" else {})
    ),
    st.sampled_from(SYMBOLS),
    st.sampled_from(["buy", "sell"]),
    quantities | whole | notionals,
    st.just({}) | st.just({}) | limits,
)
sales = st.tuples(st.sampled_from(SYMBOLS), st.integers(1, 100))
faults = st.builds(
    lambda percent, then: {"kind": "partial_fill", "fraction": f"{Decimal(percent) / 100:f}", "then": then},
    st.integers(1, 99),
    st.sampled_from(["fill", "cancel", "expire"]),
)
lengths = st.sampled_from([60, 3600, 18 * 3600, 86400, 86400, 4 * 86400])
steps = st.lists(tickets | tickets | sales | lengths | lengths | faults | st.just("cancel"), min_size=8, max_size=30)


OPENING = (
    order("AAA", notional="90000.10"),
    order("BBB", qty="100.5"),
    order("BTC/USD", qty="0.3", time_in_force="gtc"),
    18 * 3600,
)
"""Something to sell, on credit: these cost more than there is cash."""


def money(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_EVEN, EXACT)


def recounted(activities: list[dict[str, Any]]) -> tuple[Decimal, dict[str, Decimal]]:
    """Cash and shares from what the account did."""
    cash, held = Decimal(100_000), dict.fromkeys(SYMBOLS, Decimal(0))
    for one in activities:
        quantity = Decimal(one["qty"])
        if one["activity_type"] == "FILL":
            amount = money(EXACT.multiply(quantity, Decimal(one["price"])))
            buys = one["side"] == "buy"
            cash, held[one["symbol"]] = (
                cash - amount if buys else cash + amount,
                held[one["symbol"]] + (quantity if buys else -quantity),
            )
        else:
            cash += Decimal(one["net_amount"])
            held[one["symbol"]] += quantity if one["activity_type"] == "SPLIT" else 0
    return cash, {symbol: quantity for symbol, quantity in held.items() if quantity}


def check(live: Exchange, store: Store, began: dict[str, dict[str, Any]]) -> None:
    book = live.book
    cash, held = recounted(book.activities)
    assert book.portfolio.cash == cash
    assert {live.market.listing(s).wire: p.quantity for s, p in book.portfolio.positions.items()} == held
    figures = live.figures()
    worth = sum((money(EXACT.multiply(q, live.price(_ours(s)))) for s, q in held.items()), Decimal(0))
    assert figures.equity == cash + worth
    assert figures.buying_power >= 0 and figures.non_marginable_buying_power >= 0
    for one in book.orders:
        asked = began[one.client_order_id]
        fills = [a for a in book.activities if a["activity_type"] == "FILL" and a["order_id"] == one.id]
        spent = sum((EXACT.multiply(Decimal(f["qty"]), Decimal(f["price"])) for f in fills), Decimal(0))
        assert one.cost == spent
        if one.notional is not None and asked["side"] == "buy":
            assert money(spent) <= one.notional + CENT * (len(fills) - 1)
        if one.qty is not None:
            assert one.filled_qty <= one.qty
            assert (one.status == "filled") is (one.filled_qty == one.qty)
        for fill in fills if asked["type"] == "limit" and one.symbol != "BBB" else ():
            price, limit = Decimal(fill["price"]), Decimal(asked["limit_price"])
            assert price <= limit if asked["side"] == "buy" else price >= limit
        assert all(f["side"] == "sell_short" for f in fills) or one.intent != "sell_to_open" or not fills
    kept = Book(store, Decimal(1))
    assert (kept.portfolio, kept.orders, kept.activities, kept.closes) == (
        book.portfolio,
        book.orders,
        book.activities,
        book.closes,
    )


def selling(live: Exchange, symbol: str, percent: int) -> dict[str, Any]:
    """An order to sell a part of what is held, to nine decimals."""
    held = live.book.portfolio.quantity(_ours(symbol))
    part = EXACT.multiply(held, Decimal(percent) / 100).quantize(Decimal("1e-9"), ROUND_DOWN, EXACT)
    quantity = part if part > 0 else Decimal(1)
    return order(symbol, "sell", qty=f"{quantity:f}", time_in_force="gtc" if symbol == "BTC/USD" else "day")


def _ours(symbol: str) -> str:
    return symbol.replace("/", "-")


@examples(120)
@given(steps=steps, slippage=st.sampled_from(["0", "5", "33.3"]), paid=st.booleans())
def test_the_books_follow_from_what_was_done(steps: list[Any], slippage: str, paid: bool) -> None:
    store = Store(":memory:")
    live = exchange(store, rules=ExecutionRules(slippage_bp=Decimal(slippage)), pay_dividends=paid)
    began: dict[str, dict[str, Any]] = {}
    try:
        for n, step in enumerate([*OPENING, *steps]):
            if isinstance(step, int):
                live.advance(live.now + timedelta(seconds=step))
            elif isinstance(step, str):
                for one in live.book.open_orders()[:1]:
                    live.cancel(one)
            elif isinstance(step, dict) and "kind" in step:
                live.faults.add(step, live.now)
            else:
                if isinstance(step, tuple):
                    step = selling(live, *step)
                name = f"o{n}"
                try:
                    live.submit(read_ticket(step | {"client_order_id": name}, live.market, live.now))
                    began[name] = step
                except ApiError as refusal:
                    assert refusal.status in (403, 422), refusal
            check(live, store, began)
    finally:
        store.close()
