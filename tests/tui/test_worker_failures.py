"""An exception of a worker is told in a line and in the log, whatever screen or dialog began it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, until
from fake_desk import FakeDesk

from engine.errors import StaleData
from engine.journal.writer import JournalWriter
from tui.desk.readings import Readings


def breaking(error: Exception) -> Callable[..., Any]:
    """A method of the bridge that raises."""

    async def method(*_: Any) -> None:
        raise error

    return method


@pytest.mark.parametrize(
    ("keys", "method", "error", "told"),
    [
        (("S",), "symbols", ZeroDivisionError("[b]none[/b] left"), "a bug: ZeroDivisionError: [b]none[/b] left"),
        (("o", "5"), "forecast", KeyError("AAA-USD"), "a bug: KeyError: 'AAA-USD'"),
        (("d",), "read", RuntimeError("no trail"), "a bug: RuntimeError: no trail"),
        (
            ("2",),
            "read",
            ExceptionGroup("two", [StaleData("old")]),
            "a bug: ExceptionGroup: two (1 sub-exception)",
        ),
    ],
)
async def test_what_a_worker_fails_with_is_told(
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    keys: Sequence[str],
    method: str,
    error: Exception,
    told: str,
) -> None:
    desk = FakeDesk(tmp_path)
    JournalWriter(desk.journal).close()
    monkeypatch.setattr(Readings, method, breaking(error))
    async with running(desk=desk) as pilot:
        await pilot.press(*keys)
        await until(pilot, lambda: any(one.message == told for one in pilot.app._notifications))
        view = pilot.app.bridge.snapshot()  # type: ignore[attr-defined]
        # The Desk's curve and its card may read what fails too, once each.
        levels = [line.level for line in view.desk.lines if line.text == told]
        assert {*levels} == {"error"} and len(levels) <= 3
        pilot.app.bridge._failures = ()  # type: ignore[attr-defined]
