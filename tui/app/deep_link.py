"""A place of the app as a text: SYMBOL@SESSION, and after # the part of the app that shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from engine.errors import UsageError
from tui.settings.keys import AGENTS, CHART, DESK, MEMORY

if TYPE_CHECKING:
    from tui.view.desk_port import Source

TRAIL = "why"
PARTS = {TRAIL: DESK, "desk": DESK, "chart": CHART, "agents": AGENTS, "memory": MEMORY}
"""Parts by their names in a text, each with the mode of the screen that shows it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A place: the decision for a symbol after a session, and a part of the app. `source` is the record that holds the
    decision, None before it is looked up."""

    symbol: str
    session: date
    part: str = TRAIL
    source: Source | None = None

    def within(self, source: Source, symbol: str) -> Link:
        """The place in a record, by the symbol as it stands there."""
        return replace(self, source=source, symbol=symbol)


def link_of(text: str) -> Link:
    """The place that a text names. Raises UsageError that says how one is written."""
    place, _, part = text.partition("#")
    symbol, at, session = place.rpartition("@")
    if not at or not symbol:
        raise UsageError(f"{text}: a place is written SYMBOL@SESSION[#PART], such as NVDA@2026-11-20#chart")
    if part and part not in PARTS:
        raise UsageError(f"{text}: there is no part {part}; there are {', '.join(PARTS)}")
    try:
        return Link(symbol, date.fromisoformat(session), part or TRAIL)
    except ValueError:
        raise UsageError(f"{text}: {session or 'nothing'} is no date; write it as 2026-11-20") from None
