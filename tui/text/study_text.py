"""A study as plain text and as a LaTeX table: its rows, what they differ by, and the list of studies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from engine.domain.text import counted
from engine.reports.amounts import cost, percent, portion, ratio
from engine.reports.documents.study import arm_name
from engine.reports.table import Column, count
from tui.text.console import standard_output
from tui.text.plain_text import beginning, table_of

Document = Mapping[str, Any]
FORMS = {"total_return": percent, "max_drawdown": portion}
"""Metrics that are fractions, as people read them; all others are figures."""
SHOWN = ("total_return", "sharpe", "max_drawdown")
"""Metrics in text, where the convention has them; of another convention all are."""
_SPECIAL = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def _window(row: Document) -> str:
    return f"{row['from']} to {row['to']}"


def _symbols(row: Document) -> str:
    return beginning(",".join(row["symbols"]), 24)


def _tokens(row: Document) -> int | None:
    tokens = (row["input_tokens"], row["output_tokens"])
    return None if None in tokens else sum(tokens)


def _columns(rows: Sequence[Document]) -> tuple[Column, ...]:
    known = dict.fromkeys(name for row in rows for name in row["metrics"])
    return (
        Column("NAME", "name"),
        Column("MODEL", lambda row: row["model"] or ""),
        Column("SYMBOLS", _symbols),
        Column("WINDOW", _window),
        Column("SEED", "seed", str),
        Column("REPEAT", "repeat", str),
        *(
            Column(name.upper().replace("_", " "), f"metrics.{name}", FORMS.get(name, ratio))
            for name in [one for one in SHOWN if one in known] or known
        ),
        Column("DEFLATED", lambda row: (row["luck"] or {}).get("deflated_sharpe"), ratio),
        Column("ABSTAINED", "abstentions", str),
        Column("TOKENS", _tokens, count),
        Column("COST", "cost", lambda dollars: cost(Decimal(dollars))),
        Column("FINGERPRINT", lambda row: (row["fingerprint"] or "")[:12]),
        Column("NOTE", lambda row: row["note"] or ""),
    )


PAIRS = (
    Column("OTHER", lambda pair: arm_name(pair["other"])),
    Column("AGAINST", lambda pair: arm_name(pair["first"])),
    Column("SYMBOLS", _symbols),
    Column("WINDOW", _window),
    Column("A DAY", "mean", lambda value: percent(value, 3)),
    Column("LOW", "low", lambda value: percent(value, 3)),
    Column("HIGH", "high", lambda value: percent(value, 3)),
    Column("P", "p", ratio),
    Column("ADJUSTED", "adjusted", ratio),
    Column("DISCOVERY", lambda pair: {True: "yes", False: "no", None: ""}[pair["discovery"]]),
)


def study_lines(document: Document) -> Iterator[str]:
    """A study in plain text."""
    rows, pairs, room = document["rows"], document["pairs"], max(standard_output().room, 160)
    yield f"Study {document['study']}: {len(rows)} of {counted(document['runs'], 'run')}"
    if rows:
        yield ""
        yield from table_of(_columns(rows), [_with_metrics(row, rows) for row in rows], room)
    if pairs:
        yield ""
        yield "Paired differences of daily returns, with 95 % intervals"
        yield from table_of(PAIRS, pairs, room)
    yield from document["notes"]


def _with_metrics(row: Document, rows: Sequence[Document]) -> Document:
    """The row with every metric that any row has: one without data has none."""
    return {**row, "metrics": {**dict.fromkeys(name for one in rows for name in one["metrics"]), **row["metrics"]}}


def study_latex(document: Document) -> str:
    """The rows as a LaTeX tabular (booktabs), with the columns of the text."""
    rows = document["rows"]
    columns = _columns(rows)
    lines = [" & ".join(_escaped(column.heading.capitalize()) for column in columns) + r" \\", r"\midrule"]
    for row in rows:
        whole = _with_metrics(row, rows)
        lines.append(" & ".join(_escaped(column.cell(whole).text) for column in columns) + r" \\")
    aligned = "".join("r" if column.right else "l" for column in columns)
    return "\n".join([rf"\begin{{tabular}}{{{aligned}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"])


def _escaped(text: str) -> str:
    return re.sub(r"[&%$#_{}\\~^]", lambda found: _SPECIAL[found[0]], text)


LISTED = (
    Column("STUDY", "study"),
    Column("DONE", lambda one: f"{one['done']} of {one['runs']}"),
    Column("FILE", "file"),
)


def list_lines(document: Document) -> Iterator[str]:
    """The studies of this machine, a line each."""
    if not document["studies"]:
        yield "no study yet; `paperdesk study FILE.toml` makes one"
        return
    yield from table_of(LISTED, document["studies"], max(standard_output().room, 160))
