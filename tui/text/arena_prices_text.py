"""The arena's bench as text, in the closed market and on real prices: one table of ours and of the paper's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.text import counted
from tui.text.plain_text import table, wrapped

Row = Mapping[str, Any]


def prices_lines(document: Row, width: int) -> Iterator[str]:
    """The tables, how the window was validated, and what a reader has to know."""
    from tui.text.bench_text import model_use_lines

    validation = document["validation"]
    window = f"{document['first_session']} to {document['last_session']}, {counted(document['sessions'], 'session')}"
    yield f"Agent Trading Arena Table 4 on {', '.join(document['symbols'])}, {window}"
    first = document["printed"] or {"table": 4, "columns": document["columns"], "rows": ()}
    yield from _compared_rows(first, document["ours"], width)
    yield ""
    with_ours = {one["table"] for one in document["ours"]}
    for printed in (one for one in document["tables"] if one["rows"] or one["table"] in with_ours):
        yield f"Table {printed['table']}: {printed['title']}"
        yield from _compared_rows(printed, document["ours"], width)
        yield ""
    if validation["window"] is not None:
        returns = ", ".join(f"{name}: {_figure(value)}" for name, value in validation["TR"].items())
        validated = f"{validation['first']} to {validation['last']}"
        yield f"SMA {validation['window']} is the best of {validated} (TR by window {returns})"
    for text in document["notes"]:
        yield from wrapped(f"- {text}", width)
    yield from model_use_lines(document["models"], width)
    yield from (f"Journal: paperdesk report --run {run}" for run in document["runs"])


def arena_lines(document: Row, width: int) -> Iterator[str]:
    """The tables of the closed market, and what cannot be had."""
    for printed in document["tables"]:
        yield f"Agent Trading Arena Table {printed['table']}: {printed['title']}"
        yield from _compared_rows(printed, document["ours"], width)
        yield ""
    yield f"Ours: {document['days']} days, mean of {document['repeats']} with seats rotated; TR to WR in percent."
    yield "What cannot be had:"
    for text in document["absent"]:
        yield from wrapped(f"- {text}", width)
    if document["runs"]:
        yield f"Again: paperdesk arena --resume {document['runs'][0]}"


def _compared_rows(printed: Row, ours: Sequence[Row], width: int) -> Iterator[str]:
    """A printed table with our rows of it below."""
    columns = printed["columns"]
    rows = [_printed(one, columns) for one in printed["rows"]]
    rows += [
        (one["row"], "ours", *(_figure(one["figures"][name]) for name in columns), "")
        for one in ours
        if one["table"] == printed["table"]
    ]
    yield from table(("ROW", "OF", *columns, "NOTE"), rows, right=columns, width=width, free="NOTE")


def _printed(one: Row, columns: list[str]) -> tuple[str, ...]:
    note = "" if one["uneven"] is None else f"Mean / Std is {one['uneven']:.3f}"
    return one["row"], "paper", *(one["figures"][name] for name in columns), note


def _figure(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.3f}"
