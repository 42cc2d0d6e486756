"""A result by months and years, and its deepest falls, as cells of its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from engine.reports.amounts import percent
from engine.reports.documents.backtest import growth_of, returns_of, sessions_of
from engine.reports.documents.luck import MONTH, YEAR, by_period
from engine.reports.performance import BENCHMARK
from engine.reports.summary import NOTHING, drawdowns

Document = Mapping[str, Any]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
FALLS = 5
"""Falls that are listed, the deepest."""


def month_rows(document: Document) -> Iterator[Sequence[str]]:
    """By year: the return of each month."""
    months = dict(by_period(sessions_of(document), returns_of(document), MONTH))
    for year in dict.fromkeys(month[:YEAR] for month in months):
        grown = (months.get(f"{year}-{number:02}") for number in range(1, 13))
        yield year, *("" if change is None else percent(change, 1) for change in grown)


def year_rows(document: Document) -> Iterator[Sequence[str]]:
    """By year: the return, buy and hold's, and the deepest fall from the highest value so far."""
    sessions, held = sessions_of(document), document["baselines"].get(BENCHMARK)
    falls: dict[str, float] = {}
    for session, fall in zip(sessions, drawdowns(growth_of(document))[1:], strict=True):
        falls[session[:YEAR]] = min(fall, falls.get(session[:YEAR], 0.0))
    beside: dict[str, float] = {}
    if held is not None:
        values = [float(value) for value in (document["initial_value"], *held["equity"])]
        moves = [after / before - 1 if before > 0 else 0.0 for before, after in pairwise(values)]
        beside = dict(by_period(sessions, moves, YEAR))
    for year, grown in by_period(sessions, returns_of(document), YEAR):
        yield year, percent(grown), percent(beside[year]) if year in beside else NOTHING, percent(falls[year])


def fall_rows(document: Document) -> list[Sequence[str]]:
    """The deepest falls: depth, session of the peak, of the trough and of the recovery, and the sessions that it
    took from peak to recovery, or to the end where there is none."""
    sessions = ["the start", *sessions_of(document)]
    falls = drawdowns(growth_of(document))
    peaks = [number for number, fall in enumerate(falls) if fall == 0]
    found = []
    for peak, after in pairwise([*peaks, len(falls)]):
        if after - peak > 1:
            low = min(range(peak, after), key=falls.__getitem__)
            end = sessions[after] if after < len(falls) else "not yet"
            found.append((falls[low], sessions[peak], sessions[low], end, min(after, len(falls) - 1) - peak))
    return [(percent(depth), *rest, str(took)) for depth, *rest, took in sorted(found)[:FALLS]]
