"""The tables of `paperdesk decisions --owners`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tui.console import Console
from tui.plain_text import table, wrapped

Row = Mapping[str, Any]

_NOTE = (
    "N counts opinions that took a side and whose outcome is known, RIGHT those that the price followed. SLUGGING is "
    "the mean gain where right over the mean loss where wrong. RANK is Spearman's correlation of signed size and "
    "change of the price, holds included. BEFORE DEBATE is RIGHT of the first advice. In brackets 95 % intervals, "
    "which take sessions that share a horizon together."
)


def owner_lines(document: Row, title: str, console: Console) -> Iterator[str]:
    """Opinions of each owner in counts, and their skill after each horizon."""
    owners: Mapping[str, Row] = document["per_owner"]
    yield console.bold(f"Opinions by owner, {title}")
    if not owners:
        yield "none that fits; leave out a filter"
        return
    width = min(console.width, 100)
    counts = ("OWNER", "OPINIONS", "ABSTAINED", "CHANGED ITS MIND", "STATED CONFIDENCE")
    yield from table(counts, [_counts(owner, own) for owner, own in owners.items()], {*counts[1:]}, width)
    yield ""
    skills = ("OWNER", "AFTER", "N", "RIGHT", "", "SLUGGING", "RANK", "", "BEFORE DEBATE")
    rows = [_skill(owner, one) for owner, own in owners.items() for one in own["horizons"]]
    yield from table(skills, rows, {*skills[1:]} - {""}, width)
    yield from wrapped(_NOTE, width)


def _counts(owner: str, own: Row) -> tuple[str, ...]:
    changed = f"{own['changed']} of {own['debated']}" if own["debated"] else ""
    stated = "" if own["confidence"] is None else f"{own['confidence']:.2f}"
    return owner, str(own["opinions"]), str(own["abstentions"]), changed, stated


def _skill(owner: str, one: Row) -> tuple[str, ...]:
    before = one["before_debate"]
    return (
        owner,
        f"+{one['sessions']}",
        str(one["n"]),
        _worded(one["hit_rate"], _share),
        _interval(one["hit_interval"], _share),
        _worded(one["slugging"], _figure),
        _worded(one["rank_correlation"], _signed),
        _interval(one["rank_interval"], _signed),
        "" if before is None else _worded(before["hit_rate"], _share),
    )


def _interval(bounds: Sequence[float | None], worded: Callable[[float], str]) -> str:
    low, high = bounds
    return "" if low is None or high is None else f"({worded(low)} to {worded(high)})"


def _worded(figure: float | None, worded: Callable[[float], str]) -> str:
    return "" if figure is None else worded(figure)


def _share(fraction: float) -> str:
    return f"{fraction * 100:.0f} %"


def _figure(figure: float) -> str:
    return f"{figure:.2f}"


def _signed(figure: float) -> str:
    return f"{figure:+.2f}"
