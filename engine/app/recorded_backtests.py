"""The backtests that lie on this machine, for an app: the list, a result, a comparison, an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.app.run_comparison import compare_runs
from engine.app.run_export import export_run
from engine.app.run_inventory import Wanted, named_runs, stored_runs
from engine.reports.documents.row_json import Row
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.stored import stored_document
from engine.services import Services

_BACKTESTS = Wanted(kind=StoredKind.BACKTEST)


@dataclass(frozen=True, slots=True)
class RecordedBacktests:
    """Backtests of any day; every method reads files and takes tens of milliseconds and more."""

    services: Services
    read_only: bool = False
    """True where journals of an older program stay as they are; each says so in place of its figures."""

    def all(self) -> Sequence[StoredRun]:
        """Every backtest, the latest first; one that cannot be read says why."""
        return stored_runs(_BACKTESTS, read_only=self.read_only)

    def document(self, run: str) -> Mapping[str, Any]:
        """The JSON of `paperdesk backtest --json` of a run. Raises MissingData and MalformedData."""
        return stored_document(run)

    def comparison(self, runs: Sequence[str]) -> Row:
        """The document of `paperdesk runs compare`. Raises as `compare_runs` does."""
        return compare_runs(named_runs(self.all(), runs))

    def export(self, run: str, folder: Path) -> Sequence[str]:
        """Write a run as a new folder; return the names of its files. Raises as `export_run` does."""
        return export_run(self.services, named_runs(self.all(), [run])[0], folder)
