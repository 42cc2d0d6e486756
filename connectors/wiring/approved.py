"""What follows a person's word on orders that wait: the run that meant them goes on, through every check of its own."""

from __future__ import annotations

from connectors.wiring.desk import run_desk_day
from engine import places
from engine.assistant import Publish
from engine.config import Config
from engine.desk.hand import approvals, halted, not_sent
from engine.desk.setting import KIND
from engine.errors import MissingData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.ports import Clock


async def hand_over_approved(
    config: Config, publish: Publish = lambda event: None, machine: Clock | None = None
) -> bool:
    """Goes on with the desk's latest run where a word was said on orders that it has not sent: reconciles, then sends
    what is approved and ends what is vetoed or too late; nothing is decided anew. False where there is nothing to do,
    or the desk is halted. Raises as `run_desk_day` does, TryAgainLater while a run is at work."""
    run = _run_with_words(config)
    if run is None:
        return False
    await run_desk_day(config, run.session, publish, machine)
    return True


def _run_with_words(config: Config) -> RunEntry | None:
    """The latest run, where it waits for a word on orders and one was said."""
    try:
        with JournalReader(places.desk_journal(config.desk.name)) as reader:
            run = reader.latest_run(KIND)
            if run is None or run.session is None or halted(reader) is not None:
                return None
            kept = [entry.order.id for entry in not_sent(reader) if entry.run == run.id]
            return run if approvals(reader, kept) else None
    except MissingData:
        return None
