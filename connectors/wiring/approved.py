"""What follows a person's word on orders that wait: the run that meant them goes on, through every check of its own."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.wiring.desk import run_desk_day
from connectors.wiring.desk_cycle import run_desk_cycle
from engine import places
from engine.app.desk_runner import Publish
from engine.config import Config
from engine.domain.run import RunKind
from engine.errors import MissingData
from engine.execution.controls import approvals, halted, not_sent
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.ports import Clock


async def hand_over_approved(
    config: Config, publish: Publish = lambda event: None, machine: Clock | None = None
) -> bool:
    """Goes on with the runs of the desk's latest session where a word was said on orders that they have not sent:
    reconciles, then sends what is approved and ends what is vetoed or too late; nothing is decided anew. False where
    there is nothing to do, or the desk is halted. Raises as `run_desk_day` does, TryAgainLater while a run is at
    work."""
    runs = _runs_with_words(config)
    for run in runs:
        if run.kind is RunKind.DAILY:
            await run_desk_day(config, run.session, publish, machine)
        elif run.session is not None:
            await run_desk_cycle(config, run.session, run.cycle, publish, machine)
    return bool(runs)


def _runs_with_words(config: Config) -> Sequence[RunEntry]:
    """Those of the latest session that wait for a word on orders on which one was said."""
    try:
        with JournalReader(places.desk_journal(config.desk.name)) as reader:
            latest = reader.latest_run(RunKind.DAILY)
            if latest is None or halted(reader) is not None:
                return ()
            waiting = not_sent(reader)
            said = approvals(reader, [entry.order.id for entry in waiting])
            named = {entry.run for entry in waiting if entry.order.id in said}
            return [run for run in reader.runs() if run.id in named and run.session == latest.session]
    except MissingData:
        return ()
