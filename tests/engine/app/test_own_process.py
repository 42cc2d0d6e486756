"""Work in another process: its events, its result, its errors, and its end whenever nobody waits for it any more."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from engine.app.records import own_process
from engine.app.records.own_process import in_own_process
from engine.errors import DeskHalted, InvariantBroken, TryAgainLater
from engine.messages.events import Event


@pytest.fixture(scope="module")
def work() -> Iterator[ModuleType]:
    """The work under a name that the other process, which gets our path, can import too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield importlib.import_module("own_process_work")


async def test_events_come_in_their_order_and_then_the_result(work: ModuleType) -> None:
    heard: list[Event] = []
    assert await in_own_process(work.counts, heard.append, "work") != os.getpid()
    assert [event.text for event in heard] == ["0", "1", "2"]  # type: ignore[attr-defined]


async def test_an_error_keeps_its_kind_and_its_line(work: ModuleType) -> None:
    with pytest.raises(DeskHalted, match="the books disagree"):
        await in_own_process(work.disagrees, lambda event: None, "work")
    with pytest.raises(InvariantBroken, match="ValueError: seven"):
        await in_own_process(work.has_a_bug, lambda event: None, "work")


async def test_a_process_that_ends_without_a_result_is_said(work: ModuleType) -> None:
    with pytest.raises(TryAgainLater, match="9"):
        await in_own_process(work.dies, lambda event: None, "work")


@pytest.mark.parametrize("name", ["waits", "deaf"])
async def test_cancelled_work_ends_by_itself_or_is_ended(
    work: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    told, began = tmp_path / "told", asyncio.Event()
    monkeypatch.setattr(own_process, "GRACE", 600.0 if name == "waits" else 0.0)
    task = asyncio.create_task(in_own_process(partial(getattr(work, name), told), lambda event: began.set(), "work"))
    await began.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    if name == "waits":
        assert told.read_text() == "cancelled"
        return
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
