"""An audit, a bench and a search for parameters, as `paperdesk audit`, `bench` and `tune` print them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date

from engine.conventions.catalog import convention
from engine.domain.run import ModelUse, PriceBasis, RunSpec
from engine.lab.certificate import Certificate
from engine.lab.tuning import Tuned, tuned_metric
from engine.reports.comparison import Cell, Curves
from engine.reports.documents import row_json
from engine.reports.documents.families import table_families
from engine.reports.documents.luck import trials_on, winner_luck
from engine.reports.documents.row_json import Row

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Result of a bench.

    name: the paper.
    cells: our figures beside the printed ones.
    curves: cumulative returns of our rows.
    averages: averages over the symbols, by model.
    pairs: rows of ours held against each other.
    notes: remarks on the whole of it.
    runs: ids of runs with a journal.
    models: calls and cost by model.
    unresolved: figures that stand in no source, by model and agent.
    interrupted: what was not done, empty where all was.
    """

    name: str
    cells: tuple[Cell, ...]
    curves: Curves = field(default_factory=dict)
    averages: tuple[Row, ...] = ()
    pairs: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    models: tuple[ModelUse, ...] = ()
    unresolved: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    interrupted: str = ""


def audit_document(spec: RunSpec, certificate: Certificate) -> Row:
    """The certificate of an audited run."""
    return {
        "schema": SCHEMA,
        "strategy" if spec.strategy is not None else "preset": certificate.subject,
        "symbols": list(spec.symbols),
        "convention": spec.convention,
        "first_decision": certificate.first.isoformat(),
        "last_decision": certificate.last.isoformat(),
        "inputs": [
            {
                "source": source,
                "items": len(read.items),
                "latest_available": None if read.latest is None else read.latest.isoformat(),
                **row_json.fields(read, "decision", "from_the_future"),
            }
            for source, read in certificate.inputs.items()
        ],
        "truncation": row_json.fields(certificate, "cuts", "compared", "differing"),
        "folder_copies": None
        if certificate.copies is None
        else row_json.fields(certificate.copies, "compared", "differing", "hidden"),
        "training": None
        if certificate.training is None
        else {
            "sessions": [str(day) for day in certificate.training.sessions],
            "unmarked": len(certificate.training.unmarked),
        },
        "door": {"sessions": certificate.access_sessions, "differing": certificate.access_differing},
        "planted": [
            {"source": p.source, "surfaced": p.surfaced, "where": p.where or None} for p in certificate.planted
        ],
        "mask": None
        if certificate.unmasked is None
        else {"level": spec.options.mask, "named": list(certificate.unmasked)},
        "hindsight_memories": certificate.hindsight,
        "foretold": list(certificate.leaked_prices),
        "stamped_early": list(certificate.early),
        "undated_texts": list(certificate.undated),
        "opened_files": sorted(certificate.opened),
        "not_audited": list(certificate.not_audited),
        **row_json.fields(certificate.bound, "run", "version", "data_fingerprint", "code", "fingerprint"),
        **({} if certificate.bound.run is None else row_json.fields(certificate.bound, "same", "differs")),
        "findings": [*(_opening(*one) for one in sorted(certificate.opened.items()) if one[1]), *certificate.findings],
        "notes": _audit_notes(spec, certificate),
        "verdict": certificate.outcome,
    }


def _opening(file: str, line: str) -> str:
    return f"{line} opens {file}"


def _audit_notes(spec: RunSpec, certificate: Certificate) -> list[str]:
    """Remarks on what a certificate does not cover."""
    notes = [*certificate.notes]
    if convention(spec.convention).price_basis is not PriceBasis.RAW:
        adjusted = f"convention {spec.convention} trades at prices adjusted for later dividends, as the paper did"
        notes.append(f"{adjusted}: that is knowledge of the future which this audit leaves out")
    if certificate.copies is not None and not certificate.copies.hidden:
        notes.append("the data folder could not be hidden: only what Python opens of it was refused and is told")
    return notes


def bench_document(bench: Bench) -> Row:
    """Every cell of a bench, and what its models were asked."""
    curves = list(_curves(bench.curves))
    return {
        "schema": SCHEMA,
        "bench": bench.name,
        "cells": list(map(_cell, bench.cells)),
        "curves": curves,
        "families": table_families(curves),
        **row_json.fields(bench, "averages", "pairs", "notes", "runs"),
        "models": model_use_rows(bench.models, bench.unresolved),
        "interrupted": bench.interrupted or None,
    }


def _curves(curves: Curves) -> Iterator[Row]:
    """By table and symbol the sessions, and the cumulative return of every row at each; null where it has none."""
    for (table, symbol), own in curves.items():
        days = sorted({day for points in own.values() for day in points})
        rows = {name: [points.get(day) for day in days] for name, points in own.items() if points}
        yield {"table": table, "symbol": symbol, "sessions": list(map(str, days)), "rows": rows}


def model_use_rows(models: Iterable[ModelUse], unresolved: Mapping[str, Mapping[str, int]]) -> list[Row]:
    """Use of each model, and its figures that stand in no source."""
    return [_model(one, unresolved.get(one.spec, {})) for one in models]


def _model(use: ModelUse, unresolved: Mapping[str, int]) -> Row:
    told = {"cost": None if use.cost is None else str(use.cost), "unresolved_figures": sum(unresolved.values())}
    return {**row_json.model_use(use, unresolved), **told}


def _cell(cell: Cell) -> Row:
    spread = cell.spread
    return {
        "table": cell.table,
        "symbol": cell.symbol,
        "strategy" if cell.strategy else "model": cell.who,
        "metric": cell.metric,
        "ours": cell.ours,
        # A binary float prints the paper's own digits back.
        "paper": None if cell.paper is None else float(cell.paper),
        "rel_diff": cell.rel_diff,
        "note": cell.note,
        **({} if cell.model is None else {"answered_by": cell.answered_by}),
        **({} if spread is None else {"repeats": spread.count, **row_json.fields(spread, "low", "median", "high")}),
    }


def tune_document(spec: RunSpec, test: tuple[date, date] | None, results: Sequence[Tuned]) -> Row:
    """The parameters that were found for each symbol; `test` is the later window that they were measured in."""
    return {
        "schema": SCHEMA,
        **row_json.fields(spec, "strategy", "convention"),
        "metric": tuned_metric(spec.convention),
        "seed": spec.seed,
        "from": spec.first.isoformat(),
        "to": spec.last.isoformat(),
        "test_from": None if test is None else test[0].isoformat(),
        "test_to": None if test is None else test[1].isoformat(),
        "interrupted": any(tuned.interrupted for tuned in results),
        "tuned": [
            {
                "symbol": tuned.symbol,
                "params": dict(tuned.params),
                "in_sample": asdict(tuned.in_sample),
                "out_of_sample": None if tuned.out_of_sample is None else asdict(tuned.out_of_sample),
                "trials": tuned.trials,
                "walk_forward": list(map(row_json.fields, tuned.folds)),
                "luck": winner_luck(
                    tuned.tried,
                    tuned.periods_per_year,
                    # Parameters that do not go together are not played: no look, and a trial of the search still.
                    max(tuned.trials, trials_on((tuned.symbol,), spec.first, spec.last)),
                ),
            }
            for tuned in results
        ],
    }
