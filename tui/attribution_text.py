"""The change that each input made in a decision, or over a run, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.domain.text import counted
from engine.reports import amounts
from tui.plain_text import Line, facts, paragraph, section, table
from tui.run_text import action_words

Row = Mapping[str, Any]

WIDTH = 120
"""Tables are not cut below this: where the terminal is narrower, their lines wrap."""
_ROW = ("LEFT OUT", "DECISION", "CHANGE", "CALLS", "RECORDED", "COST")
_WORTH = ("LEFT OUT", "N", "CHANGED", "95 %", "MEAN CHANGE", "95 %", "NEXT RETURN", "95 %")


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
    rows = [_worth(one) for one in document["inputs"]]
    yield from ((line, "") for line in table(_WORTH, rows, set(_WORTH) - {"LEFT OUT", "95 %"}, max(width, WIDTH)))
    yield "", ""
    yield from paragraph(
        "Without an input: the share of decisions that come out otherwise, the mean absolute change of the signed size "
        "(points of the portfolio), and what leaving it out would have added to the return of the next session (basis "
        "points). Intervals resample whole sessions; there are none below 8 sessions.",
        width,
        "",
    )


def _head(document: Row) -> list[tuple[str, str]]:
    use = document["model"]
    cost = amounts.cost(amounts.number(use["cost"]))
    calls = f"{counted(use['calls'], 'call')} ({use['cached_calls']:,} recorded), {cost}"
    return [
        ("Decided by", f"{document['label']} (preset {document['preset']})"),
        ("Models", calls),
        ("Note", "\n".join(document["notes"])),
    ]


def _table(one: Row, width: int) -> Iterator[str]:
    rows = [
        _row("nothing", one["unchanged"]),
        *(_row(effect["without"][0], effect) for effect in one["inputs"]),
        *(_row(f"{effect['without'][0]} (owner)", effect) for effect in one["characters"]),
        _row("all inputs", one["everything"]),
    ]
    return table(_ROW, rows, {"CHANGE", "CALLS", "RECORDED", "COST"}, width)


def _row(name: str, effect: Row) -> tuple[str, ...]:
    decision = "not decided" if effect["action"] is None else action_words(effect)
    cost = amounts.cost(amounts.number(effect["cost"]))
    return name, decision, _points(effect["change"]), str(effect["calls"]), str(effect["cached_calls"]), cost


def _remainder(one: Row) -> str:
    told = (
        f"The single changes add up to {_points(one['sum'])}, all inputs at once change "
        f"{_points(one['everything']['change'])}: the remainder is {_points(one['remainder'])} points of the portfolio."
    )
    if one["unchanged"]["changed"]:
        told += " Decided again with nothing left out it is not the same: every row holds that difference too."
    if one["characters"]:
        told += " Owners are not in the sum, since one of them has to decide."
    return told


def _worth(one: Row) -> tuple[str, ...]:
    changed, size, effect = one["changed"], one["mean_change"], one["return_effect"]
    return (
        one["without"],
        str(changed["count"]),
        *_figures(changed, 100, "{:.0f}%"),
        *_figures(size, 1, "{:.2f}"),
        *_figures(effect, 10_000, "{:+.1f}"),
    )


def _figures(mean: Row, times: float, form: str) -> tuple[str, str]:
    """A mean and its interval."""
    value = "" if mean["mean"] is None else form.format(mean["mean"] * times)
    if mean["low"] is None:
        return value, ""
    return value, f"{form.format(mean['low'] * times)} to {form.format(mean['high'] * times)}"


def _points(size: float) -> str:
    return f"{size:+g}" if size else "0"
