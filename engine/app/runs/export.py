"""A run as a folder of its own, to be carried to another machine or given to others."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.app.arena.record import load_document
from engine.errors import DataError, MissingData
from engine.journal import copies
from engine.journal.reader import JournalReader
from engine.reports.arena_report import arena_html
from engine.reports.csv_tables import TABLES, csv_table
from engine.reports.documents.backtest import as_text
from engine.reports.documents.desk_performance import desk_performance
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.documents.session import session_document
from engine.reports.html import html
from engine.reports.stored import stored_document
from engine.services import Services
from engine.settings import places

JOURNAL = "journal.db"
Texts = Mapping[str, str]


def export_run(services: Services, run: StoredRun, folder: Path) -> tuple[str, ...]:
    """Write a run's document, tables, reports and journal into a new folder, all or nothing; the names of the files.
    A run of a desk comes with the whole journal of its desk. Raises DataError where the folder is there or cannot be
    written, MissingData for a run that never came to a result."""
    if folder.exists():
        raise DataError(f"{folder} is there already: name another folder")
    made = {StoredKind.BACKTEST: _backtest, StoredKind.ARENA: _arena}.get(run.kind, _desk)
    texts, half = made(services, run), folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        for name, text in texts.items():
            # Half of a surrogate pair, which models do answer with, has no place in UTF-8.
            (half / name).write_bytes(text.encode("utf-8", "replace"))
        if run.kind is StoredKind.ARENA:
            shutil.copyfile(run.path, half / "record.json")
        else:
            copies.backup(run.path, half / JOURNAL)
        half.rename(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({error.strerror}): name another folder with --to") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return tuple(sorted(file.name for file in folder.iterdir()))


def _backtest(services: Services, run: StoredRun) -> Texts:
    document = stored_document(run.id)
    tables = {f"{name}.csv": csv_table(document, name) for name in TABLES}
    return {"result.json": _json(document), "report.html": html(document), **tables}


def _arena(services: Services, run: StoredRun) -> Texts:
    document = load_document(run.id)
    texts = {"result.json": _json(document)}
    return texts if "repeats" in document else {**texts, "report.html": arena_html(document)}


def _desk(services: Services, run: StoredRun) -> Texts:
    if run.desk is None:
        raise MissingData(f"no run {run.id}")
    with JournalReader(places.desk_journal(run.desk)) as reader:
        document = session_document(reader, run.desk, run.id)
        config = services.config
        whole = desk_performance(
            reader, run.desk, run.id, exchanges=config.exchanges, risk_free=config.metrics.risk_free
        )
    return {"result.json": _json(document), "report.html": html(whole)}


def _json(document: Mapping[str, Any]) -> str:
    return as_text(document) + "\n"
