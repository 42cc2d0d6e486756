"""A desk at a broker that fetches its market before each run, into a folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from connectors.sandbox import SandboxServer, SandboxSettings
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.services import services
from engine.app.desk.context import Finished
from engine.app.desk.run import run_daily
from engine.domain.run import DataSpec
from engine.errors import NetworkError
from engine.journal.reader import JournalReader
from engine.messages.events import Event, Noticed
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.test_desk_at_broker import START, SYMBOLS, Trader

DEMO = DataSpec(None, 7)


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    with build_sandbox(DEMO, SandboxSettings(start=START)) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def run(model: Trader, heard: list[Event]) -> DeskRunResult | Finished:
    config = Config.model_validate(
        {
            "desk": {"name": "paper", "symbols": SYMBOLS, "preset": "finvision"},
            "broker": {"kind": "alpaca", "clock": "broker"},
        }
    )
    return asyncio.run(run_daily(services(config), publish=heard.append, through=lambda inner: model))


def market_requests(sandbox: SandboxServer) -> int:
    counts = sandbox.state()["requests"]
    return sum(count for name, count in counts.items() if "/v1beta1/" in name or "/bars" in name or "/v1/" in name)


def last_bars(folder: Path) -> set[str]:
    return {path.read_text().splitlines()[-1][:10] for path in (folder / "prices").glob("*.csv")}


def test_each_run_fetches_its_session_first_and_says_what_failed(sandbox: SandboxServer, paperdesk_home: Path) -> None:
    model, heard = Trader(), list[Event]()
    folder = paperdesk_home / "data" / "market"
    first = run(model, heard)
    assert isinstance(first, DeskRunResult)
    assert (first.outcome, first.session, last_bars(folder)) == ("done", date(2021, 3, 16), {"2021-03-16"})
    assert list((folder / "news").glob("*.jsonl"))
    asked = market_requests(sandbox)
    assert isinstance(run(model, heard), Finished)
    assert market_requests(sandbox) == asked
    sandbox.advance("close")
    sandbox.advance("5m")
    fault = sandbox.fault("server_error", path="/v1beta1/news", count=0)
    second = run(model, heard)
    assert isinstance(second, DeskRunResult)
    assert (second.outcome, last_bars(folder)) == ("done", {"2021-03-17"})
    with JournalReader(places.desk_journal("paper")) as reader:
        kept = [event for _, event in reader.events_after(0, second.run) if isinstance(event, Noticed)]
    shown = [event for event in heard if isinstance(event, Noticed) and event.run == second.run]
    assert [event.text for event in kept if "news not fetched" in event.text]
    assert kept == shown
    sandbox.clear_faults(fault)
    sandbox.advance("close")
    sandbox.advance("5m")
    sandbox.fault("html", path="/v2/stocks/bars", count=0)
    with pytest.raises(NetworkError, match="Alpaca's data service"):
        run(model, heard)
    sandbox.clear_faults()
    third = run(model, heard)
    assert isinstance(third, DeskRunResult)
    assert (third.outcome, last_bars(folder)) == ("done", {"2021-03-18"})
