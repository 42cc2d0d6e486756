"""A study as plain text and as a LaTeX table: its rows, what they differ by, and the list of studies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from engine.domain.text import counted
from engine.reports.amounts import percent, ratio
from engine.reports.documents.study import flat_pairs, flat_rows
from engine.reports.summary import figure
from engine.reports.table import Column, count, plain
from tui.text.console import standard_output
from tui.text.plain_text import table_of

Document = Mapping[str, Any]
Forms = Mapping[str, Callable[[Any], str]]
_DECIDED: Forms = {"name": plain, "model": plain, "mask": str}
_WINDOW: Forms = {"symbols": plain, "from": plain, "to": plain}
_FIGURES = ("total_return", "sharpe", "max_drawdown")
"""Metrics in text, where the convention has them; of another convention all are."""
_BESIDE: Forms = {
    "luck_deflated_sharpe": ratio,
    "abstentions": str,
    "input_tokens": count,
    "output_tokens": count,
    "cost": str,
    "fingerprint": plain,
    "note": plain,
}
_LEAVE = {"seed": 1, "from": 2, "to": 3, "repeat": 4, "fingerprint": 5}
"""Columns that leave a narrow table before any figure; what sets rows apart stays the longest."""
_A_DAY = partial(percent, digits=3)
_PAIRED: Forms = {
    **{"other": plain, "against": plain, **_WINDOW},
    **{"mean": _A_DAY, "low": _A_DAY, "high": _A_DAY, "p": ratio, "adjusted": ratio, "discovery": plain},
}
_CUTOFFS: Forms = {
    **{**_DECIDED, "symbols": plain, "training_cutoff": plain},
    **{"value": _A_DAY, "low": _A_DAY, "high": _A_DAY, "distinguishable": plain},
}
_LISTED: Forms = {"study": plain, "runs": str, "done": str, "without_figures": str, "file": plain}
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _columns(forms: Forms) -> tuple[Column, ...]:
    return tuple(
        Column(name.removeprefix("luck_").replace("_", " ").upper(), name, form, drop_order=_LEAVE.get(name, 0))
        for name, form in forms.items()
    )


def _rows(document: Document) -> tuple[Sequence[Column], Sequence[Document]]:
    known = dict.fromkeys(name for row in document["rows"] for name in row["metrics"])
    shown = [name for name in _FIGURES if name in known] or known
    figures = {name: partial(figure, document["rows"][0]["convention"], name) for name in shown}
    columns = _columns({**_DECIDED, **_WINDOW, "seed": str, "repeat": str, **figures, **_BESIDE})
    return columns, [{**row, "fingerprint": (row["fingerprint"] or "")[:12]} for row in flat_rows(document)]


def study_lines(document: Document, room: int) -> Iterator[str]:
    """A study in plain text, its tables on so many columns."""
    (columns, rows), pairs = _rows(document), flat_pairs(document)
    yield f"Study {document['study']}: {len(rows)} of {counted(document['runs'], 'run')}"
    if rows:
        yield ""
        yield from table_of(columns, rows, room)
    if pairs:
        yield ""
        yield "Paired differences of daily returns, with 95 % intervals"
        yield from table_of(_columns(_PAIRED), pairs, room)
    if document["cutoffs"]:
        yield ""
        yield "Daily returns after the training cut-off less those before, with 95 % intervals"
        rows = [{**row, "symbols": " ".join(row["symbols"])} for row in document["cutoffs"]]
        yield from table_of(_columns(_CUTOFFS), rows, room)
    yield from document["notes"]


def study_latex(document: Document) -> str:
    """The rows as a LaTeX tabular (booktabs), with the columns of the text."""
    columns, found = _rows(document)
    head = _latex_row([_title(column) for column in columns])
    rows = [_latex_row([column.cell(row).text for column in columns]) for row in found]
    aligned = "".join("r" if column.right else "l" for column in columns)
    begin = rf"\begin{{tabular}}{{{aligned}}}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"])


def _title(column: Column) -> str:
    """A heading that is not in capitals, unless it is an abbreviation of a paper's."""
    name = str(column.read)
    return name if name.isupper() else column.heading.capitalize().replace("sharpe", "Sharpe")


def _latex_row(cells: Sequence[str]) -> str:
    escaped = (re.sub(r"[&%$#_{}\\~^]", lambda mark: _SPECIAL.get(mark[0], f"\\{mark[0]}"), cell) for cell in cells)
    return " & ".join(escaped) + r" \\"


def list_lines(document: Document) -> Iterator[str]:
    """The studies of this machine, a line each."""
    if not document["studies"]:
        yield "no study yet; `paperdesk study FILE.toml` makes one"
        return
    yield from table_of(_columns(_LISTED), document["studies"], standard_output().room)
