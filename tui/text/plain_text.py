"""Text for a terminal or a pipe: safe to show, on one line, wrapped, in tables whose columns align, with its ink."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from engine.domain.text import one_line, printable
from engine.reports.amounts import UNKNOWN
from engine.reports.table import Column

__all__ = [
    "Line",
    "cut",
    "facts",
    "one_line",
    "paragraph",
    "printable",
    "section",
    "table",
    "table_of",
    "wrapped",
]

GAP = "  "
FREE = 16
"""Characters at least of the column of a table that may be cut."""

Line = tuple[str, str]
"""The text, and its ink: `strong`, `heading`, `quiet`, `warn`, `up`, `down`, or empty."""
Paint = Callable[[Line], str]
"""Gives a text its ink, as a Console does."""


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str] = (),
    width: int = 80,
    *,
    least: Sequence[str] = (),
    free: str = "",
    inks: Sequence[Sequence[str]] = (),
    paint: Paint | None = None,
) -> Iterator[str]:
    """Lines of a table: the columns named in `right` align right. A column in which nothing stands is left out. Where a
    line would be longer than `width`, whole columns are, those named in `least` first and then from the right: half a
    figure reads as another figure. Only the text of the column `free` is cut, which stays where there is room
    for it. `paint` gives the cells of the rows their `inks`."""
    kept = [n for n in range(len(head)) if any(row[n] for row in rows)]
    whole = {n: max(len(row[n]) for row in (head, *rows)) for n in kept}
    sizes = {n: min(size, FREE) if head[n] == free else size for n, size in whole.items()}
    named = [n for name in least for n in kept if head[n] == name]
    leaving = [*named, *(n for n in reversed(kept[1:]) if n not in named)]
    always = {n: size for n, size in sizes.items() if n == kept[0] or head[n] == free}
    if _length(always) <= width:
        leaving = [n for n in leaving if n not in always]
    while _length(sizes) > width and leaving:
        del sizes[leaving.pop(0)]
    spare = width - _length(sizes)
    sizes = {n: min(whole[n], size + spare) if head[n] == free else size for n, size in sizes.items()}
    for number, row in enumerate((head, *rows)):
        cells = {n: cut(row[n], size) for n, size in sizes.items()}
        cells = {n: text.rjust(sizes[n]) if head[n] in right else text.ljust(sizes[n]) for n, text in cells.items()}
        line = GAP.join(cells.values()).rstrip()
        if number and paint is not None and len(line) <= width:
            yield GAP.join(paint((text, inks[number - 1][n])) for n, text in cells.items()).rstrip()
        else:
            yield cut(line, width)


def table_of(
    columns: Sequence[Column],
    items: Iterable[Any],
    width: int = 80,
    *,
    after: Iterable[Sequence[str]] = (),
    paint: Paint | None = None,
) -> Iterator[str]:
    """Lines of a table, a row per item and those given as texts `after` it. Columns in which nothing is known are left
    out, others leave as on a screen; the stretched one is cut. `paint` gives gains and losses their colour."""
    cells = [[column.cell(item) for column in columns] for item in items]
    texts = [*([cell.text for cell in row] for row in cells), *after]
    known = [n for n in range(len(columns)) if any(row[n] not in ("", UNKNOWN) for row in texts)]
    shown = [columns[n] for n in known]
    inks = [[row[n].ink if row[n].ink in ("up", "down") else "" for n in known] for row in cells]
    leaving = sorted((column for column in shown if column.drop_order), key=lambda column: -column.drop_order)
    return table(
        [column.heading for column in shown],
        [[row[n] for n in known] for row in texts],
        [column.heading for column in shown if column.right],
        width,
        least=[column.heading for column in leaving],
        free=next((column.heading for column in shown if column.stretch), ""),
        inks=[*inks, *([""] * len(known) for _ in texts[len(cells) :])],
        paint=paint,
    )


def _length(sizes: Mapping[int, int]) -> int:
    return sum(sizes.values()) + len(GAP) * (len(sizes) - 1)


def cut(line: str, width: int) -> str:
    """The line, or as much of it as fits into `width` with three dots, between words where that leaves half of it."""
    if len(line) <= width:
        return line
    words = line[: width - 2].rpartition(" ")[0]
    return f"{(words if 2 * len(words) >= width else line[: width - 3]).rstrip()}..."


def facts(pairs: Sequence[tuple[str, str]], width: int = 80, label: int = 12) -> Iterator[str]:
    """Lines of names and values beside each other; a long value goes on below itself, an empty one is left out."""
    for name, value in pairs:
        if not value:
            continue
        lines = wrapped(value, width - label)
        yield f"{name:<{label}}{lines[0]}"
        yield from (" " * label + line for line in lines[1:])


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width`, its own line feeds kept; at least one line."""
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        hanging = "  " if line.startswith("- ") else ""
        lines += textwrap.wrap(line, max(20, width), subsequent_indent=hanging, break_on_hyphens=False) or [""]
    return lines


def section(title: str) -> Iterator[Line]:
    """A heading under an empty line."""
    yield "", ""
    yield title, "heading"


def paragraph(text: str, width: int, indent: str = "  ", ink: str = "") -> Iterator[Line]:
    """A text of a model or of the news, safe to show, wrapped and indented."""
    for line in wrapped(printable(text).strip(), width - len(indent)):
        yield (indent + line).rstrip(), ink
