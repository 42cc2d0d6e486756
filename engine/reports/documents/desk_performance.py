"""A desk from its first close to a session in the form of a backtest's document, so that one page shows both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

from engine.account.time_weighted import measured, net_deposits
from engine.conventions.catalog import convention
from engine.domain.market import Exchanges, Symbol
from engine.domain.model_call import PREFLIGHT
from engine.domain.run import ModelUse, RunPart
from engine.errors import MissingData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents import row_json
from engine.reports.documents.backtest import SCHEMA, performance
from engine.reports.documents.luck import luck
from engine.reports.documents.row_json import Row
from engine.reports.documents.session import session_document
from engine.reports.documents.settings import NOT_RECORDED
from engine.reports.documents.side_by_side import Arm
from engine.reports.performance import Measure, owner_books
from engine.session.cost_meter import CostMeter

CONVENTION = "desk"


def desk_performance(
    reader: JournalReader, desk: str, run: str, *, exchanges: Exchanges, risk_free: float = 0.0
) -> Row:
    """The desk up to the session of one of its runs; `risk_free` is a yearly rate as a fraction. `change` of a close is
    time-weighted, there are no baselines, and the notes are those of the run. Raises MissingData where no session is
    closed yet."""
    entry, day = reader.run(run), session_document(reader, desk, run)
    run_part = _run_part(reader, entry)
    settings = {"params": {}, "without": [], "data": NOT_RECORDED, **(day["settings"] or {})}
    symbols = _symbols(settings.get("symbols", ()), entry, run_part)
    measure = Measure(convention(CONVENTION), symbols, exchanges.of_portfolio(symbols), risk_free)
    use = _use(reader, entry)
    return {
        "schema": SCHEMA,
        "desk": desk,
        "run": run,
        "preset": entry.name,
        "label": entry.label,
        "settings": settings,
        "periods_per_year": measure.periods_per_year,
        **performance(run_part, measure, use if use.calls else None),
        "luck": luck(run_part, measure.track(run_part), None),
        "equity": _equity(run_part),
        "warm_up": None,
        "dropped": {},
        "notes": [f"{note['level']}: {note['text']}" for note in day["notes"]],
        "interrupted": False,
    }


def book_arms(
    reader: JournalReader,
    run: str,
    *,
    exchanges: Exchanges,
    risk_free: float,
    facts_of: Callable[[str], tuple[str, str]],
) -> list[Arm]:
    """The owners' books of a desk up to the session of one of its runs, each as a run of its own with the models that
    its owner's agents asked; none where the desk has one book. `facts_of` has the training cut-off of models and the
    date of their prices. Raises MissingData where no session is closed yet."""
    entry, arms = reader.run(run), []
    whole = _run_part(reader, entry)
    symbols = _symbols((), entry, whole)
    measure = Measure(convention(CONVENTION), symbols, exchanges.of_portfolio(symbols), risk_free)
    for owner, run_part in owner_books(whole).items():
        use = _use(reader, entry, owner)
        models = ", ".join(use.models)
        cutoff, as_of = facts_of(models)
        use = replace(use, spec=models, training_cutoff=cutoff, prices_as_of=as_of)
        document = performance(run_part, measure, use if use.calls else None)
        document["preset"], document["luck"] = entry.name, luck(run_part, measure.track(run_part), None)
        document["equity"] = [row_json.point(point) for point in run_part.equity]
        document["decisions"] = [{**row, "owner": ""} for row in document["decisions"]]
        arms.append(Arm(name=owner, model=models or None, documents=[document]))
    return arms


def _run_part(reader: JournalReader, entry: RunEntry) -> RunPart:
    last = entry.session or date.max
    points = tuple(point for point in reader.equity() if point.session <= last)
    if not points:
        raise MissingData(f"no session of {entry.id} is closed yet: nothing to report")
    return RunPart(
        initial_value=points[0].value,
        equity=points,
        fills=tuple(fill for fill in reader.fills() if fill.session <= last),
        cash_flows=tuple(flow for flow in reader.cash_flows() if flow.session <= last),
        adoptions=tuple(one for one in reader.adoptions() if one.session <= last),
        decisions=reader.decisions(last=last),
        opinions=reader.opinions(last=last),
        books=tuple(point for point in reader.equity(book=None) if point.book and point.session <= last),
        book_fills=tuple(fill for fill in reader.fills(book=None) if fill.book and fill.session <= last),
    )


def _symbols(named: Sequence[str], entry: RunEntry, run_part: RunPart) -> tuple[Symbol, ...]:
    """The symbols that the run decides, and those that were traded before."""
    return tuple(dict.fromkeys((*(named or entry.symbols), *(fill.symbol for fill in run_part.fills))))


def _equity(run_part: RunPart) -> list[Row]:
    rows = measured(run_part.equity, net_deposits(run_part.equity, run_part.cash_flows, run_part.adoptions))
    return [{**row_json.point(row.point), "change": None if row.change is None else float(row.change)} for row in rows]


def _use(reader: JournalReader, entry: RunEntry, owner: str | None = None) -> ModelUse:
    """The use of models by all runs of the desk up to this one; or in them by an owner's agents, without preflights,
    which are everybody's."""
    meter = CostMeter("" if entry.model is None else entry.model.spec)
    for run in reader.runs():
        calls = reader.calls(run.id, owner=owner)
        meter.restore(call for call in calls if owner is None or call.kind != PREFLIGHT)
        if run.id == entry.id:
            break
    return meter.use
