"""The skill of owners and agents, as `paperdesk decisions --owners` and the Why screen show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from engine.reports.amounts import between, ratio
from engine.reports.table import Column, count, warn_ink
from tui.text.console import NONE_FITS
from tui.text.plain_text import Line, facts, table, table_of

Row = Mapping[str, Any]

MEANINGS = {
    "AFTER": "sessions after the one that was decided, at whose close an opinion is judged",
    "JUDGED": "opinions that took a side and whose outcome is known",
    "RIGHT%": "the share of them that were right (hit rate)",
    "95%": "the interval of the figure before it; sessions that share a horizon are taken together",
    "STATED%": "mean stated confidence",
    "BRIER": "Brier score: mean squared error of the confidence; 0.25 for a coin toss at 0.5",
    "SLUGGING": "mean gain when right over mean loss when wrong",
    "RANK": "Spearman's correlation of signed size and change of the price, holds included",
    "BEFORE%": "RIGHT% of the first advice, before a debate",
    "ALL": "opinions or reports, with those that took no side",
    "ABSTAINED": "abstentions",
}
"""The columns of these tables, in their order."""


def judged(document: Row) -> list[Row]:
    """The results of each owner and agent after each horizon, with its name and the number of its opinions."""
    several = len({one["owner"] for one in document["per_agent"]}) > 1
    named = [(owner, own, own["opinions"], own["abstentions"]) for owner, own in document["per_owner"].items()]
    for one in document["per_agent"]:
        named.append((f"{one['owner']}: {one['agent']}" if several else one["agent"], one, one["reports"], None))
    return [
        {**own, **after, "who": who, "all": count, "abstained": abstained}
        for who, own, count, abstained in named
        for after in own["horizons"]
    ]


def _share(fraction: float) -> str:
    return f"{fraction * 100:.0f}"


def _within(name: str, figure: str, one: Row) -> float | None:
    """A figure of a part that not everyone has."""
    part: Mapping[str, float | None] = one.get(name) or {}
    return part.get(figure)


JUDGED = (
    Column("WHO", "who", ink="strong", max_width=32),
    Column("AFTER", "sessions", "+{}".format),
    Column("JUDGED", "n", count),
    Column("RIGHT%", "hit_rate", _share),
    Column("95%", lambda one: between(one["hit_interval"], _share), str, "muted", drop_order=4),
    Column("STATED%", partial(_within, "calibration", "confidence"), _share, drop_order=1),
    Column("BRIER", partial(_within, "calibration", "brier"), ratio, "muted", drop_order=2),
    Column("SLUGGING", lambda one: one.get("slugging"), ratio, "muted", drop_order=5),
    Column("RANK", lambda one: one.get("rank_correlation"), "{:+.2f}".format, "muted", drop_order=6),
    Column("BEFORE%", partial(_within, "before_debate", "hit_rate"), _share, drop_order=7),
    Column("ALL", "all", count, "muted", drop_order=3),
    Column("ABSTAINED", "abstained", count, warn_ink, drop_order=3),
)
CHANGED = Column(
    "CHANGED ITS MIND",
    lambda one: f"{one['changed']} of {one['debated']}" if one.get("debated") else None,
    str,
)
RANKED = Column("RANK, 95%", lambda one: between(one.get("rank_interval", (None, None)), "{:+.2f}".format), str)


def owner_lines(document: Row, title: str, width: int, room: int = 0) -> Iterator[Line]:
    """The skill of each owner, and of agents that take a side, after each horizon; tables take `room` columns where
    that is given."""
    owners: Mapping[str, Row] = document["per_owner"]
    yield f"Opinions by owner, {title}", "strong"
    if not owners:
        yield NONE_FITS, ""
        return
    found = judged(document)
    counted = [one for one in found if one.get("calibration") or one["sessions"] == found[0]["sessions"]]
    columns = ((*JUDGED[:5], *JUDGED[7:9], RANKED, JUDGED[9]), (*JUDGED[:2], *JUDGED[5:7], *JUDGED[10:], CHANGED))
    for shown, rows in zip(columns, (found, counted), strict=True):
        yield from ((line, "") for line in table_of(shown, rows, room or width))
        yield "", ""
    if stated := [(owner, one) for owner, own in owners.items() for one in own["horizons"] if one["calibration"]]:
        bands = sorted({(band["low"], band["high"]) for _, one in stated for band in one["calibration"]["bands"]})
        yield "Stated confidence against outcomes, and RIGHT% within its bands", "strong"
        head = ("OWNER", "AFTER", *(f"{low:g}-{high:g}" for low, high in bands))
        told = [(owner, f"+{one['sessions']}", *_bands(one["calibration"], bands)) for owner, one in stated]
        yield from ((line, "") for line in table(head, told, {*head[1:]}, room or width))
        yield "", ""
    yield from ((line, "quiet") for line in facts([*MEANINGS.items()], min(width, 100), 11))


def _bands(made: Row, bands: Sequence[tuple[float, float]]) -> Iterator[str]:
    """The share that was right in each band."""
    shares = {(band["low"], band["high"]): f"{_share(band['hit_rate'])}% of {band['n']}" for band in made["bands"]}
    yield from (shares.get(band, "") for band in bands)
