"""A folder that was fetched drives a backtest as the market does that it was fetched from."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from connectors.demo.market import DEFAULT_WATCHLIST
from connectors.sandbox import SandboxSettings
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import fetch
from engine.clock import BacktestClock
from engine.domain.market import PriceHistory
from engine.domain.run import DataSpec, Result, RunSpec
from engine.ports import MarketSource
from engine.reports.documents.backtest import fingerprint
from engine.services import FetchOptions
from engine.settings.config import Config

DEMO = DataSpec(None, 7)
SINCE, LAST = date(2024, 6, 3), date(2025, 4, 4)
NOW = datetime(2025, 4, 5, 0, 5, tzinfo=UTC)
"""After the close of Friday the 4th, in New York and in UTC."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo market's shares, fund and coin, fetched from a sandbox."""
    to = tmp_path_factory.mktemp("fetched")
    config = Config.model_validate({"desk": {"symbols": DEFAULT_WATCHLIST}, "broker": {"kind": "alpaca"}})
    with build_sandbox(DEMO, SandboxSettings(start=NOW)) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        done = asyncio.run(
            fetch(services(config, BacktestClock(NOW)), "all", FetchOptions(folder=to), DEFAULT_WATCHLIST, SINCE)
        )
    assert all(one.complete and not one.dropped and not one.differing for one in done)
    return to


def source(folder: str | None) -> MarketSource:
    return services(Config()).open_source(DEMO if folder is None else DataSpec(folder), LAST)


def columns(history: PriceHistory) -> list[tuple[object, ...]]:
    return [
        (one.session, one.open, one.high, one.low, one.close, one.volume)
        for one in history
        if SINCE <= one.session <= LAST
    ]


async def test_prices_and_actions_are_the_markets_own(folder: Path) -> None:
    ours, theirs = source(str(folder)), source(None)
    for symbol in DEFAULT_WATCHLIST:
        one, other = await ours.history(symbol), await theirs.history(symbol)
        assert columns(one) == columns(other)
        assert one.session(0) == max(SINCE, other.session(0))
    actions = [await ours.actions(symbol) or () for symbol in DEFAULT_WATCHLIST]
    assert any(actions)
    for symbol, mine in zip(DEFAULT_WATCHLIST, actions, strict=True):
        known = await theirs.actions(symbol) or ()
        assert list(mine) == [one for one in known if SINCE <= one.ex_date <= LAST]


@pytest.mark.slow
def test_a_backtest_over_the_folder_is_one_over_the_market(folder: Path) -> None:
    spec = RunSpec(
        symbols=DEFAULT_WATCHLIST,
        first=date(2025, 3, 11),
        last=date(2025, 3, 28),
        warm_up_from=date(2025, 2, 24),
        preset="finvision",
        model="offline",
        data=DEMO,
        run="source",
    )

    def ran(data: DataSpec, name: str) -> Result:
        return run_backtest(
            services(Config(), BacktestClock(NOW)), replace(spec, data=data, run=name), baselines=()
        ).result

    true, ours = ran(DEMO, "source"), ran(DataSpec(str(folder)), "fetched")
    assert ours.test.fills == true.test.fills
    assert [(d.key.session, d.key.symbol, d.action, d.size) for d in ours.test.decisions] == [
        (d.key.session, d.key.symbol, d.action, d.size) for d in true.test.decisions
    ]
    assert len(true.test.fills) > 5
    assert fingerprint(ours.test) == fingerprint(true.test)
