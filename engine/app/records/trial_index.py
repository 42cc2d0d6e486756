"""Count trials on windows: every backtest, tuning trial, ablation, redecision, audit and row of a printed table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from engine.account.track_record import daily_returns
from engine.domain.json_text import to_json
from engine.domain.run import Result, RunSpec, Trial, TrialKind
from engine.errors import ConfigError, DataError
from engine.journal.database import WAIT, open_read_only, refuse_remains
from engine.journal.writer import JournalWriter
from engine.settings import places


def check_trial_index() -> None:
    """Raise DataError or ConfigError for an index that cannot be added to, TryAgainLater for a locked one: whoever will
    count trials asks before anything is computed or paid for."""
    index = places.trial_index()
    try:
        refuse_remains(index)
        if index.exists():
            open_read_only(index).close()
    except (DataError, ConfigError) as error:
        raise type(error)(
            f"the trial index {index} is damaged, or was written by another version of Paperdesk: move it aside "
            "and the count of trials starts over"
        ) from error


def result_trial(kind: TrialKind, result: Result, time: datetime) -> Trial:
    """The look that a backtest took; one with steps left out is an ablation, whoever ran it."""
    kind = TrialKind.ABLATION if result.spec.without else kind
    return replace(spec_trial(kind, result.spec, time), returns=daily_returns(result.test))


def tune_trial(spec: RunSpec, returns: Sequence[float], time: datetime) -> Trial:
    """The look that a search took with one choice of parameters."""
    return replace(spec_trial(TrialKind.TUNE_TRIAL, spec, time), returns=tuple(returns))


def spec_trial(kind: TrialKind, spec: RunSpec, time: datetime) -> Trial:
    """The look of a run that measures no returns."""
    return Trial(
        time=time,
        kind=kind,
        run=spec.run,
        name=spec.preset or spec.strategy or "",
        symbols=spec.symbols,
        first=spec.first,
        last=spec.last,
        spec_hash=spec_hash(spec),
    )


def count_result(kind: TrialKind, result: Result, time: datetime) -> None:
    """Count the look of one backtest, unless it was stopped before the first session of its window."""
    if result.test.equity:
        count_trials([result_trial(kind, result, time)])


def count_trials(trials: Iterable[Trial]) -> None:
    """Add trials to this machine's index, equal ones of one call once. Raises TryAgainLater where another process
    holds the index, DataError where the disk refuses."""
    once = {trial.spec_hash: trial for trial in trials}
    if once:
        add_trials(places.trial_index(), once.values())


def add_trials(index: Path, trials: Iterable[Trial], wait: float = WAIT) -> None:
    """Add trials to the index at a path, all or none; it is made where there is none. Raises TryAgainLater where
    another process holds it for longer than `wait` seconds, DataError where the disk refuses."""
    with JournalWriter(index, wait=wait) as journal:
        journal.trials(trials)


def spec_hash(spec: RunSpec) -> str:
    """SHA-256 (hex) over the canonical JSON of everything that decides a run: what it is called and what it was made
    with do not."""
    return hashlib.sha256(
        to_json(replace(spec, run="", journal=None, data_fingerprint="", version="")).encode()
    ).hexdigest()
