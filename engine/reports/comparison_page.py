"""Models, runs or owners' books side by side: the rows of a table, the pairs in words, and one HTML page of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import mul
from typing import Any

from engine.domain.text import counted
from engine.reports.amounts import UNKNOWN, between, cost, money, number, percent, portion, ratio
from engine.reports.html import figures_html
from engine.reports.html_charts import growth_chart
from engine.reports.summary import figure, title_of
from engine.reports.table import Column, count, texts

Document = Mapping[str, Any]


def _part(part: Document) -> str:
    """Total return of the sessions on one side of a cut-off."""
    return f"{percent(part['total_return'])} on {counted(part['sessions'], 'session')}" if part["sessions"] else "none"


HEAD = (
    Column("Decided by", "decided_by"),
    Column("Model", "model"),
    Column("First session", "first_session"),
    Column("Last session", "last_session"),
    Column("Runs", lambda one: len(one["runs"]) if len(one["runs"]) > 1 else None, str),
    Column("Final value", "final_value", money),
)
LUCK = (
    Column("Growth over the market", "excess_per_year", lambda excess: percent(excess["value"])),
    Column("Probabilistic Sharpe", "psr", ratio),
    Column("Deflated Sharpe", "deflated_sharpe", ratio),
)
"""The part of chance in each of a comparison."""
USE = (
    Column("Model cost", lambda one: None if one["calls"] is None else cost(number(one["cost"]))),
    Column("Calls of models", "calls", count),
    Column("Abstentions", "abstentions", count),
    Column("Refusals", "refusals", count),
    Column("Unresolved figures", "unresolved_figures", count),
    Column("Repairs", "repairs", count),
    Column("Agrees with itself", "agreement", portion),
    Column("Training cut-off", "training_cutoff"),
    Column("Up to the cut-off", "before_cutoff", _part),
    Column("After the cut-off", "after_cutoff", _part),
    Column("After less before", "past_cutoff", lambda later: f"{percent(later['value'], 3)} a day"),
)


def figure_rows(document: Document) -> Iterator[tuple[str, ...]]:
    """A row for each figure: its title, and its text for each that is compared."""
    models = document["models"]
    yield from _known(HEAD, models)
    for name in dict.fromkeys(name for one in models for name in one["metrics"]):
        # The interval of the total return says little; that of the growth over the market does.
        if name not in ("excess_return", "excess_low", "excess_high"):
            beside = ((one["convention"], one["metrics"].get(name)) for one in models)
            yield title_of(name), *(UNKNOWN if value is None else figure(by, name, value) for by, value in beside)
    yield from _known(LUCK, [one["luck"] or dict.fromkeys(str(column.read) for column in LUCK) for one in models])
    if any(one["model"] for one in models):
        yield from _known(USE, models)


def _known(columns: Sequence[Column], models: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    """Columns as rows, but for those in which nothing is known."""
    for column in columns:
        cells = [column.cell(one).text for one in models]
        if any(cell != UNKNOWN for cell in cells):
            yield column.heading, *cells


def difference_words(pair: Document) -> str:
    """The paired difference of daily returns, and what it would take to tell it from none."""
    if pair["value"] is None:
        return "no session in common"
    bounds = between((pair["low"], pair["high"]), partial(percent, digits=4))
    interval = ", too few for an interval" if pair["low"] is None else f", 95 % interval {bounds}"
    words = f"{percent(pair['value'], 4)} on {counted(pair['sessions'], 'session')}{interval}"
    if pair["distinguishable"] is None:
        return words
    if pair["distinguishable"]:
        return f"{words}: distinguishable, more than chance"
    needed = [counted(pair[f"{what}s_needed"], what) for what in ("session", "run") if pair[f"{what}s_needed"]]
    below = ", below the noise floor" if pair["below_floor"] else ""
    return f"{words}: not distinguishable, may be chance{below}" + (
        f"; about {' or '.join(needed)} needed" if needed else ""
    )


def agreement_words(pair: Document) -> str:
    """The share of decisions with the same action; empty where there are none in common."""
    if pair["agreement"] is None:
        return ""
    return f"the same action in {portion(pair['agreement'])} of {counted(pair['compared'], 'decision')}"


def floor_words(document: Document) -> str:
    """The noise floor; empty where nothing was repeated."""
    floor = document["floor"]
    return "" if floor is None else f"Noise floor by the repeats: {100 * floor:.4f}% a day"


def comparison_html(document: Document, title: str) -> str:
    """The whole page: figures, pairs, and the growth of each."""
    models, notes = document["models"], [*filter(None, [floor_words(document)]), *document.get("notes", ())]
    days = sorted({day for one in models for day in one["daily"]})
    chart = growth_chart("Cumulative return", days, {one["name"]: _growth(one["daily"], days) for one in models})
    pairs = [
        (f"{one['other']} less {one['first']}", difference_words(one), agreement_words(one))
        for one in document["pairs"]
    ]
    tables = (
        ("Figures", texts("", *(one["name"] for one in models)), list(figure_rows(document))),
        ("Paired differences of daily returns", texts("", "Daily difference", "Decisions"), pairs),
    )
    return figures_html(title, [chart], notes, tables=tables)


def _growth(daily: Mapping[str, float], days: Sequence[str]) -> list[float | None]:
    grown = dict(zip(daily, accumulate((1 + one for one in daily.values()), mul), strict=True))
    return [grown[day] - 1 if day in grown else None for day in days]
