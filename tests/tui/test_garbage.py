"""Collections of garbage in the app: what survives a long one is set aside, and is collected where nobody is there."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from tui import garbage
from tui.garbage import QUIET, Collections, keep_collections_short


class Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collections]:
    """Every full collection counts as long, in a process that is then left as it was."""
    monkeypatch.setattr(garbage, "LONG", -1.0)
    usual, before = gc.get_threshold(), list(gc.callbacks)
    yield keep_collections_short()
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
