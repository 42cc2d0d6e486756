"""The broker of docs/extending.md serves a desk; test_broker_contract.py holds it to the contract of every broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.broker import broker_of
from engine.market.trading_hours import exchange_calendar
from engine.settings.config import load_config
from tests.extending_page import own_broker, write_files
from tui.cli import main

BEGINS = date(2024, 3, 1)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(params=["a folder of connectors", "two files of one's own"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A desk at the broker of the page: UP rises by one in each session, SAW goes up and down."""
    kind = "inmemory"
    if request.param != "a folder of connectors":
        _, adapter, registration = write_files("A broker", tmp_path / "own")
        text = registration.read_text().replace("connectors.inmemory.broker", "broker")
        registration.write_text(text)
        assert adapter.name == "broker.py"
        kind = f"{registration}:BROKER"
    prices = tmp_path / "data" / "prices"
    prices.mkdir(parents=True)
    for symbol in ("UP", "SAW"):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for number, day in enumerate(exchange_calendar().sessions(date(2023, 11, 1), date(2024, 4, 5))):
            close = 100 + (number if symbol == "UP" else 5 * (number % 4))
            rows.append(f"{day},{close - 0.5},{close + 1},{close - 1},{close},{close},1000000")
        (prices / f"{symbol}.csv").write_text("\n".join(rows) + "\n")
    environment = {
        "PAPERDESK_HOME": str(tmp_path / "home"),
        "PAPERDESK_BROKER__KIND": kind,
        "PAPERDESK_BROKER__CLOCK": "broker",
        "PAPERDESK_DATA__FOLDER": str(tmp_path / "data"),
        "PAPERDESK_DESK__NAME": "own",
        "PAPERDESK_DESK__SYMBOLS": "UP,SAW",
        "INMEMORY_DATA": str(tmp_path / "data"),
        "INMEMORY_BEGINS": BEGINS.isoformat(),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with own_broker():
        yield


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(*arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("desk")
def test_a_desk_trades_at_the_broker_and_its_books_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = broker_of(load_config(tmp_path / "none.toml").config)
    assert service is not None
    broker: Any = service.open()
    session = BEGINS
    for _ in range(6):
        assert document(capsys, "--daily")["session"] == str(session)
        session = broker.play()
    document(capsys, "--daily")

    assert len(broker._core.fills) > 0
    account = asyncio.run(broker.account())
    held = {symbol: Decimal(row["quantity"]) for symbol, row in document(capsys, "positions")["positions"].items()}
    assert held == {symbol: position.quantity for symbol, position in account.positions.items()}
    assert document(capsys, "reconcile")["differences"] == []


@pytest.mark.usefixtures("desk")
def test_doctor_asks_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    run("doctor", "--connect", "--json")
    checks = [check for check in json.loads(capsys.readouterr().out)["checks"] if check["area"] == "Broker"]

    said = {check["name"]: check["detail"] for check in checks}
    assert said["kind"] == "an account in memory; mode auto: orders are sent"
    assert said["account"] == "ACTIVE, cash 10000.00 USD, worth 10000.00, 0 positions, 0 open orders"
    assert [check for check in checks if check["state"] == "fail"] == []
