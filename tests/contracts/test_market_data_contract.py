"""What every BarSource and NewsSource keeps, whichever adapter it is."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from connectors.demo.market import DEFAULT_WATCHLIST, DemoMarket
from connectors.files.market import FilesMarket
from engine.domain.market import UNKNOWN, is_crypto
from engine.errors import MissingData
from tests.connectors.weekdays import calendar_for
from tests.data_folders import MarketData, write_folder

THROUGH = date(2022, 3, 31)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market") / "data"
    asyncio.run(write_folder(DemoMarket(5, calendar_for, THROUGH), folder))
    return folder


@pytest.fixture(params=["demo", "files", "real files"])
def market(request: pytest.FixtureRequest) -> MarketData:
    if request.param == "demo":
        return DemoMarket(5, calendar_for, THROUGH)
    folder = request.getfixturevalue("written" if request.param == "files" else "real_data")
    return FilesMarket(folder, calendar_for)


async def test_symbols_are_sorted_and_each_has_bars(market: MarketData) -> None:
    symbols = await market.symbols()
    assert symbols
    assert list(symbols) == sorted(set(symbols))
    for symbol in symbols:
        history = await market.history(symbol)
        assert history.symbol == symbol
        assert len(history) > 0


async def test_bars_are_in_order_and_bounded(market: MarketData) -> None:
    for symbol in await market.symbols():
        history = await market.history(symbol)
        days = list(history.sessions)
        assert all(before < after for before, after in pairwise(days))
        for open_, high, low, close in zip(history.open, history.high, history.low, history.close, strict=True):
            assert 0 < low <= min(open_, close) <= max(open_, close) <= high
        assert all(adjusted == UNKNOWN or adjusted > 0 for adjusted in history.adj_close)
        assert not any(volume < 0 for volume in history.volume)
        if not is_crypto(symbol):
            assert not any(date.fromordinal(day).weekday() > 4 for day in days)


@pytest.mark.parametrize("symbol", ["NOSUCH", "orvl", "../prices/ORVL", ""])
async def test_an_unknown_symbol_is_missing_and_names_some_that_are_not(market: MarketData, symbol: str) -> None:
    with pytest.raises(MissingData) as caught:
        await market.history(symbol)
    assert repr(symbol) in str(caught.value)
    assert any(known in str(caught.value) for known in await market.symbols())
    assert "\n" not in str(caught.value)


async def test_actions_are_in_order_or_unknown(market: MarketData) -> None:
    for symbol in await market.symbols():
        actions = await market.actions(symbol)
        if actions is None:
            continue
        assert [action.ex_date for action in actions] == sorted(action.ex_date for action in actions)
        assert all(action.symbol == symbol and action.value > 0 for action in actions)


async def test_news_comes_in_order_of_availability_and_never_before_it_is_out(market: MarketData) -> None:
    seen = 0
    for symbol in await market.symbols():
        items = (await market.news(symbol)).items
        seen += len(items)
        assert [item.available_at for item in items] == sorted(item.available_at for item in items)
        assert len({item.id for item in items}) == len(items)
        for item in items:
            assert item.symbol == symbol
            assert item.available_at.utcoffset() == timedelta(0)
            assert (item.headline or item.summary).strip()
            if item.published is not None:
                assert item.published.utcoffset() == timedelta(0)
                assert item.available_at >= item.published
            else:
                # Dated without a time: not before the day's last hours.
                assert item.available_at.astimezone(UTC).date() >= item.date
                assert item.available_at >= calendar_for(symbol).closes_at(item.date)
    assert seen > 1000


async def test_who_has_no_news_has_an_empty_batch(market: MarketData) -> None:
    assert not (await market.news("NOSUCH")).items


async def test_asked_twice_it_says_the_same(market: MarketData) -> None:
    symbol = (await market.symbols())[0]
    assert list(await market.history(symbol)) == list(await market.history(symbol))
    assert await market.news(symbol) == await market.news(symbol)


async def test_a_written_market_reads_back_the_same(written: Path) -> None:
    """The data folder loses nothing: the demo market in files is the demo market."""
    demo, files = DemoMarket(5, calendar_for, THROUGH), FilesMarket(written, calendar_for)
    assert await files.symbols() == await demo.symbols()
    for symbol in (*DEFAULT_WATCHLIST, "FABX"):
        assert list(await files.history(symbol)) == list(await demo.history(symbol))
        assert tuple(await files.actions(symbol) or ()) == tuple(await demo.actions(symbol) or ())
        key = lambda item: (item.available_at, item.id)  # noqa: E731
        assert sorted((await files.news(symbol)).items, key=key) == list((await demo.news(symbol)).items)
        assert (await files.filings(symbol)).items == (await demo.filings(symbol)).items
