"""The study of a memory's worth as text: a table of arms for each preset, and what was tried on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.domain.text import counted
from engine.reports.amounts import between, percent
from engine.reports.table import Column
from tui.text.plain_text import table_of, wrapped

WIDTH = 120
"""Tables of arms are not cut below this: where the terminal is narrower, their lines wrap."""

ARMS = (
    Column("arm", "name"),
    Column("memories", "memories", "{:.1f}".format),
    *(Column(action, f"opinions.{action}", str) for action in ("BUY", "SELL", "HOLD")),
    Column("return", "total_return", percent),
    Column("against", "against"),
    Column("difference", "difference", percent),
    Column("95 % interval", lambda arm: between((arm["low"], arm["high"]), percent), str),
    Column("changed", lambda arm: arm["changed"] if arm["against"] else "", str),
)


def lines(document: dict[str, Any], width: int) -> Iterator[str]:
    """The whole study in lines of at most `width`."""
    days = f"{document['first_session']} to {document['last_session']}"
    yield f"{', '.join(document['symbols'])}, {days}, warm-up from {document['warm_up_from'] or 'none'}"
    for study in document["presets"]:
        yield ""
        yield f"{study['preset']}, answered by {study['model']}, {counted(study['sessions'], 'session')}"
        yield from table_of(ARMS, study["arms"], max(width, WIDTH))
        for remark in _remarks(study):
            yield from wrapped(f"- {remark}", width)


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
