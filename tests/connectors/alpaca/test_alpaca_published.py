"""What Alpaca publishes of its answers is read, whole: every status, every type, every example."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS30Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from connectors.alpaca.account import activity, asset, broker_account, broker_order, equity_by_session, order_body
from engine.domain.brokerage import ActivityKind
from engine.domain.order import Side
from tests.connectors.alpaca.alpaca_accounts import ACCOUNT, DIVIDEND, FILL, ORDER, a_buy, a_sale

DOCUMENT = Path(__file__).resolve().parents[4] / "shared" / "openapi" / "trading-api.json"


@pytest.fixture(scope="module")
def published() -> Any:
    if not DOCUMENT.is_file():
        pytest.skip(f"no published documents: {DOCUMENT} is not a file")
    return json.loads(DOCUMENT.read_text(encoding="utf-8"))


def words_of(published: Any, name: str) -> list[str]:
    found: list[str] = published["components"]["schemas"][name]["enum"]
    assert len(found) > 3
    return found


def test_every_status_and_class_of_an_order(published: Any) -> None:
    for status in words_of(published, "OrderStatus"):
        broker_order(ORDER | {"status": status, "filled_qty": "1"})
    for name in words_of(published, "AssetClass"):
        assert broker_order(ORDER | {"asset_class": name}).symbol == "AAA"


def test_every_example_of_an_order(published: Any) -> None:
    examples = {n: e["value"] for n, e in published["components"]["examples"].items() if n.endswith("OrderResponse")}
    found = {name.removesuffix("OrderResponse"): broker_order(raw) for name, raw in examples.items()}
    assert {"Crypto", "Equity", "MultilegOptions", "Option"} <= found.keys()
    assert found["Crypto"].symbol == "ETH-USD" and found["Equity"].symbol == "AAPL"
    assert (found["MultilegOptions"].symbol, found["MultilegOptions"].side) == ("", Side.BUY)
    assert found["MultilegOptions"].filled_average_price == Decimal("1.28")


def test_every_status_of_an_account(published: Any) -> None:
    blocking = {s for s in words_of(published, "AccountStatus") if broker_account(ACCOUNT | {"status": s}, []).blocked}
    assert "ACTIVE" not in blocking and {"ACCOUNT_CLOSED", "REJECTED", "ONBOARDING"} <= blocking


def test_every_type_of_an_activity(published: Any) -> None:
    kinds = {}
    for name in words_of(published, "ActivityType"):
        raw = FILL if name == "FILL" else DIVIDEND | {"activity_type": name}
        kinds[name] = activity(raw).kind
    assert kinds["FILL"] is ActivityKind.FILL
    assert {kind for name, kind in kinds.items() if name.startswith("DIV")} == {ActivityKind.DIVIDEND}
    assert set(kinds.values()) == set(ActivityKind)


def test_every_example_of_equity(published: Any) -> None:
    examples = published["components"]["schemas"]["PortfolioHistory"]["x-examples"]
    daily = {name: one for name, one in examples.items() if one["timeframe"] == "1D"}
    assert daily
    for one in daily.values():
        assert len(equity_by_session(one)) == len(one["equity"])
        assert all(day.weekday() < 5 for day in equity_by_session(one)), "a session is no Saturday"


def test_an_instrument_of_every_class(published: Any) -> None:
    for name in words_of(published, "AssetClass"):
        assert asset({"symbol": "AAA", "class": name, "tradable": True}).tradable


@pytest.mark.parametrize("order", [a_buy(), a_sale(quantity="0.123456789"), a_buy(symbol="BTC-USD"), a_sale()])
def test_what_is_sent_is_what_may_be_asked_for(published: Any, order: Any) -> None:
    registry: Registry[Any] = Registry().with_resource("urn:trading", Resource(published, DRAFT4))
    pointer = "#/paths/~1v2~1orders/post/requestBody/content/application~1json/schema"
    validator = OAS30Validator({"$ref": f"urn:trading{pointer}"}, registry=registry)
    body = order_body(order)
    assert [error.message for error in validator.iter_errors(body)] == []
    asked = published["paths"]["/v2/orders"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body) <= set(asked["properties"])
    assert [error.message for error in validator.iter_errors(body | {"side": "sideways"})]
