"""Owners and agents against what followed as rows, and the stated confidence of one of them as bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from textual.content import Content

from engine.domain.text import counted
from tui.owners_text import MEANINGS
from tui.plain_text import one_line
from tui.widgets.agent_panes import MUTED
from tui.widgets.table import Cell, Column, Row

Document = Mapping[str, Any]
Part = str | tuple[str, str]
BAR = 20
"""Columns of a bar that stands for certainty."""

COLUMNS = (
    Column("WHO", max_width=32),
    Column("AFTER", form=str),
    Column("JUDGED", form=str),
    Column("RIGHT%", form=str),
    Column("95%", form=str, drop_order=4),
    Column("STATED%", form=str, drop_order=1),
    Column("BRIER", form=str, drop_order=2),
    Column("SLUGGING", form=str, drop_order=5),
    Column("RANK", form=str, drop_order=6),
    Column("BEFORE%", form=str, drop_order=7),
    Column("ALL", form=str, drop_order=3),
    Column("ABSTAINED", form=str, drop_order=3),
)

EXPLAINED = Content("\n").join(Content.assemble((f"{name:<11}", MUTED), meaning) for name, meaning in MEANINGS.items())
"""The columns, a line each."""


def rows(document: Document) -> dict[Row, Document]:
    """A row for each owner and agent after each horizon, with what the document has of it."""
    found: dict[Row, Document] = {}
    for owner, own in document["per_owner"].items():
        for after in own["horizons"]:
            found[_owner(owner, own, after)] = after
    several = len({one["owner"] for one in document["per_agent"]}) > 1
    for one in document["per_agent"]:
        name = f"{one['owner']}: {one['agent']}" if several else one["agent"]
        for after in one["horizons"]:
            found[_row(name, after, all_of=one["reports"], abstained=None)] = after
    return found


def _owner(owner: str, own: Document, after: Document) -> Row:
    return _row(owner, after, all_of=own["opinions"], abstained=own["abstentions"])


def _row(who: str, after: Document, *, all_of: int, abstained: int | None) -> Row:
    stated, before = after.get("calibration") or {}, after.get("before_debate") or {}
    low, high = after["hit_interval"]
    return Row(
        f"{who}|{after['sessions']}",
        (
            Cell(one_line(who), "strong"),
            Cell(f"+{after['sessions']}", order=after["sessions"]),
            Cell(f"{after['n']:,}", order=after["n"]),
            _share(after["hit_rate"]),
            Cell("-" if low is None or high is None else f"{low * 100:.0f}-{high * 100:.0f}", "muted"),
            _share(stated.get("confidence")),
            _figure(stated.get("brier")),
            _figure(after.get("slugging")),
            _figure(after.get("rank_correlation"), "+"),
            _share(before.get("hit_rate")),
            Cell(f"{all_of:,}", "muted", all_of),
            Cell("-" if abstained is None else f"{abstained:,}", "warn" if abstained else "muted", abstained),
        ),
    )


def _share(fraction: float | None) -> Cell:
    return Cell("-" if fraction is None else f"{fraction * 100:.0f}", order=fraction)


def _figure(figure: float | None, sign: str = "") -> Cell:
    return Cell("-" if figure is None else f"{figure:{sign}.2f}", "muted", figure)


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
