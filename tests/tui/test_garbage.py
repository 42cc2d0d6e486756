"""Collections of garbage in the app: what survives a long one is set aside, and is collected where nobody is there."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Running

from tui import garbage
from tui.garbage import BETWEEN_KEYS, DUE, OVERDUE, QUIET, Collections, keep_collections_short


class Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


def resident() -> int:
    """Bytes of memory that this process has. Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collections]:
    """Every full collection counts as long, in a process that is then left as it was."""
    monkeypatch.setattr(garbage, "LONG", -1.0)
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "")
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL")
    usual, before = gc.get_threshold(), list(gc.callbacks)
    kept = keep_collections_short()
    assert not gc.isenabled(), "nothing is collected before the first paint"
    kept.begin()
    assert gc.isenabled()
    yield kept
    gc.callbacks[:] = before
    gc.set_threshold(*usual)
    gc.freeze()  # as tests/conftest.py has it


def test_what_survives_is_set_aside_until_nobody_presses_a_key(collections: Collections) -> None:
    cycle = Cycle()
    gone = weakref.ref(cycle)
    gc.collect()
    del cycle
    gc.collect()
    assert gone() is not None, "set aside, and not looked through again"
    collections.key_pressed(100.0)
    collections.tick(100.0 + QUIET / 2)
    assert gone() is not None
    collections.tick(101.0 + QUIET)
    assert gone() is None


def test_a_quiet_app_collects_once(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    collections.key_pressed(900.0)
    collections.tick(1000.0)
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("nothing was set aside since"))
    collections.tick(2000.0)


def test_whoever_opened_the_app_a_moment_ago_is_there(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    collected: list[float] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1.0))
    collections.tick(1000.0)
    collections.tick(1000.0 + QUIET / 2)
    assert collected == [], "no key is pressed yet, and the first will come soon"
    collections.tick(1001.0 + QUIET)
    assert len(collected) == 1


def survivors(times: int) -> None:
    """Have objects survive collections, as often as that."""
    for _ in range(times):
        gc.collect(1)


def test_what_survived_twice_is_looked_through_between_two_keys(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "LONG", float("inf"))
    gc.collect()
    collections.key_pressed(100.0)
    cycle = Cycle()
    gone = weakref.ref(cycle)
    survivors(DUE + 1)
    del cycle
    made = [[n] for n in range(10_000)]  # enough for Python to look through everything by itself
    assert made and gone() is not None, "Python does not, for it would while a key is answered"
    collections.tick(100.0 + BETWEEN_KEYS / 2)
    assert gone() is not None
    collections.tick(100.0 + 2 * BETWEEN_KEYS)
    assert gone() is None


def test_it_is_set_aside_where_one_key_follows_another(collections: Collections) -> None:
    gc.collect()
    collections.key_pressed(100.0)
    cycle = Cycle()
    gone = weakref.ref(cycle)
    survivors(OVERDUE + 1)
    before = gc.get_freeze_count()
    collections.tick(100.1)
    assert gc.get_freeze_count() > before and gc.get_count()[2] == 0
    del cycle
    gc.collect()
    assert gone() is not None
    collections.tick(101.0 + QUIET)
    assert gone() is None


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")
def test_what_is_free_goes_back_to_the_system(collections: Collections) -> None:
    """The last block stays, so that the C library gives nothing back by itself."""
    gc.collect()
    collections.key_pressed(100.0)
    pages = [bytearray(64_000) for _ in range(1_000)]
    del pages[:-1]
    before = resident()
    collections.tick(101.0 + QUIET)
    assert before - resident() > 30_000_000


def test_arrow_uses_the_memory_that_is_given_back() -> None:
    """In a process of its own: the choice is made when Arrow is loaded."""
    script = (
        "from tui.garbage import keep_collections_short; keep_collections_short(); "
        "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    )
    around = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    said = subprocess.run([sys.executable, "-c", script], env=around, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "system"


def test_what_the_app_keeps_is_set_aside_as_soon_as_it_is_there(collections: Collections) -> None:
    collections.tick(100.0, held="desk")
    screen = Cycle()
    before = gc.get_freeze_count()
    collections.tick(100.1, held="desk")
    assert gc.get_freeze_count() == before
    collections.tick(100.2, held="desk and screen")
    assert gc.get_freeze_count() > before and not any(one is screen for one in gc.get_objects())
    gone = weakref.ref(screen)
    del screen
    collections.tick(100.2 + 2 * QUIET, held="desk and screen")
    assert gone() is None


async def test_the_app_says_what_it_keeps_once_the_desk_and_each_screen_are_there(running: Running) -> None:
    class Told(Collections):
        def tick(self, now: float, held: object = None) -> None:
            if held not in told:
                told.append(held)

    told: list[object] = []
    async with running() as pilot:
        pilot.app._garbage = Told()  # type: ignore[attr-defined]
        for key, screens in (("1", 1), ("4", 2), ("1", 2), ("4", 2), ("9", 3)):
            await pilot.press(key)
            await pilot.pause(0.1)
            for _ in range(2):  # one refresh waits for a key that was pressed just now
                pilot.app._refresh_screen()  # type: ignore[attr-defined]
            assert len(told) == screens
