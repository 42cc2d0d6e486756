"""Orders and account through the adapter: what is taken, refused, filled in part, and read page by page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from connectors.alpaca.broker import AlpacaBroker
from connectors.sandbox import SandboxServer
from engine.domain.brokerage import ActivityKind
from engine.domain.order import ZERO, OrderState, OrderUpdate
from engine.errors import MalformedData, NetworkError, TryAgainLater
from tests.connectors.alpaca.alpaca_accounts import (
    ACCOUNT,
    FILL,
    LONG_AGO,
    ORDER,
    a_buy,
    a_sale,
    paper,
    said,
)
from tests.connectors.alpaca.sandbox_markets import START, order
from tests.servers.fake_web import Asked, Page, fake_web


@pytest.fixture
async def account(broker: SandboxServer) -> AsyncIterator[AlpacaBroker]:
    async with paper(broker.url, broker.settings.key, broker.settings.secret) as made:
        yield made


# What goes out


async def test_money_goes_out_as_text() -> None:
    with fake_web(lambda asked: said(ORDER)) as web:
        async with paper(web.url + "/v2/") as broker:
            assert await broker.place(a_buy(notional="500.10")) == OrderUpdate("desk-1", OrderState.ACKNOWLEDGED)
    (sent,) = web.asked
    assert (sent.method, sent.path) == ("POST", "/v2/orders")
    assert json.loads(sent.body) == {
        "symbol": "AAA",
        "side": "buy",
        "type": "market",
        "time_in_force": "day",
        "client_order_id": "desk-1",
        "notional": "500.1",
    }


@pytest.mark.parametrize("nothing", [a_buy(notional="0.009"), a_sale(quantity="0.0000000009")])
async def test_what_is_cut_down_to_nothing_is_not_sent(nothing: Any) -> None:
    with fake_web(lambda asked: said(ORDER)) as web:
        async with paper(web.url) as broker:
            update = await broker.place(nothing)
    assert update.state is OrderState.REJECTED and update.detail and not web.asked


async def test_a_coin_is_bought_named_and_sold(broker: SandboxServer, account: AlpacaBroker) -> None:
    await account.place(a_buy(symbol="BTC-USD"))
    (sent,) = broker.state()["orders"]
    assert (sent["symbol"], sent["time_in_force"]) == ("BTC/USD", "gtc")

    held = (await account.account()).positions
    assert list(held) == ["BTC-USD"]
    placed = await account.place(a_sale("desk-2", "BTC-USD", str(held["BTC-USD"].quantity)))

    assert placed.state is OrderState.ACKNOWLEDGED
    assert (await account.account()).positions == {}
    lines = await account.activities(LONG_AGO)
    assert {one.symbol for one in lines} == {"BTC-USD"} and len(lines) == 2


# What is refused


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"kind": "refuse", "message": "the market is not for you"}, "the market is not for you"),
        ({"kind": "account_blocked"}, "account blocked"),
        ({"kind": "trading_blocked"}, "trading blocked"),
        ({"kind": "untradable", "symbol": "AAA"}, "not tradable"),
    ],
)
async def test_a_refusal_is_final_and_in_the_brokers_words(
    broker: SandboxServer, account: AlpacaBroker, fault: dict[str, Any], words: str
) -> None:
    assert not (await account.account()).blocked
    broker.fault(**fault)
    # A block, and an instrument that does not trade, are seen before anything is sent.
    assert bool((await account.account()).blocked) is fault["kind"].endswith("_blocked")
    found = await account.asset("AAA")
    assert found is not None and found.tradable is (fault["kind"] != "untradable")
    update = await account.place(a_buy())
    assert update.state is OrderState.REJECTED and words in update.detail
    assert broker.state()["posts"] == {"desk-1": 1} and await account.lookup("desk-1") is None


async def test_an_order_that_is_taken_and_then_rejected(broker: SandboxServer, account: AlpacaBroker) -> None:
    broker.fault("reject", symbol="AAA")
    assert (await account.place(a_buy())).state is OrderState.ACKNOWLEDGED
    found = await account.lookup("desk-1")
    assert found is not None and found.state is OrderState.REJECTED and "rejected" in found.detail
    again = await account.place(a_buy())
    assert (again.state, again.detail) == (OrderState.REJECTED, found.detail)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, {"code": 40310000, "message": "insufficient\n buying power", "cost_basis": "3"}, "insufficient buying"),
        (403, {"code": 40310100, "message": "a code of next year"}, "a code of next year"),
        (422, {"code": 40010001, "message": "notional value must be limited to 2 decimal places"}, "2 decimal places"),
        (422, {"code": 42210000, "message": "client_order_id is too long"}, "too long"),
        (400, {"code": 40010000, "message": "request body format is invalid"}, "format is invalid"),
        (404, {"code": 40410000, "message": "asset not found"}, "asset not found"),
    ],
)
async def test_what_a_code_and_a_message_refuse_is_refused(status: int, body: dict[str, Any], words: str) -> None:
    with fake_web(lambda asked: said(body, status)) as web:
        async with paper(web.url) as broker:
            update = await broker.place(a_buy())
    assert (update.order_id, update.state, update.filled_quantity) == ("desk-1", OrderState.REJECTED, ZERO)
    assert words in update.detail and "\n" not in update.detail
    assert len(web.asked) == 1


async def test_an_id_that_is_taken_is_answered_with_how_its_order_stands(
    broker: SandboxServer, account: AlpacaBroker
) -> None:
    broker.fault("partial_fill", symbol="AAA", fraction="0.25", then="cancel")
    await account.place(a_buy())
    broker.advance("open")
    again = await account.place(a_buy())
    found = await account.lookup("desk-1")
    assert found is not None
    assert again == OrderUpdate("desk-1", OrderState.CANCELED, found.filled_quantity) and found.filled_quantity > 0
    assert broker.state()["posts"] == {"desk-1": 2} and len(broker.state()["orders"]) == 1


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("fill", [(OrderState.PARTIALLY_FILLED, "1"), (OrderState.FILLED, "4"), (OrderState.FILLED, "4")]),
        ("cancel", [(OrderState.CANCELED, "1")] * 3),
        (
            "expire",
            [(OrderState.PARTIALLY_FILLED, "1"), (OrderState.PARTIALLY_FILLED, "1"), (OrderState.EXPIRED, "1")],
        ),
    ],
)
async def test_what_filled_in_part_is_booked(
    broker: SandboxServer, account: AlpacaBroker, then: str, expected: list[tuple[OrderState, str]]
) -> None:
    broker.fault("partial_fill", symbol="AAA", fraction="0.25", then=then)
    buy = a_buy(notional="124.00")  # four shares at 31
    await account.place(buy)
    seen = []
    for step in ("open", "1m", "close"):
        broker.advance(step)
        found = await account.lookup(buy.id)
        assert found is not None
        waits = found.state is OrderState.PARTIALLY_FILLED
        assert [one.order_id for one in await account.open_orders()] == ([buy.id] if waits else [])
        # The rest of an amount buys at a later price: whole shares are what can be foretold.
        seen.append((found.state, f"{found.filled_quantity:.0f}"))
    assert seen == expected
    filled = found.filled_quantity
    lines = await account.activities(START)
    assert sum(one.quantity for one in lines) == filled == (await account.account()).positions["AAA"].quantity
    assert {one.broker_id for one in lines} == {found.broker_id}


async def test_orders_of_others_are_seen_and_can_be_canceled(
    broker: SandboxServer, account: AlpacaBroker, http: httpx.Client
) -> None:
    theirs = http.post("/v2/orders", json=order("AAA", qty="2", type="limit", limit_price="1", time_in_force="gtc"))
    (seen,) = await account.open_orders()
    assert (seen.order_id, seen.quantity) == (theirs.json()["client_order_id"], Decimal(2))
    await account.cancel(seen.order_id)
    assert await account.open_orders() == []


# Pages


async def test_every_open_order_and_every_fill_is_read(broker: SandboxServer, account: AlpacaBroker) -> None:
    for n in range(501):
        broker.control_request("POST", "/v2/orders", order("AAA", qty="1", client_order_id=f"n{n:03}"))
    assert [one.order_id for one in await account.open_orders()] == [f"n{n:03}" for n in range(501)]
    broker.advance("open")
    lines = await account.activities(LONG_AGO)
    assert len({one.id for one in lines}) == len(lines) == 501
    assert (await account.account()).positions["AAA"].quantity == 501
    assert await account.open_orders() == []
    every = await account.orders_since(LONG_AGO)
    assert [(one.order_id, one.state) for one in every] == [(f"n{n:03}", OrderState.FILLED) for n in range(501)]
    assert await account.orders_since(broker.exchange.now) == []


async def test_an_order_is_found_by_the_brokers_id_where_a_look_up_by_ours_fails(
    broker: SandboxServer, account: AlpacaBroker
) -> None:
    order = a_buy()
    await account.place(order)
    found = await account.lookup(order.id)
    assert found is not None
    nothing = '{"code": 40410000, "message": "order not found"}'
    broker.fault("body", path="/v2/orders:by_client_order_id", status=404, count=0, message=nothing)
    assert await account.lookup(order.id) is None
    assert await account.lookup(order.id, found.broker_id) == found
    assert await account.lookup(order.id, "00000000-0000-0000-0000-000000000000") is None


async def test_a_page_of_open_orders_that_comes_again_for_ever_is_left() -> None:
    orders = [ORDER | {"id": f"{n:036}", "client_order_id": str(n)} for n in range(500)]
    with fake_web(lambda asked: said(orders)) as web:
        async with paper(web.url) as broker:
            with pytest.raises(NetworkError, match="same page of orders twice"):
                await broker.open_orders()
    assert len(web.asked) == 2


async def test_a_page_of_the_history_that_comes_again_ends_it() -> None:
    with fake_web(lambda asked: said([FILL])) as web:
        async with paper(web.url) as broker:
            assert len(await broker.activities(LONG_AGO)) == 1
    assert len(web.asked) == 2


async def test_a_final_order_among_the_open_ones_is_left_out() -> None:
    with fake_web(lambda asked: said([ORDER | {"status": "canceled"}, ORDER | {"id": "x", "status": "odd"}])) as web:
        async with paper(web.url) as broker:
            (seen,) = await broker.open_orders()
    assert (seen.broker_id, seen.detail) == ("x", "the broker says odd")


async def test_lines_that_are_entered_late_are_asked_for_again() -> None:
    """A dividend of Monday that is entered on Friday has Monday's date."""
    late = {"id": "late", "activity_type": "DIV", "date": "2024-01-29", "net_amount": "1", "status": "executed"}
    early = FILL | {"transaction_time": "2024-02-02T15:00:00Z"}

    def answer(asked: Asked) -> Page:
        fresh = "page_token" not in asked.query and datetime.fromisoformat(asked.query["after"]) < datetime(
            2024, 1, 29, tzinfo=UTC
        )
        return said([early, late] if fresh else [])

    with fake_web(answer) as web:
        async with paper(web.url) as broker:
            lines = await broker.activities(datetime(2024, 2, 2, 21, tzinfo=UTC))
    assert [one.kind for one in lines] == [ActivityKind.DIVIDEND, ActivityKind.FILL]
    assert [one.query["direction"] for one in web.asked] == ["asc", "asc"]


async def test_a_split_of_today_is_in_what_came_since_noon(broker: SandboxServer, account: AlpacaBroker) -> None:
    await account.place(a_buy(symbol="BBB", notional="1000.00"))
    for _ in range(3):
        broker.advance("close")
    lines = await account.activities((await account.clock()).now - timedelta(minutes=1))
    assert [one.kind for one in lines if one.kind is not ActivityKind.FILL] == [ActivityKind.SPLIT]


# One moment


async def test_cash_and_positions_are_of_one_moment() -> None:
    """A fill between the two answers would look like a difference between broker and journal."""
    cash = iter(["100", "60", "60"])

    def answer(asked: Asked) -> Page:
        if asked.path == "/v2/positions":
            return said([{"symbol": "AAA", "qty": "1", "avg_entry_price": "40"}])
        return said(ACCOUNT | {"cash": next(cash)})

    with fake_web(answer) as web:
        async with paper(web.url) as broker:
            found = await broker.account()
    assert (found.cash, list(found.positions)) == (Decimal(60), ["AAA"])
    assert web.paths() == ["/v2/account", "/v2/positions", "/v2/account", "/v2/positions", "/v2/account"]


async def test_an_account_that_never_rests_is_tried_later() -> None:
    cash = iter(range(100))

    def answer(asked: Asked) -> Page:
        return said([]) if asked.path == "/v2/positions" else said(ACCOUNT | {"cash": str(next(cash))})

    with fake_web(answer) as web:
        async with paper(web.url) as broker:
            with pytest.raises(TryAgainLater, match="moves"):
                await broker.account()


async def test_equity_of_a_session_that_is_not_over_is_left_out(broker: SandboxServer, account: AlpacaBroker) -> None:
    broker.advance("open")
    broker.advance("1h")
    assert await account.equity_history(date(2024, 1, 1), date(2024, 3, 1)) == {}
    broker.advance("close")
    assert list(await account.equity_history(date(2024, 1, 1), date(2024, 3, 1))) == [date(2024, 2, 1)]


async def test_calls_at_the_same_time_do_not_mix(broker: SandboxServer, account: AlpacaBroker) -> None:
    names = [f"n{n}" for n in range(12)]
    updates = await asyncio.gather(*(account.place(a_buy(name)) for name in names))
    assert [one.order_id for one in updates] == names
    found = await asyncio.gather(*(account.lookup(name) for name in names))
    assert [one.order_id for one in found if one is not None] == names


async def test_after_a_call_was_given_up_the_next_one_is_fresh(broker: SandboxServer, account: AlpacaBroker) -> None:
    """An answer that comes late must not be taken for the next question's."""
    await account.place(a_buy("first"))
    broker.fault("hang", method="GET", path="/v2/orders*", seconds=60)
    waiting = asyncio.create_task(account.lookup("first"))
    while not any(line.startswith("GET /v2/orders") for line in broker.state()["requests"]):
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await account.lookup("second") is None
    found = await account.lookup("first")
    assert found is not None and found.order_id == "first"


async def test_closing_twice_and_asking_again(account: AlpacaBroker) -> None:
    before = await account.clock()
    await account.account()
    await account.aclose()
    await account.aclose()
    assert await account.clock() == before and (await account.account()).cash == Decimal(100_000)


async def test_a_position_without_a_figure_names_it() -> None:
    def answer(asked: Asked) -> Page:
        return said([{"symbol": "AAA", "qty": "1"}]) if asked.path == "/v2/positions" else said(ACCOUNT)

    with fake_web(answer) as web:
        async with paper(web.url) as broker:
            with pytest.raises(MalformedData, match="position in AAA: avg_entry_price is missing"):
                await broker.account()
