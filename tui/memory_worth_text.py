"""The study of a memory's worth as text: a table of arms for each preset, and what was tried on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.domain.text import counted
from tui.plain_text import table, wrapped

WIDTH = 120
"""Tables of arms are not cut below this: where the terminal is narrower, their lines wrap."""

HEAD = ("arm", "memories", "BUY", "SELL", "HOLD", "return", "against", "difference", "95 % interval", "changed")


def lines(document: dict[str, Any], width: int) -> Iterator[str]:
    """The whole study in lines of at most `width`."""
    days = f"{document['first_session']} to {document['last_session']}"
    yield f"{', '.join(document['symbols'])}, {days}, warm-up from {document['warm_up_from'] or 'none'}"
    for study in document["presets"]:
        yield ""
        yield f"{study['preset']}, answered by {study['model']}, {counted(study['sessions'], 'session')}"
        yield from table(HEAD, [_row(arm) for arm in study["arms"]], set(HEAD) - {"arm", "against"}, max(width, WIDTH))
        for remark in _remarks(study):
            yield from wrapped(f"- {remark}", width)


def _row(arm: dict[str, Any]) -> tuple[str, ...]:
    counted = (str(arm["opinions"][action]) for action in ("BUY", "SELL", "HOLD"))
    interval = "" if arm["low"] is None else f"{_percent(arm['low'])} to {_percent(arm['high'])}"
    return (
        arm["name"],
        f"{arm['memories']:.1f}",
        *counted,
        _percent(arm["total_return"]),
        arm["against"],
        _percent(arm["difference"]),
        interval,
        str(arm["changed"]) if arm["against"] else "",
    )


def _remarks(study: dict[str, Any]) -> Iterator[str]:
    poison, told, time = study["poison"], study["confabulation"], study["point_in_time"]
    yield f"Pivotal: {study['pivotal']} memories were paid for with recall; the oracle recalls what still will be."
    yield (
        f"Poisoned: {poison['written']} false memories beside {poison['share']:.0%} of the news up to "
        f"{poison['last_session']}; {poison['recalled_share']:.1%} of what was recalled meanwhile, cited "
        f"{poison['cited']} times; {poison['followed']:+.1%} of the opinions followed them; recalled for "
        f"{poison['sessions_recalled_after']} sessions more, {poison['alive']} alive at the end."
    )
    yield (
        f"Confabulated: {told['not_held']} of {told['cited']} cited memories were not given; {told['unresolved']} of "
        f"{told['opinions']} opinions quote a figure that their inputs do not hold."
    )
    yield f"Point in time: {time['later']} of {time['recalled']} recollections stem from after their decision."


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.2%}"
