"""The contract of every FilingSource: the demo market, and data folders, one of them filled from SEC EDGAR."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest

from connectors.demo.market import DEFAULT_WATCHLIST, DemoMarket
from connectors.files.fetch.filings import fetch_filings
from connectors.files.market import FilesMarket
from connectors.filings.edgar import EdgarFilings
from engine.domain.market import Symbol
from engine.ports import FilingSource
from engine.services import FetchOptions
from engine.settings.config import FilingsConfig
from tests.connectors.weekdays import calendar_for
from tests.data_folders import write_folder
from tests.servers.fake_edgar import AGENT, SYMBOL, fake_edgar

THROUGH = date(2022, 3, 31)


@dataclass(frozen=True)
class Case:
    """A source, symbols that it has filings of, and whether it knows moments or days alone."""

    source: FilingSource
    symbols: tuple[Symbol, ...]
    to_the_second: bool = False


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market") / "data"
    asyncio.run(write_folder(DemoMarket(5, calendar_for, THROUGH), folder))
    return folder


@pytest.fixture(params=["demo", "files", "real files", "fetched"])
def kind(request: pytest.FixtureRequest) -> tuple[str, Path | None]:
    """Which source, and the folder of one that stands in files."""
    fixture = {"files": "written", "real files": "real_data"}.get(request.param)
    return request.param, None if fixture is None else request.getfixturevalue(fixture)


@pytest.fixture
async def case(kind: tuple[str, Path | None], tmp_path: Path) -> AsyncIterator[Case]:
    name, folder = kind
    if name == "fetched":
        with fake_edgar() as web:
            settings = FilingsConfig(user_agent=AGENT, www=web.url, data=web.url)
            source = EdgarFilings(settings)
            vars(source.http).update(seconds_between=0.0005)
            await fetch_filings(source, FetchOptions(folder=tmp_path), [SYMBOL])
            yield Case(FilesMarket(tmp_path, calendar_for), (SYMBOL,), True)
            await source.aclose()
    elif folder is None:
        yield Case(DemoMarket(5, calendar_for, THROUGH), DEFAULT_WATCHLIST)
    else:
        there = tuple(sorted(path.stem for path in (folder / "filings").glob("*.jsonl")))
        yield Case(FilesMarket(folder, calendar_for), there)


async def test_filings_come_in_order_of_availability(case: Case) -> None:
    seen = 0
    for symbol in case.symbols:
        items = (await case.source.filings(symbol)).items
        seen += len(items)
        assert [item.available_at for item in items] == sorted(item.available_at for item in items)
        assert len({item.id for item in items}) == len(items)
        for item in items:
            assert item.symbol == symbol
            assert item.form.removesuffix("/A") in ("10-Q", "10-K")
            assert item.summary.strip()
            assert item.available_at.utcoffset() == timedelta(0)
            # EDGAR dates what comes after its office hours by the next business day.
            assert abs(item.available_at.date() - item.date) <= timedelta(days=4)
            if not case.to_the_second:
                assert item.available_at >= calendar_for(symbol).closes_at(item.date)
    assert seen >= 4


@pytest.mark.parametrize("symbol", ["NOSUCH", "BTC-USD", "../filings/QLMP", ""])
async def test_who_has_no_filings_has_an_empty_batch(case: Case, symbol: Symbol) -> None:
    assert not (await case.source.filings(symbol)).items


async def test_asked_twice_it_says_the_same(case: Case) -> None:
    symbol = case.symbols[0]
    assert await case.source.filings(symbol) == await case.source.filings(symbol)
