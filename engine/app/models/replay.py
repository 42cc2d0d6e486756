"""Recorded answers of models: counted, carried to another machine and back, removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.domain.model_call import ModelAnswers, RecordedAnswer
from engine.errors import DataError, MalformedData, MissingData
from engine.journal.reader import JournalReader
from engine.reports.documents.records import open_records
from engine.services import RecordedAnswers, Services
from engine.settings import places

_LINES = TypeAdapter(RecordedAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The end of a pruning.

    removed, retained: answers.
    shared: retained answers of the run that another run has too.
    undated: retained answers of which nobody knows when they were recorded.
    """

    removed: int
    retained: int
    shared: int = 0
    undated: int = 0


def answers_by_model(services: Services) -> tuple[ModelAnswers, ...]:
    """The recorded answers of each model. Raises MalformedData, TryAgainLater."""
    found: dict[str, ModelAnswers] = {}
    with services.models.recorded() as recorded:
        for one in _answers(recorded, recorded.hashes()):
            spec = f"{one.provider}:{one.model}"
            found[spec] = found.get(spec, ModelAnswers(spec=spec)).with_one(one)
    return tuple(found[spec] for spec in sorted(found))


def export_answers(services: Services, file: Path, run: str | None = None) -> int:
    """Write recorded answers, one JSON object a line: all of them, or those of a run. Raises MissingData for a run that
    there is not, DataError where the file cannot be written."""
    with services.models.recorded() as recorded:
        known = recorded.hashes()
        wanted = known if run is None else sorted(_hashes_of(services.desk, run).intersection(known))
        try:
            with file.open("wb") as lines:
                for one in _answers(recorded, wanted):
                    lines.write(_LINES.dump_json(one) + b"\n")
        except OSError as error:
            raise DataError(f"{file} cannot be written ({error.strerror}): choose another file") from None
    return len(wanted)


def import_answers(services: Services, file: Path) -> tuple[int, int]:
    """Add recorded answers that `export_answers` wrote; how many are new, and how many were there already and stay.
    Nothing is added from a file with a line that is none. Raises MissingData, MalformedData naming the line."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise MissingData(f"{file} cannot be read ({error.strerror})") from None
    answers = [_answer(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    with services.models.recorded() as recorded:
        new = sum(recorded.record(one) for one in answers)
    return new, len(answers) - new


def prune_answers(services: Services, before: date | None, run: str | None) -> Pruned:
    """Remove recorded answers from before a day, or those of a run that no other run has, or what is both. Raises
    MissingData for a run that there is not, and as JournalReader does for a journal that cannot be asked."""
    with services.models.recorded() as recorded:
        known = frozenset(recorded.hashes())
        chosen, shared = known, frozenset[str]()
        if run is not None:
            own = _hashes_of(services.desk, run) & known
            shared = own & _hashes_of_others(services.desk, run)
            chosen = own - shared
        undated = 0
        if before is not None:
            limit = datetime(before.year, before.month, before.day, tzinfo=UTC)
            times = {one.result.request_hash: one.recorded for one in _answers(recorded, sorted(chosen))}
            undated = sum(time is None for time in times.values())
            chosen = frozenset(name for name, time in times.items() if time is not None and time < limit)
        recorded.remove(chosen)
    return Pruned(removed=len(chosen), retained=len(known) - len(chosen), shared=len(shared), undated=undated)


def _answers(recorded: RecordedAnswers, hashes: Iterable[str]) -> Iterator[RecordedAnswer]:
    """Recorded answers, one after the other: all of them are more than memory should hold."""
    return (one for name in hashes if (one := recorded.answer(name)) is not None)


def _answer(file: Path, number: int, line: bytes) -> RecordedAnswer:
    try:
        one = _LINES.validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        told = f"{where + ': ' if where else ''}{fault['msg']}"
        raise MalformedData(f"{file} line {number} is no recorded answer: {told}; nothing was imported") from None
    if not one.result.request_hash or (one.result.answer is None) is (one.result.failure is None):
        raise MalformedData(f"{file} line {number} is no recorded answer: it has no hash, or no result of its own")
    return one


def _hashes_of(desk: str, run: str) -> frozenset[str]:
    with open_records(desk, run) as records:
        return records.required.request_hashes(run=run)


def _hashes_of_others(desk: str, run: str) -> frozenset[str]:
    """The request hashes of all runs but one: of every desk, and of every backtest."""
    found: frozenset[str] = frozenset()
    for file in (*places.desk_journal(desk).parent.glob("*.db"), *places.runs_dir().glob("*.db")):
        with JournalReader(file) as reader:
            found |= reader.request_hashes(besides=run)
    return found
