"""The record of an arena: its specification, and its document once it was played.

Repeats of an arena are records of their own, named after the whole; see `repeat_of`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.app.records.desk_journal import one_process
from engine.arena.rules import ArenaRules, load_rules
from engine.arena.traders import DEFAULT_TABLE, AgentSeat, Seating, load_seating
from engine.errors import MalformedData, MissingData, UsageError
from engine.reports.documents.row_json import Row
from engine.settings import places

REHEARSED = "This desk"
"""The name of the seat that a rehearsal adds to the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSpec:
    """Everything that decides an arena.

    run: its id.
    preset: the market's, by name or TOML file.
    agents: the table, by name or TOML file.
    days: in place of the preset's; None: the preset's.
    seed: of everything that is drawn.
    model: of every persona; None: its own, else the configured default.
    unsaid: ids of chat messages that nobody gets to read.
    swapped: the seats are taken in reverse order.
    rotated: the seats are moved on by so many.
    repeats: arenas with the next seeds and rotated seats.
    changes: of the personas that are not the baseline's, by key of a table's file.
    baseline: model of the baseline's seats in a duel; None: the configured default.
    rehearsed: the desk's preset, which sits down beside the table in a rehearsal; None elsewhere.
    files: SHA-256 of the files that all this names, by name, once it was begun.
    folder: where it was begun; None before.
    """

    run: str
    preset: str = "paper"
    agents: str = DEFAULT_TABLE
    days: int | None = None
    seed: int = 0
    model: str | None = None
    unsaid: tuple[str, ...] = ()
    swapped: bool = False
    rotated: int = 0
    repeats: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    baseline: str | None = None
    rehearsed: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None

    def rules(self) -> ArenaRules:
        """The market's rules. Raises UsageError."""
        rules = load_rules(self.preset)
        return rules if self.days is None else rules.model_copy(update={"days": self.days})

    def seating(self) -> Seating:
        """The table. Raises UsageError."""
        agents = tuple(
            seat.model_copy(update=self.changes) if seat.is_persona and not seat.baseline else seat
            for seat in load_seating(self.agents).agents
        )
        if self.rehearsed is not None:
            if any(seat.name == REHEARSED for seat in agents):
                raise UsageError(f"table {self.agents}: {REHEARSED} is the name of the desk's seat; rename that agent")
            agents += (AgentSeat(name=REHEARSED, preset=self.rehearsed),)
        first = self.rotated % len(agents)
        agents = agents[first:] + agents[:first]
        return Seating(agents=agents[::-1] if self.swapped else agents)


def begun(spec: ArenaSpec) -> ArenaSpec:
    """The specification with the files that it names as they are now, unless it was begun before."""
    return spec if spec.folder is not None else replace(spec, files=_named_files(spec), folder=str(Path.cwd()))


def check_files(spec: ArenaSpec) -> None:
    """Raise UsageError where an arena that was begun would not go on as itself: a file that it names has changed since,
    or would be looked for in another folder."""
    here = str(Path.cwd())
    if spec.folder not in (None, here) and not all(Path(name).is_absolute() for name in spec.files):
        raise UsageError(f"arena {spec.run} was begun in {spec.folder} with {', '.join(spec.files)}: resume it there")
    for name, known in spec.files.items():
        if _hash(name) != known:
            raise UsageError(f"{name} has changed since arena {spec.run} was begun: undo that, or play a new one")


def _named_files(spec: ArenaSpec) -> dict[str, str]:
    seats = spec.seating().agents
    codes = [seat.rule.rpartition(":")[0] or seat.rule for seat in seats if seat.rule is not None]
    named = [spec.preset, spec.agents, *(seat.preset for seat in seats if seat.preset is not None), *codes]
    return {name: _hash(name) for name in dict.fromkeys(named) if name.endswith((".toml", ".py"))}


def _hash(name: str) -> str:
    """SHA-256 of a file; empty where it cannot be read."""
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return ""


def repeat_of(spec: ArenaSpec, number: int) -> ArenaSpec:
    """The specification of a repeat, counted from 0."""
    return replace(spec, run=f"{spec.run}-{number + 1}", seed=spec.seed + number, rotated=number, repeats=1)


def check_new(spec: ArenaSpec) -> None:
    """Raise UsageError where a new arena, or one of its repeats, would take the place of a run that there is, and for
    settings that would do nothing at its table."""
    _check_settings(spec)
    repeats = [repeat_of(spec, number).run for number in range(spec.repeats)] if spec.repeats > 1 else []
    for run in (spec.run, *repeats):
        if places.arena_file(run).exists():
            raise UsageError(f"--run {spec.run}: an arena {run} already exists; choose another name, or --resume {run}")
        if places.run_journal(run).exists():
            raise UsageError(f"--run {spec.run}: a backtest {run} already exists; choose another name")


def _check_settings(spec: ArenaSpec) -> None:
    seats = spec.seating().agents
    if spec.baseline is not None and not any(seat.baseline for seat in seats):
        raise UsageError(f"--baseline: no agent of the table {spec.agents} asks a baseline, as those of duel do")
    talkers, days = [seat.name for seat in seats if seat.is_persona], spec.rules().days
    for name in spec.unsaid:
        day, _, agent = name.partition("-")
        if agent not in talkers or not (day.isdecimal() and 1 <= int(day) <= days):
            who = ", ".join(talkers) or "nobody"
            raise UsageError(
                f"--without-rumour {name}: no such message; they are DAY-AGENT, days 1 to {days}, of {who}"
            )


def arena_lock(run: str) -> AbstractContextManager[None]:
    """Hold an arena until the block ends: it is played by one process. Raises TryAgainLater where another one holds
    it."""
    return one_process(places.arena_lock(run), f"the arena {run} is being played by another process")


def load_spec(run: str) -> ArenaSpec:
    """The specification of an arena that was begun. Raises MissingData and MalformedData."""
    spec = _record(run)["spec"]
    try:
        return ArenaSpec(**spec | {"unsaid": tuple(spec["unsaid"])})
    except (KeyError, TypeError) as error:
        raise _damaged(run, error) from None


def load_document(run: str) -> Row:
    """The document of an arena, or of its repeats. Raises MissingData, also where it never came to one, and
    MalformedData."""
    document = played_document(run)
    if document is None:
        raise MissingData(f"arena {run} was not played yet: `paperdesk arena --resume {run}` continues")
    return document


def played_document(run: str) -> Row | None:
    """The document of an arena that there is; None where it never came to one. Raises MissingData and MalformedData."""
    document: Row | None = _record(run)["document"]
    return document


def is_begun(run: str) -> bool:
    """True for an arena that has a record."""
    return places.arena_file(run).is_file()


def _record(run: str) -> Row:
    try:
        record = json.loads(places.arena_file(run).read_text("utf-8"))
        document = record["document"]
        if document is not None and not {"schema", "run", "interrupted"} <= set(document):
            raise KeyError("document")
        if not isinstance(record["spec"], dict):
            raise TypeError("spec")
    except FileNotFoundError:
        raise MissingData(f"no arena {run}: `paperdesk arena` begins one") from None
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(run, error) from None
    found: Row = record
    return found


def _damaged(run: str, error: Exception) -> MalformedData:
    file = places.arena_file(run)
    return MalformedData(f"{file}: not the record of an arena ({type(error).__name__}); remove it to play {run} again")


def keep_record(spec: ArenaSpec, document: Row | None) -> None:
    """Write the record of an arena or of its repeats, whole or not at all. A document that is there stays until
    the new one is. Raises ConfigError or DataError for a file that cannot be written."""
    file = places.arena_file(spec.run)
    if document is None and file.exists():
        return
    places.write_whole(file, json.dumps({"spec": asdict(spec), "document": document}, indent=1))
