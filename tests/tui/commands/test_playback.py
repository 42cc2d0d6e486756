"""The app goes back through a recorded history: at every place its figures are those of `status --at`."""

from __future__ import annotations

import asyncio
import re
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerState

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunKind, RunSpec
from engine.errors import MalformedData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.trading_hours import exchange_calendar
from engine.reports import amounts
from engine.reports.documents.book import Book
from engine.reports.documents.decisions import followed_decisions
from engine.reports.documents.runs import StoredKind
from engine.reports.stored import stored_document
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import BACKTEST, FEW_AGENTS, SESSIONS, Run
from tests.tui.conftest import arrived, cells, opened, until
from tui.desk import book_curves
from tui.desk.readings import Readings
from tui.screens.book import BookScreen
from tui.screens.desk import DeskScreen
from tui.screens.frame import Layout
from tui.screens.lab import RunProgress, columns_of, result_rows
from tui.view.desk_port import Source
from tui.view.recorded_run import recorded
from tui.view.snapshot import Snapshot
from tui.widgets.candle_chart import CandleChart
from tui.widgets.navigation_bars import TimeBar
from tui.widgets.newest_reading import is_reading, newest_reading
from tui.widgets.plot import CurvePlot
from tui.widgets.screen_bars import StatusBar
from tui.widgets.table import Table


def same_figures(view: Snapshot, status: Any) -> None:
    """The figures of a snapshot are those of a status document."""
    books = view.desk.books
    if status["value"] is None:
        assert books is None
    else:
        assert books is not None
        assert (str(books.session), books.point.value, books.point.portfolio.cash) == (
            status["session"],
            Decimal(status["value"]),
            Decimal(status["cash"]),
        )
        held = {symbol: one.quantity for symbol, one in books.point.portfolio.positions.items()}
        assert held == {symbol: Decimal(row["quantity"]) for symbol, row in status["positions"].items()}
    assert {one.order.id for one in view.controls.orders} == {row["id"] for row in status["open_orders"]}


async def test_every_place_shows_what_status_prints_as_of_it(run: Run, desk: Path) -> None:
    views: dict[str, Snapshot] = {}
    async with opened((80, 24)) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        for session in (SESSIONS[1], SESSIONS[0]):
            view = views[str(session)] = await arrived(pilot)
            assert view.place is not None and view.place.session == session
            assert view.market is not None and view.market.quotes[0].session == session
            await pilot.press("left_curly_bracket")
        for _ in range(20):
            await pilot.press("greater_than_sign")
            view = await arrived(pilot)
            views[str(view.sources[0].at)] = view
        assert view.desk.running and view.desk.session == SESSIONS[0]
        await pilot.press("r")
        assert not bridge.snapshot().busy
        await pilot.press("backslash")
        assert bridge.snapshot().place is None
        for typed, session, which in (
            ("2025-03-13", SESSIONS[1], "the previous one"),
            ("2024-01-02", SESSIONS[0], "the first one"),
            ("2031-01-02", SESSIONS[2], "the last one"),
        ):
            await pilot.press("at", *typed, "enter")
            view = await arrived(pilot)
            assert view.place is not None and view.place.session == session
            text = f"no session on that date; showing {which}"
            assert view.place.text == text
            bar = pilot.app.screen.query_one(TimeBar)
            await until(pilot, lambda bar=bar: "no session on that date" in str(bar.render()))  # type: ignore[misc]
            await pilot.press("less_than_sign")
            view = await arrived(pilot)
            assert view.place is not None and "no session" not in view.place.text
    assert len(views) == 22
    for at, view in views.items():
        same_figures(view, run("status", "--at", at, "--json").json)


async def test_a_desk_that_has_not_run_says_that_it_has_no_past(fresh: Path) -> None:
    async with opened() as pilot:
        await pilot.press("less_than_sign")
        view = await arrived(pilot)
        assert view.place is not None and (view.place.count, view.place.text) == (0, "nothing has happened yet")
        await pilot.press("backslash")
        await until(pilot, lambda: pilot.app.bridge.snapshot().place is None)  # type: ignore[attr-defined]


def schedule(pilot: Pilot[Any]) -> object:
    """The line of the Ops screen on what is due."""
    return pilot.app.screen.query_one("#schedule", Static).render()


def closed_at(session: date) -> datetime:
    """The moment at which a backtest decides, by the exchange's hours from 9 March on."""
    return datetime(session.year, session.month, session.day, 20, 0, 1, tzinfo=UTC)


async def test_a_backtest_that_ended_in_its_warm_up_has_no_history(fresh: Path) -> None:
    with JournalWriter(places.run_journal("early")) as writer:
        entry = RunEntry(id="early", kind=RunKind.BACKTEST, name="finvision", started=closed_at(SESSIONS[0]))
        writer.run_started(entry)
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().opened is not None)
        assert bridge.to_past(Source("an early end", places.run_journal("early"), "early")) == ""
        view = await arrived(pilot)
        assert view.trouble == "an early end ended before a session of its test was over: it has no history"
        assert view.desk.run == "" and view.desk.books is None, "nothing of the run is shown as a moment of it"
        await pilot.press("backslash")
        await until(pilot, lambda: bridge.snapshot().place is None)


async def test_prices_of_a_coin_in_a_backtest_are_those_of_its_books(fresh: Path) -> None:
    spec = RunSpec(
        symbols=("ORVL", "WRNN-USD"),
        first=date(2025, 3, 12),
        last=date(2025, 3, 17),
        strategy="buy-and-hold",
        data=DataSpec(None, 7),
        run=BACKTEST,
    )
    await asyncio.to_thread(run_backtest, services(load_config(None).config), spec, baselines=())
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().opened is not None)
        assert bridge.to_past(Source("the backtest", places.run_journal(BACKTEST), BACKTEST)) == ""
        for _ in range(3):
            view = await arrived(pilot)
            assert view.desk.books is not None and view.market is not None
            last = {quote.symbol: quote.last for quote in view.market.quotes}
            point = view.desk.books.point
            held = {symbol: point.prices.get(symbol) for symbol in point.portfolio.positions}
            assert "WRNN-USD" in held and held == {symbol: last[symbol] for symbol in held}
            await pilot.press("left_curly_bracket")


async def opens_at_its_end(pilot: Pilot[Any]) -> None:
    bridge = pilot.app.bridge  # type: ignore[attr-defined]
    assert bridge.to_past(Source("the backtest", places.run_journal(BACKTEST), BACKTEST)) == ""
    view = await arrived(pilot)
    assert view.place is not None and view.place.text == "run done"
    with JournalReader(places.run_journal(BACKTEST)) as reader:
        closes = reader.equity(BACKTEST, "test")
        answers = reader.answers(run=BACKTEST)
        decisions = reader.decisions(BACKTEST, part="test")
    settled = {one.session for one in closes}
    steps = sum(one.key.session in settled for one in (*answers, *decisions))
    assert view.place is not None and view.place.count == len(closes) + steps
    for point in (closes[-1], closes[-2]):
        assert view.desk.books is not None
        assert (view.desk.books.session, view.desk.books.point.value) == (point.session, point.value)
        last = {quote.symbol: quote.last for quote in view.market.quotes}  # type: ignore[union-attr]
        assert {one: last[one] for one in view.desk.books.point.portfolio.positions} == point.prices, "one price"
        assert view.desk.done and not view.desk.running
        panes = view.desk.panes_of("ORVL")
        asked = [one for one in answers if (one.key.symbol, one.key.session) == ("ORVL", point.session)]
        assert len([one for one in panes if one.answer]) == len(asked)
        # One clock: that of the session, whenever the backtest was run.
        assert {line.time for line in view.desk.lines} == {view.now} == {closed_at(point.session)}
        await pilot.press("left_curly_bracket")
        view = await arrived(pilot)


def in_table_at_once(stored: Any) -> None:
    """A run of an earlier day has its trades and its end in the table without its document."""
    document = stored_document(BACKTEST)
    (state,) = recorded(stored).values()
    assert (state.document, state.trades, state.final) == (None, len(document["trades"]), document["final_value"])
    (row,) = result_rows([state], "", columns_of([state]), (), {})
    told = [cell.text for cell in row.cells][-3:-1]
    assert told == [f"{state.trades:,}", f"{float(document['final_value']):,.0f}"]


async def test_a_finished_backtest_opens_the_same_way_and_is_gone_through_step_by_step(backtested: Path) -> None:
    with JournalReader(places.run_journal(BACKTEST)) as reader:
        before, session = (one.session for one in reader.equity(BACKTEST, "test")[3:5])
        answers = reader.agent_calls(BACKTEST, session)
        decided = [one.key.symbol for one in reader.decisions(BACKTEST, first=session, last=session)]
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.present().opened is not None)
        in_table_at_once(await bridge.present().opened.ask.runs(StoredKind.BACKTEST))
        await opens_at_its_end(pilot)
        bridge.playback.jump_to(before)
        assert (await arrived(pilot)).desk.session == before
        for step in range(len(answers) + len(decided) + 1):
            await pilot.press("greater_than_sign")
            view = await arrived(pilot)
            assert view.desk.session == session and view.desk.books is not None
            assert view.desk.books.session == session
            assert view.market is not None and {quote.session for quote in view.market.quotes} == {session}
            shown = [pane for symbol in ("ORVL", "HLXM") for pane in view.desk.panes_of(symbol) if pane.answer]
            assert len(shown) == min(step, len(answers))
            latest = view.desk.decisions
            made = {symbol for symbol in latest for one in latest[symbol].values() if one.key.session == session}
            assert made == set(decided[: max(0, step - len(answers))])
            followed = await view.opened.ask.read(view.sources[0], followed_decisions)
            assert {one.decision.key.symbol for one in followed if one.decision.key.session == session} == made
            ordered = {one.order.symbol for one in view.controls.orders if one.order.session == session}
            assert ordered <= made
            assert view.desk.running is (step < len(answers) + len(decided))
        await pilot.press("5")
        await until(pilot, lambda: bool(pilot.app.screen.query("#schedule")))
        await until(pilot, lambda: f"as of session {session}: nothing is due" in str(schedule(pilot)))
        await pilot.press("1", "less_than_sign")
        assert (await arrived(pilot)).desk.running
        await pilot.press("left_curly_bracket")
        assert (await arrived(pilot)).desk.session == before
        bridge.playback.jump_to(session)
        await arrived(pilot)
        bridge.playback.play(60)
        while bridge.playback.place.speed:
            assert bridge.playback.place.number - 1 in bridge.playback._ends, "it plays by sessions"
            await pilot.pause(0.02)
            bridge.snapshot()
        assert bridge.playback.at_end


@pytest.mark.slow
async def test_a_backtest_that_finished_here_is_the_history_of_its_screens(desk: Path) -> None:
    fields = {"decides": "buy-and-hold", "symbols": "ORVL", "first": "2025-03-03", "last": "2025-03-14"}
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("4", "e")
        for field, text in fields.items():
            pilot.app.screen.query_one(f"#field-{field}", Input).value = text
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(bridge.snapshot().sources) > 1)
        run = bridge.snapshot().backtests[0].spec.run
        for keys in ((), ("2", "right_square_bracket")):
            await pilot.press(*keys, "left_curly_bracket")
            view = await arrived(pilot)
            assert bridge.playback.source.run == run
            assert view.place is not None and view.place.session == date(2025, 3, 13)
            assert view.desk.books is not None and view.desk.books.point.value > 0
            assert [one.spec.run for one in view.backtests] == [run]
            await pilot.press("backslash")


async def test_every_refresh_shows_all_parts_as_of_one_moment(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: set[date] = set()
    show = DeskScreen.show_body

    def checked(screen: DeskScreen, view: Snapshot) -> None:
        show(screen, view)
        market, books = view.market, view.desk.books
        if market is None or books is None or screen.form is not Layout.USUAL or not screen.symbol:
            return
        last = next(quote for quote in market.quotes if quote.symbol == screen.symbol)
        assert last.last is not None
        watchlist = screen.query_one("#watchlist", Table)
        row = next(row for row in watchlist.rows if row.key == screen.symbol)
        assert f"{last.last:,.2f}" in [cell.text for cell in row.cells]
        assert screen.query_one(CandleChart).data.days[-1] == last.session
        assert watchlist.title.endswith((f", {books.as_of}", f", P&L {books.session:%b %d}"))
        held = {row.key for row in watchlist.rows if row.cells[5].text != "-"}
        assert held == set(books.point.portfolio.positions)
        shown.add(books.session)

    async with opened() as pilot:
        await until(pilot, lambda: pilot.app.screen.symbol != "")  # type: ignore[attr-defined]
        monkeypatch.setattr(DeskScreen, "show_body", checked)
        steps = ["left_curly_bracket"] * 3 + ["right_curly_bracket"] + ["greater_than_sign"] * 12
        for key in steps:
            await pilot.press(key)
            place = (await arrived(pilot)).place
            await until(pilot, lambda place=place: pilot.app.screen._view.place == place)  # type: ignore[attr-defined, misc]
        await pilot.press("backslash")
        await until(pilot, lambda: shown == set(SESSIONS))
        await pilot.pause(0.3)


async def test_a_place_that_cannot_be_read_is_said_and_left_again_and_a_history_plays_to_its_end(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        read = Source.read

        def broken(self: Source, document: Any) -> Any:
            raise MalformedData("row 7 of the events is damaged")

        monkeypatch.setattr(Source, "read", broken)
        await pilot.press("left_curly_bracket")
        assert "row 7" in (await arrived(pilot)).trouble
        monkeypatch.setattr(Source, "read", read)
        await pilot.press("right_curly_bracket")
        view = await arrived(pilot)
        assert view.trouble == "" and view.place is not None and view.desk.session == view.place.session
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        bridge.playback.play(60)
        await until(pilot, lambda: bridge.playback.at_end and bridge.snapshot().place.speed == 0)
        assert (await arrived(pilot)).desk.session == SESSIONS[2]


async def test_the_backtest_screen_draws_a_run_up_to_the_place_in_its_history(backtested: Path) -> None:
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("4")
        screen = pilot.app.screen
        await until(pilot, lambda: bool(screen._chosen))  # type: ignore[attr-defined]
        curve, trades = screen.query_one("#curve", CurvePlot), screen.query_one("#trades", Table)
        await until(pilot, lambda: len(curve.data.labels) > 2)
        whole = list(curve.data.labels)
        assert bridge.to_past(Source("the backtest", places.run_journal(BACKTEST), BACKTEST)) == ""
        await arrived(pilot)
        await until(pilot, lambda: list(curve.data.labels) == whole)
        bridge.playback.step_session(-1)
        view = await arrived(pilot)
        await until(pilot, lambda: list(curve.data.labels) == whole[:-1])
        assert view.place is not None and whole[-2] == str(view.place.session)
        assert view.desk.books is not None
        own = next(iter(curve.data.series.values()))
        assert own[-1] == pytest.approx(float(view.desk.books.point.value))
        assert f"to {view.place.session}" in str(curve.border_title)
        await pilot.press("v", "v")
        await until(pilot, lambda: trades.display and bool(trades.rows))
        assert all(row.cells[0].text <= whole[-2] for row in trades.rows)
        progress = str(screen.query_one(RunProgress).render())
        equity = f"equity {float(view.desk.books.point.value):,.0f}"
        assert f"to {view.place.session}" in progress and equity in progress
        assert f"{len(whole) - 1}/{len(whole)}" in progress and f"trades {len(trades.rows)}" in progress
        assert screen.query_one("#results").border_title == "Results, the whole runs"
        await pilot.press("enter")
        (page,) = pilot.app.screen.query("#page")
        assert str(page.border_title).endswith(", the whole run")
        await pilot.press("escape")
        every = decided(progress)
        for missing in (1, 2):
            await pilot.press("less_than_sign")
            await arrived(pilot)
            await until(
                pilot, lambda left=every - missing: decided(str(screen.query_one(RunProgress).render())) == left
            )
        bridge.to_present()
        await pilot.press("v")
        await until(pilot, lambda: list(curve.data.labels) == whole)
        assert screen.query_one("#results").border_title == "Results"


def decided(progress: str) -> int:
    """The decisions that the progress of a run counts."""
    return sum(map(int, re.findall(r"(?:BUY|SELL|HOLD) (\d+)", progress)))


async def test_the_keys_of_the_past_go_through_the_run_that_is_chosen(backtested: Path, desk_home: Path) -> None:
    places.desk_journal("demo").parent.mkdir(parents=True)
    shutil.copy(desk_home / "data" / "desks" / "demo.db", places.desk_journal("demo"))
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.present().opened is not None)
        bridge.to_past(None)
        await arrived(pilot)
        assert bridge.playback.source.run is None
        await pilot.press("4")
        screen: Any = pilot.app.screen
        await until(pilot, lambda: bool(screen._run))
        bridge.playback.jump(0)
        bridge.playback.play(1)
        await pilot.press("full_stop")
        assert (bridge.playback.source.run, bridge.playback.place.speed) == (None, 0), "what plays is stopped first"
        await pilot.press("left_curly_bracket")
        assert bridge.playback.source.run == BACKTEST
        assert (await arrived(pilot)).place is not None
        await pilot.press("3", "left_curly_bracket")
        assert bridge.playback.source.run == BACKTEST, "other screens go on with the record that is shown"


WINDOW = date(2025, 1, 2), date(2025, 3, 31)
STOPS = ["{"] * 3 + ["<"] * 2 + ["{"] * 9 + ["<", "<", ">"] + ["{"] * 2 + ["}"]
"""Keys; between two of them lie two more sessions, so that the stops go over all of the history."""


async def painted(pilot: Pilot[Any]) -> tuple[str, str, list[list[str]]]:
    """The place, and the top line and the positions as they are painted, once all of it is of that place."""
    app, place = pilot.app, (await arrived(pilot)).place
    bridge = app.bridge  # type: ignore[attr-defined]
    await until(pilot, lambda: app.screen._view.place == place and not is_reading(app))  # type: ignore[attr-defined]
    return (
        str(bridge.snapshot().sources[0].at),
        app.screen.query_one(StatusBar).render_line(0).text,
        cells(pilot, "book-positions"),
    )


def figures(status: Any) -> list[str]:
    """What the top line has to say of a status document."""
    wanted = [f"Equity {Decimal(status['value']):,.2f}", f"Cash {Decimal(status['cash']):,.0f}"]
    return wanted if status["change"] is None else [*wanted, amounts.percent(status["change"])]


def positions(status: Any) -> list[list[str]]:
    """Symbol, quantity, price and gain of every position of a status document."""
    return [
        [
            symbol,
            amounts.quantity(Decimal(row["quantity"])),
            f"{Decimal(row['price']):.2f}",
            f"{Decimal(row['gain']):+,.2f}",
        ]
        for symbol, row in sorted(status["positions"].items())
    ]


@pytest.mark.slow
async def test_twenty_stops_over_sixty_sessions_paint_what_status_prints(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    sessions = exchange_calendar("XNYS", places.session_table()).sessions(*WINDOW)
    assert len(sessions) == 60
    for session in sessions:
        await asyncio.to_thread(lambda day=session: asyncio.run(run_daily(services(load_config(None).config), day)))  # type: ignore[misc]
    seen: dict[str, tuple[str, list[list[str]]]] = {}
    async with opened((200, 60)) as pilot:
        await pilot.press("3")
        for key in STOPS:
            await pilot.press(*"{{", key)
            place, line, rows = await painted(pilot)
            seen[place] = line, rows
    assert len(seen) == 20
    for place, (line, rows) in seen.items():
        status = (await asyncio.to_thread(run, "status", "--at", place, "--json")).json
        for wanted in figures(status):
            assert wanted in line, (place, line)
        shown = [[row[n] for n in (0, 1, 3, 6)] for row in rows]
        assert sorted(shown) == positions(status), place
    assert len({line for line, _ in seen.values()}) > 15  # other figures at nearly every stop


class Reader(Static):
    """Reads a number once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended, self.failed = list[int](), list[int](), list[BaseException]()
        self.may_end = asyncio.Event()

    @newest_reading
    async def read(self, number: int) -> None:
        """Take as long as it takes."""
        self.begun.append(number)
        await self.may_end.wait()
        if number < 0:
            raise ValueError(number)
        self.ended.append(number)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Note an error."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.failed.append(event.worker.error)


async def test_the_newest_call_follows_the_one_at_work_and_one_that_failed() -> None:
    app, reader = App[None](), Reader()
    async with app.run_test() as pilot:
        await app.mount(reader)
        reader.read(1)
        await until(pilot, lambda: reader.begun == [1])
        for number in (2, 3, 4):
            reader.read(number)
        await pilot.pause()
        assert reader.begun == [1] and reader.ended == []
        reader.may_end.set()
        await until(pilot, lambda: reader.ended == [1, 4])
        reader.read(5)
        await until(pilot, lambda: reader.ended == [1, 4, 5])
        reader.read(-1)
        await until(pilot, lambda: bool(reader.failed))
        reader.read(2)
        await until(pilot, lambda: reader.ended == [1, 4, 5, 2])


async def test_decisions_are_shown_while_the_places_come_faster_than_they_are_read(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Readings.read
    ended: list[Any] = []

    async def slowly(readings: Readings, source: Any, document: Any) -> Any:
        if document is not followed_decisions:
            return await read(readings, source, document)
        await asyncio.sleep(0.3)
        found = await read(readings, source, document)
        ended.append(source)
        return found

    monkeypatch.setattr(Readings, "read", slowly)
    async with opened() as pilot:
        await pilot.press("2")
        await until(pilot, lambda: bool(ended))
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        ended.clear()
        while len(ended) < 3:
            before = pilot.app.bridge.snapshot().sources[0]  # type: ignore[attr-defined]
            await pilot.press("greater_than_sign" if len(ended) % 2 else "less_than_sign")
            await until(pilot, lambda: pilot.app.bridge.snapshot().sources[0] != before)  # type: ignore[attr-defined]  # noqa: B023
        await until(pilot, lambda: ended[-1] == pilot.app.bridge.snapshot().sources[0])  # type: ignore[attr-defined]


async def test_a_history_that_plays_waits_until_the_screen_shows_its_place_whole(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, show = book_curves.read_book, BookScreen._show_book
    shown: list[tuple[int, int]] = []

    async def slowly(view: Snapshot) -> Book:
        await asyncio.sleep(0.1)
        return await read(view)

    def noted(screen: BookScreen, book: Book, view: Snapshot) -> None:
        show(screen, book, view)
        bar, place = screen.desk_app.bridge.snapshot().place, view.place
        assert bar is not None and place is not None
        shown.append((bar.number, place.number))

    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("3", "left_curly_bracket")
        await arrived(pilot)
        await until(pilot, lambda: not is_reading(pilot.app))
        monkeypatch.setattr(book_curves, "read_book", slowly)
        monkeypatch.setattr(BookScreen, "_show_book", noted)
        bridge.playback.step_session(-9)
        start = (await arrived(pilot)).place
        assert start is not None
        await until(pilot, lambda: (start.number, start.number) in shown and not is_reading(pilot.app))
        shown.clear()  # a step does not wait for the reading of the place it leaves, as playing does
        bridge.playback.play(60)
        await until(pilot, lambda: not bridge.playback.place.speed and not is_reading(pilot.app))
    assert shown and [view for _, view in shown] == [bar for bar, _ in shown]
