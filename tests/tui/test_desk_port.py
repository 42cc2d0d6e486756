"""What screens can reach of the desk: values, and a port of a few questions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conftest import Running
from fake_desk import FakeDesk

from engine.journal.writer import JournalWriter
from tui.desk.bridge import Bridge
from tui.view.desk_port import DeskPort


def parts(value: Any) -> Iterator[Any]:
    """What a value has in it, or under names that are not private."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif type(value).__module__.partition(".")[0] in ("tui", "engine"):
        yield from (getattr(value, name, None) for name in dir(value) if not name.startswith("_"))


def reached(start: Any) -> list[Any]:
    """All that a value leads to."""
    found, left = [], [start]
    seen = set[int]()
    while left:
        value = left.pop()
        if id(value) not in seen and not inspect.isroutine(value) and not inspect.isclass(value):
            seen.add(id(value))
            found.append(value)  # which keeps its id its own
            left += parts(value)
    return found


async def test_neither_a_snapshot_nor_the_bridge_leads_to_the_desk(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    JournalWriter(desk.journal).close()
    async with running(desk=desk) as pilot:
        bridge: Bridge = pilot.app.bridge  # type: ignore[attr-defined]
        present = bridge.present()
        assert bridge.to_past() == ""
        found = reached([present, bridge.snapshot(), bridge])
        assert any(isinstance(one, Path) and one == desk.journal for one in found), "the walk comes this far"
        assert not any(isinstance(one, FakeDesk) for one in found)


def test_the_port_has_ten_questions_at_most() -> None:
    asked = [name for name, _ in inspect.getmembers(DeskPort, inspect.isfunction) if not name.startswith("_")]
    assert 8 <= len(asked) <= 10, asked
