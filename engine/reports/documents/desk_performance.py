"""A desk from its first close to a session in the form of a backtest's document, so that one page shows both."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from engine.account.time_weighted import measured, net_deposits
from engine.conventions.catalog import convention
from engine.domain.decimal_text import money, plain
from engine.domain.exchanges import Exchanges
from engine.domain.market import Symbol
from engine.domain.run import ModelUse, Stretch
from engine.errors import MissingData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents import row_json
from engine.reports.documents.backtest import SCHEMA, fingerprint
from engine.reports.documents.row_json import Row, unresolved_by_agent
from engine.reports.documents.session import session_document
from engine.reports.performance import Measure, profit
from engine.session.cost_meter import CostMeter

CONVENTION = "desk"


def desk_performance(
    reader: JournalReader, desk: str, run: str, *, exchanges: Exchanges, risk_free: float = 0.0
) -> Row:
    """The desk up to the session of one of its runs; `risk_free` is a yearly rate as a fraction. `change` of a close is
    time-weighted, there are no baselines, and the notes are those of the run. Raises MissingData where no session is
    closed yet."""
    entry, day = reader.run(run), session_document(reader, desk, run)
    stretch = _stretch(reader, entry)
    settings = {"params": {}, "without": [], "data": "not recorded", **(day["settings"] or {})}
    symbols = _symbols(settings.get("symbols", ()), entry, stretch)
    exchange = exchanges.of_portfolio(symbols)
    measure = Measure(convention(CONVENTION), symbols, exchange, risk_free)
    use = _use(reader, entry)
    unresolved = unresolved_by_agent(stretch.decisions, use)
    return {
        "schema": SCHEMA,
        "desk": desk,
        "run": run,
        "preset": entry.name,
        "label": entry.label,
        "settings": settings,
        "symbols": list(symbols),
        "currency": exchange.currency,
        "periods_per_year": measure.periods_per_year,
        "sessions": len(stretch.equity),
        "first_session": str(stretch.equity[0].session),
        "last_session": str(stretch.equity[-1].session),
        "initial_value": money(stretch.initial_value),
        "final_value": money(stretch.equity[-1].value),
        "convention": CONVENTION,
        "metrics": measure.of_run(stretch, model_cost=use.cost),
        "per_symbol": {symbol: _of_symbol(measure, stretch, symbol) for symbol in symbols},
        "baselines": {},
        "trades": [row_json.trade(fill) for fill in stretch.fills],
        "cash_flows": [row_json.cash_flow(flow) for flow in stretch.cash_flows],
        "equity": _equity(stretch),
        "decisions": row_json.decisions(stretch.decisions, stretch.opinions),
        "closes": row_json.closes(stretch.equity, symbols),
        "warm_up": None,
        "unresolved_figures": sum(unresolved.values()),
        "model": row_json.model_use(use, unresolved) if use.calls else None,
        "dropped": {},
        "notes": [f"{note['level']}: {note['text']}" for note in day["notes"]],
        "interrupted": False,
        "fingerprint": fingerprint(stretch),
    }


def _stretch(reader: JournalReader, entry: RunEntry) -> Stretch:
    last = entry.session or date.max
    points = tuple(point for point in reader.equity() if point.session <= last)
    if not points:
        raise MissingData(f"no session of {entry.id} is closed yet: there is nothing to report on")
    return Stretch(
        initial_value=points[0].value,
        equity=points,
        fills=tuple(fill for fill in reader.fills() if fill.session <= last),
        cash_flows=tuple(flow for flow in reader.cash_flows() if flow.session <= last),
        adoptions=tuple(one for one in reader.adoptions() if one.session <= last),
        decisions=reader.decisions(last=last),
        opinions=reader.opinions(last=last),
    )


def _symbols(named: Sequence[str], entry: RunEntry, stretch: Stretch) -> tuple[Symbol, ...]:
    """The symbols that the run decides, and those that were traded before."""
    return tuple(dict.fromkeys((*(named or entry.symbols), *(fill.symbol for fill in stretch.fills))))


def _of_symbol(measure: Measure, stretch: Stretch, symbol: Symbol) -> dict[str, Any]:
    return {
        "metrics": measure.of_symbol(stretch, symbol),
        "final_quantity": plain(stretch.equity[-1].portfolio.quantity(symbol)),
        "profit": money(profit(stretch, symbol)),
    }


def _equity(stretch: Stretch) -> list[Row]:
    rows = measured(stretch.equity, net_deposits(stretch.equity, stretch.cash_flows, stretch.adoptions))
    return [{**row_json.point(row.point), "change": None if row.change is None else float(row.change)} for row in rows]


def _use(reader: JournalReader, entry: RunEntry) -> ModelUse:
    """The use of models by all runs of the desk up to this one."""
    meter = CostMeter("" if entry.model is None else entry.model.spec)
    for run in reader.runs():
        meter.goes_on(reader.calls(run.id))
        if run.id == entry.id:
            break
    return meter.use
