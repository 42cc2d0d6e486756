"""The last visit to a desk, kept between two openings of the app, and the line that says what changed since."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.domain.text import counted
from engine.reports import amounts
from tui.settings import app_state

if TYPE_CHECKING:
    from engine.reports.documents.opening import Changes
    from tui.view.desk_port import Source

LAST_SEEN = "last visits"
"""The part of the app's state that has them, by desk."""
TOUR = "tour"
"""The part that has whether the tour was offered."""


class Visit(NamedTuple):
    """The last event of the journal that was on the screen, and the moment by the desk's clock, UTC."""

    event: int
    time: datetime


def last_visit(desk: str) -> Visit | None:
    """The last visit to a desk; None before the first."""
    kept: Any = app_state.section(LAST_SEEN).get(desk)
    with suppress(TypeError, ValueError, KeyError):
        return Visit(int(kept["event"]), datetime.fromisoformat(kept["time"]))
    return None


def keep_visit(desk: str, visit: Visit) -> None:
    """Keep a visit for the next opening."""
    app_state.keep(LAST_SEEN, {desk: {"event": visit.event, "time": visit.time.isoformat()}})


TOUR_OFFER = "new here? ^p, Tour: the desk in six steps"
"""The line of a demo desk before the first visit."""


def is_first_start() -> bool:
    """True once: where the tour was not offered before."""
    if app_state.section(TOUR):
        return False
    app_state.keep(TOUR, {"offered": True})
    return True


def greeting(source: Source, visit: Visit) -> str:
    """`since your last visit (2026-11-20 21:05): 2 decisions, 1 fill, +0.40%`; empty where nothing changed. Raises what
    JournalReader raises."""
    from engine.reports.documents.opening import changes_since

    found = source.read(partial(changes_since, event=visit.event))
    return "" if found is None else f"{greeted_since(visit)} {_words(found)}"


def greeted_since(visit: Visit) -> str:
    """The beginning of every greeting since a visit."""
    return f"since your last visit ({visit.time:%Y-%m-%d %H:%M}):"


def _words(found: Changes) -> str:
    words = [counted(count, noun) for count, noun in ((found.decisions, "decision"), (found.fills, "fill")) if count]
    return ", ".join([*words, *([] if found.change is None else [amounts.percent(found.change)])])
