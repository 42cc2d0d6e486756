"""A bench as text: every row of ours above the printed one and their relative difference, averages, and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.domain.text import counted
from engine.reports.comparison import row_name
from engine.reports.documents import row_json
from engine.reports.documents.research import model_use_rows
from engine.reports.table import Column
from tui.text.plain_text import table, table_of, wrapped

if TYPE_CHECKING:
    from engine.reports.comparison import Cell
    from engine.reports.documents.research import Bench

CLOSE = 0.003
"""Up to this relative difference a figure counts as reproduced."""

DIGITS = 3
"""Decimals of a figure that no printed one stands beside."""


def lines(bench: Bench, width: int, agents: bool, families: Sequence[row_json.Row] = ()) -> Iterator[str]:
    """The whole bench in lines of at most `width`, with the tests of its rows together; with `agents` the use of models
    too."""
    notes = {note: n for n, note in enumerate(dict.fromkeys(c.note for c in bench.cells if c.note), 1)}
    for name in dict.fromkeys(cell.table for cell in bench.cells):
        yield from _by_row(name, [cell for cell in bench.cells if cell.table == name], notes, width)
    for note, number in notes.items():
        yield from _indented(f"[{number}] ", note, width)
    if notes:
        yield ""
    yield from _averages(bench.averages, width)
    yield from _paired(bench.pairs, width)
    yield from _families(families, width)
    yield from _summary([cell for cell in bench.cells if agents or cell.strategy])
    for note in bench.notes:
        yield from _indented("- ", note, width)
    if agents:
        yield from model_use_lines(model_use_rows(bench.models, bench.unresolved), width)
    if bench.runs:
        yield from wrapped(f"runs: {', '.join(bench.runs)} (see `paperdesk report --run ID`)", width)


def _by_row(name: str, cells: Sequence[Cell], notes: dict[str, int], width: int) -> Iterator[str]:
    """Symbol by symbol: every row's metrics, ours above the printed ones."""
    for symbol in dict.fromkeys(cell.symbol for cell in cells):
        own = [cell for cell in cells if cell.symbol == symbol]
        metrics = list(dict.fromkeys(cell.metric for cell in own))
        rows: list[list[str]] = []
        for who, by in dict.fromkeys((cell.who, cell.answered_by) for cell in own):
            found = {cell.metric: cell for cell in own if (cell.who, cell.answered_by) == (who, by)}
            rows += _lines_of(who, by, found, metrics, notes)
        yield from _aligned([f"{name}, {symbol}", "", *metrics, "note"], rows, set(metrics), width)
        yield ""


def _aligned(head: list[str], rows: list[list[str]], right: set[str], width: int) -> Iterator[str]:
    """The rows under their head; where that is too wide, each row's name stands on a line of its own."""
    rest = list(table(head[1:], [row[1:] for row in rows], right, 200))
    names = max(len(row[0]) for row in (head, *rows))
    if names + 2 + max(map(len, rest)) <= width:
        yield from table(head, rows, right, width)
        return
    yield head[0]
    yield f"  {rest[0]}"
    for row, line in zip(rows, rest[1:], strict=True):
        if row[0]:
            yield row[0]
        yield f"  {line}"


def _lines_of(
    who: str, by: str | None, found: dict[str, Cell], metrics: Sequence[str], notes: dict[str, int]
) -> Iterator[list[str]]:
    """A row of a table: a line for each kind of its figures, the first with its name and notes."""
    note = "".join(f"[{number}]" for number in dict.fromkeys(notes[cell.note] for cell in found.values() if cell.note))
    name = row_name(who, by)
    for word, form in KINDS.items():
        texts = [(form(found[metric]) if metric in found else "") or "-" for metric in metrics]
        if any(text != "-" for text in texts) or (word == "ours" and by is not None):
            yield [name, word, *texts, note]
            name, note = "", ""


def _ours(cell: Cell, value: float | None) -> str:
    digits = DIGITS if cell.paper is None else max(0, -int(cell.paper.as_tuple().exponent))
    return "" if value is None else f"{value:.{digits}f}"


def _spread(word: str, cell: Cell) -> str:
    return "" if cell.spread is None else _ours(cell, getattr(cell.spread, word))


KINDS: Mapping[str, Callable[[Cell], str]] = {
    "ours": lambda cell: _ours(cell, cell.ours),
    **{word: partial(_spread, word) for word in ("low", "median", "high")},
    "paper": lambda cell: "" if cell.paper is None else f"{cell.paper:f}",
    "difference": lambda cell: "" if cell.rel_diff is None else f"{cell.rel_diff:+.3%}",
}


def _averages(found: Sequence[row_json.Row], width: int) -> Iterator[str]:
    for name, symbols in dict.fromkeys((one["table"], tuple(one["symbols"])) for one in found):
        own = [one for one in found if (one["table"], *one["symbols"]) == (name, *symbols)]
        metrics = list(dict.fromkeys(one["metric"] for one in own))
        rows = []
        for group, of in dict.fromkeys((one["group"], one["of"]) for one in own):
            part = [one for one in own if (one["group"], one["of"]) == (group, of)]
            by_metric = {one["metric"]: one["percent_of_buy_and_hold"] for one in part}
            shown = (by_metric.get(metric) for metric in metrics)
            rows.append([group, of, *("-" if percent is None else f"{percent:.1f} %" for percent in shown)])
        yield from wrapped(f"{name}: averages over {', '.join(symbols)} in percent of buy and hold", width)
        yield from (f"  {line}" for line in table(["", "of", *metrics], rows, set(metrics), width - 2))
        yield ""


_PAIRED = (
    Column("basis points", "value", lambda value: f"{value * 1e4:+.1f}"),
    Column("95 % interval", lambda pair: _bounds(pair["low"], pair["high"]), str),
    Column("symbols", lambda pair: len(pair["symbols"]), str, drop_order=2),
    Column("sessions", "sessions", str, drop_order=1),
    Column("", lambda pair: "not distinguishable" if pair["distinguishable"] is False else ""),
)


def _bounds(low: float | None, high: float | None) -> str:
    return "too few sessions" if low is None or high is None else f"{low * 1e4:+.1f} to {high * 1e4:+.1f}"


def _paired(pairs: Sequence[row_json.Row], width: int) -> Iterator[str]:
    """Mean daily differences of rows, in basis points, with their intervals."""
    for name in dict.fromkeys(pair["table"] for pair in pairs):
        first = Column(f"{name}: mean daily difference", lambda pair: f"{pair['row']} - {pair['other']}")
        yield from table_of((first, *_PAIRED), [one for one in pairs if one["table"] == name], width)
        yield ""


_FAMILY = (
    Column("psr", "psr", "{:.2f}".format),
    Column("deflated", "deflated_sharpe", "{:.2f}".format),
    Column("p", "p", "{:.3f}".format),
    Column("among all", "adjusted", "{:.3f}".format),
    Column("", lambda row: "*" if row["discovery"] else ""),
)


def _families(families: Sequence[row_json.Row], width: int) -> Iterator[str]:
    """Rows against buy and hold, symbol by symbol, and all of them together; one that counts over its symbols, at one
    false discovery in twenty, has a star."""
    for one in families:
        name = f"{one['table']}, {one['symbol']}: {counted(one['trials'], 'look')}, best p {one['superior']:.3f}"
        yield from table_of((Column(name, "row"), *_FAMILY), one["rows"], width)
        yield ""


def _summary(cells: Sequence[Cell]) -> Iterator[str]:
    """Counts of printed cells by how close ours come; nothing where there are none."""
    printed = [cell for cell in cells if cell.paper is not None]
    if printed:
        ours = [cell for cell in printed if cell.ours is not None]
        same = sum(cell.as_printed for cell in ours)
        near = sum(abs(cell.rel_diff or 0) <= CLOSE for cell in ours if not cell.as_printed and cell.paper)
        off, none = len(ours) - same - near, len(printed) - len(ours)
        close = f"{same} as printed, {near} within {CLOSE:.1%}, {off} further off, {none} without ours"
        yield f"{len(printed)} cells: {close}"


def model_use_lines(models: Sequence[row_json.Row], width: int) -> Iterator[str]:
    """Calls, cost and open questions of each model, from the rows of a bench's document."""
    for use in models:
        asked = f"{use['spec']}: {row_json.use_words(use)}{row_json.cutoff_words(use)}; {use['refusals']:,} refused"
        figures = counted(use["unresolved_figures"], "figure")
        yield from _indented("- ", f"{asked}; {figures} not found in the inputs", width)


def _indented(mark: str, text: str, width: int) -> Iterator[str]:
    for number, line in enumerate(wrapped(text, width - len(mark) - 2)):
        yield f"  {mark if not number else ' ' * len(mark)}{line}"
