"""Try the rows of the fault table, each on a desk of its own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from engine.app.upkeep.drill.fault_table import Row, chosen, fault_table
from engine.app.upkeep.drill.practice import (
    DoesNotHold,
    DrillParts,
    Practice,
    as_it_is,
    at_home,
    check_end,
    copied_home,
    prepare,
    write_configuration,
)
from engine.app.upkeep.drill.results import keep_result
from engine.app.upkeep.drill.steps import Steps
from engine.clock import LiveClock
from engine.errors import Interrupted, PaperdeskError
from engine.reports.documents.drill import SANDBOX, RowResult, drill_document
from engine.reports.documents.row_json import Row as Document

OnResult = Callable[[RowResult, int], None]
"""Receives each result, and its number."""
AFTER_ALL = datetime.fromisoformat("2025-07-11T21:00:00+00:00")
"""A time after the last session of any row: the data of all of them is fetched then."""


def drill_sandbox(names: Sequence[str], parts: DrillParts, on_result: OnResult) -> Document:
    """The document of a drill of some rows, which is kept where all were tried. Raises UsageError for a name that no
    row has, and as `try_rows` does."""
    rows = chosen(names)
    document = drill_document(SANDBOX, try_rows(rows, parts, on_result), LiveClock().now())
    if len(rows) == len(fault_table()):
        keep_result(document)
    return document


def try_rows(rows: Sequence[Row], parts: DrillParts, on_result: OnResult) -> tuple[RowResult, ...]:
    """Try rows, one after another. Nothing of the configured desk, its home or its environment is touched. Raises
    Interrupted, and PaperdeskError where the local broker cannot be opened or its data not be fetched."""
    results = list[RowResult]()
    with tempfile.TemporaryDirectory(prefix="paperdesk-drill-") as folder:
        template = Path(folder, "template")
        symbols = sorted({symbol for row in fault_table() for symbol in row.symbols} | {"BXWD"})
        market = prepare(template, symbols, AFTER_ALL, parts)
        for number, row in enumerate(rows, 1):
            with _practice(row, Path(folder, row.name), template, market, parts) as practice:
                results.append(_tried(row, practice))
            on_result(results[-1], number)
    return tuple(results)


@contextmanager
def _practice(row: Row, home: Path, template: Path, market: Path, parts: DrillParts) -> Iterator[Practice]:
    own, fetches = row.settings.get("own_data", False), row.settings.get("refresh", False)
    copied_home(template, home, with_data=(own or fetches) and not row.settings.get("empty", False))
    folder = home / market.relative_to(template) if own else market
    write_configuration(home, row.symbols, None if fetches else folder)
    with parts.open_account(row.start, row.settings) as account, at_home(home, account):
        yield Practice(home, account, parts)


def _tried(row: Row, practice: Practice) -> RowResult:
    begun, problem = time.monotonic(), ""
    try:
        _play(row, practice)
    except DoesNotHold as failure:
        problem = str(failure)
    except Interrupted:
        raise
    except PaperdeskError as error:
        problem = f"{error} (code {error.exit_code})"
    except Exception as error:  # a bug is what the drill looks for
        problem = f"a bug: {type(error).__name__}: {error}"
    return RowResult(
        name=row.name,
        fault=row.fault,
        expected=row.codes,
        got=tuple(practice.codes[: len(row.codes)]),
        held=not problem,
        detail=problem,
        seconds=round(time.monotonic() - begun, 1),
    )


def _play(row: Row, practice: Practice) -> None:
    """Take the steps of a row, have the fault be over, and go on to the next session."""
    steps = Steps(practice)
    with as_it_is():
        try:
            for step in row.steps:
                steps.take(step)
        finally:
            steps.undo()
    if not row.ends:
        practice.account.clear_faults()
    if practice.codes[-1]:
        steps.take({"run": 0})
    check_end(practice)
    for move in ("close", "5m"):
        practice.account.advance(move)
    steps.take({"run": 0})
    check_end(practice)
