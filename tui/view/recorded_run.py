"""Backtests of earlier days as the screen shows those of today: curves beside each other, reports, comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import accumulate
from typing import Any

from textual.content import Content

from engine.domain.run import RunOutcome, RunSpec
from engine.journal.schema import WARM_UP
from engine.reports.documents.runs import StoredRun
from tui.charts.plotting import PlotData
from tui.text.plain_text import one_line
from tui.view.backtest_run import DONE, FAILED, STOPPED, BacktestState, after_message

_STATUS = {RunOutcome.DONE.value: DONE, RunOutcome.FAILED.value: FAILED}


def recorded(runs: Collection[StoredRun]) -> dict[str, BacktestState]:
    """Runs by id, in their order, each under a name of its own: its decider and the time when it began (UTC), with the
    end of its id where another began in that minute. They have their metrics and not their documents. Left out are
    those that cannot be read or were killed before their first session."""
    alike = Counter(map(_name, runs))
    states = ((run, f"{_name(run)} {run.id[-4:]}" if alike[_name(run)] > 1 else _name(run)) for run in runs)
    return {run.id: state for run, name in states if (state := _recorded(run, name)) is not None}


def _name(run: StoredRun) -> str:
    return f"{one_line(run.name)} {run.time:%m-%d %H:%M}"


def _recorded(run: StoredRun, name: str) -> BacktestState | None:
    if run.problem or run.first is None or run.last is None:
        return None
    spec = RunSpec(symbols=run.symbols, first=run.first, last=run.last, preset=run.name, run=run.id)
    return BacktestState(
        name=name,
        spec=spec,
        status=_STATUS.get(run.outcome or "", STOPPED),
        metrics=run.metrics,
        trades=run.trades or 0,
        final=None if run.final is None else str(run.final),
        done=run.sessions,
        total=run.sessions,
    )


def with_document(state: BacktestState, document: Mapping[str, Any]) -> BacktestState:
    """A recorded run once its document was read."""
    from engine.reports.performance import BENCHMARK

    state = replace(
        state,
        spec=replace(state.spec, cash=Decimal(document["initial_value"])),
        label=one_line(document["label"] or ""),
        actions=Counter(decision["action"] for decision in document["decisions"]),
    )
    state = after_message(state, {"type": "result", "document": document})
    held = document["baselines"].get(BENCHMARK)
    if held is None:
        return state
    points = [[point["session"], value] for point, value in zip(document["equity"], held["equity"], strict=False)]
    return after_message(state, {"type": "baseline", "name": BENCHMARK, "equity": points})


def up_to(run: BacktestState, session: date, decisions: int | None = None) -> BacktestState:
    """A finished run as it was once a session was settled, and the first `decisions` of it were made; by default all of
    them."""
    document, last = run.document or {}, session.isoformat()
    made = document.get("decisions", ())
    decided = [one["action"] for one in made if one["session"] < last]
    decided += [one["action"] for one in made if one["session"] == last][:decisions]
    traded = [one for one in document.get("trades", ()) if one["session"] <= last]
    curve = tuple(point for point in run.curve if point[0] <= session)
    done = run.done - len(run.curve) + len(curve)  # with the sessions of the warm-up, where those are counted
    return replace(
        run, curve=curve, done=done, part="to", session=session, actions=Counter(decided), trades=len(traded)
    )


def curves(
    run: BacktestState, others: Sequence[BacktestState], *, falls: bool = False, until: date | None = None
) -> PlotData:
    """A run beside its baseline and others over the sessions of its window up to `until`, of one that has not come to
    its end up to its last, in money, or with `falls` in percent below the highest value so far, from the money that it
    began with; during the warm-up alone."""

    def drawn_of(values: Mapping[date, float], of: BacktestState) -> Mapping[date, float]:
        return _falls(values, of.spec.cash) if falls else values

    own = drawn_of(dict(run.curve), run)
    if not own:
        return PlotData()
    if run.status != DONE and until is None:
        until = max(own)
    beside: dict[str, Mapping[date, float]] = {}
    if run.part != WARM_UP:
        beside = {run.baseline_name: drawn_of(run.baseline, run)}
        beside |= {one.name: drawn_of(dict(one.curve), one) for one in others}
    axis = sorted(day for day in {*own, *beside.get(run.baseline_name, ())} if until is None or day <= until)
    drawn: dict[str, Mapping[date, float]] = {run.name: own}
    for name, values in beside.items():
        days = [day for day in axis if day in values]
        if days and (len(days) > 1 or len(axis) == len(days)):  # a point beside a curve tells nothing
            drawn[name if days[-1] == axis[-1] else f"{name} to {days[-1]}"] = values
    series = {one_line(name): [values.get(day) for day in axis] for name, values in drawn.items()}
    baseline = next((name for name in series if name.startswith(run.baseline_name)), "")
    return PlotData(series, [day.isoformat() for day in axis], beside=baseline, shaded=falls)


def _falls(values: Mapping[date, float], began: Decimal | None) -> Mapping[date, float]:
    """Each value in percent of the highest before it, of which the first is what the run `began` with, less 100."""
    days = sorted(values)
    highest = list(accumulate((values[day] for day in days), max, initial=float(began or 0)))[1:]
    return {day: 100 * (values[day] / top - 1) for day, top in zip(days, highest, strict=True) if top}


def report(run: BacktestState, stored: StoredRun | None, width: int, *, plain: bool) -> Content:
    """The summary that `paperdesk backtest` prints, in columns of `width`."""
    if run.document is None:
        return Content(run.error or "The report comes at the end of the run.")
    from tui.text.backtest_text import summary_text
    from tui.text.console import Console

    journal = "" if stored is None else str(stored.path)
    return Content(summary_text(run.document, journal, Console(max(40, width), ascii_only=plain)))


def comparison(document: Mapping[str, Any], names: Mapping[str, str], width: int) -> Content:
    """The text that `paperdesk runs compare` prints, with the names that runs have here by their ids."""
    from tui.text.runs_text import comparison_lines

    return Content("\n".join(comparison_lines(document, width, names)))
