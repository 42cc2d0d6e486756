"""Count looks at windows: every backtest, tuning trial, ablation, redecision, audit and row of a printed table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from engine.account.track_record import daily_returns
from engine.domain.json_text import to_json
from engine.domain.run import LookKind, Result, RunSpec, WindowLook
from engine.errors import ConfigError, DataError
from engine.journal.database import WAIT, open_read_only, refuse_remains
from engine.journal.writer import JournalWriter
from engine.settings import places


def check_look_index() -> None:
    """Raise DataError or ConfigError for an index that cannot be added to, TryAgainLater for a locked one: whoever will
    count looks asks before anything is computed or paid for."""
    index = places.looks_index()
    try:
        refuse_remains(index)
        if index.exists():
            open_read_only(index).close()
    except (DataError, ConfigError) as error:
        raise type(error)(
            f"the trial index {index} is damaged, or was written by another version of Paperdesk: move it aside "
            "and the count of trials starts over"
        ) from error


def result_look(kind: LookKind, result: Result, time: datetime) -> WindowLook:
    """The look that a backtest took; one with steps left out is an ablation, whoever ran it."""
    kind = LookKind.ABLATION if result.spec.without else kind
    return replace(spec_look(kind, result.spec, time), returns=daily_returns(result.test))


def spec_look(kind: LookKind, spec: RunSpec, time: datetime) -> WindowLook:
    """The look of a run that measures no returns."""
    return WindowLook(
        time=time,
        kind=kind,
        run=spec.run,
        name=spec.preset or spec.strategy or "",
        symbols=spec.symbols,
        first=spec.first,
        last=spec.last,
        spec_hash=spec_hash(spec),
    )


def count_result(kind: LookKind, result: Result, time: datetime) -> None:
    """Count the look of one backtest, unless it was stopped before the first session of its window."""
    if result.test.equity:
        count_looks([result_look(kind, result, time)])


def count_looks(looks: Iterable[WindowLook]) -> None:
    """Add looks to this machine's index, equal ones of one call once. Raises TryAgainLater where another process
    holds the index, DataError where the disk refuses."""
    once = {look.spec_hash: look for look in looks}
    if once:
        add_looks(places.looks_index(), once.values())


def add_looks(index: Path, looks: Iterable[WindowLook], wait: float = WAIT) -> None:
    """Add looks to the index at a path, all or none; it is made where there is none. Raises TryAgainLater where another
    process holds it for longer than `wait` seconds, DataError where the disk refuses."""
    with JournalWriter(index, wait=wait) as journal:
        journal.looks(looks)


def spec_hash(spec: RunSpec) -> str:
    """SHA-256 (hex) over the canonical JSON of everything that decides a run: what it is called and what it was made
    with do not."""
    return hashlib.sha256(
        to_json(replace(spec, run="", journal=None, data_fingerprint="", version="")).encode()
    ).hexdigest()
