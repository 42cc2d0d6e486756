"""The use of a desk's models in a day: by its runs (told by its journal) and by other commands (in a file)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from engine.app.records.desk_journal import DeskJournal
from engine.domain.json_text import from_json, to_json
from engine.domain.order import ZERO
from engine.domain.run import ModelUse
from engine.errors import MalformedData
from engine.journal.entries import CallCost
from engine.journal.reader import JournalReader
from engine.services import Services, SpendingLimit, Spent
from engine.session.cost_meter import VECTORS
from engine.settings import places


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the file: when a command ended, and what it used."""

    time: datetime
    spent: Spent


def day_limit(services: Services, reader: JournalReader | None, now: datetime) -> SpendingLimit:
    """The limit of the models of a desk today (UTC), with what is spent since midnight; recorded answers take nothing.
    Raises MalformedData."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    calls = [] if reader is None else [call for call in reader.calls(since=midnight) if not call.cached]
    runs = () if reader is None else [run for run in reader.runs() if run.ended and run.ended >= midnight]
    vectors = [run.model.agents[VECTORS] for run in runs if run.model is not None and VECTORS in run.model.agents]
    paid: list[CallCost | ModelUse] = [*calls, *vectors]
    by_runs = Spent(
        sum((one.cost for one in paid if one.cost is not None), ZERO),
        sum(one.usage.total for one in paid if one.cost is None),
    )
    others = (entry.spent for entry in _entries(services.desk) if entry.time >= midnight)
    longest = max((call.usage.output_tokens for call in calls if not call.kind), default=0)
    return SpendingLimit(services.config.budget, sum(others, by_runs), longest=longest)


@contextmanager
def within_day(services: Services) -> Iterator[Services]:
    """Services whose models live within the desk's budget of the day until the block ends; what was used is written
    down for the day's next command. For commands that write no journal of the desk. Raises MalformedData."""
    with DeskJournal(services.desk) as journal:
        limit = day_limit(services, journal.reader, services.clock.now())
    before = limit.spent
    try:
        yield replace(services, limit=limit)
    finally:
        if limit.spent != before:
            entry = _Entry(services.clock.now(), limit.spent - before)
            file = places.desk_spending(services.desk)
            try:
                places.make_folder(file.parent)
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(to_json(entry) + "\n")
            except OSError as error:
                raise places.unusable(file, error) from error


def _entries(desk: str) -> Iterator[_Entry]:
    file = places.desk_spending(desk)
    if not file.exists():
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield from_json(_Entry, line)
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
            raise MalformedData(f"{file}, line {number}: no use of models; remove the line") from None
