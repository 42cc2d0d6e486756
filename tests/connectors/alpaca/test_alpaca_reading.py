"""What the broker says and how it is taken: unknown words are values, a missing figure is named."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from connectors.alpaca.account import (
    activity,
    asset,
    broker_account,
    broker_clock,
    broker_order,
    equity_by_session,
    kind_of,
    order_body,
    session_hours,
)
from connectors.alpaca.json_fields import from_wire, to_wire
from engine.domain.brokerage import ActivityKind
from engine.domain.order import Order, OrderState, Position, Side
from engine.errors import MalformedData
from tests.connectors.alpaca.alpaca_accounts import ACCOUNT, DECIDED, DIVIDEND, FILL, ORDER, a_buy, a_sale

ZERO, FOUR = Decimal(0), Decimal(4)
POSITION: dict[str, Any] = {
    "symbol": "BTCUSD",
    "asset_class": "crypto",
    "qty": "0.5",
    "side": "long",
    "avg_entry_price": "40030.41",
}


# Orders


@pytest.mark.parametrize(
    ("status", "untouched", "begun"),
    [
        *(
            (word, OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED)
            for word in (
                "new",
                "accepted",
                "pending_new",
                "accepted_for_bidding",
                "held",
                "stopped",
                "suspended",
                "calculated",
                "done_for_day",
                "pending_cancel",
                "pending_replace",
                "partially_filled",
                "a_word_of_next_year",
            )
        ),
        ("filled", OrderState.FILLED, OrderState.FILLED),
        ("canceled", OrderState.CANCELED, OrderState.CANCELED),
        ("expired", OrderState.EXPIRED, OrderState.EXPIRED),
        ("replaced", OrderState.CANCELED, OrderState.CANCELED),
        # A state that something follows in the journal's table: what has begun to fill cannot become rejected.
        ("rejected", OrderState.REJECTED, OrderState.CANCELED),
    ],
)
def test_every_published_status_has_a_state(status: str, untouched: OrderState, begun: OrderState) -> None:
    assert broker_order(ORDER | {"status": status}).state is untouched
    found = broker_order(ORDER | {"status": status.upper(), "filled_qty": "4", "filled_avg_price": "31.25"})
    assert (found.state, found.filled_quantity, found.filled_average_price) == (begun, FOUR, Decimal("31.25"))


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"status": "new"}, ""),
        ({"status": "canceled"}, ""),
        ({"status": "a_word_of_next_year"}, "the broker says a word of next year"),
        ({"status": "rejected"}, "the broker says rejected"),
        ({"status": "rejected", "reject_reason": "no borrow"}, "the broker says rejected: no borrow"),
        ({"status": "replaced", "replaced_by": "61e6"}, "the broker says replaced: 61e6"),
    ],
)
def test_a_status_that_says_more_than_its_state_is_quoted(fields: dict[str, str], detail: str) -> None:
    assert broker_order(ORDER | fields).detail == detail


def test_an_order_as_it_is_published() -> None:
    found = broker_order(ORDER)
    assert (found.order_id, found.broker_id, found.symbol, found.side) == ("desk-1", ORDER["id"], "AAA", Side.BUY)
    assert (found.quantity, found.notional, found.filled_quantity) == (None, Decimal(500), ZERO)
    assert found.submitted_at == datetime(2024, 1, 31, 21, 5, 0, 123456, UTC)


def test_what_nothing_rests_on_may_be_missing_and_new_fields_come() -> None:
    bare = {name: ORDER[name] for name in ("id", "client_order_id", "status", "side")}
    found = broker_order(bare | {"asset_class": "moon_rock", "legs": [{}], "new_field": {"deep": 1}})
    assert (found.symbol, found.quantity, found.notional, found.submitted_at) == ("", None, None, None)
    assert broker_order(ORDER | {"submitted_at": "yesterday"}).submitted_at is None
    assert broker_order(ORDER | {"asset_class": "moon_rock"}).symbol == "AAA"


@pytest.mark.parametrize("name", ["id", "client_order_id", "status", "side"])
@pytest.mark.parametrize("how", ["missing", "null"])
def test_an_order_without_what_it_is_known_by_is_refused_by_name(name: str, how: str) -> None:
    raw = {field: value for field, value in ORDER.items() if field != name} | ({name: None} if how == "null" else {})
    with pytest.raises(MalformedData, match=name.replace("client_order_id", "client_order_id is missing")):
        broker_order(raw)


@pytest.mark.parametrize("wrong", ["many", "NaN", "Infinity", True, [], {}])
@pytest.mark.parametrize("name", ["qty", "notional", "filled_qty", "filled_avg_price"])
def test_a_figure_of_an_order_that_is_no_number_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(MalformedData, match=f"order desk-1: {name} is not a number"):
        broker_order(ORDER | {name: wrong})


def test_a_filled_order_says_how_much() -> None:
    with pytest.raises(MalformedData, match="filled_qty is missing"):
        broker_order(ORDER | {"status": "filled", "filled_qty": None})


def test_orders_are_written_as_text_and_cut_down() -> None:
    assert order_body(a_buy(notional="1234.50")) == {
        "symbol": "AAA",
        "side": "buy",
        "type": "market",
        "time_in_force": "day",
        "client_order_id": "desk-1",
        "notional": "1234.5",
    }
    exact = Order(id="d", symbol="AAA", side=Side.SELL, session=DECIDED, quantity=Decimal("123456.7890123456789"))
    assert order_body(exact)["qty"] == "123456.789012345", "nine decimals, never more than is held"
    assert (
        order_body(Order(id="d", symbol="AAA", side=Side.BUY, session=DECIDED, notional=Decimal("99.999")))["notional"]
        == "99.99"
    )
    assert order_body(a_sale(quantity="1E+3"))["qty"] == "1000"
    coin = order_body(a_sale(symbol="BTC-USD", quantity="0.000000001"))
    assert (coin["symbol"], coin["time_in_force"], coin["qty"]) == ("BTC/USD", "gtc", "0.000000001")


@pytest.mark.parametrize(
    ("ours", "wire", "compact", "asset_class"),
    [
        ("AAPL", "AAPL", "AAPL", "us_equity"),
        ("BRK.B", "BRK.B", "BRK.B", "us_equity"),
        ("BTC-USD", "BTC/USD", "BTCUSD", "crypto"),
        ("AVAX-USD", "AVAX/USD", "AVAXUSD", "crypto"),
    ],
)
def test_symbols_go_there_and_come_back(ours: str, wire: str, compact: str, asset_class: str) -> None:
    assert to_wire(ours) == wire
    assert {from_wire(wire), from_wire(wire, asset_class), from_wire(compact), from_wire(compact, asset_class)} == {
        ours
    }


def test_names_that_are_no_pair_stay() -> None:
    assert from_wire("ABUSD", "us_equity") == from_wire("ABUSD") == "ABUSD"
    assert from_wire("ETHUSDT", "crypto") == "ETH-USDT" and from_wire("ETHBTC", "crypto") == "ETHBTC"
    assert from_wire("AAPL240621C00190000", "us_option") == "AAPL240621C00190000"


# Account


def test_an_account_with_its_positions() -> None:
    short = {"symbol": "AAA", "asset_class": "us_equity", "qty": "-3", "side": "short", "avg_entry_price": 31.5}
    found = broker_account(ACCOUNT | {"pattern_day_trader": None}, [POSITION, short])
    assert (found.cash, found.equity, found.blocked) == (Decimal("4000.32"), Decimal("5000.5"), "")
    assert found.positions == {
        "BTC-USD": Position(Decimal("0.5"), Decimal("40030.41")),
        "AAA": Position(Decimal(-3), Decimal("31.5")),
    }


@pytest.mark.parametrize(
    ("fields", "blocked"),
    [
        ({}, ""),
        ({"status": "A_STATUS_OF_NEXT_YEAR"}, ""),
        ({"status": "ACCOUNT_CLOSED"}, "ACCOUNT_CLOSED"),
        ({"account_blocked": True}, "the account is blocked"),
        ({"trading_blocked": "true"}, "trading is blocked"),
        ({"trade_suspended_by_user": True}, "suspended"),
    ],
)
def test_what_blocks_trading_is_said(fields: dict[str, Any], blocked: str) -> None:
    found = broker_account(ACCOUNT | fields, [])
    assert found.status == fields.get("status", "ACTIVE")
    assert blocked in found.blocked and bool(found.blocked) is bool(blocked)


def test_what_an_account_may_leave_out() -> None:
    bare = {name: ACCOUNT[name] for name in ("id", "cash")}
    found = broker_account(bare | {"portfolio_value": "7"}, [])
    assert (found.status, found.currency, found.equity, found.blocked) == ("", "USD", Decimal(7), "")


@pytest.mark.parametrize(
    ("account", "positions", "named"),
    [
        ({"cash": None}, [], "account: cash is missing"),
        ({"cash": "lots"}, [], "account: cash is not a number"),
        ({"equity": None}, [], "portfolio_value is missing"),
        ({"id": None}, [], "account: id is missing"),
        ({}, [POSITION | {"qty": None}], "position in BTCUSD: qty is missing"),
        ({}, [POSITION | {"avg_entry_price": ""}], "position in BTCUSD: avg_entry_price is missing"),
        ({}, [POSITION | {"symbol": None}], "symbol is missing"),
    ],
)
def test_a_figure_that_money_rests_on_is_named(
    account: dict[str, Any], positions: list[dict[str, Any]], named: str
) -> None:
    with pytest.raises(MalformedData, match=named) as refused:
        broker_account(ACCOUNT | account, positions)
    assert refused.value.exit_code == 65


# Activities


def test_a_published_fill_and_a_published_dividend() -> None:
    fill = activity(FILL)
    assert (fill.kind, fill.symbol, fill.side) == (ActivityKind.FILL, "AAPL", Side.BUY)
    assert (fill.quantity, fill.price, fill.amount) == (Decimal(2), Decimal("174.78"), ZERO)
    assert (fill.id, fill.broker_id) == (FILL["id"], FILL["order_id"])
    assert fill.time == datetime(2022, 2, 2, 18, 55, 9, 981482, UTC)
    paid = activity(DIVIDEND)
    assert (paid.kind, paid.symbol, paid.amount, paid.quantity) == (
        ActivityKind.DIVIDEND,
        "T",
        Decimal("1.02"),
        ZERO,
    ), "the shares of a dividend did not move"
    assert paid.time == datetime(2019, 8, 1, tzinfo=UTC) and paid.description == "DIV SDIV"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DIVNRA", ActivityKind.DIVIDEND),
        ("CGD", ActivityKind.DIVIDEND),
        ("INT", ActivityKind.INTEREST),
        ("INTTW", ActivityKind.INTEREST),
        ("FEE", ActivityKind.FEE),
        ("CFEE", ActivityKind.FEE),
        ("CSD", ActivityKind.TRANSFER),
        ("JNLC", ActivityKind.TRANSFER),
        ("SPLIT", ActivityKind.SPLIT),
        ("SPIN", ActivityKind.OTHER),
        ("A_KIND_OF_NEXT_YEAR", ActivityKind.OTHER),
        ("", ActivityKind.OTHER),
    ],
)
def test_a_type_that_is_not_known_is_a_kind_too(name: str, kind: ActivityKind) -> None:
    assert kind_of(name) is kind
    line = {"id": "20240205000000000::x", "activity_type": name, "net_amount": "-1.5", "status": "executed"}
    found = activity(line)
    assert (found.kind, found.amount) == (kind, Decimal("-1.5"))
    assert found.description == (name or "no type")
    assert found.time == datetime(2024, 2, 5, tzinfo=UTC), "dated by its id where nothing else says"


def test_shares_that_moved_without_a_trade() -> None:
    line = {"id": "x", "date": "2024-02-05", "status": "executed"}
    split = activity(line | {"activity_type": "SPLIT", "symbol": "BBB", "qty": "7.5", "net_amount": "0.12"})
    assert (split.quantity, split.amount) == (Decimal("7.5"), Decimal("0.12"))
    fee = activity(line | {"activity_type": "CFEE", "symbol": "BTCUSD", "qty": "-0.00025", "price": "40000"})
    assert (fee.symbol, fee.quantity, fee.amount) == ("BTC-USD", Decimal("-0.00025"), ZERO)
    renamed = activity(line | {"activity_type": "NC", "symbol": "OLD"})
    assert (renamed.kind, renamed.quantity, renamed.amount) == (ActivityKind.OTHER, ZERO, ZERO)
    undone = activity(line | {"activity_type": "DIV", "net_amount": "3", "status": "canceled"})
    assert (undone.amount, undone.description) == (ZERO, "DIV canceled")


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (FILL | {"price": None}, "price is missing"),
        (FILL | {"qty": "some"}, "qty is not a number"),
        (FILL | {"side": "sideways"}, "sideways"),
        (FILL | {"order_id": ""}, "order_id is missing"),
        (FILL | {"symbol": None}, "symbol is missing"),
        (FILL | {"transaction_time": "noon"}, "transaction_time is not a time"),
        (FILL | {"id": None}, "id is missing"),
        (DIVIDEND | {"net_amount": None}, "net_amount is missing"),
        (DIVIDEND | {"id": "odd", "date": None, "created_at": None}, "date is not a time"),
    ],
)
def test_a_line_without_what_it_moved_is_refused_by_name(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(MalformedData, match=named):
        activity(raw)


# Market


def test_equity_is_dated_by_new_yorks_day() -> None:
    published = {
        "equity": [2784.79, 2794.79, 2805.46, 2774.16, 2748.73],
        "timestamp": [1697241600, 1697500800, 1697587200, 1697673600, 1697760000],
    }
    found = equity_by_session(published)
    assert list(found) == [date(2023, 10, day) for day in (13, 16, 17, 18, 19)]
    assert found[date(2023, 10, 13)] == Decimal("2784.79")
    opens = {"equity": [None, 0, 0, 5, 0, None], "timestamp": [1697203800 + 86400 * n for n in range(6)]}
    assert equity_by_session(opens) == {date(2023, 10, 16): Decimal(5), date(2023, 10, 17): ZERO}


@pytest.mark.parametrize("raw", [[], {}, {"timestamp": [1], "equity": []}, {"timestamp": ["x"], "equity": [1]}])
def test_equity_of_another_shape_is_refused(raw: Any) -> None:
    with pytest.raises(MalformedData, match="equity history"):
        equity_by_session(raw)


def test_time_and_hours_of_new_york() -> None:
    hours = session_hours({"date": "2024-07-03", "open": "09:30", "close": "13:00", "session_open": "0400"})
    assert (hours.opens_at, hours.closes_at) == (
        datetime(2024, 7, 3, 13, 30, tzinfo=UTC),
        datetime(2024, 7, 3, 17, 0, tzinfo=UTC),
    )
    raw = {
        "timestamp": "2024-01-31T16:05:00.123456789-05:00",
        "is_open": False,
        "next_open": "2024-02-01T09:30:00-05:00",
        "next_close": "2024-02-01T16:00:00-05:00",
    }
    assert broker_clock(raw).now == datetime(2024, 1, 31, 21, 5, 0, 123456, UTC)
    for name in ("timestamp", "next_open", "next_close"):
        with pytest.raises(MalformedData, match=name):
            broker_clock(raw | {name: None})
    for wrong in ({"date": "soon"}, {"open": None}, {"close": "late"}):
        with pytest.raises(MalformedData, match="calendar"):
            session_hours({"date": "2024-07-03", "open": "09:30", "close": "13:00"} | wrong)


def test_an_instrument_says_whether_it_trades() -> None:
    raw = {"symbol": "BTC/USD", "class": "crypto", "tradable": True}
    assert (asset(raw).symbol, asset(raw).tradable, asset(raw).fractionable) == ("BTC-USD", True, False)
    assert not asset(raw | {"tradable": False, "class": "moon_rock"}).tradable
    with pytest.raises(MalformedData, match="tradable"):
        asset({"symbol": "AAA"})
