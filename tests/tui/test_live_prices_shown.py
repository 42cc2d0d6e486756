"""Live prices in the app: the watchlist follows the feed, the status bar says how the feed is, headlines are events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, bar, cells, shown, until
from fake_desk import BOUGHT, NOW, SESSION, SYMBOLS, FakeDesk
from textual.pilot import Pilot

from engine.domain.live import Delivery, FeedMessage, FeedState, Headline, LastTrade, OrderHint, Quote
from engine.domain.market import ActionKind, CorporateAction
from engine.domain.order import Portfolio, Position
from engine.domain.run import EquityPoint
from engine.errors import CredentialsRefused
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from tui.desk.live import AT_MOST, LiveBoard, live_line
from tui.view.live_view import STALE, LiveView, feed_text
from tui.view.market_view import Quote as Shown
from tui.widgets.candle_chart import CandleChart
from tui.widgets.screen_bars import EventLog
from tui.widgets.table import Table
from tui.widgets.text_lines import TextPane


class FakeFeed:
    """A feed that says what the test says, in the desk's thread."""

    def __init__(self, refused: bool = False) -> None:
        self._hear: Callable[[FeedMessage], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._refused = refused
        self.symbols: Sequence[str] = ()

    async def follow(self, symbols: Sequence[str], on_message: Callable[[FeedMessage], None]) -> None:
        if self._refused:
            raise CredentialsRefused("the shares stream refuses the keys")
        self._hear, self._loop, self.symbols = on_message, asyncio.get_running_loop(), tuple(symbols)
        await asyncio.Event().wait()

    async def latest(self, symbols: Sequence[str]) -> Sequence[FeedMessage]:
        return ()

    def says(self, *heard: FeedMessage) -> None:
        assert self._loop is not None
        assert self._hear is not None
        for one in heard:
            self._loop.call_soon_threadsafe(self._hear, one)


def rows(pilot: Pilot[Any]) -> dict[str, tuple[str, str]]:
    """LAST and CHG% by symbol, as the watchlist shows them."""
    table = pilot.app.screen_stack[0].query_one("#watchlist", Table)
    return {row.key: (row.cells[1].text, row.cells[2].text) for row in table.rows}


def up(feed: str = "coins", delivery: Delivery = Delivery.STREAM, detail: str = "") -> FeedState:
    return FeedState(feed, delivery, NOW, detail)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_watchlist_follows_the_feed(running: Running, tmp_path: Path, size: tuple[int, int]) -> None:
    desk, feed = FakeDesk(tmp_path), FakeFeed()
    desk.feed = feed
    async with running(size, desk=desk) as pilot:
        await until(pilot, lambda: "Feed connecting" in bar(pilot) and bool(feed.symbols))
        before = rows(pilot)
        close = Decimal(before["AAA-USD"][0])
        price = (close * Decimal("1.05")).quantize(Decimal("0.01"))
        feed.says(up(), Quote("AAA-USD", price - Decimal("0.01"), price + Decimal("0.01"), NOW))
        await until(pilot, lambda: rows(pilot)["AAA-USD"][0] == f"{price:.2f}")
        assert rows(pilot)["AAA-USD"][1] in ("+5.00%", "+4.99%", "+5.01%")
        assert {s: rows(pilot)[s] for s in SYMBOLS[1:]} == {s: before[s] for s in SYMBOLS[1:]}
        assert "Feed 0." in bar(pilot)
        feed.says(LastTrade("BBB-USD", Decimal("123.45"), NOW))
        await until(pilot, lambda: rows(pilot)["BBB-USD"][0] == "123.45")


@pytest.mark.parametrize("split", [False, True])
async def test_one_price_feeds_last_chart_profit_and_equity(running: Running, tmp_path: Path, split: bool) -> None:
    class Holding(FakeDesk):
        """A desk whose journal holds 120 AAA-USD, bought at 44.50, and 96,000 in cash."""

        async def market(self) -> Market:
            known = await super().market()
            action = CorporateAction("AAA-USD", NOW.date(), ActionKind.SPLIT, Decimal(2))
            return replace(known, actions=dict(known.actions) | {"AAA-USD": (action,)}) if split else known

    desk, feed = Holding(tmp_path), FakeFeed()
    desk.feed = feed
    held = {"AAA-USD": Position(Decimal(120), Decimal("44.50"))}
    with JournalWriter(desk.journal) as writer:
        for day, price in ((SESSION - timedelta(days=1), "45"), (SESSION, "46")):
            value = 96_000 + 120 * Decimal(price)
            point = EquityPoint(day, value, Portfolio(Decimal(96_000), held), {"AAA-USD": Decimal(price)})
            writer.session_settled("r", point)
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: bool(feed.symbols))
        screen = pilot.app.screen_stack[0]
        watchlist, chart = screen.query_one("#watchlist", Table), screen.query_one(CandleChart)

        def profit() -> str:
            return str(watchlist.border_subtitle).partition("P&L ")[2]

        bars = len(chart.data)
        assert "Equity 101,520.00" in bar(pilot) and profit() == "+180"
        feed.says(up(), LastTrade("AAA-USD", Decimal(50), NOW))
        await until(pilot, lambda: rows(pilot)["AAA-USD"][0] == "50.00")
        await until(
            pilot, lambda: (len(chart.data), chart.data.close[-1], chart.data.days[-1]) == (bars + 1, 50.0, NOW.date())
        )
        if split:  # 120 shares are not 120 any more: the books stay at their close
            assert "Equity 101,520.00" in bar(pilot) and profit() == "+180"
        else:
            await until(pilot, lambda: "Equity 102,000.00" in bar(pilot) and "+0.47% day" in bar(pilot))
            await until(pilot, lambda: profit() == "+660")
            assert watchlist.title == "Watchlist, live" and watchlist.rows[0].cells[7].text == "+660"
        await pilot.press("3")
        for price in (50, 60):  # an open Book follows it, too
            feed.says(LastTrade("AAA-USD", Decimal(price), NOW))
            valued = "46.00" if split else f"{price}.00"
            await until(pilot, lambda valued=valued: [row[3] for row in cells(pilot, "book-positions")] == [valued])  # type: ignore[misc]


async def test_the_watchlist_says_of_what_its_profit_is_where_its_prices_are_later(
    running: Running, tmp_path: Path
) -> None:
    desk, day = FakeDesk(tmp_path), SESSION - timedelta(days=1)
    held, prices = {"AAA-USD": Position(Decimal(120), Decimal("44.50"))}, {"AAA-USD": Decimal(45)}
    with JournalWriter(desk.journal) as writer:
        for session, value in ((day - timedelta(days=1), 100_000), (day, 101_400)):
            point = EquityPoint(session, Decimal(value), Portfolio(Decimal(96_000), held), prices)
            writer.session_settled("r", point)
    async with running(desk=desk) as pilot:
        watchlist = pilot.app.screen_stack[0].query_one("#watchlist", Table)
        await until(pilot, lambda: watchlist.title == f"Watchlist to {SESSION:%b %d}, P&L {day:%b %d}")
        assert str(watchlist.border_subtitle).endswith("P&L +60")
        assert f"+1.40% {day:%b %d}" in bar(pilot)


async def test_a_fill_is_booked_at_once_by_a_desk_that_may(running: Running, tmp_path: Path) -> None:
    desk, feed = FakeDesk(tmp_path), FakeFeed()
    desk.feed, desk.books_fills = feed, True
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: bool(feed.symbols))
        feed.says(OrderHint("test-1", "new", NOW), OrderHint("test-1", "fill", NOW))
        await until(pilot, lambda: len(desk.booked) == 1)
        log = pilot.app.screen_stack[0].query_one(EventLog)
        await until(pilot, lambda: "the broker says fill: test-1" in log.as_text())
        assert "books it" not in log.as_text()


async def test_how_the_feed_is_cannot_be_missed_and_headlines_are_events(running: Running, tmp_path: Path) -> None:
    desk, feed = FakeDesk(tmp_path), FakeFeed()
    desk.feed = feed
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: bool(feed.symbols))
        feed.says(up(), Headline(("AAA-USD",), "[b]It rises[/b]", "wire", NOW), OrderHint("test-1", "fill", NOW))
        log = pilot.app.screen_stack[0].query_one(EventLog)
        await until(pilot, lambda: "[b]It rises[/b] (wire)" in log.as_text())
        assert "the broker says fill: test-1; the desk's next run books it" in log.as_text()
        feed.says(up(delivery=Delivery.DOWN, detail="the connection was closed"))
        await until(pilot, lambda: "Feed DOWN" in bar(pilot))
        feed.says(up(delivery=Delivery.POLLING))
        await until(pilot, lambda: "Feed POLLING" in bar(pilot))
        feed.says(up(), up("news", Delivery.DOWN))
        await until(pilot, lambda: "no news" in bar(pilot))
        assert "feed of coins DOWN: the connection was closed" in log.as_text()


async def test_the_log_names_an_order_by_its_terms_and_is_in_order_of_time(running: Running, asking: FakeDesk) -> None:
    asking.feed = feed = FakeFeed()
    late, later = NOW + timedelta(hours=1), NOW + timedelta(hours=2)
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: bool(feed.symbols))
        feed.says(
            OrderHint(BOUGHT.id, "fill", later),
            OrderHint("a-strangers", "fill", later),
            Headline(("AAA-USD",), "It rises", "wire", late),
        )
        await pilot.press("5")
        await until(pilot, lambda: bool(pilot.app.screen.query("#log")))
        log = pilot.app.screen.query_one("#log", TextPane)
        await until(pilot, lambda: "It rises" in log.as_text())
        stranger, ours, news = log.as_text().splitlines()[:3]
        assert "the broker says fill: a-strangers" in stranger and "It rises" in news
        assert "the broker says fill: BUY AAA-USD for 7,000.00" in ours and BOUGHT.id not in log.as_text()


async def test_a_feed_that_is_refused_is_said_and_the_desk_goes_on(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    desk.feed = FakeFeed(refused=True)
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: "no live prices and news" in pilot.app.bridge.snapshot().trouble)  # type: ignore[attr-defined]
        assert "Feed" not in bar(pilot)
        await pilot.press("r")
        await until(pilot, lambda: desk.cycles == 1)


async def test_a_desk_without_a_feed_shows_none(running: Running, tmp_path: Path) -> None:
    async with running() as pilot:
        await shown(pilot)
        assert "Feed" not in bar(pilot)


async def test_a_desk_that_watches_runs_its_cycle_by_itself(running: Running, tmp_path: Path) -> None:
    desk, feed = FakeDesk(tmp_path), FakeFeed()
    desk.feed, desk.watches = feed, True
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: desk.cycles == 1 and bool(feed.symbols))
        feed.says(up(), LastTrade("BBB-USD", Decimal("123.45"), NOW))
        await until(pilot, lambda: rows(pilot)["BBB-USD"][0] == "123.45")


def test_views_are_made_four_times_a_second_at_most() -> None:
    at = [0.0]
    board = LiveBoard(lambda: at[0])
    board.on_message(up())
    board.on_message(LastTrade("AAA-USD", Decimal(10), NOW))
    first = board.view(SYMBOLS, NOW)
    assert (first.prices, first.age, first.delivery) == ({"AAA-USD": Decimal(10)}, 0.0, Delivery.STREAM)
    board.on_message(LastTrade("AAA-USD", Decimal(11), NOW))
    at[0] = AT_MOST / 2
    assert board.view(SYMBOLS, NOW) is first
    at[0] = AT_MOST
    assert board.view(SYMBOLS, NOW).prices == {"AAA-USD": Decimal(11)}
    at[0] = 60.0
    assert board.view(SYMBOLS, NOW).age == 60.0


def test_an_old_message_is_stale_only_while_the_market_is_open() -> None:
    old = LiveView(age=STALE + 5, delivery=Delivery.STREAM)
    assert feed_text(old, True) == ("STALE 25s", "warn")
    assert feed_text(old, False) == ("25s", "value")
    assert feed_text(LiveView(age=0.44, delivery=Delivery.STREAM), True) == ("0.4s", "value")
    assert feed_text(LiveView(age=3, delivery=Delivery.POLLING), False) == ("POLLING 3.0s", "warn")
    assert feed_text(LiveView(age=3600, delivery=Delivery.STREAM), False) == ("60m", "value")


def test_a_live_price_counts_only_in_a_session_after_the_last_close() -> None:
    day = NOW.date()
    shown = Shown("AAA", Decimal(100), 0.01, day - timedelta(days=1))
    assert shown.at(Decimal(102), day) == Shown("AAA", Decimal(102), 0.02, day, live=True, closes=(102.0,))
    assert shown.at(Decimal(102), day - timedelta(days=1)) is shown
    assert shown.at(None, day) is shown


def test_prices_are_no_lines_and_most_hints_neither() -> None:
    assert live_line(LastTrade("AAA", Decimal(1), NOW), booked=True) is None
    assert live_line(OrderHint("o", "new", NOW), booked=True) is None
