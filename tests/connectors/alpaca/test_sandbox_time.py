"""What happens when time passes: opens, closes, splits, dividends, the end of the data, and a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.sandbox import ApiError, SandboxServer
from connectors.sandbox.book import Store
from connectors.sandbox.market import SessionPath
from connectors.sandbox.orders import read_ticket
from engine.domain.order import Order, Portfolio, Side
from engine.domain.run import ExecutionRules
from engine.errors import ConfigError
from engine.simulation.simulated_broker import SimulatedBroker
from tests.connectors.alpaca.sandbox_markets import START, exchange, market_data, order

Connect = Callable[[SandboxServer], httpx.Client]


def standing(server: SandboxServer) -> list[tuple[str, str, str | None]]:
    return [(o["status"], o["filled_qty"], o["filled_avg_price"]) for o in server.state()["orders"]]


def test_a_day_order_after_the_close_waits_for_the_next_open(http: httpx.Client, broker: SandboxServer) -> None:
    http.post("/v2/orders", json=order("AAA", notional="310"))
    broker.advance(datetime(2024, 2, 1, 14, 29, 59, tzinfo=UTC))
    assert standing(broker) == [("accepted", "0", None)]
    broker.advance(datetime(2024, 2, 1, 15, tzinfo=UTC))
    assert standing(broker) == [("filled", "10", "31")]
    assert broker.state()["orders"][0]["filled_at"] == "2024-02-01T14:30:00Z"


def test_an_order_in_the_session_fills_at_once_and_the_answer_says_pending(
    http: httpx.Client, broker: SandboxServer
) -> None:
    broker.advance("open")
    assert http.post("/v2/orders", json=order("AAA", qty="2")).json()["status"] == "pending_new"
    broker.advance("1h")
    http.post("/v2/orders", json=order("AAA", qty="1"))
    first, second = broker.state()["orders"]
    assert (first["filled_avg_price"], second["filled_avg_price"]) == ("31", "30.54")


def test_the_same_orders_fill_as_in_a_backtest() -> None:
    rules = replace(ExecutionRules(), slippage_bp=Decimal(5))
    live, data = exchange(rules=rules), market_data()
    core = SimulatedBroker(
        rules, Portfolio(Decimal(100_000)), data.histories, {"BBB": data.actions["BBB"][:1]}, closed=START.date()
    )
    placed = {
        date(2024, 1, 31): [("AAA", Side.BUY, None, "12345.67"), ("BBB", Side.BUY, None, "2000")],
        date(2024, 2, 2): [("BBB", Side.SELL, "5.123456789", None), ("AAA", Side.BUY, None, "1")],
        date(2024, 2, 5): [("BBB", Side.SELL, "3.3", None), ("AAA", Side.SELL, "100.5", None)],
    }
    for session in data.exchange.sessions(date(2024, 1, 31), date(2024, 2, 7)):
        if session > START.date():
            core.open_session(session)
            core.close_session(session)
        for symbol, side, quantity, notional in placed.get(session, ()):
            name = f"{session}-{symbol}"
            body = order(symbol, side.value.lower(), qty=quantity, notional=notional, client_order_id=name)
            live.submit(read_ticket(body, live.market, live.now))
            given = [None if text is None else Decimal(text) for text in (quantity, notional)]
            core.submit(Order(id=name, symbol=symbol, side=side, session=session, quantity=given[0], notional=given[1]))
        live.advance(data.exchange.closes_at(session + timedelta(days=3 if session.weekday() == 4 else 1)))
    fills = [one for one in live.book.activities if one["activity_type"] == "FILL"]
    ours = [(f["symbol"], Decimal(f["qty"]), Decimal(f["price"])) for f in fills]
    assert ours == [(f.symbol, f.quantity, f.price) for f in core.fills]
    assert len(ours) == 6
    assert live.book.portfolio == core.portfolio


def test_a_limit_order_fills_when_the_path_gets_there(http: httpx.Client, broker: SandboxServer) -> None:
    broker.advance("open")
    low = order("AAA", qty="1", type="limit", limit_price="30.20")
    never = order("BBB", qty="1", type="limit", limit_price="1", time_in_force="gtc")
    for body in (low, never):
        http.post("/v2/orders", json=body)
    broker.advance("1h")
    assert standing(broker)[0] == ("new", "0", None)
    broker.advance("close")
    assert standing(broker) == [("filled", "1", "30.2"), ("new", "0", None)]
    http.post("/v2/orders", json=order("AAA", "sell", qty="1", type="limit", limit_price="100"))
    broker.advance("close")
    assert [one[0] for one in standing(broker)] == ["filled", "new", "expired"]


def test_a_marketable_limit_never_fills_worse_than_it_says(opened: Any, connected: Connect) -> None:
    server = opened(rules=ExecutionRules(slippage_bp=Decimal(50)))
    http = connected(server)
    server.advance("open")
    http.post("/v2/orders", json=order("AAA", qty="1", type="limit", limit_price="31.05"))
    http.post("/v2/orders", json=order("BBB", qty="1", type="limit", limit_price="200"))
    assert [one[2] for one in standing(server)] == ["31.05", "121.605"]


def test_coins_trade_at_night_and_at_weekends(http: httpx.Client, broker: SandboxServer) -> None:
    broker.advance(datetime(2024, 2, 3, 3, tzinfo=UTC))
    http.post("/v2/orders", json=order("BTC/USD", qty="0.5", time_in_force="ioc"))
    http.post("/v2/orders", json=order("BTC/USD", qty="0.1", time_in_force="gtc", type="limit", limit_price="40032"))
    http.post("/v2/orders", json=order("AAA", qty="1"))
    assert [one[0] for one in standing(broker)] == ["filled", "filled", "accepted"]
    far = order("BTC/USD", qty="0.1", time_in_force="gtc", type="limit", limit_price="40030.50")
    http.post("/v2/orders", json=far)
    broker.advance("1d")
    assert standing(broker)[3][0] == "new"


def test_a_split_overnight_changes_positions_and_what_waits(http: httpx.Client, broker: SandboxServer) -> None:
    http.post("/v2/orders", json=order("BBB", qty="3"))
    broker.advance(datetime(2024, 2, 2, 22, tzinfo=UTC))
    http.post("/v2/orders", json=order("BBB", "sell", qty="1"))
    equity = Decimal(http.get("/v2/account").json()["equity"])
    broker.advance("open")
    position = http.get("/v2/positions/BBB").json()
    assert (position["qty"], position["avg_entry_price"], position["cost_basis"]) == ("4", "60.5", "242")
    assert standing(broker)[1] == ("filled", "2", "73")
    (split,) = http.get("/v2/account/activities", params={"activity_types": "SPLIT"}).json()
    assert (split["symbol"], split["qty"], split["net_amount"]) == ("BBB", "3", "0")
    assert Decimal(http.get("/v2/account").json()["equity"]) == equity - 3 * Decimal("122.5") + 6 * 73


@pytest.mark.parametrize("paid", [False, True])
def test_dividends_are_paid_on_request_only(opened: Any, connected: Connect, paid: bool) -> None:
    server = opened(pay_dividends=paid)
    http = connected(server)
    http.post("/v2/orders", json=order("BBB", qty="2"))
    server.advance(datetime(2024, 2, 13, tzinfo=UTC))
    assert http.get("/v2/account").json()["cash"] == str(100_000 - 242 + (1 if paid else 0))
    dividends = http.get("/v2/account/activities", params={"activity_types": "DIV"}).json()
    assert [(one["net_amount"], one["per_share_amount"], one["qty"]) for one in dividends] == (
        [("1", "0.25", "4")] if paid else []
    )


def test_what_stops_trading_can_be_held_but_not_traded(http: httpx.Client, broker: SandboxServer) -> None:
    http.post("/v2/orders", json=order("GONE", qty="1"))
    broker.advance(datetime(2024, 2, 20, 21, 30, tzinfo=UTC))
    assert http.get("/v2/assets/GONE").json()["status"] == "inactive"
    refused = http.post("/v2/orders", json=order("GONE", "sell", qty="1"))
    assert refused.status_code == 422 and "not tradable" in refused.json()["message"]
    broker.advance("close")
    assert http.get("/v2/positions/GONE").json()["current_price"] == "53.5"


def test_the_clock_goes_forward_and_to_the_end_of_the_data(broker: SandboxServer, http: httpx.Client) -> None:
    with pytest.raises(ApiError, match="does not go back"):
        broker.advance(START - timedelta(seconds=1))
    broker.advance(datetime(2024, 3, 16, tzinfo=UTC))
    with pytest.raises(ApiError, match="data ends on 2024-03-15"):
        broker.advance("open")
    assert broker.state()["now"] == "2024-03-16T00:00:00Z"
    for wrong in ({"advance": "soon"}, {"to": "then"}, {"speed": -1}, {"speed": True}, {}):
        assert http.post("/sandbox/clock", json=wrong).status_code == 422, wrong


def test_half_days_and_holidays(http: httpx.Client, broker: SandboxServer) -> None:
    broker.advance(datetime(2024, 2, 16, 21, 0, tzinfo=UTC))
    clock = http.get("/v2/clock").json()
    assert clock["next_open"] == "2024-02-20T09:30:00-05:00", "a long weekend"
    days = http.get("/v2/calendar", params={"start": "2024-11-27", "end": "2024-11-29"}).json()
    assert [(day["date"], day["close"]) for day in days] == [("2024-11-27", "16:00"), ("2024-11-29", "13:00")]


def test_summer_time_moves_the_open_in_utc(http: httpx.Client, broker: SandboxServer) -> None:
    broker.advance(datetime(2024, 3, 8, 22, 0, tzinfo=UTC))
    http.post("/v2/orders", json=order("AAA", qty="1"))
    broker.advance("open")
    assert broker.state()["now"] == "2024-03-11T13:30:00Z"
    assert http.get("/v2/clock").json()["timestamp"] == "2024-03-11T09:30:00-04:00"
    assert standing(broker)[0][0] == "filled"


def test_a_running_clock_runs(opened: Any, connected: Connect) -> None:
    server = opened(speed=7200.0)
    http = connected(server)
    for _ in range(6000):
        if server.state()["now"] > "2024-01-31T21:30":
            break
        threading.Event().wait(0.01)
    assert server.state()["now"] > "2024-01-31T21:30"
    http.post("/sandbox/clock", json={"speed": 0})
    stands = server.state()["now"]
    threading.Event().wait(0.3)
    assert server.state()["now"] == stands


def test_equity_is_kept_by_session(http: httpx.Client, broker: SandboxServer) -> None:
    http.post("/v2/orders", json=order("AAA", qty="100"))
    for _ in range(3):
        broker.advance("close")
    history = http.get("/v2/account/portfolio/history").json()
    assert history["equity"] == [100_050.0, 100_150.0, 100_250.0]
    assert history["profit_loss"] == [50.0, 150.0, 250.0] and history["base_value"] == 100_000.0
    opens = [datetime.fromtimestamp(one, UTC) for one in history["timestamp"]]
    assert opens[0] == datetime(2024, 2, 1, 14, 30, tzinfo=UTC)
    since = http.get("/v2/account/portfolio/history", params={"start": "2024-02-05"}).json()
    assert (since["equity"], since["base_value"], since["base_value_asof"]) == ([100_250.0], 100_150.0, "2024-02-02")
    account = http.get("/v2/account").json()
    assert (account["equity"], account["last_equity"]) == ("100250", "100250")
    assert http.get("/v2/account/portfolio/history", params={"timeframe": "1H"}).status_code == 422


def test_cash_moves_by_itself_on_request(http: httpx.Client, broker: SandboxServer) -> None:
    for amount in ("250.10", "-1000"):
        assert http.post("/sandbox/transfers", json={"amount": amount}).status_code == 200
    assert http.get("/v2/account").json()["cash"] == "99250.1"
    moved = http.get("/v2/account/activities", params={"direction": "asc"}).json()
    assert [(one["activity_type"], one["net_amount"]) for one in moved] == [("CSD", "250.1"), ("CSW", "-1000")]
    for wrong in ("much", 0, None):
        assert http.post("/sandbox/transfers", json={"amount": wrong}).status_code == 422


def test_activities_page_by_page(http: httpx.Client, broker: SandboxServer) -> None:
    for n in range(5):
        http.post("/v2/orders", json=order("AAA", qty=str(n + 1)))
        broker.advance("close")

    def quantities(**query: str) -> list[str]:
        return [one["qty"] for one in http.get("/v2/account/activities", params=query).json()]

    page = http.get("/v2/account/activities", params={"page_size": "2", "direction": "asc"}).json()
    assert [one["qty"] for one in page] == ["1", "2"]
    assert quantities(page_size="2", direction="asc", page_token=page[-1]["id"]) == ["3", "4"]
    assert quantities() == ["5", "4", "3", "2", "1"]
    assert quantities(after="2024-02-05T15:00:00Z") == ["5", "4"]
    assert quantities(until="2024-02-01") == ["1"]
    assert quantities(activity_types="DIV,SPLIT") == []
    for wrong in ({"page_token": "nobody"}, {"page_size": "101"}):
        assert http.get("/v2/account/activities", params=wrong).status_code == 422


def test_a_restart_keeps_everything(opened: Any, connected: Connect, tmp_path: Path) -> None:
    state = str(tmp_path / "new" / "sandbox.db")
    first = opened(state=state)
    http = connected(first)
    http.post("/v2/orders", json=order("AAA", qty="10", client_order_id="done"))
    first.advance("close")
    http.post("/v2/orders", json=order("BBB", notional="500", client_order_id="waits"))
    http.patch("/v2/account/configurations", json={"no_shorting": True})
    first.fault("server_error", path="/v2/account", count=5)
    first.fault("renamed", symbol="AAA", then="AAAX")
    assert http.get("/v2/account").status_code == 500
    before = first.state()
    first.__exit__(None, None, None)

    second = opened(state=state, cash=Decimal(1), start=START + timedelta(days=1))
    after = second.state()
    same = ("now", "cash", "equity", "positions", "orders", "activities", "faults")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert after["faults"][0]["used"] == 1
    again = connected(second)
    twice = again.post("/v2/orders", json=order("BBB", qty="1", client_order_id="waits"))
    assert twice.json()["message"] == "client_order_id must be unique"
    assert again.get("/v2/positions/AAAX").json()["qty"] == "10"
    second.advance("open")
    assert again.get("/v2/orders:by_client_order_id", params={"client_order_id": "waits"}).json()["status"] == "filled"
    assert again.get("/v2/account/configurations").json()["no_shorting"] is True
    second.advance("close")
    assert list(exchange_closes(second)) == [date(2024, 2, 1), date(2024, 2, 2)]


def exchange_closes(server: SandboxServer) -> dict[date, Decimal]:
    return server.exchange.book.closes


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "letter.db"
    other.write_bytes(b"Dear Sir or Madam, this is no database." * 50)
    with pytest.raises(ConfigError, match=r"letter\.db"):
        Store(str(other))
    assert other.read_bytes().startswith(b"Dear Sir")


def test_a_port_in_use_is_a_configuration_error(opened: Any) -> None:
    taken = opened().port
    with pytest.raises(ConfigError, match=f"port {taken}"):
        opened(port=taken)


def test_the_path_of_a_day_stays_in_its_bar() -> None:
    data = market_data()
    history, calendar = data.histories["AAA"], data.exchange
    day = date(2024, 2, 1)
    row = history.index(day)
    assert row is not None
    path = SessionPath.of(history, row, calendar)
    prices = [path.price(path.opens + timedelta(minutes=n)) for n in range(-10, 400)]
    assert (prices[0], prices[-1]) == (history.open[row], history.close[row])
    assert (min(prices), max(prices)) == (history.low[row], history.high[row])
    halves = [path.candle(path.opens, path.opens + timedelta(hours=2)), path.candle(path.opens, path.closes)]
    assert halves[1].high == history.high[row] and halves[0].high < halves[1].high
    assert halves[1].volume == history.volume[row]
