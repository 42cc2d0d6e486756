"""Tables of Markdown that read well as plain text too, and text that is no markup in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.domain.printable import printable
from engine.reports.summary import NOTHING

_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~$"})


def table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int] | None = None
) -> Iterator[str]:
    """A table with numbers to the right: in the columns named, else in all but the first."""
    right = frozenset(range(1, len(heading))) if numbers is None and any(heading) else numbers or frozenset()
    cells = [list(heading), *map(list, rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(heading))]
    for number, row in enumerate(cells):
        yield f"| {' | '.join(_aligned(text, widths[n], n in right) for n, text in enumerate(row))} |"
        if number == 0:
            rules = ("-" * (width - 1) + (":" if n in right else "-") for n, width in enumerate(widths))
            yield f"| {' | '.join(rules)} |"


def _aligned(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def cell(text: str) -> str:
    """Text as a cell: on one line, nothing in it is markup and nothing steers a terminal."""
    return " ".join(printable(text).split()).translate(_SPECIAL) or NOTHING
