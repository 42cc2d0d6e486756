"""Files that were checked, copied or written, as `paperdesk journal`, `import` and `fetch` print them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.domain.fetched import Fetched, Imported, ImportResult
from engine.domain.model_call import ModelAnswers
from engine.journal.verification import ChainState
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row

SCHEMA = 1


def checked_document(head: Row, faults: Sequence[str], chain: ChainState | None, *, verify: bool) -> Row:
    """A check: its faults, and with `verify` the chain of hashes, null where it is not sound. `updated_from` and
    `earlier` are of journals that began in an older version, of which this one reads none."""
    checked = {**head, "sound": not faults, "faults": list(faults), "updated_from": None}
    if not verify:
        return checked
    links = None if chain is None else {**row_json.fields(chain, "links", "head", "since"), "earlier": 0}
    return {**checked, "chain": links}


def journal_head(desk: str, run: str | None, path: Path) -> Row:
    """The keys that every document of a journal's file begins with."""
    return {"schema": SCHEMA, "desk": desk, "run": run, "journal": str(path)}


def imported_document(kind: str, result: ImportResult, *, written: bool) -> Row:
    """An import into files of the data folder: the counts of all together, and each; `path` where it is one. `written`
    is False where it was only shown; `taken_for` says how the file was read, `derived` which actions adj_close
    implies."""
    counts = ("added", "replaced", "unchanged")
    done = result.files
    return {
        "schema": SCHEMA,
        "kind": kind,
        "written": written,
        "path": str(done[0].path) if len(done) == 1 else None,
        **{name: sum(getattr(one, name) for one in done) for name in counts},
        "dropped": [drop for one in done for drop in _dropped(one)],
        "files": [{"path": str(one.path), **row_json.fields(one, *counts), "dropped": _dropped(one)} for one in done],
        "derived": [row_json.fields(act, "symbol", "ex_date", "kind", "value") for one in done for act in one.derived],
        "taken_for": [
            row_json.fields(one, "kind", "rows", "header", "columns", "unread", "dates", "decimal", "zone")
            for one in result.taken
        ],
        "notes": list(result.notes),
    }


def fetched_document(kind: str, done: Sequence[Fetched], complete: bool) -> Row:
    """A fetch into files of the data folder; not `complete` where it was interrupted."""
    files = [
        {
            "name": one.name,
            "path": str(one.path),
            **row_json.fields(one, "added", "unchanged", "complete", "differing", "replaced"),
            "dropped": _dropped(one),
            "missing": [str(day) for day in one.missing],
            "impossible": {str(day): why for day, why in one.impossible.items()},
        }
        for one in done
    ]
    return {"schema": SCHEMA, "kind": kind, "complete": complete, "files": files}


def recorded_document(path: Path, models: Sequence[ModelAnswers]) -> Row:
    """The recorded answers of each model, and the size of their file."""
    rows = [
        {
            **row_json.fields(one, "spec", "answers", "failed"),
            **row_json.fields(one.usage, *row_json.TOKENS),
            **row_json.fields(one, "cost", "first", "last"),
        }
        for one in models
    ]
    size = path.stat().st_size if path.exists() else 0
    return {
        "schema": SCHEMA,
        "path": str(path),
        "bytes": size,
        "answers": sum(one.answers for one in models),
        "models": rows,
    }


def _dropped(done: Fetched | Imported) -> list[Row]:
    return [row_json.fields(drop, "source", "reason", "count") for drop in done.dropped]
