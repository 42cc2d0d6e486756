"""The change that each input made in a decision, or over a run, as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engine.domain.text import counted
from engine.reports import amounts
from engine.reports.card import action_words
from engine.reports.documents.row_json import use_words
from engine.reports.table import Column
from tui.text.plain_text import Line, facts, paragraph, section, table_of

Row = Mapping[str, Any]

WIDTH = 120
"""Tables are not cut below this: where the terminal is narrower, their lines wrap."""


def attribution_lines(document: Row, width: int) -> Iterator[Line]:
    """The decisions of one symbol and session, a table for each owner."""
    for number, one in enumerate(document["decisions"]):
        if number:
            yield "", ""
        yield f"{one['symbol']}  {one['session']}  {action_words(one)}: what each input changed", "strong"
        owner = "" if one["owner"] == "desk" else one["owner"]
        yield from ((line, "") for line in facts([*_head(document), ("Owner", owner)], width))
        yield "", ""
        yield from ((line, "") for line in _table(one, max(width, WIDTH)))
        yield from section("What the single inputs leave unexplained")
        yield from paragraph(_remainder(one), width)


def run_attribution_lines(document: Row, width: int) -> Iterator[Line]:
    """A table of all inputs over the decisions that were drawn."""
    count = document["sample"]
    yield (
        f"What each input changed: {counted(count, 'decision')} drawn by seed {document['seed']}",
        "strong",
    )
    run = document["run"] or f"desk {document['desk']}"
    yield from ((line, "") for line in facts([("Run", run), *_head(document)], width))
    yield "", ""
    yield from ((line, "") for line in table_of(_WORTH, document["inputs"], max(width, WIDTH)))
    yield "", ""
    yield from paragraph(
        "Without an input: the share of decisions that change, the mean absolute change of the signed size "
        "(points of the portfolio), and what leaving it out would have added to the return of the next session (basis "
        "points). Intervals take the decisions of a session together; there are none below 8 sessions.",
        width,
        "",
    )


def sensitivity_lines(document: Row, width: int) -> Iterator[str]:
    """The shares of decisions of each run that move with each input, and the verdict; nothing where none was asked."""
    for told in document.get("sensitivity", ()):
        count = counted(told["sample"], "decision")
        yield ""
        yield f"Input sensitivity of {told['run']}: {count} again with an input altered, by {told['label']}"
        yield from table_of(_MOVED, told["inputs"], max(width, WIDTH))
        yield _VERDICTS[told["verdict"]]


def _head(document: Row) -> list[tuple[str, str]]:
    return [
        ("Decided by", f"{document['label']} (preset {document['preset']})"),
        ("Models", use_words(document["model"])),
        ("Note", "\n".join(document["notes"])),
    ]


def _table(one: Row, width: int) -> Iterator[str]:
    rows = [
        {**one["unchanged"], "name": "nothing"},
        *({**effect, "name": effect["without"][0]} for effect in one["inputs"]),
        *({**effect, "name": f"{effect['without'][0]} (owner)"} for effect in one["characters"]),
        {**one["everything"], "name": "all inputs"},
    ]
    return table_of(_EFFECTS, rows, width)


def _remainder(one: Row) -> str:
    told = (
        f"The single changes add up to {_points(one['sum'])}, all inputs at once change "
        f"{_points(one['everything']['change'])}: the remainder is {_points(one['remainder'])} points of the portfolio."
    )
    if one["unchanged"]["changed"]:
        told += " Re-running with nothing left out gives a different result: every row includes that difference."
    if one["characters"]:
        told += " Owners are not in the sum, because one of them must decide."
    return told


def _mean(name: str, title: str, form: Callable[[float], str]) -> tuple[Column, Column]:
    bounds = Column("95 %", lambda one: amounts.between((one[name]["low"], one[name]["high"]), form), str)
    return Column(title, f"{name}.mean", form), bounds


def _points(size: float) -> str:
    return f"{size:+g}" if size else "0"


_EFFECTS = (
    Column("LEFT OUT", "name"),
    Column("DECISION", lambda one: "not decided" if one["action"] is None else action_words(one)),
    Column("CHANGE", "change", _points),
    Column("CALLS", "calls", str),
    Column("RECORDED", "cached_calls", str),
    Column("COST", lambda one: amounts.cost(amounts.number(one["cost"])), str),
)
_WORTH = (
    Column("LEFT OUT", "without"),
    Column("N", "changed.count", str),
    *_mean("changed", "CHANGED", "{:.0%}".format),
    *_mean("mean_change", "MEAN CHANGE", "{:.2f}".format),
    *_mean("return_effect", "NEXT RETURN", lambda effect: f"{effect * 10_000:+.1f}"),
)
_ALTERED = {"news": "news flipped", "prices": "prices mirrored", "tickers": "tickers swapped"}
_MOVED = (
    Column("INPUT", lambda one: _ALTERED[one["input"]]),
    Column("N", "moved.count", str),
    *_mean("moved", "MOVED", "{:.0%}".format),
    *_mean("mean_change", "MEAN CHANGE", "{:.2f}".format),
)
_VERDICTS = {
    "made": "Decisions move with what they read.",
    "recalled": "Neither news nor prices move any decision: they were recalled, not made.",
    None: "No decision could be compared.",
}
