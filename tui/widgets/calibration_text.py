"""Owners and agents against what followed as rows, and the stated confidence of one of them as bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from textual.content import Content

from engine.domain.text import counted
from tui.text.owners_text import JUDGED, MEANINGS, judged
from tui.widgets.agent_panes import MUTED
from tui.widgets.table import Row, rows_of

Document = Mapping[str, Any]
Part = str | tuple[str, str]
BAR = 20
"""Columns of a bar that stands for certainty."""

EXPLAINED = Content("\n").join(Content.assemble((f"{name:<11}", MUTED), meaning) for name, meaning in MEANINGS.items())
"""The columns, a line each."""


def rows(document: Document) -> dict[Row, Document]:
    """A row for each owner and agent after each horizon, with what the document has of it."""
    found = judged(document)
    return dict(zip(rows_of(JUDGED, found, lambda one: f"{one['who']}|{one['sessions']}"), found, strict=True))


def bands(who: str, after: Document, *, plain: bool) -> Content:
    """The stated confidence of one owner against what happened, a bar of each in every band."""
    stated = after.get("calibration")
    if not stated:
        why = "states no confidence" if "calibration" in after else "reports a side, and no confidence"
        return Content.styled(f"{who} {why}: how often it was right stands in the row.", MUTED)
    return Content.assemble(*_bands(who, after["sessions"], stated, "#" if plain else "█"))


def _bands(who: str, sessions: int, stated: Document, mark: str) -> Iterator[Part]:
    yield f"{who}, {stated['n']} judged after {counted(sessions, 'session')}\n", "bold"
    for band in stated["bands"]:
        yield f"\n{band['low']:.1f} to {band['high']:.1f}  {band['n']} judged\n"
        for name, share, ink in (("stated", band["confidence"], MUTED), ("right", band["hit_rate"], "$primary")):
            yield f"  {name:<7}{share * 100:>4.0f} %  "
            yield f"{mark * round(share * BAR)}\n", ink
