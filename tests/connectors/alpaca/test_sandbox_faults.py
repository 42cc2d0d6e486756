"""Everything that can go wrong on request, as a client sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from connectors.sandbox import ApiError, SandboxServer
from connectors.sandbox.faults import Faults
from tests.connectors.alpaca.sandbox_markets import START, order

Connect = Callable[[SandboxServer], httpx.Client]
ORDERS = {"method": "POST", "path": "/v2/orders"}


def ids(server: SandboxServer) -> list[str]:
    return [one["client_order_id"] for one in server.state()["orders"]]


def place(http: httpx.Client, name: str, symbol: str = "AAA", **fields: Any) -> httpx.Response:
    return http.post("/v2/orders", json=order(symbol, client_order_id=name, qty="4", **fields))


def test_too_many_requests_says_when_to_come_again(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("too_many_requests", seconds=7, count=2, **ORDERS)
    for _ in range(2):
        answer = place(http, "a")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert http.get("/v2/account").status_code == 200
    assert ids(broker) == []
    assert place(http, "a").status_code == 200


def test_every_error_has_its_status(http: httpx.Client, broker: SandboxServer) -> None:
    for kind, status in (("server_error", 500), ("gateway_timeout", 504), ("html", 502)):
        broker.fault(kind, after=False, **ORDERS)
        answer = place(http, "a")
        assert answer.status_code == status
        assert (answer.headers["content-type"] == "text/html") is (kind == "html")
    assert ids(broker) == [] and broker.state()["posts"] == {"a": 3}


def test_a_page_of_html_with_a_good_status(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("html", path="/v2/positions*", status=200)
    answer = http.get("/v2/positions")
    assert answer.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_keys_that_were_revoked(http: httpx.Client, broker: SandboxServer) -> None:
    rule = broker.fault("wrong_key", count=0)
    assert http.get("/v2/account").status_code == 401
    assert http.get("/v1beta1/news").status_code == 403
    assert place(http, "a").status_code == 401
    broker.clear_faults(rule)
    assert http.get("/v2/account").status_code == 200
    assert ids(broker) == []


def test_a_purchase_by_notional_in_part_never_costs_more(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("partial_fill", symbol="AAA", fraction="0.3")
    http.post("/v2/orders", json=order("AAA", notional="1000"))
    broker.advance("close")
    (found,) = broker.state()["orders"]
    assert found["status"] == "filled"
    assert 99_000 <= float(http.get("/v2/account").json()["cash"]) <= 99_000.02


def test_an_order_that_is_rejected_or_refused(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("reject", side="buy")
    assert place(http, "a").json()["status"] == "accepted"
    assert http.get("/v2/orders:by_client_order_id", params={"client_order_id": "a"}).json()["status"] == "rejected"
    broker.fault("refuse", message="account is restricted to liquidation")
    answer = place(http, "b")
    assert (answer.status_code, answer.json()["message"]) == (403, "account is restricted to liquidation")
    broker.fault("reject")
    assert place(http, "b", "BBB", limit_price="1").status_code == 422
    assert place(http, "c", "BBB", side="sell", time_in_force="gtc").status_code == 200, (
        "the refused one used up nothing"
    )
    assert broker.state()["orders"][-1]["status"] == "rejected"
    broker.clear_faults()
    assert ids(broker) == ["a", "c"]


def test_a_halted_symbol_stands_still_until_it_goes_on(http: httpx.Client, broker: SandboxServer) -> None:
    place(http, "a")
    place(http, "b", "BBB")
    rule = broker.fault("halted", symbol="AAA")
    broker.advance("open")
    assert [one["status"] for one in broker.state()["orders"]] == ["accepted", "filled"]
    quote = http.get("/v2/stocks/quotes/latest", params={"symbols": "AAA"}).json()["quotes"]["AAA"]
    assert (quote["t"], quote["bp"]) == ("2024-01-31T21:00:00Z", 30.5)
    broker.advance("2h")
    broker.clear_faults(rule)
    found = broker.state()["orders"][0]
    assert (found["status"], found["filled_at"]) == ("filled", "2024-02-01T16:30:00Z")
    broker.advance("close")
    broker.fault("halted", symbol="AAA")
    place(http, "c")
    broker.advance("close")
    assert broker.state()["orders"][2]["status"] == "expired"


def test_a_symbol_that_has_a_new_name(http: httpx.Client, broker: SandboxServer) -> None:
    place(http, "a")
    broker.advance("close")
    asset = http.get("/v2/assets/AAA").json()["id"]
    broker.fault("renamed", symbol="AAA", then="ZZZ")
    assert http.get("/v2/assets/AAA").status_code == 404
    assert http.get("/v2/assets/ZZZ").json()["id"] == asset
    assert [one["symbol"] for one in http.get("/v2/positions").json()] == ["ZZZ"]
    assert place(http, "b").status_code == 422
    assert http.get(f"/v2/positions/{asset}").json()["symbol"] == "ZZZ"
    bars = http.get("/v2/stocks/bars", params={"symbols": "AAA,ZZZ", "timeframe": "1Day", "start": "2024-01-30"})
    assert list(bars.json()["bars"]) == ["ZZZ"]
    with pytest.raises(ApiError, match="listed already"):
        broker.fault("renamed", symbol="BBB", then="ZZZ")


@contextmanager
def updates(server: SandboxServer) -> Iterator[ClientConnection]:
    """A websocket that listens to trade updates."""
    with connect(server.stream_url + "/stream") as stream:
        data = {"key_id": server.settings.key, "secret_key": server.settings.secret}
        stream.send(json.dumps({"action": "authenticate", "data": data}))
        assert json.loads(stream.recv(60))["data"]["status"] == "authorized"
        stream.send(json.dumps({"action": "listen", "data": {"streams": ["trade_updates"]}}))
        assert json.loads(stream.recv(60))["stream"] == "listening"
        yield stream


def events(stream: ClientConnection, count: int) -> list[str]:
    return [json.loads(stream.recv(60))["data"]["event"] for _ in range(count)]


def test_events_that_are_lost_or_come_twice(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("duplicate_event", event="fill")
    broker.fault("lost_event", event="new")
    with updates(broker) as stream:
        place(http, "a")
        place(http, "b", "BBB")
        broker.advance("open")
        assert events(stream, 6) == ["accepted", "accepted", "fill", "fill", "new", "fill"]
        with pytest.raises(TimeoutError):
            stream.recv(0.1)


def test_a_stream_that_breaks(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("disconnect", path="/stream")
    with updates(broker) as stream:
        place(http, "a")
        with pytest.raises(ConnectionClosed):
            stream.recv(60)
    with updates(broker) as stream:
        broker.advance("open")
        assert events(stream, 2) == ["new", "fill"]


def test_a_stream_with_a_wrong_key(broker: SandboxServer) -> None:
    with connect(broker.stream_url + "/stream") as stream:
        stream.send(json.dumps({"action": "auth", "key": "nobody", "secret": "nothing"}))
        assert json.loads(stream.recv(60))["data"]["status"] == "unauthorized"
        with pytest.raises(ConnectionClosed):
            stream.recv(60)
    with connect(broker.stream_url + "/stream") as stream:
        stream.send(b"\xff no json")
        assert "error" in json.loads(stream.recv(60))["data"]


def test_a_handshake_fails_as_any_request(broker: SandboxServer) -> None:
    broker.fault("too_many_requests", path="/stream")
    with pytest.raises(InvalidStatus) as error:
        connect(broker.stream_url + "/stream").close()
    assert error.value.response.status_code == 429
    broker.fault("wrong_key", path="/stream")
    with pytest.raises(AssertionError, match="unauthorized"), updates(broker):
        pass
    with updates(broker):
        pass


def test_a_halt_is_said_on_the_stream(broker: SandboxServer) -> None:
    with connect(broker.stream_url + "/v2/iex") as stream:
        assert json.loads(stream.recv(60))[0]["msg"] == "connected"
        stream.send(json.dumps({"action": "subscribe", "statuses": ["*"]}))
        assert json.loads(stream.recv(60))[0]["code"] == 401
        stream.send(json.dumps({"action": "auth", "key": broker.settings.key, "secret": broker.settings.secret}))
        assert json.loads(stream.recv(60))[0]["msg"] == "authenticated"
        stream.send(json.dumps({"action": "subscribe", "statuses": ["*"]}))
        assert json.loads(stream.recv(60))[0]["statuses"] == ["*"]
        broker.clear_faults(broker.fault("halted", symbol="AAA"))
        assert [json.loads(stream.recv(60))[0]["sc"] for _ in range(2)] == ["H", "T"]


def test_a_fault_by_chance_is_the_same_on_every_machine() -> None:
    def hits(seed: int, probability: float) -> list[bool]:
        faults = Faults([])
        faults.add({"kind": "server_error", "probability": probability, "seed": seed, "count": 0}, START)
        return [faults.for_answer("GET", "/v2/account") is not None for _ in range(400)]

    assert hits(1, 0.3) == hits(1, 0.3) != hits(2, 0.3)
    assert 80 < sum(hits(1, 0.3)) < 160
    assert not any(hits(1, 0.0)) and all(hits(1, 1.0))


def test_rules_go_on_after_a_restart_where_they_were() -> None:
    rule = {"kind": "server_error", "probability": 0.5, "seed": 3, "count": 0, "skip": 2}
    whole, halves = Faults([]), Faults([])
    for faults in (whole, halves):
        faults.add(rule, START)
    expected = [whole.for_answer("GET", "/") is not None for _ in range(60)]
    seen = []
    for n in range(60):
        if n % 7 == 0:
            halves = Faults(json.loads(json.dumps([one.document() for one in halves.rules])), halves.next_id)
        seen.append(halves.for_answer("GET", "/") is not None)
    assert seen == expected and not any(expected[:2])


def test_the_first_rule_that_hits_is_the_one(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("too_many_requests", path="/v2/*", skip=1)
    broker.fault("server_error", path="/v2/clock")
    assert [http.get("/v2/clock").status_code for _ in range(3)] == [500, 429, 200]


MEANINGLESS: list[dict[str, Any]] = [
    {"kind": "earthquake"},
    {"kind": "html", "colour": "red"},
    {"kind": "html", "status": "many"},
    {"kind": "html", "count": -1},
    {"kind": "html", "after": 1},
    {"kind": "html", "status": 700},
    {"kind": "html", "probability": 1.5},
    {"kind": "hang", "seconds": "long"},
    {"kind": "hang", "seconds": "nan"},
    {"kind": "partial_fill", "fraction": "NaN"},
    {"kind": "partial_fill", "fraction": "1.5"},
    {"kind": "partial_fill", "then": "vanish"},
    {"kind": "halted"},
    {"kind": "halted", "symbol": "NONE"},
    {"kind": "account", "change": {"buying_power": "much"}},
    {"kind": "asset", "symbol": "AAA", "change": {"min_trade_increment": "inf"}},
    {"kind": "asset", "symbol": "AAA", "change": {"shortable": "no"}},
    {"kind": "bar", "symbol": "AAA", "change": {"high": 1}},
    {"kind": "bar", "symbol": "AAA", "change": {"h": "tall"}},
    {"kind": "renamed", "symbol": "AAA"},
    {"kind": "renamed", "symbol": "AAA", "then": "no name"},
    {"kind": "renamed", "symbol": "BTC/USD", "then": "XBT"},
]


def test_a_rule_that_means_nothing_is_refused(http: httpx.Client, broker: SandboxServer) -> None:
    for rule in MEANINGLESS:
        answer = http.post("/sandbox/faults", json=rule)
        assert answer.status_code == 422 and answer.json()["message"], rule
    assert broker.state()["faults"] == []


def test_a_rule_with_fractions_is_kept_as_it_was_given(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("hang", seconds=100.5, path="/v2/nowhere")
    broker.fault("bar", symbol="AAA", change={"h": 111.961})
    hangs, bar = http.get("/sandbox/faults").json()
    assert (hangs["seconds"], bar["change"]) == (100.5, {"h": 111.961})
    broker.advance("open")
    broker.advance("close")
    query = {"symbols": "AAA", "timeframe": "1Day", "start": "2024-02-01"}
    assert http.get("/v2/stocks/bars", params=query).json()["bars"]["AAA"][-1]["h"] == 111.961


def test_a_limit_price_keeps_to_the_increment_of_its_asset(http: httpx.Client, broker: SandboxServer) -> None:
    broker.fault("asset", symbol="AAA", change={"price_increment": "0.05"})
    limit = {"type": "limit", "time_in_force": "day"}
    refused = place(http, "a", limit_price="10.02", **limit)
    assert refused.status_code == 422 and "0.05" in refused.json()["message"]
    assert place(http, "a", limit_price="10.05", **limit).status_code == 200


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "asset", "symbol": "AAA", "change": {"price_increment": None, "min_order_size": None}},
        {"kind": "account", "change": {"buying_power": None, "shorting_enabled": None}},
    ],
)
def test_a_null_holds_no_order_to_anything(http: httpx.Client, broker: SandboxServer, rule: dict[str, Any]) -> None:
    assert http.post("/sandbox/faults", json=rule).status_code == 200
    assert place(http, "a", type="limit", time_in_force="day", limit_price="10.02").status_code == 200


def test_faults_can_be_seen_and_taken_away(http: httpx.Client, broker: SandboxServer) -> None:
    first, second = broker.fault("server_error", count=0), broker.fault("html", path="/v2/clock")
    assert [one["id"] for one in http.get("/sandbox/faults").json()] == [first, second]
    assert http.delete(f"/sandbox/faults/{first}").status_code == 204
    assert http.delete(f"/sandbox/faults/{first}").status_code == 404
    assert http.get("/v2/account").status_code == 200
    assert http.delete("/sandbox/faults").status_code == 204
    assert http.get("/v2/clock").status_code == 200
