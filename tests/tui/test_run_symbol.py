"""The key that has one symbol decided alone, on the desk and on the chart; paid models are asked about first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conftest import Running, until
from fake_desk import FakeDesk
from textual.pilot import Pilot

from tui.screens.confirm import ConfirmScreen
from tui.widgets.screen_bars import ErrorBar, StatusBar


def log(pilot: Pilot[Any]) -> list[str]:
    return [line.text for line in pilot.app.bridge.snapshot().desk.lines]  # type: ignore[attr-defined]


async def test_c_has_the_symbol_that_is_shown_decided_alone(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    async with running(desk=desk) as pilot:
        await pilot.press("C")
        await until(pilot, lambda: "run done" in log(pilot))
        assert desk.asked == ["AAA-USD"] and "run of AAA-USD alone begins" in log(pilot)
        assert pilot.app.last_command == "paperdesk --daily --symbol AAA-USD"  # type: ignore[attr-defined]
        await pilot.press("z", "right_square_bracket", "C")
        await until(pilot, lambda: desk.asked == ["AAA-USD", "BBB-USD"])
        await until(pilot, lambda: not pilot.app.bridge.snapshot().busy)  # type: ignore[attr-defined]
        commands = [one.title for one in pilot.app.get_system_commands(pilot.app.screen)]
        assert "Run a cycle for this symbol alone" in commands

        await pilot.press("left_curly_bracket", "C")
        told = [one.message for one in pilot.app._notifications]
        assert told[-1].startswith("the past is read-only") and len(desk.asked) == 2
        commands = [one.title for one in pilot.app.get_system_commands(pilot.app.screen)]
        assert "Run a cycle for this symbol alone" not in commands


async def test_models_that_may_cost_are_asked_for_first_and_a_failure_is_tried_again_for_the_same_symbol(
    running: Running, tmp_path: Path
) -> None:
    desk = FakeDesk(tmp_path, breaks=True)
    desk.label = "gpt-5.2 by openai"
    async with running(desk=desk) as pilot:
        for answer, asked in (("escape", []), ("y", ["AAA-USD"])):
            await pilot.press("C")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
            texts = [str(one.render()) for one in pilot.app.screen.query("Static")]
            assert any("AAA-USD will be decided alone by gpt-5.2 by openai" in text for text in texts), texts
            assert any("Models may cost $5.00 a day" in text for text in texts), texts
            await pilot.press(answer)
            await until(pilot, lambda: not isinstance(pilot.app.screen, ConfirmScreen))
            await until(pilot, lambda asked=asked: desk.asked == asked)  # type: ignore[misc]
        await until(pilot, lambda: "the bars end on" in pilot.app.screen.query_one(ErrorBar).text)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: desk.asked == ["AAA-USD", "AAA-USD"])


async def test_r_says_who_is_asked_and_what_that_may_cost_and_stands_in_nobodys_way(
    running: Running, tmp_path: Path
) -> None:
    desk = FakeDesk(tmp_path)
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "run done" in log(pilot))
        assert not any("may cost" in one.message for one in pilot.app._notifications)
        await until(pilot, lambda: "Models free" in pilot.app.screen.query_one(StatusBar).render_line(0).text)
    desk = FakeDesk(tmp_path)
    desk.label = "gpt-5.2 by openai"
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        assert not isinstance(pilot.app.screen, ConfirmScreen)
        told = [one.message for one in pilot.app._notifications]
        assert told == [
            "gpt-5.2 by openai is asked about 3 symbols. Models may cost $5.00 a day.\nsame as: paperdesk --daily"
        ]
        await until(pilot, lambda: "run done" in log(pilot))
        await until(pilot, lambda: "Models $0.00" in pilot.app.screen.query_one(StatusBar).render_line(0).text)
