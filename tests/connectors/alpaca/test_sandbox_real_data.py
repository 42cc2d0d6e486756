"""The sandbox over real prices: what it shows and fills at is what stands in the files."""

from __future__ import annotations

import asyncio
import csv
from datetime import date
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from connectors.sandbox import SandboxSettings
from connectors.wiring.sandbox import build_sandbox, start_of
from engine.domain.run import DataSpec
from engine.errors import MissingData, UsageError
from tests.connectors.alpaca.conftest import keys
from tests.connectors.alpaca.sandbox_markets import FREE, order


def row(folder: Path, symbol: str, day: str) -> dict[str, str]:
    with (folder / "prices" / f"{symbol}.csv").open(encoding="utf-8") as file:
        return next(one for one in csv.DictReader(file) if one["date"] == day)


def test_an_order_fills_at_the_open_of_the_file(real_data: Path) -> None:
    spec = DataSpec(str(real_data))
    start = asyncio.run(start_of(spec, date(2023, 6, 30)))
    with (
        build_sandbox(spec, SandboxSettings(start=start, cash=Decimal(10_000), rules=FREE)) as broker,
        httpx.Client(base_url=broker.url, headers=keys(broker), verify=False) as http,
    ):
        for symbol in ("AAPL", "JNJ"):
            assert http.post("/v2/orders", json=order(symbol, qty="3")).status_code == 200
        broker.advance("close")
        clock = http.get("/v2/clock").json()["timestamp"]
        assert clock == "2023-07-03T13:00:00-04:00", "the half day before the fourth of July"
        for found in broker.state()["orders"]:
            assert Decimal(found["filled_avg_price"]) == Decimal(row(real_data, found["symbol"], "2023-07-03")["open"])
        query = {"symbols": "AAPL", "timeframe": "1Day", "start": "2023-06-30"}
        bars = http.get("/v2/stocks/bars", params=query).json()["bars"]["AAPL"]
        expected = [float(row(real_data, "AAPL", day)["close"]) for day in ("2023-06-30", "2023-07-03")]
        assert [bar["c"] for bar in bars] == expected
        held = {one["symbol"]: Decimal(one["current_price"]) for one in http.get("/v2/positions").json()}
        assert held["JNJ"] == Decimal(row(real_data, "JNJ", "2023-07-03")["close"])


def test_a_data_folder_begins_before_most_of_it_ends(real_data: Path) -> None:
    spec = DataSpec(str(real_data))
    assert asyncio.run(start_of(spec, None)).date() == date(2024, 2, 8)
    with pytest.raises(MissingData, match="2018-06-01"):
        asyncio.run(start_of(spec, date(2018, 6, 1)))
    with pytest.raises(UsageError, match="closed"):
        asyncio.run(start_of(spec, date(2023, 7, 4)))
