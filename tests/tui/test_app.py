"""The app by its keys: desk, cycle, backtest, decisions, sizes, errors, quitting."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import backtest_targets
import pytest
from conftest import Running, drawn, shown, until
from fake_desk import NOW, SYMBOLS, FakeDesk, asking_desk, opens
from textual.content import Content
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Input, Static

from engine.app.models.models import Gate
from engine.app.open_desk import OpenDesk
from engine.domain.order import OrderSize
from engine.errors import ConfigError
from engine.market.as_of import Market
from engine.messages.commands import ResizeOrder
from engine.messages.events import Publish
from tui.screens.confirm import ConfirmScreen
from tui.screens.desk import DeskScreen
from tui.screens.frame import FramedScreen, Layout
from tui.screens.menu import MenuScreen
from tui.screens.reading import ReadingScreen
from tui.screens.symbol_search import SymbolSearchScreen
from tui.settings.keys import KEYS
from tui.view.backtest_run import DONE, STOPPED
from tui.view.snapshot import Snapshot
from tui.view.state import Progress
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.candle_chart import CandleChart
from tui.widgets.navigation_bars import Hints
from tui.widgets.screen_bars import PAPER, ErrorBar, EventLog
from tui.widgets.table import Table


def table(pilot: Pilot[Any], name: str) -> Table:
    return pilot.app.screen.query_one(f"#{name}", Table)


async def test_the_desk_opens_with_watchlist_and_chart_and_symbols_change_by_bracket_and_by_row(
    running: Running, tmp_path: Path
) -> None:
    async with running() as pilot:
        text = drawn(pilot)
        assert PAPER in text and "no cycle yet" in text
        assert [row.key for row in table(pilot, "watchlist").rows] == ["AAA-USD", "BBB-USD", "CCC-USD"]
        chart = pilot.app.screen.query_one(CandleChart)
        assert chart.data.title == "AAA-USD 1D" and len(chart.data) == 90
        assert "press r to run the first cycle" in text
        await pilot.press("f8")
        picture = tmp_path / "images" / "paperdesk-001.svg"
        assert picture.is_file() and "PAPER" in picture.read_text(encoding="utf-8")
        screen = pilot.app.screen
        assert isinstance(screen, DeskScreen)
        await pilot.press("right_square_bracket")
        assert screen.symbol == "BBB-USD"
        await pilot.press("j")
        assert screen.symbol == "CCC-USD"
        await pilot.press("right_square_bracket")
        assert screen.symbol == "AAA-USD"
        await pilot.press("G")
        assert screen.symbol == "CCC-USD" and "CCC-USD 1D" in drawn(pilot)
        await pilot.press("g")
        assert screen.symbol == "AAA-USD"


async def test_a_cycle_streams_pauses_and_ends_in_signals(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path, pause=1)
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        screen = pilot.app.screen
        agents = screen.query_one(AgentPanes)
        await until(pilot, lambda: any(pane.progress is Progress.THINKING for pane in agents.panes))
        await pilot.press("p")
        await until(pilot, lambda: "PAUSED" in drawn(pilot))
        desk.pause = 0
        await pilot.press("p")
        await until(
            pilot, lambda: "BUY" in str(table(pilot, "watchlist").rows[0].cells[-1]) and "run done" in drawn(pilot)
        )
        panes = {pane.step: pane for pane in agents.panes}
        assert panes["news"].progress is Progress.LEFT_OUT
        assert panes["decision"].progress is Progress.ANSWERED
        await until(pilot, lambda: "101,340.00" in drawn(pilot))
        text = drawn(pilot)
        assert "[b]steadily[/b]" in text and "rules, not a language model" in text
        held = next(row for row in table(pilot, "watchlist").rows if row.key == "AAA-USD")
        assert held.cells[5].text == "120" and str(table(pilot, "watchlist").border_subtitle).startswith("value 5,340 ")


async def test_no_text_of_an_agent_has_the_screen_laid_out_anew(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running((100, 26), desk=FakeDesk(tmp_path)) as pilot:
        await shown(pilot)
        agents = pilot.app.screen.query_one(AgentPanes)
        laid_out, refresh = list[bool](), agents.refresh

        def noted(*regions: Region, layout: bool = False, **how: bool) -> AgentPanes:
            laid_out.append(layout)
            return refresh(*regions, layout=layout, **how)

        assert agents.max_scroll_y == 0
        await pilot.press("r")
        await until(pilot, lambda: "run done" in drawn(pilot) and "101,340.00" in drawn(pilot))
        await shown(pilot)
        rows = agents.virtual_size.height
        pilot.app.screen.show_view = lambda view: None  # type: ignore[attr-defined]  # which would show the answers
        monkeypatch.setattr(agents, "refresh", noted)
        agents.show_blocks([Content("a longer answer\n" * 2 * rows)])
        await until(pilot, lambda: agents.virtual_size.height > rows)
        assert laid_out and not any(laid_out)
        # All the same one scrolls to the end, and no further.
        agents.action_edge(end=True)
        await pilot.pause()
        assert agents.scroll_offset.y == agents.max_scroll_y > 0 and agents.vertical_scrollbar.position > 0


async def test_keys_are_answered_while_a_cycle_runs(running: Running, tmp_path: Path) -> None:
    async with running(desk=FakeDesk(tmp_path, pause=10, symbols=[f"S{n}-USD" for n in range(12)])) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: pilot.app.bridge.snapshot().desk.running)  # type: ignore[attr-defined]
        screen = pilot.app.screen
        assert isinstance(screen, DeskScreen)
        for n in range(10):
            symbol = screen.symbol
            await pilot.press("j" if n % 2 == 0 else "k")
            assert screen.symbol != symbol
        # Answered in the middle of the cycle, not after it; how soon is for `make bench`.
        assert pilot.app.bridge.snapshot().desk.running  # type: ignore[attr-defined]


async def test_r_answers_at_once_however_long_the_first_question_takes(running: Running, tmp_path: Path) -> None:
    class Slow(FakeDesk):
        """A desk that has much to read before its run begins."""

        read = threading.Event()

        async def run_cycle(self, publish: Publish, gate: Gate, only: str | None = None) -> None:
            await asyncio.to_thread(self.read.wait)
            await super().run_cycle(publish, gate, only)

    desk = Slow(tmp_path)
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        assert pilot.app.bridge.snapshot().starting  # type: ignore[attr-defined]
        await until(pilot, lambda: "Cycle starting 0:0" in drawn(pilot))
        await until(pilot, lambda: "press r" not in drawn(pilot) and "no cycle yet" not in drawn(pilot))
        desk.read.set()
        await until(pilot, lambda: "run done" in drawn(pilot))
        assert "starting" not in drawn(pilot)


async def test_a_cycle_that_breaks_is_a_strip_that_can_be_dismissed(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path, breaks=True)
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "the bars end on 2024-04-01" in drawn(pilot))
        await pilot.press("ctrl+t")
        await until(pilot, lambda: desk.cycles == 2)
        strip = pilot.app.screen.query_one(ErrorBar)
        await until(pilot, lambda: bool(strip.text))
        assert pilot.app.bridge.present().cycle_seconds is None  # type: ignore[attr-defined]
        await pilot.press("escape")
        assert not strip.text and not strip.display


async def test_a_market_that_comes_late_takes_the_place_of_no_later_one(running: Running, tmp_path: Path) -> None:
    class Slow(FakeDesk):
        """A desk whose second reading of the market takes until it is let go on."""

        goes_on, begun = None, 0

        async def market(self) -> Market:
            self.begun += 1
            number = self.begun
            if number == 2:
                self.goes_on = partial(asyncio.get_running_loop().call_soon_threadsafe, (event := asyncio.Event()).set)
                await event.wait()
            return replace(await super().market(), news=dict.fromkeys([*SYMBOLS, f"{number}"], ()))

    desk = Slow(tmp_path)
    async with running(desk=desk) as pilot:
        follower = pilot.app.bridge._follower  # type: ignore[attr-defined]
        desk.clock.now = lambda: NOW + timedelta(days=1)  # type: ignore[method-assign]
        await until(pilot, lambda: desk.goes_on is not None)
        await pilot.press("r")
        await until(pilot, lambda: follower.unread)
        desk.goes_on()  # type: ignore[misc]
        await until(pilot, lambda: not follower.unread and follower.version == 3)
        assert "2" not in follower.prices.news


async def test_a_refused_command_is_a_strip_until_the_next_is_carried_out(running: Running, tmp_path: Path) -> None:
    """An error of the desk stays, whatever the operator does meanwhile; of the two it alone can be repeated."""
    edit, desk = ResizeOrder("of-yesterday", OrderSize(Decimal(5))), FakeDesk(tmp_path, breaks=True)
    async with running(desk=desk) as pilot:
        bridge, strip = pilot.app.bridge, pilot.app.screen.query_one(ErrorBar)  # type: ignore[attr-defined]
        await pilot.press("p")
        await until(pilot, lambda: bridge.snapshot().controls.paused is not None)
        bridge.send(edit)
        await until(pilot, lambda: "of-yesterday" in strip.text)
        assert "ctrl+t" not in str(strip.render())
        await pilot.press("p")
        await until(pilot, lambda: not strip.text and bridge.snapshot().controls.paused is None)
        bridge.send(edit)
        await until(pilot, lambda: "of-yesterday" in strip.text)
        await pilot.press("ctrl+t")
        told = [one.message for one in pilot.app._notifications]
        assert told[-1] == "nothing to retry: no cycle failed" and desk.cycles == 0

        await pilot.press("r")
        await until(pilot, lambda: "the bars end on 2024-04-01" in strip.text)
        bridge.send(edit)
        await until(pilot, lambda: "of-yesterday" in bridge.snapshot().desk.refusal)
        assert "the bars end on 2024-04-01" in strip.text, "the desk's own error comes first"
        assert "ctrl+t try again" in str(strip.render())
        await pilot.press("escape")
        await until(pilot, lambda: "of-yesterday" in strip.text)
        await pilot.press("escape")
        await until(pilot, lambda: not strip.text)
        bridge.send(edit)
        await until(pilot, lambda: "of-yesterday" in strip.text)
        await pilot.press("p")
        await until(pilot, lambda: not strip.text)


async def test_a_desk_that_does_not_open_says_why_and_opens_on_retry(running: Running, tmp_path: Path) -> None:
    attempts: list[int] = []

    def open_desk() -> FakeDesk:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConfigError("config.toml: unknown key desk.symbol; did you mean symbols?")
        return FakeDesk(tmp_path)

    async with running(open_desk=open_desk) as pilot:
        await until(pilot, lambda: "did you mean symbols?" in drawn(pilot))
        assert PAPER in drawn(pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: len(table(pilot, "watchlist").rows) == 3)
        assert not pilot.app.screen.query_one(ErrorBar).display


async def test_closes_that_cannot_be_kept_are_warned_of_once_and_tried_again(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(FakeDesk):
        attempts = 0

        async def bring_closes(self) -> int | None:
            self.attempts += 1
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tui.desk.desk_follower.AGAIN_SECONDS", 0.01)
    desk = Full(tmp_path)
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: desk.attempts > 3)
        log = pilot.app.screen.query_one(EventLog)
        await until(pilot, lambda: "No space left" in log.as_text())
        assert log.as_text().count("latest closes unavailable: ") == 1
        assert not pilot.app.screen.query_one(ErrorBar).text


async def test_a_key_that_comes_while_the_desk_opens_is_kept(running: Running, tmp_path: Path) -> None:
    desk, pressed = FakeDesk(tmp_path), threading.Event()

    def open_desk() -> FakeDesk:
        assert pressed.wait(600)
        return desk

    async with running(open_desk=open_desk) as pilot:
        await pilot.press("r")
        assert desk.cycles == 0
        await pilot.press("x")
        notes = [str(note.message) for note in pilot.app._notifications]
        assert "the desk is still opening" in notes and not any("no order" in note for note in notes)
        pressed.set()
        await until(pilot, lambda: "run done" in drawn(pilot))
        assert desk.cycles == 1


async def test_panes_say_that_the_desk_opens_until_they_know_it(running: Running, tmp_path: Path) -> None:
    told = threading.Event()

    def open_desk() -> FakeDesk:
        assert told.wait(600)
        return asking_desk(tmp_path)

    def empty(*names: str) -> set[str]:
        return {table(pilot, name).empty_text for name in names}

    async with running((160, 48), open_desk=open_desk) as pilot:
        events = pilot.app.screen.query_one(EventLog)
        await until(pilot, lambda: "opening the desk" in str(events.content))
        assert empty("watchlist", "orders") == {"opening the desk"}
        assert "No decision yet" not in drawn(pilot)
        await pilot.press("3")
        await until(pilot, lambda: pilot.app.current_mode == "book")
        assert empty("book-positions", "blotter", "flows") == {"opening the desk"}
        told.set()
        await until(pilot, lambda: len(table(pilot, "blotter").rows) == 3)
        assert empty("book-positions") == {"nothing is held"}
        await pilot.press("1")
        await until(pilot, lambda: len(table(pilot, "orders").rows) == 3)
        await until(pilot, lambda: "opening" not in str(events.content))


async def test_a_journal_that_cannot_be_read_is_said_and_the_market_shows(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    desk.journal.write_bytes(b"this is no journal, whatever its name says")
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: "is not a journal" in drawn(pilot))
        assert len(table(pilot, "watchlist").rows) == 3


async def test_a_bug_in_the_desk_is_a_line_too(running: Running) -> None:
    def open_desk() -> FakeDesk:
        raise ZeroDivisionError("division by zero")

    async with running(open_desk=open_desk) as pilot:
        await until(pilot, lambda: "a bug: ZeroDivisionError" in drawn(pilot))


async def test_zoom_shows_one_pane_and_tab_walks_them(running: Running) -> None:
    async with running() as pilot:
        screen = pilot.app.screen
        await pilot.press("tab", "z")
        assert screen.query_one("#chart").display and not screen.query_one("#watchlist").display
        assert "tab next pane" in drawn(pilot)
        await pilot.press("tab")
        assert screen.query_one("#agents").display and not screen.query_one("#chart").display
        await pilot.press("escape")
        assert all(screen.query_one(f"#{name}").display for name in ("watchlist", "chart", "agents", "orders"))


@pytest.mark.parametrize(
    ("size", "form"),
    [
        ((160, 50), Layout.WIDE),
        pytest.param((80, 24), Layout.NARROW, marks=pytest.mark.slow),
        pytest.param((60, 15), Layout.SINGLE, marks=pytest.mark.slow),
        pytest.param((10, 3), Layout.LINE, marks=pytest.mark.slow),
        pytest.param((120, 40), Layout.USUAL, marks=pytest.mark.slow),
        pytest.param((79, 24), Layout.SINGLE, marks=pytest.mark.slow),
        pytest.param((39, 9), Layout.LINE, marks=pytest.mark.slow),
        ((30, 8), Layout.LINE),
    ],
)
async def test_every_size_has_its_layout_and_paper_on_it(running: Running, size: tuple[int, int], form: Layout) -> None:
    async with running(size) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, FramedScreen) and screen.form is form
        assert "PAPER" in drawn(pilot)
        for mode in ("2", "4", "1"):
            await pilot.press(mode)
            await shown(pilot)
            assert "PAPER" in drawn(pilot)
            assert ("tab next pane" in drawn(pilot)) is (form is Layout.SINGLE)
            if form is not Layout.LINE or size[1] > 3:
                told = " ".join(drawn(pilot).split())
                assert ("needs 40 columns and 10 rows q quits" in told) is (form is Layout.LINE)
        # Nothing is decided: a wide screen gives the room to the chart, and then a column to the decision.
        chart, agents = screen.query_one("#chart"), screen.query_one("#agents")
        if form is Layout.WIDE:
            assert agents.region.y > chart.region.y
            await pilot.press("r")
            await until(pilot, lambda: agents.region.y == chart.region.y and agents.region.x > chart.region.x)


async def test_resizing_while_a_cycle_runs_never_breaks_it(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path, pause=1)
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        for size in ((80, 24), (30, 8), (10, 3), (200, 60), (1, 1), (60, 15), (100, 20), (120, 40)):
            await pilot.resize_terminal(*size)
        desk.pause = 0
        await until(pilot, lambda: "run done" in drawn(pilot))


async def test_a_backtest_runs_beside_and_ends_in_results(running: Running) -> None:
    async with running() as pilot:
        await pilot.press("4")
        await until(pilot, lambda: pilot.app.screen.query_one("#field-symbols", Input).value == "AAA-USD,BBB-USD")
        await pilot.press("ctrl+r")
        await until(
            pilot,
            lambda: "done" in drawn(pilot) and "12/12" in drawn(pilot) and len(table(pilot, "results").rows) == 2,
        )
        rows = table(pilot, "results").rows
        assert [row.key for row in rows] == ["finvision 1", "finvision 1\nbuy-and-hold"]
        assert [cell.text for cell in rows[0].cells[1:4]] == ["+1.2%", "1.25", "-3.4%"]
        await until(pilot, lambda: "buy-and-hold 100,440" in drawn(pilot))


async def test_a_field_whose_text_goes_on_says_so_until_it_is_edited(running: Running) -> None:
    async with running((80, 24)) as pilot:
        await pilot.press("4")
        field = pilot.app.screen.query_one("#field-symbols", Input)
        await until(pilot, lambda: field.value == "AAA-USD,BBB-USD")
        await until(pilot, lambda: field.render_line(0).text.rstrip().endswith("…"))
        assert field.value.startswith(field.render_line(0).text.rstrip()[:-1])
        await pilot.press("e")
        await until(pilot, lambda: field.has_focus and "…" not in field.render_line(0).text)


async def test_keys_are_answered_while_a_backtest_runs_and_x_stops_it(running: Running) -> None:
    async with running(target=backtest_targets.slow) as pilot:
        await pilot.press("4", "ctrl+r")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]

        def state() -> Snapshot:
            return bridge.snapshot()  # type: ignore[no-any-return]

        await until(pilot, lambda: state().backtests[0].done > 2)
        hints = pilot.app.screen.query_one(Hints)
        await until(pilot, lambda: str(hints.render()).startswith("x stop"))
        await pilot.press("1", "j")
        assert isinstance(pilot.app.screen, DeskScreen) and pilot.app.screen.symbol == "BBB-USD"
        await pilot.press("4", "ctrl+r")
        assert len(state().backtests) == 1
        await pilot.press("x")
        await until(pilot, lambda: state().backtests[0].status == "stopped")
        await until(pilot, lambda: "stopped" in drawn(pilot) and "x stop" not in str(hints.render()))


async def test_the_form_says_what_is_wrong_beside_the_field(running: Running) -> None:
    async with running() as pilot:
        await pilot.press("4", "e")
        screen = pilot.app.screen
        decides = screen.query_one("#field-decides", Input)
        await until(pilot, lambda: bool(decides.value))
        decides.value = "finvison"
        screen.query_one("#field-last", Input).value = "2024-13-01"
        await pilot.pause()
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert str(screen.query_one("#wrong-decides", Static).content).endswith("did you mean finvision?")
        assert "write a day as" in drawn(pilot)
        assert screen.focused is screen.query_one("#field-last", Input)
        assert not pilot.app.bridge.snapshot().backtests  # type: ignore[attr-defined]
        await pilot.press("1", "x", "q")
        assert "1xq" in screen.query_one("#field-last", Input).value


async def test_a_backtest_that_fails_says_so(running: Running) -> None:
    async with running(target=backtest_targets.fails) as pilot:
        await pilot.press("4", "ctrl+r")
        await until(pilot, lambda: "the bars end on 2024-02-01" in drawn(pilot))
        await until(pilot, lambda: "as others do" in drawn(pilot).replace("│", ""))


async def test_decisions_of_a_desk_that_never_ran_say_how_to_begin(running: Running) -> None:
    async with running() as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "no decision yet" in drawn(pilot))
        assert "enter trail" not in drawn(pilot)
        await pilot.press("4")
        await until(pilot, lambda: "ctrl+r start" in drawn(pilot))
        assert "c compare" not in drawn(pilot)
        await pilot.press("c")
        await until(pilot, lambda: any("mark another" in str(one.message) for one in pilot.app._notifications))
        await pilot.press("1", "d")
        await until(pilot, lambda: "run a cycle first" in drawn(pilot))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, DeskScreen)


async def test_the_menu_has_what_works_here_does_what_is_chosen_and_log_opens(running: Running) -> None:
    async with running((120, 60)) as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, MenuScreen))
        entries = {row.key: row.cells[1].text for row in pilot.app.screen.query_one(Table).rows}
        assert {"desk.run", "desk.pause", "chart.zoom-in"} <= set(entries)
        assert {"desk.approve", "past.present", "backtest.start", "moved.6"}.isdisjoint(entries)
        assert all(entries[key.id] == key.meaning for key in KEYS if key.id in entries)
        pilot.app.screen.query_one(Table).point_at("screen.lab")
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.current_mode == "lab")
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, MenuScreen))
        assert "backtest.start" in {row.key for row in pilot.app.screen.query_one(Table).rows}
        await pilot.press("escape", "grave_accent")
        assert isinstance(pilot.app.screen, ReadingScreen)


async def test_keys_of_screens_that_moved_say_where_to_and_nothing_is_said_a_third_time(running: Running) -> None:
    async with running() as pilot:
        for key, where in (("6", "Ops (5)"), ("7", "Lab (4)"), ("8", "Lab (4)"), ("9", "Ops is 5")):
            for _ in range(2):
                await pilot.press(key)
                assert [where in one.message for one in pilot.app._notifications] == [True]
                pilot.app.clear_notifications()
            await pilot.press(key)
            assert not list(pilot.app._notifications)
        assert pilot.app.current_mode == "desk"


async def test_plain_characters_are_enough(running: Running) -> None:
    async with running(plain=True) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "run done" in drawn(pilot))
        for key in ("2", "4", "1"):
            await pilot.press(key)
            await shown(pilot)
            assert drawn(pilot).isascii(), {c for c in drawn(pilot) if not c.isascii()}
        pilot.app.screen.query_one("#orders", Table).entitle("日本, in a title that does not fit " * 2)
        await until(pilot, lambda: "+- ????, in a title" in drawn(pilot))
        assert drawn(pilot).isascii()


async def test_quitting_waits_neither_for_a_cycle_nor_for_a_backtest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.app.app import PaperdeskApp

    monkeypatch.setattr("tui.app.app.LEAVE_WITHIN", 60)
    app = PaperdeskApp(opens(FakeDesk(tmp_path, pause=3600)), backtest_targets.deaf, images=tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.bridge.snapshot().opened is not None)
        await pilot.press("r", "4", "ctrl+r")
        await until(pilot, lambda: app.bridge.snapshot().busy and len(app.bridge.snapshot().backtests) == 1)
        await pilot.press("q")
        assert isinstance(app.screen, ConfirmScreen), "a backtest would end"
        await pilot.press("y")
        await until(pilot, lambda: not app._running)
    assert app.return_value == ""


async def test_an_app_that_was_left_before_its_engine_was_there_opens_no_desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.app.app import AFTER_FIRST_PAINT, PaperdeskApp

    there, opened, ended = threading.Event(), list[str](), list[object]()

    def late(name: str) -> object:
        if name in AFTER_FIRST_PAINT:
            there.wait()
        return import_module(name)

    def open_desk() -> OpenDesk:
        opened.append("desk")
        raise ConfigError("there is none")

    monkeypatch.setattr("tui.app.app.import_module", late)
    app = PaperdeskApp(open_desk, backtest_targets.deaf, images=tmp_path)
    async with app.run_test() as pilot:
        with monkeypatch.context() as staying:
            staying.setattr(app, "exit", ended.append)
            await pilot.press("ctrl+q")
            await until(pilot, lambda: bool(ended))
            there.set()
            await until(pilot, lambda: all(worker.is_finished for worker in app.workers))
        app.exit("")
    assert not opened and ended == [""]


async def test_a_search_before_the_desk_is_open_finds_what_it_knows_then(tmp_path: Path) -> None:
    from tui.app.app import PaperdeskApp

    there, desk = threading.Event(), FakeDesk(tmp_path)

    def late() -> OpenDesk:
        there.wait()
        return opens(desk)()

    app = PaperdeskApp(late, backtest_targets.deaf, images=tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app._begun)
        await pilot.press("S")
        await until(pilot, lambda: isinstance(app.screen, SymbolSearchScreen))
        assert not app.screen.query_one(Table).rows
        there.set()
        await until(pilot, lambda: len(app.screen.query_one(Table).rows) == len(desk.symbols))
        app.bridge.stop()
        assert app.bridge.wait(60)


async def test_a_screen_that_is_opened_while_the_desk_opens_shows_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.app.app import PaperdeskApp
    from tui.desk.desk_follower import DeskFollower

    read, there, greet = threading.Event(), threading.Event(), DeskFollower._greet

    async def late(follower: DeskFollower, *values: Any) -> None:
        read.set()
        await asyncio.to_thread(there.wait)
        await greet(follower, *values)

    monkeypatch.setattr(DeskFollower, "_greet", late)
    app = PaperdeskApp(opens(FakeDesk(tmp_path)), backtest_targets.deaf, images=tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, read.is_set)
        await pilot.press("z")
        await until(pilot, lambda: not app.screen.query_one("#watchlist").display)
        for _ in range(5):
            app._refresh_screen()
            await pilot.pause()
        there.set()
        await until(pilot, lambda: bool(len(app.screen.query_one(CandleChart).data)))
        assert not any("bug" in note.message for note in app._notifications) and not app.screen.query_one(ErrorBar).text
        app.bridge.stop()
        assert app.bridge.wait(60)


async def test_without_colour_a_curve_that_fills_less_than_its_pane_is_drawn(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as pilot:
        for key in ("2", "4", "7", "8", "1"):
            await pilot.press(key)
            assert pilot.app.screen._compositor.render_strips()


async def test_a_backtest_may_begin_as_soon_as_the_one_before_it_has_its_result(running: Running) -> None:
    async with running(target=backtest_targets.lingers) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("4", "ctrl+r")
        await until(pilot, lambda: bridge.present().backtests[-1].error == "the result is known")
        await pilot.press("ctrl+r")
        first, second = bridge.present().backtests
        assert second.running
        bridge.go_on(first.spec.run)
        await until(pilot, lambda: bridge.present().backtests[-1].error == "the result is known")
        bridge.go_on(second.spec.run)


async def test_trades_are_shown_with_the_result_that_comes_after_the_end(running: Running) -> None:
    async with running(target=backtest_targets.holds_result) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("4", "v", "v", "ctrl+r")
        await until(pilot, lambda: [one.status for one in bridge.present().backtests] == [DONE])
        await until(pilot, lambda: "known at the end of the run" in drawn(pilot))
        bridge.go_on(bridge.present().backtests[-1].spec.run)
        await until(pilot, lambda: "no trades" in drawn(pilot))


async def test_a_paid_backtest_asks_before_it_begins_and_again_before_it_goes_on(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(target=backtest_targets.asks) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]

        def asked() -> bool:
            page = pilot.app.screen
            return isinstance(page, ConfirmScreen) and any(
                "It may cost" in str(one.content) for one in page.query(Static)
            )

        def newest() -> Any:
            return bridge.present().backtests[-1]

        await pilot.press("4", "ctrl+r", "question_mark")
        await until(pilot, lambda: bool(newest().question))
        await shown(pilot)
        assert isinstance(pilot.app.screen, MenuScreen)  # its keys are no answer
        await pilot.press("escape")
        await until(pilot, asked)
        await pilot.press("escape")
        await until(pilot, lambda: newest().status == STOPPED)
        first = newest().spec
        monkeypatch.setattr("engine.app.research.backtest.recorded_spec", lambda run: first)
        await pilot.press("ctrl+r")  # another one meanwhile, which is not the one that goes on
        await until(pilot, asked)
        await pilot.press("y")
        await until(pilot, lambda: newest().error == "begun")
        table = pilot.app.screen.query_one("#results", Table)
        await pilot.press("j")
        assert table.cursor_key == "finvision 1"
        await pilot.press("o")
        await until(pilot, asked)
        await pilot.press("y")
        await until(pilot, lambda: (newest().spec.run, newest().error) == (first.run, "resumed"))
