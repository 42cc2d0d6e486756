"""The tables of `paperdesk decisions --owners`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tui.console import Console
from tui.plain_text import facts, table

Row = Mapping[str, Any]

MEANINGS = {
    "AFTER": "sessions after the one that was decided, at whose close an opinion is judged",
    "JUDGED": "opinions that took a side and whose outcome is known",
    "RIGHT%": "the share of them that the price followed",
    "95%": "the interval of the figure before it; sessions that share a horizon are taken together",
    "STATED%": "the mean confidence that was stated",
    "BRIER": "mean squared distance of the confidence to what happened; 0.25 for a coin and a confidence of 0.5",
    "SLUGGING": "mean gain where right over mean loss where wrong",
    "RANK": "Spearman's correlation of signed size and change of the price, holds included",
    "BEFORE%": "RIGHT% of the first advice, before a debate",
    "ALL": "opinions or reports, with those that took no side",
    "ABSTAINED": "opinions that were not given",
}
"""The columns of these tables, and of the app's of the same, in its order."""


def owner_lines(document: Row, title: str, console: Console) -> Iterator[str]:
    """Opinions of each owner in counts, and their skill after each horizon."""
    owners: Mapping[str, Row] = document["per_owner"]
    yield console.bold(f"Opinions by owner, {title}")
    if not owners:
        yield "none that fits; leave out a filter"
        return
    counts = ("OWNER", "ALL", "ABSTAINED", "CHANGED ITS MIND", "STATED%")
    yield from table(counts, [_counts(owner, own) for owner, own in owners.items()], {*counts[1:]}, console.room)
    yield ""
    skills = ("OWNER", "AFTER", "JUDGED", "RIGHT%", "95%", "SLUGGING", "RANK", "95%", "BEFORE%")
    rows = [_skill(owner, one) for owner, own in owners.items() for one in own["horizons"]]
    yield from table(skills, rows, {*skills[1:]}, console.room)
    yield from _calibration_lines(owners, console)
    yield from _agent_lines(document["per_agent"], console)
    yield ""
    yield from facts([*MEANINGS.items()], min(console.width, 100), 11)


def _calibration_lines(owners: Mapping[str, Row], console: Console) -> Iterator[str]:
    stated = [(owner, one) for owner, own in owners.items() for one in own["horizons"] if one["calibration"]]
    if not stated:
        return
    found = sorted({(band["low"], band["high"]) for _, one in stated for band in one["calibration"]["bands"]})
    yield ""
    yield console.bold("Stated confidence against what happened") + ", and RIGHT% within its bands"
    head = ("OWNER", "AFTER", "JUDGED", "STATED%", "RIGHT%", "BRIER", *(f"{low:g}-{high:g}" for low, high in found))
    rows = [_calibration(owner, one, found) for owner, one in stated]
    yield from table(head, rows, {*head[1:]}, console.room)


def _calibration(owner: str, one: Row, bands: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    made = one["calibration"]
    shares = {(band["low"], band["high"]): f"{_share(band['hit_rate'])}% of {band['n']}" for band in made["bands"]}
    return (
        owner,
        f"+{one['sessions']}",
        str(made["n"]),
        _share(made["confidence"]),
        _share(made["hit_rate"]),
        _figure(made["brier"]),
        *(shares.get(band, "") for band in bands),
    )


def _agent_lines(agents: Sequence[Row], console: Console) -> Iterator[str]:
    """Agents whose reports take a side, by owner where there are several."""
    if not agents:
        return
    several = len({one["owner"] for one in agents}) > 1
    yield ""
    yield console.bold("Reports of agents that take a side")
    head = ("OWNER" if several else "", "AGENT", "ALL", "SIDED", "AFTER", "JUDGED", "RIGHT%", "95%")
    rows = [
        (
            one["owner"] if several else "",
            one["agent"],
            str(one["reports"]),
            str(one["sided"]),
            f"+{after['sessions']}",
            str(after["n"]),
            _worded(after["hit_rate"], _share),
            _interval(after["hit_interval"], _share),
        )
        for one in agents
        for after in one["horizons"]
    ]
    yield from table(head, rows, {*head[2:]}, console.room, least=("SIDED", "ALL"))


def _counts(owner: str, own: Row) -> tuple[str, ...]:
    changed = f"{own['changed']} of {own['debated']}" if own["debated"] else ""
    stated = "" if own["confidence"] is None else _share(own["confidence"])
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
    return "" if low is None or high is None else f"{worded(low)} to {worded(high)}"


def _worded(figure: float | None, worded: Callable[[float], str]) -> str:
    return "" if figure is None else worded(figure)


def _share(fraction: float) -> str:
    return f"{fraction * 100:.0f}"


def _figure(figure: float) -> str:
    return f"{figure:.2f}"


def _signed(figure: float) -> str:
    return f"{figure:+.2f}"
