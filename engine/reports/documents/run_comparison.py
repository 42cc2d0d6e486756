"""Runs beside each other, as `paperdesk runs compare` prints them: settings, metrics, decisions, equity day by day;
and a run beside its repetition, as `paperdesk rerun` prints it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest
from operator import itemgetter
from typing import Any

from engine.domain.text import money
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import changed_settings, run_settings
from engine.reports.documents.side_by_side import Arm, side_by_side
from engine.reports.performance import BENCHMARK

SCHEMA = 1
SHOWN = 10
"""Rows that differ and are listed; all are counted."""

_DECISION = ("session", "symbol", "owner")
_TRADE = ("session", "symbol", "side", "quantity", "price")
Document = Mapping[str, Any]


def comparison_document(documents: Sequence[Document]) -> Row:
    """Backtests beside each other. Each pair is the first run and another one; differences are the other's less the
    first's."""
    first, *others = documents
    arms = [Arm(name=one["run"], model=(one["model"] or {}).get("spec"), documents=[one]) for one in documents]
    beside = side_by_side(arms, _repeats(documents))
    figures = {pair["other"]: pair for pair in beside["pairs"] if pair["first"] == first["run"]}
    curves = _curves(documents)
    return {
        "schema": SCHEMA,
        "kind": "backtest",
        "runs": [_head(one) for one in documents],
        "metrics": metric_columns([one["metrics"] for one in documents]),
        **beside,
        "pairs": [{**_pair(first, other), **figures[other["run"]]} for other in others],
        "curves": curves,
        "family": _family([*figures.values()], len(curves["sessions"])),
    }


def _family(pairs: Sequence[Row], sessions: int) -> Row | None:
    """The tests of all runs against the first, taken together; None of fewer than 20 sessions that all have."""
    if pairs[0]["p"] is None:
        return None
    rows = [{"run": one["other"], "p": one["p"], "adjusted": one["adjusted"]} for one in pairs]
    return {"sessions": sessions, "superior": pairs[0]["superior"], "rows": rows}


def _repeats(documents: Sequence[Document]) -> Sequence[Sequence[Document]]:
    """The runs that only the number of their repeat tells apart, together."""
    groups: dict[str, list[Document]] = {}
    for one in documents:
        decided = {name: value for name, value in run_settings(one).items() if name not in ("sample", "interrupted")}
        groups.setdefault(json.dumps(decided, sort_keys=True), []).append(one)
    return list(groups.values())


def metric_columns(metrics: Sequence[Mapping[str, float | None]]) -> list[Row]:
    """Every metric that any run has, with the values of all runs in their order; null where one has none."""
    names = dict.fromkeys(name for one in metrics for name in one)
    return [{"metric": name, "values": [one.get(name) for one in metrics]} for name in names]


def _head(document: Document) -> Row:
    names = ("run", "symbols", "convention", "sessions", "first_session", "last_session", "final_value", "interrupted")
    kind = "strategy" if "strategy" in document else "preset"
    return {
        **{name: document[name] for name in names},
        "name": document[kind],
        "fingerprint": document["fingerprint"],
        "luck": document.get("luck"),
    }


def _pair(first: Document, other: Document) -> Row:
    return {
        "first": first["run"],
        "other": other["run"],
        "same": first["fingerprint"] == other["fingerprint"],
        "settings": changed_settings(run_settings(first), run_settings(other)),
        "equity": _equity(first, other),
        "decisions": _decisions(first, other),
        "trades": _trades(first, other),
    }


def _equity(first: Document, other: Document) -> Row:
    """The difference of the values at the last session that both have, and where they lay furthest apart."""
    ours = {point["session"]: Decimal(point["value"]) for point in first["equity"]}
    gaps = {
        point["session"]: Decimal(point["value"]) - ours[point["session"]]
        for point in other["equity"]
        if point["session"] in ours
    }
    last = max(gaps, default=None)
    widest = max(gaps, key=lambda session: abs(gaps[session]), default=None)
    return {
        "last_session": last,
        "last": None if last is None else money(gaps[last]),
        "widest_session": widest,
        "widest": None if widest is None else money(gaps[widest]),
    }


def _curves(documents: Sequence[Document]) -> Row:
    """The values of every run in their order, and of the first one's buy and hold where it was played, from 100 at the
    first of the sessions that all have."""
    curves = [{point["session"]: float(point["value"]) for point in one["equity"]} for one in documents]
    held = documents[0]["baselines"].get(BENCHMARK)
    held = held and dict(zip(curves[0], map(float, held["equity"]), strict=True))
    sessions = sorted(set(curves[0]).intersection(*curves[1:]))
    return {
        "sessions": sessions,
        "runs": [_from_100(curve, sessions) for curve in curves],
        "buy_and_hold": held and _from_100(held, sessions),
    }


def _from_100(curve: Mapping[str, float], sessions: Sequence[str]) -> list[float | None]:
    began = curve[sessions[0]] if sessions else 0.0
    return [100 * curve[session] / began if began else None for session in sessions]


def _decisions(first: Document, other: Document) -> Row | None:
    """Decisions (by session, symbol and owner) whose action or size differs, or that one run alone has; None where a
    run is a rule strategy's, which records none."""
    if any("strategy" in document for document in (first, other)):
        return None
    # The last one of a session counts.
    ours, theirs = (
        {tuple(one[name] for name in _DECISION): one for one in document["decisions"]} for document in (first, other)
    )
    keys = sorted({*ours, *theirs})
    differing = [key for key in keys if _said(ours.get(key)) != _said(theirs.get(key))]
    return {
        "compared": len(keys),
        "differing": len(differing),
        "rows": [
            {**dict(zip(_DECISION, key, strict=True)), "first": _said(ours.get(key)), "other": _said(theirs.get(key))}
            for key in differing[:SHOWN]
        ],
    }


def _said(decision: Document | None) -> Row | None:
    return None if decision is None else {"action": decision["action"], "size": decision["size"]}


def _trades(first: Document, other: Document) -> Row:
    """Trades that one run alone has."""
    ours, theirs = (
        Counter(tuple(str(trade[name]) for name in _TRADE) for trade in document["trades"])
        for document in (first, other)
    )
    alone = ((ours - theirs, first["run"]), (theirs - ours, other["run"]))
    rows = [dict(zip((*_TRADE, "run"), (*trade, run), strict=True)) for own, run in alone for trade in own.elements()]
    rows.sort(key=itemgetter("session", "symbol", "run"))
    return {"compared": len(first["trades"]) + len(other["trades"]), "differing": len(rows), "rows": rows[:SHOWN]}


PARTS = ("decisions", "trades", "equity")


def rerun_document(before: Mapping[str, Any], again: Mapping[str, Any]) -> Row:
    """The documents of a run and of its repetition, compared: the same where both the test and the warm-up came out
    alike."""
    differences = list(_first_differences(before, again))
    return {
        "schema": SCHEMA,
        "run": again["run"],
        "of": before["run"],
        "same": before["fingerprint"] == again["fingerprint"] and not differences,
        "fingerprints": [before["fingerprint"], again["fingerprint"]],
        "settings": changed_settings(run_settings(before), run_settings(again)),
        "first_differences": differences,
    }


def _first_differences(before: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[Row]:
    """By part of the run and kind of result, the first row that is not as it was; opinions and owners do not count, and
    a light run has trades alone."""
    for part, was, now in (("warm-up", before.get("warm_up"), again.get("warm_up")), ("test", before, again)):
        for kind in PARTS:
            found = _first((was or {}).get(kind, ()), (now or {}).get(kind, ()))
            if found is not None:
                yield {"part": part, "kind": kind, "session": found["session"], "symbol": found.get("symbol")}


def _first(was: Sequence[Row], now: Sequence[Row]) -> Row | None:
    """The first of two sequences of rows that is not the same in both."""
    pairs = ((one, other) for one, other in zip_longest(was, now) if _plain(one) != _plain(other))
    one, other = next(pairs, (None, None))
    return one or other


def _plain(row: Row | None) -> Row | None:
    return row and {name: value for name, value in row.items() if name not in ("opinions", "owner")}
