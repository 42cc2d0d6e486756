"""Every answer of the sandbox is what Alpaca's published OpenAPI documents say it should be."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS30Validator, oas30_format_checker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from connectors.alpaca.market_data import AlpacaData
from connectors.alpaca.settings import AlpacaSettings
from connectors.sandbox import SandboxServer

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "openapi"
DOCUMENTS = ("trading-api.json", "market-data-api.json")
UNKNOWN_EXCHANGE = "CRYPTO"
"""What the service answers as the exchange of a coin, as alpaca-py knows too; the documents have forgotten it."""

Check = Callable[[str, str, int, Any], None]


def amended(document: Any) -> Any:
    """The document with the exchange of coins where exchanges are listed, and with "one of" two kinds of activity as
    "any of": neither requires anything, so that every activity is of both kinds."""
    if isinstance(document, dict):
        if "NonTradeActivities" in str(document.get("oneOf")):
            return {"anyOf": document["oneOf"]}
        values = document.get("enum")
        if isinstance(values, list) and "NASDAQ" in values and "OTC" in values:
            return document | {"enum": [*values, UNKNOWN_EXCHANGE]}
        return {key: amended(value) for key, value in document.items()}
    return [amended(value) for value in document] if isinstance(document, list) else document


@pytest.fixture(scope="session")
def documents() -> dict[str, Any]:
    if not FOLDER.is_dir():
        pytest.skip(f"no published documents: {FOLDER} is not a folder")
    return {name: amended(json.loads((FOLDER / name).read_text(encoding="utf-8"))) for name in DOCUMENTS}


@pytest.fixture(scope="session")
def check(documents: dict[str, Any]) -> Check:
    """Validates the answer of a method at a path of a document."""
    resources = [(f"urn:{name}", Resource(document, DRAFT4)) for name, document in documents.items()]
    registry: Registry[Any] = Registry().with_resources(resources)

    def checked(method: str, path: str, status: int, body: Any) -> None:
        name = next(name for name, document in documents.items() if path in document["paths"])
        answers = documents[name]["paths"][path][method.lower()]["responses"]
        assert str(status) in answers, f"{method} {path} may not answer {status}"
        pointer = (
            f"/paths/{path.replace('/', '~1')}/{method.lower()}/responses/{status}/content/application~1json/schema"
        )
        if not answers[str(status)].get("content"):
            assert body is None
            return
        validator = OAS30Validator(
            {"$ref": f"urn:{name}#{pointer}"}, registry=registry, format_checker=oas30_format_checker
        )
        problems = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(body)]
        assert not problems, f"{method} {path}: {problems}"

    return checked


def buy(symbol: str, **fields: Any) -> dict[str, Any]:
    order = {"symbol": symbol, "qty": "4", "side": "buy", "type": "market", "time_in_force": "day"}
    return order | fields


@pytest.fixture
def lived(broker: SandboxServer, http: httpx.Client) -> httpx.Client:
    """An account with shares, a coin, a short position, and orders in every state."""
    for body in (
        buy("AAA", qty="10"),
        buy("BBB", qty=None, notional="500.25"),
        buy("GONE", qty="3", side="sell"),
        buy("BTC/USD", qty="0.01", time_in_force="gtc"),
    ):
        assert http.post("/v2/orders", json=body).status_code == 200
    broker.fault("partial_fill", symbol="BBB", then="expire")
    http.post("/v2/orders", json=buy("BBB", qty="8"))
    broker.advance("close")
    broker.fault("reject", symbol="AAA")
    http.post("/v2/orders", json=buy("AAA"))
    canceled = http.post("/v2/orders", json=buy("AAA", type="limit", limit_price="5")).json()["id"]
    http.delete(f"/v2/orders/{canceled}")
    http.post("/v2/orders", json=buy("AAA", type="limit", limit_price="6", client_order_id="waits"))
    for _ in range(8):
        broker.advance("close")
    http.post("/v2/orders", json=buy("AAA", client_order_id="open"))
    statuses = {order["status"] for order in broker.state()["orders"]}
    assert statuses == {"filled", "expired", "rejected", "canceled", "accepted"}
    return http


GETS = [
    ("/v2/account", {}),
    ("/v2/account/configurations", {}),
    ("/v2/account/portfolio/history", {"period": "1M"}),
    ("/v2/account/activities", {}),
    ("/v2/assets", {}),
    ("/v2/assets/{symbol_or_asset_id}", {"symbol_or_asset_id": "AAA"}),
    ("/v2/assets/{symbol_or_asset_id}", {"symbol_or_asset_id": "BTC/USD"}),
    ("/v2/calendar", {"start": "2024-01-01", "end": "2024-12-31"}),
    ("/v2/clock", {}),
    ("/v2/orders", {"status": "all"}),
    ("/v2/orders", {}),
    ("/v2/orders:by_client_order_id", {"client_order_id": "waits"}),
    ("/v2/positions", {}),
    ("/v2/positions/{symbol_or_asset_id}", {"symbol_or_asset_id": "AAA"}),
    ("/v2/stocks/bars", {"symbols": "AAA,BBB", "timeframe": "1Day", "start": "2024-01-10", "adjustment": "all"}),
    ("/v2/stocks/bars", {"symbols": "AAA", "timeframe": "15Min", "start": "2024-02-01"}),
    ("/v2/stocks/bars", {"symbols": "AAA", "timeframe": "1Week", "start": "2024-01-01"}),
    ("/v2/stocks/bars/latest", {"symbols": "AAA,BBB"}),
    ("/v2/stocks/quotes/latest", {"symbols": "AAA,BBB"}),
    ("/v2/stocks/trades/latest", {"symbols": "AAA"}),
    ("/v2/stocks/snapshots", {"symbols": "AAA,GONE"}),
    ("/v1beta1/news", {"symbols": "AAA", "limit": "5"}),
    ("/v1beta3/crypto/{loc}/bars", {"loc": "us", "symbols": "BTC/USD", "timeframe": "1Day", "start": "2024-01-20"}),
    ("/v1beta3/crypto/{loc}/latest/bars", {"loc": "us", "symbols": "BTC/USD"}),
    ("/v1beta3/crypto/{loc}/latest/quotes", {"loc": "us", "symbols": "BTC/USD"}),
    ("/v1beta3/crypto/{loc}/latest/trades", {"loc": "us", "symbols": "BTC/USD"}),
    ("/v1beta3/crypto/{loc}/snapshots", {"loc": "us", "symbols": "BTC/USD"}),
    ("/v1/corporate-actions", {"symbols": "BBB", "start": "2024-01-01"}),
]


def test_what_is_read_is_as_published(lived: httpx.Client, check: Check) -> None:
    for path, query in GETS:
        target = path.format(**query)
        rest = {name: value for name, value in query.items() if "{" + name + "}" not in path}
        answer = lived.get(target, params=rest)
        assert answer.status_code == 200, (path, answer.text)
        body = answer.json()
        assert body, path
        check("GET", path, 200, body)


def test_what_is_changed_is_as_published(lived: httpx.Client, broker: SandboxServer, check: Check) -> None:
    placed = lived.post("/v2/orders", json=buy("BBB", type="limit", limit_price="20"))
    check("POST", "/v2/orders", placed.status_code, placed.json())
    order = placed.json()["id"]
    check("GET", "/v2/orders/{order_id}", 200, lived.get(f"/v2/orders/{order}").json())
    replaced = lived.patch(f"/v2/orders/{order}", json={"qty": "5", "limit_price": "21"})
    check("PATCH", "/v2/orders/{order_id}", replaced.status_code, replaced.json())
    withdrawn = lived.delete(f"/v2/orders/{replaced.json()['id']}")
    check("DELETE", "/v2/orders/{order_id}", withdrawn.status_code, withdrawn.content or None)
    everything = lived.delete("/v2/orders")
    assert everything.json()
    check("DELETE", "/v2/orders", everything.status_code, everything.json())
    closing = lived.delete("/v2/positions/AAA", params={"qty": "2"})
    check("DELETE", "/v2/positions/{symbol_or_asset_id}", closing.status_code, closing.json())
    closed = lived.delete("/v2/positions", params={"cancel_orders": "true"})
    assert {one["symbol"] for one in closed.json()} == {"AAA", "BBB", "BTCUSD", "GONE"}
    check("DELETE", "/v2/positions", closed.status_code, closed.json())
    settings = lived.patch("/v2/account/configurations", json={"no_shorting": True})
    check("PATCH", "/v2/account/configurations", settings.status_code, settings.json())


def test_every_endpoint_of_the_protocol_is_checked_here(broker: SandboxServer) -> None:
    served = {(method, pattern) for method, pattern, *_ in broker.router.routes if not pattern.startswith("/sandbox/")}
    changed = {
        ("POST", "/v2/orders"),
        ("PATCH", "/v2/orders/{order}"),
        ("GET", "/v2/orders/{order}"),
        ("DELETE", "/v2/orders/{order}"),
        ("DELETE", "/v2/orders"),
        ("DELETE", "/v2/positions/{asset}"),
        ("DELETE", "/v2/positions"),
        ("PATCH", "/v2/account/configurations"),
    }
    names = {"activity_type": "type", "symbol_or_asset_id": "asset"}
    read = set()
    for path, _ in GETS:
        for long, short in names.items():
            path = path.replace("{" + long + "}", "{" + short + "}")
        read.add(("GET", path))
    assert served == changed | read


def test_the_check_notices_what_is_wrong(lived: httpx.Client, check: Check) -> None:
    account = lived.get("/v2/account").json()
    for broken in (account | {"cash": 12.5}, {k: v for k, v in account.items() if k != "id"}):
        with pytest.raises(AssertionError):
            check("GET", "/v2/account", 200, copy.deepcopy(broken))


async def test_what_is_fetched_is_asked_for_and_answered_as_the_documents_say(
    broker: SandboxServer, documents: dict[str, Any], check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, str], bytes]] = []
    get = httpx.AsyncClient.get

    async def heard(self: httpx.AsyncClient, url: str, **options: Any) -> httpx.Response:
        response = await get(self, url, **options)
        asked.append((url.removeprefix(broker.url), dict(options["params"]), response.content))
        return response

    monkeypatch.setattr(httpx.AsyncClient, "get", heard)
    broker.advance(datetime(2024, 3, 6, 21, 5, tzinfo=UTC))
    data = AlpacaData(
        AlpacaSettings(
            key=broker.settings.key, secret=broker.settings.secret, trading_url=broker.url, data_url=broker.url
        )
    )
    first, last = date(2024, 1, 2), date(2024, 3, 6)
    assert [symbol async for symbol, _ in data.bars(["AAA", "BBB"], first, last)] == ["AAA", "BBB"]
    assert [symbol async for symbol, _ in data.bars(["BTC-USD"], first, last)] == ["BTC-USD"]
    assert len((await data.actions(["BBB"], first, last))["BBB"].actions) == 2
    start = datetime(2024, 3, 1, tzinfo=UTC)
    assert [page async for page in data.news(["AAA", "BTC-USD"], start, start + timedelta(days=5))]
    await data.aclose()
    document = documents["market-data-api.json"]
    paths = {"/v1beta3/crypto/us/bars": "/v1beta3/crypto/{loc}/bars"}
    assert len({path for path, _, _ in asked}) == 4
    for path, params, body in asked:
        described = document["paths"][paths.get(path, path)]
        check("GET", paths.get(path, path), 200, json.loads(body))
        known = [*described.get("parameters", ()), *described["get"].get("parameters", ())]
        parameters = [resolved(document, one) for one in known]
        names = {one["name"] for one in parameters}
        assert set(params) <= names, path
        assert {one["name"] for one in parameters if one.get("required") and one["in"] == "query"} <= set(params)
        for one in parameters:
            schema = resolved(document, one["schema"])
            if one["name"] in params and "enum" in schema:
                assert params[one["name"]] in schema["enum"]
            if one["name"] in params and "maximum" in schema:
                assert int(params[one["name"]]) <= schema["maximum"]


def resolved(document: Any, one: Any) -> Any:
    """What a reference within the document stands for."""
    if "$ref" not in one:
        return one
    for part in one["$ref"].removeprefix("#/").split("/"):
        document = document[part]
    return document
