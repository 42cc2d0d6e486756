"""A desk at which nothing happens draws nothing, on any screen: over a slow line every byte is felt."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Running, shown, until
from textual.pilot import Pilot
from textual.widget import Widget

from tui.settings.keys import SCREENS


async def drawn(pilot: Pilot[Any], mode: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The widgets that want to be drawn while a screen is shown the same state some times more."""
    found: list[str] = []
    refresh = Widget.refresh

    def noted(widget: Widget, *regions: Any, **how: Any) -> Any:
        found.append(f"{mode}: {widget.id or type(widget).__name__}")
        return refresh(widget, *regions, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Widget, "refresh", noted)
        for _ in range(3):
            pilot.app._refresh_screen()  # type: ignore[attr-defined]
            # As where time goes on, by which a snapshot is another one each time.
            pilot.app.screen.show_view(pilot.app.snapshot())  # type: ignore[attr-defined]
            await pilot.pause(0)
    return found


@pytest.mark.parametrize("cycle", [pytest.param(False, marks=pytest.mark.slow), True], ids=["fresh", "after a cycle"])
async def test_nothing_is_drawn_where_nothing_happens(
    running: Running, monkeypatch: pytest.MonkeyPatch, cycle: bool
) -> None:
    async with running() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        if cycle:
            await pilot.press("r")
            await until(pilot, lambda: bridge.snapshot().sources[0].version == 2 and not bridge.snapshot().busy)
        found = []
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            await shown(pilot)
            # What the opening of a screen left to be done comes once; what comes every time is drawn at rest.
            for _ in range(5):
                if not (again := await drawn(pilot, mode, monkeypatch)):
                    break
            found += again
        assert found == []
