"""Which orders the sandbox takes, and with which code it refuses the others: the rules of the real broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import httpx

from connectors.sandbox import LocalBroker, Request, SandboxServer, SandboxSettings
from tests.connectors.alpaca.sandbox_markets import FREE, START, loading, market_data, order

FUNDS, INVALID = (403, 40310000), (422, 40010001)


def refused(answer: httpx.Response) -> tuple[int, int, str]:
    body = answer.json()
    return answer.status_code, body["code"], body["message"]


IMPOSSIBLE: list[tuple[dict[str, Any], tuple[int, int], str]] = [
    (order("NONE", qty="1"), INVALID, "not found"),
    (order("", qty="1"), INVALID, "symbol is required"),
    (order("AAA"), INVALID, "qty or notional is required"),
    (order("AAA", qty="1", notional="5"), INVALID, "only one of qty or notional"),
    (order("AAA", qty="0"), INVALID, "qty must be > 0"),
    (order("AAA", qty="-1"), INVALID, "qty must be > 0"),
    (order("AAA", qty="much"), INVALID, "invalid qty"),
    (order("AAA", qty=True), INVALID, "invalid qty"),
    (order("AAA", qty="NaN"), INVALID, "invalid qty"),
    (order("AAA", qty="0.0000000001"), INVALID, "9 decimal places"),
    (order("AAA", notional="10.005"), INVALID, "2 decimal places"),
    (order("AAA", notional="0.99"), FUNDS, "cost basis must be >= minimal amount of order 1"),
    (order("BTC/USD", notional="9.99", time_in_force="gtc"), FUNDS, "minimal amount of order 10"),
    (order("AAA", "hold", qty="1"), INVALID, "invalid side"),
    (order("AAA", qty="1", type="magic"), INVALID, "invalid type"),
    (order("AAA", qty="1", type="stop", stop_price="5"), INVALID, "does not simulate stop"),
    (order("AAA", qty="1", order_class="bracket"), INVALID, "does not simulate bracket"),
    (order("AAA", qty="1", type="limit"), INVALID, "require a limit price"),
    (order("AAA", qty="1", limit_price="5"), INVALID, "market orders require no"),
    (order("AAA", qty="1", type="limit", limit_price="5.001"), INVALID, "sub-penny"),
    (order("AAA", qty="1.5", time_in_force="gtc"), INVALID, "fractional orders must be DAY"),
    (order("AAA", notional="50", time_in_force="ioc"), INVALID, "fractional orders must be DAY"),
    (order("BTC/USD", qty="1", time_in_force="day"), INVALID, "invalid crypto time_in_force"),
    (order("AAA", qty="1", extended_hours=True), INVALID, "extended hours order must be DAY limit"),
    (
        order("AAA", qty="1", type="limit", limit_price="5", extended_hours=True),
        INVALID,
        "does not simulate trading outside hours",
    ),
    (order("AAA", qty="1", client_order_id="x" * 129), INVALID, "128 characters"),
    (order("AAA", qty="10000"), FUNDS, "insufficient buying power"),
    (order("BTC/USD", qty="2.6", time_in_force="gtc"), FUNDS, "insufficient buying power"),
    (order("AAA", "sell", qty="1.5"), FUNDS, "insufficient qty available"),
    (order("AAA", "sell", notional="20"), FUNDS, "insufficient qty available"),
    (order("BTC/USD", "sell", qty="1", time_in_force="gtc"), FUNDS, "insufficient qty available"),
]


def test_an_impossible_order_is_refused(http: httpx.Client, broker: SandboxServer) -> None:
    for body, code, says in IMPOSSIBLE:
        status, number, message = refused(http.post("/v2/orders", json=body))
        assert (status, number) == code, body
        assert says in message
    assert broker.state()["orders"] == []


def test_a_body_that_is_no_object_is_refused(http: httpx.Client) -> None:
    for text in (b"{", b"[]", b"\xff"):
        assert http.post("/v2/orders", content=text).status_code == 400


def test_an_id_is_burnt_for_ever(http: httpx.Client) -> None:
    placed = http.post("/v2/orders", json=order("AAA", qty="1", client_order_id="once")).json()
    assert http.delete(f"/v2/orders/{placed['id']}").status_code == 204
    assert refused(http.post("/v2/orders", json=order("BBB", qty="2", client_order_id="once"))) == (
        *INVALID,
        "client_order_id must be unique",
    )


def test_auction_orders_have_their_hours(http: httpx.Client, broker: SandboxServer) -> None:
    for force, hour, minute, taken in (
        ("opg", 14, 27, True),
        ("opg", 14, 28, False),
        ("opg", 20, 0, False),
        ("cls", 20, 49, True),
        ("cls", 20, 50, False),
        ("cls", 23, 59, False),
    ):
        broker.advance(datetime(2024, 2, 1, hour, minute, tzinfo=UTC))
        answer = http.post("/v2/orders", json=order("AAA", qty="1", time_in_force=force))
        assert (answer.status_code == 200) is taken, answer.text


def test_auction_orders_are_taken_again_from_seven_in_the_evening(http: httpx.Client, broker: SandboxServer) -> None:
    broker.advance(datetime(2024, 2, 2, 0, 0, tzinfo=UTC))
    for force in ("opg", "cls"):
        assert http.post("/v2/orders", json=order("AAA", qty="1", time_in_force=force)).status_code == 200
    broker.advance("close")
    found = {one["time_in_force"]: one["filled_avg_price"] for one in broker.state()["orders"]}
    assert found == {"opg": "32", "cls": "32.5"}, "the open and the close of 2024-02-02"


def test_cash_may_go_below_zero_since_the_account_is_on_margin(http: httpx.Client, broker: SandboxServer) -> None:
    assert http.post("/v2/orders", json=order("AAA", notional="150000")).status_code == 200
    assert http.get("/v2/account").json()["buying_power"] == "50000"
    broker.advance("open")
    account = http.get("/v2/account").json()
    assert (account["cash"], account["equity"], account["initial_margin"]) == ("-50000", "100000", "75000")
    assert account["buying_power"] == "50000"
    assert refused(http.post("/v2/orders", json=order("BBB", notional="50001")))[:2] == FUNDS


def test_queued_sells_free_no_cash_and_hold_their_shares(http: httpx.Client, broker: SandboxServer) -> None:
    http.post("/v2/orders", json=order("AAA", qty="10"))
    broker.advance("close")
    before = http.get("/v2/account").json()["buying_power"]
    assert http.post("/v2/orders", json=order("AAA", "sell", qty="6")).status_code == 200
    assert http.get("/v2/account").json()["buying_power"] == before
    assert http.get("/v2/positions/AAA").json()["qty_available"] == "4"
    status, code, message = refused(http.post("/v2/orders", json=order("AAA", "sell", qty="5")))
    assert (status, code) == FUNDS and "(requested: 5, available: 4)" in message
    assert "wash trade" in refused(http.post("/v2/orders", json=order("AAA", qty="1")))[2]


def test_a_short_needs_whole_shares_and_permission(http: httpx.Client, broker: SandboxServer) -> None:
    assert http.post("/v2/orders", json=order("AAA", "sell", qty="5")).json()["position_intent"] == "sell_to_open"
    broker.advance("close")
    position = http.get("/v2/positions/AAA").json()
    assert (position["side"], position["qty"], position["unrealized_pl"]) == ("short", "-5", "-2.5")
    assert http.post("/v2/orders", json=order("AAA", qty="5")).json()["position_intent"] == "buy_to_close"
    broker.advance("close")
    assert http.get("/v2/positions").json() == []
    http.patch("/v2/account/configurations", json={"no_shorting": True})
    assert refused(http.post("/v2/orders", json=order("AAA", "sell", qty="5")))[:2] == FUNDS


def test_a_suspended_account_takes_no_orders(http: httpx.Client) -> None:
    http.patch("/v2/account/configurations", json={"suspend_trade": True})
    assert refused(http.post("/v2/orders", json=order("AAA", qty="1"))) == (
        *FUNDS,
        "new orders are rejected by user request",
    )
    assert http.get("/v2/account").json()["trade_suspended_by_user"] is True
    for wrong in ({"suspend_trade": "yes"}, {"unheard_of": 1}):
        assert http.patch("/v2/account/configurations", json=wrong).status_code == 422


def test_orders_are_listed_as_asked_and_at_most_500(http: httpx.Client, broker: SandboxServer) -> None:
    for n in range(12):
        assert http.post("/v2/orders", json=order("AAA", notional="2", client_order_id=f"o{n}")).status_code == 200

    def ids(**query: str) -> list[str]:
        answer = http.get("/v2/orders", params=query)
        assert answer.status_code == 200, answer.text
        return [one["client_order_id"] for one in answer.json()]

    assert ids() == [f"o{n}" for n in range(11, -1, -1)]
    assert ids(limit="3", direction="asc") == ["o0", "o1", "o2"]
    listed = http.get("/v2/orders", params={"direction": "asc"}).json()
    assert ids(direction="asc", after_order_id=listed[8]["id"]) == ["o9", "o10", "o11"]
    assert ids(before_order_id=listed[2]["id"]) == ["o1", "o0"]
    assert ids(status="closed") == []
    broker.advance("open")
    http.post("/v2/orders", json=order("BTC/USD", qty="0.001", time_in_force="gtc", client_order_id="coin"))
    assert ids() == [] and len(ids(status="closed")) == 13
    assert ids(status="all", symbols="BTC/USD") == ids(status="all", asset_class="crypto") == ["coin"]
    assert ids(status="all", after="2024-01-31T21:05:00Z") == ["coin"]
    assert len(ids(status="all", until="2024-02-01T14:30:00Z")) == 12
    assert ids(status="all", side="sell") == []
    for wrong in ({"limit": "501"}, {"limit": "0"}, {"status": "odd"}, {"after": "soon"}, {"direction": "up"}):
        assert http.get("/v2/orders", params=wrong).status_code == 422, wrong


def test_what_is_not_there_is_not_found(http: httpx.Client) -> None:
    nowhere = "7b08df51-c1ac-453c-99f9-323a5f075f0d"
    for path in (
        f"/v2/orders/{nowhere}",
        "/v2/orders:by_client_order_id?client_order_id=never",
        "/v2/positions/AAA",
        "/v2/positions/NONE",
        "/v2/assets/NONE",
        "/v2/nothing",
    ):
        answer = http.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, 40410000), path
    assert http.get("/v2/orders/no-uuid").status_code == 422
    assert http.post("/v2/account").status_code == 405


def test_a_key_opens_everything_or_nothing(broker: SandboxServer, http: httpx.Client) -> None:
    for headers in ({}, {"APCA-API-KEY-ID": broker.settings.key, "APCA-API-SECRET-KEY": "other"}):
        account = httpx.get(f"{broker.url}/v2/account", headers=headers)
        assert (account.status_code, account.json()["code"]) == (401, 40110000)
        bars = httpx.get(f"{broker.url}/v1beta1/news", headers=headers)
        assert (bars.status_code, bars.json()) == (403, {"message": "forbidden."})
        placed = httpx.post(f"{broker.url}/v2/orders", headers=headers, json=order("AAA", qty="1"))
        assert placed.status_code == 401
    assert broker.state()["orders"] == []


def test_another_name_for_this_machine_is_not_served(broker: SandboxServer, http: httpx.Client) -> None:
    answer = http.get("/v2/account", headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert httpx.get(f"http://localhost:{broker.port}/sandbox/state").status_code == 200


async def test_it_answers_without_any_socket() -> None:
    server = LocalBroker(loading(market_data()), SandboxSettings(start=START, rules=FREE))
    await server.open()
    keys = {"apca-api-key-id": server.settings.key, "apca-api-secret-key": server.settings.secret}
    body = json.dumps(order("AAA", qty="1", client_order_id="a")).encode()
    assert server.answer(Request(method="POST", path="/v2/orders", headers=keys, body=body)).status == 200
    server.fault("hang", path="/v2/clock", seconds=9)
    hanging = server.answer(Request(method="GET", path="/v2/clock", headers=keys))
    assert hanging.broken and hanging.delay == 9
    server.advance("open")
    assert server.state()["orders"][0]["status"] == "filled"
    server.close()
