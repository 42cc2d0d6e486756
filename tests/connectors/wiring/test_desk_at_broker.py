"""A desk's daily runs in an account at the broker: the sandbox over HTTP, alpaca-py, journal and books to the cent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer, SandboxSettings
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.services import services
from engine.app.desk.context import Finished
from engine.app.desk.run import run_daily
from engine.clock import BacktestClock
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import OrderState
from engine.domain.run import DataSpec
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.data_folders import write_folder
from tests.engine.desks import hold, trade
from tests.snapshots import snapshot

SYMBOLS = ["ORVL", "PLWY", "TMBK"]
"""PLWY pays a dividend on 2021-03-22, ORVL splits two for one on 2021-04-19."""
START = datetime(2021, 3, 16, 20, 5, tzinfo=UTC)
CASH = Decimal(100_000)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data") / "demo"
    asyncio.run(write_folder(FewSymbols(SYMBOLS, date(2021, 5, 28)), target))
    return target


Open = Callable[..., SandboxServer]


@pytest.fixture
def sandbox(written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    server = build_sandbox(DataSpec(str(written)), SandboxSettings(start=START, cash=CASH, pay_dividends=True))
    with server as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def desk(folder: Path, **changes: Any) -> Config:
    plain: dict[str, Any] = {
        "desk": {"name": "paper", "symbols": SYMBOLS, "preset": "finvision"},
        "data": {"folder": str(folder), "refresh": False},
        "broker": {"kind": "alpaca", "clock": "broker"},
    }
    for section, values in changes.items():
        plain[section] = plain.get(section, {}) | values
    return Config.model_validate(plain)


class Trader:
    """Buys and sells by the day of the month, so that every session trades."""

    spec = label = "trader"
    sees = True

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        self.asked += 1
        turn = (request.session.day + SYMBOLS.index(request.symbol)) % 3
        wishes = [("BUY", 8, "strong uptrend"), ("SELL", 3, "reversal")]
        said = trade(request, *wishes[turn]) if turn < 2 else hold(request)
        return ModelResult(model="trader", answer=said)


def run(config: Config, model: Trader, asked: date | None = None) -> DeskRunResult | Finished:
    return asyncio.run(run_daily(services(config), asked, through=lambda inner: model))


def assert_equal_books(sandbox: SandboxServer) -> None:
    """Journal (books and everything later) and broker, to the cent and the billionth of a share."""
    state = sandbox.state()
    ours = snapshot(places.desk_journal("paper")).portfolio()
    assert ours.cash == Decimal(state["cash"])
    theirs = {symbol: Decimal(quantity) for symbol, quantity in state["positions"].items()}
    assert {s: p.quantity for s, p in ours.positions.items()} == theirs


@pytest.mark.slow
def test_ten_sessions_and_more_in_an_account_keep_journal_and_broker_equal(
    sandbox: SandboxServer, written: Path
) -> None:
    config, model = desk(written), Trader()
    for day in range(26):
        if day:
            sandbox.advance("close")
            sandbox.advance("5m")
        result = run(config, model)
        assert isinstance(result, DeskRunResult)
        assert result.outcome == "done"
        assert all(o.state is OrderState.ACKNOWLEDGED for o in result.orders), result.orders
        asked = model.asked
        assert isinstance(run(config, model), Finished)
        assert model.asked == asked
        assert_equal_books(sandbox)
    with JournalReader(places.desk_journal("paper")) as reader:
        fills, points, flows = reader.fills(), reader.equity(), reader.cash_flows()
    assert len(fills) > 30
    assert len(points) == 26
    assert {(flow.symbol, flow.kind) for flow in flows} == {("PLWY", "dividend"), ("ORVL", "split")}
    assert quick_check(places.desk_journal("paper")) == ()


@pytest.mark.parametrize(("after_close", "apart", "decided"), [(120, -240, date(2021, 3, 17)), (-120, 240, None)])
def test_around_a_close_the_brokers_time_counts_whatever_this_machines_clock_says(
    after_close: int, apart: int, decided: date | None, sandbox: SandboxServer, written: Path
) -> None:
    config, closes = desk(written, broker={"clock": "machine"}), datetime(2021, 3, 17, 20, tzinfo=UTC)
    assert isinstance(asyncio.run(run_daily(services(config, BacktestClock(START)))), DeskRunResult)
    sandbox.advance(closes + timedelta(seconds=after_close))
    machine = BacktestClock(closes + timedelta(seconds=after_close + apart))
    if decided is None:  # the session is not over there: what was decided before it stands
        done = asyncio.run(run_daily(services(config, machine)))
        assert isinstance(done, Finished)
        assert done.session == date(2021, 3, 16)
        return
    # By this machine's clock the session before is the last, and done.
    assert isinstance(asyncio.run(run_daily(services(config, machine))), Finished)
    caught_up = asyncio.run(
        run_daily(services(config, BacktestClock(closes + timedelta(seconds=after_close - 60))), decided)
    )
    assert caught_up.session == decided
