"""A backtest as one JSON document: what `backtest --json` prints, the journal keeps, and every report is made from.

Money, prices and quantities are decimal strings in plain notation, exact to the last digit; ratios are numbers, in the
units of the convention; `size` of a decision is in percent of the portfolio; what is not defined is null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise
from operator import mul
from types import MappingProxyType
from typing import Any

from engine.account.track_record import daily_returns
from engine.conventions.catalog import convention
from engine.conventions.metrics import Track
from engine.domain.market import Dropped, Symbol
from engine.domain.order import ZERO
from engine.domain.run import ModelUse, Result, RunPart
from engine.domain.text import money, plain
from engine.reports.documents import row_json
from engine.reports.documents.luck import luck, random_beside
from engine.reports.documents.settings import spec_settings
from engine.reports.performance import BENCHMARK, Measure, Report, owner_books, profit, through

SCHEMA = 1
"""The version of the document; it goes up when a field changes its meaning or goes away."""

Document = dict[str, Any]
"""JSON's own types only."""


def document(report: Report) -> Document:
    """The document of a backtest. Baselines of an interrupted run are cut at its last session."""
    made: Document = json.loads(document_text(report))
    return made


def document_text(report: Report) -> str:
    """The document of a backtest as text, a line for every key and every row. The books become text close by close:
    those of hundreds of symbols over years would not fit into memory as JSON's own types."""
    result = report.result
    spec, test, measure = result.spec, result.test, _measure(report)
    last = test.equity[-1].session if test.equity else None
    baselines = {name: through(beside.test, last) for name, beside in report.baselines.items()}
    held, cost = baselines.get(BENCHMARK), float(spec.rules.cost_rate) if spec.rules else 0.0
    tracks = {} if held is None else {symbol: measure.symbol_track(held, symbol) for symbol in measure.symbols}
    track, measured = measure.track(test, held), performance(test, measure, result.model, baselines, tracks)
    random = random_beside(test, track, tracks.values(), cost)
    if random is not None:
        measured["baselines"]["random"] = random.baseline(track, measure)
    content = {
        **_head(report, measure),
        **measured,
        "luck": luck(test, track, random),
        "warm_up": _warm_up(result, measure),
        **_tail(result),
    }
    return in_rows(content)


def in_rows(content: Mapping[str, Any]) -> str:
    """A backtest's document as text, a line for every key and every row; the closes of `equity` may be text already."""
    return "".join(row_pieces(content))


def row_pieces(content: Mapping[str, Any]) -> Iterator[str]:
    """That text in pieces."""
    for number, (key, value) in enumerate(content.items()):
        yield f'{{"{key}": ' if number == 0 else f',\n"{key}": '
        if not isinstance(value, list) or not (key == "equity" or (value and isinstance(value[0], dict))):
            yield _written(value)
            continue
        yield "[\n"
        for place, row in enumerate(value):
            yield ",\n" if place else ""
            yield row if isinstance(row, str) else _written(row)
        yield "\n]"
    yield "}"


_written = json.JSONEncoder(allow_nan=False).encode


def light_document(report: Report) -> Document:
    """The document of a light run: settings, returns, trades and the fingerprint of the books that it does not hold."""
    result = report.result
    test, measure = result.test, _measure(report)
    books = _books(test)
    return {
        **_head(report, measure),
        "light": True,
        "symbols": list(measure.symbols),
        "currency": measure.exchange.currency,
        **_extent(test),
        "convention": measure.convention.name,
        "metrics": measure.of_run(test, None, ZERO if result.model is None else result.model.cost),
        "luck": luck(test, measure.track(test), None),
        "returns": list(daily_returns(test)),
        "trades": books["trades"],
        "model": None if result.model is None else row_json.model_use(result.model),
        **_tail(result),
        "fingerprint": _fingerprint(books),
    }


def _measure(report: Report) -> Measure:
    spec = report.result.spec
    return Measure(convention(spec.convention), spec.symbols, report.exchange, report.risk_free)


def _head(report: Report, measure: Measure) -> Document:
    spec = report.result.spec
    return {
        "schema": SCHEMA,
        "run": spec.run,
        **({"strategy": spec.strategy} if spec.strategy is not None else {"preset": spec.preset}),
        "label": report.label,
        "settings": _settings(report, measure),
    }


def _tail(result: Result) -> Document:
    return {
        "dropped": _dropped(result.dropped),
        "notes": list(result.notes),
        "interrupted": result.interrupted,
    }


def performance(
    run_part: RunPart,
    measure: Measure,
    use: ModelUse | None,
    baselines: Mapping[str, RunPart] = MappingProxyType({}),
    tracks: Mapping[Symbol, Track] = MappingProxyType({}),
) -> Document:
    """Figures, books and decisions of a part of a run, of a backtest or a desk, and the use of models (None: nobody was
    asked); each close of `equity` as JSON in canonical text. `tracks` are the records of the symbols in buy and hold.
    """
    held, symbols, equity = baselines.get(BENCHMARK), measure.symbols, run_part.equity
    books = _books(run_part)
    unresolved = row_json.unresolved_by_agent(run_part.decisions, use)
    return {
        "symbols": list(symbols),
        "currency": measure.exchange.currency,
        **_extent(run_part),
        "convention": measure.convention.name,
        "metrics": measure.of_run(run_part, held, ZERO if use is None else use.cost),
        "per_symbol": {
            symbol: {
                "metrics": measure.of_symbol(run_part, symbol, tracks.get(symbol)),
                "final_quantity": plain(equity[-1].portfolio.quantity(symbol) if equity else ZERO),
                "profit": money(profit(run_part, symbol)),
            }
            for symbol in symbols
        },
        **_per_owner(run_part, measure, held),
        "baselines": {name: _baseline(beside, measure, held) for name, beside in baselines.items()},
        **books,
        "closes": row_json.closes(equity, symbols, next((one.equity for one in baselines.values()), ())),
        "unresolved_figures": sum(unresolved.values()),
        "model": None if use is None else row_json.model_use(use, unresolved),
        "fingerprint": _fingerprint(books),
    }


def fingerprint(run_part: RunPart) -> str:
    """SHA-256 over decisions, trades and equity as the document prints them, without opinions and the owners of
    trades: equal for equal runs, whatever they are called and whenever they ran."""
    return _fingerprint(_books(run_part))


def _fingerprint(books: Document) -> str:
    decisions = _canonical([_without(row, "opinions") for row in books["decisions"]])
    trades = _canonical([_without(row, "owner") for row in books["trades"]])
    digest = hashlib.sha256(f'{{"decisions":{decisions},"equity":['.encode())
    for number, row in enumerate(books["equity"]):
        digest.update(f"{',' if number else ''}{row}".encode())
    digest.update(f'],"trades":{trades}}}'.encode())
    return digest.hexdigest()


def _without(row: Document, key: str) -> Document:
    return {name: value for name, value in row.items() if name != key}


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def as_text(content: Mapping[str, Any] | Sequence[Any]) -> str:
    """A document as text: ASCII, since a model may answer with characters that no terminal's encoding takes."""
    return json.dumps(content, indent=2, allow_nan=False)


def _settings(report: Report, measure: Measure) -> Document:
    """Every effective setting of a run; null where one does not apply."""
    result, spec = report.result, report.result.spec
    named = convention(spec.convention)
    return {
        "from": spec.first.isoformat(),
        "to": spec.last.isoformat(),
        "dropped_sessions": max(named.bars_dropped_for(symbol) for symbol in spec.symbols),
        "calendar": report.exchange.calendar,
        "currency": report.exchange.currency,
        "periods_per_year": measure.periods_per_year,
        "price_basis": named.price_basis,
        "risk_free": report.risk_free,
        "without": list(spec.without),
        "params": dict(spec.params),
        **spec_settings(spec),
        "sample": spec.sample,
        **asdict(spec.options),
        "prompts": result.extra.get("prompts", {}),
        "code": result.extra.get("code"),
    }


def _extent(run_part: RunPart) -> Document:
    equity = run_part.equity
    return {
        "sessions": len(equity),
        "first_session": equity[0].session.isoformat() if equity else None,
        "last_session": equity[-1].session.isoformat() if equity else None,
        "initial_value": money(run_part.initial_value),
        "final_value": money(equity[-1].value if equity else run_part.initial_value),
    }


def _baseline(run_part: RunPart, measure: Measure, held: RunPart | None) -> Document:
    """A run for comparison; `equity` has a value for each of the run's sessions."""
    return {
        "initial_value": money(run_part.initial_value),
        "final_value": money(run_part.equity[-1].value if run_part.equity else run_part.initial_value),
        "metrics": measure.of_run(run_part, held),
        "trades": len(run_part.fills),
        "equity": [money(point.value) for point in run_part.equity],
    }


def _per_owner(run_part: RunPart, measure: Measure, held: RunPart | None) -> Document:
    """Each owner's book as a run of its own; null where the desk has one book."""
    found = {
        owner: {
            **_baseline(own, measure, held),
            **row_json.books(own.equity[-1]),
            "trades": [row_json.trade(fill) for fill in own.fills],
        }
        for owner, own in owner_books(run_part).items()
    }
    return {"per_owner": found or None}


def _books(run_part: RunPart) -> Document:
    return {
        "trades": [row_json.trade(fill) for fill in run_part.fills],
        "cash_flows": [row_json.cash_flow(flow) for flow in run_part.cash_flows],
        "equity": [_canonical(row_json.point(point)) for point in run_part.equity],
        "decisions": row_json.decisions(run_part.decisions, run_part.opinions),
    }


def _warm_up(result: Result, measure: Measure) -> Document | None:
    run_part = result.warm_up
    if run_part is None:
        return None
    books = _books(run_part)
    return {
        **_extent(run_part),
        "metrics": measure.of_run(run_part),
        **books,
        "equity": [json.loads(row) for row in books["equity"]],
    }


def _dropped(dropped: tuple[Dropped, ...]) -> dict[str, dict[str, int]]:
    """Counts by source and reason."""
    counts: dict[str, dict[str, int]] = {}
    for one in dropped:
        reasons = counts.setdefault(one.source, {})
        reasons[one.reason] = reasons.get(one.reason, 0) + one.count
    return counts


def sessions_of(document: Mapping[str, Any]) -> list[str]:
    """The sessions that were valued."""
    return [point["session"] for point in document["equity"]]


def returns_of(document: Mapping[str, Any]) -> list[float]:
    """Returns from close to close as fractions, the first from the initial value; of a desk time-weighted, of a light
    run as they are there."""
    if "returns" in document:
        return list(document["returns"])
    points = document["equity"]
    if points and "change" in points[0]:
        return [point["change"] or 0.0 for point in points]
    values = [float(document["initial_value"]), *(float(point["value"]) for point in points)]
    return [after / before - 1 if before > 0 else 0.0 for before, after in pairwise(values)]


def growth_of(document: Mapping[str, Any]) -> list[float]:
    """The worth of one unit of money at each close, 1 before the first session."""
    return list(accumulate((1 + change for change in returns_of(document)), mul, initial=1.0))
