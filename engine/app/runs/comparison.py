"""Runs of this machine, held against each other."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UsageError
from engine.reports.documents.row_json import Row
from engine.reports.documents.run_comparison import comparison_document
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.stored import stored_document


def compare_runs(runs: Sequence[StoredRun]) -> Row:
    """The document of a comparison, each run with the first one. Raises UsageError for runs that cannot be compared,
    MissingData for one that never came to a result."""
    kinds = {run.kind for run in runs}
    if len(runs) < 2:
        raise UsageError("compare needs two runs or more: paperdesk runs compare ID ID")
    if kinds == {StoredKind.BACKTEST}:
        return comparison_document([stored_document(run.id) for run in runs])
    named = ", ".join(f"{run.id} ({run.kind})" for run in runs if run.kind is not StoredKind.BACKTEST)
    raise UsageError(f"backtests are compared, and the agents of an arena by its --repeats: {named} is no backtest")
