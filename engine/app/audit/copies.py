"""Copies of the data folder, cut at the decisions of an audited run, and the process that plays its legs on them."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.app.audit.legs import CopiedLeg, LegsTask
from engine.app.audit.legs_process import begin
from engine.domain.run import RunSpec
from engine.errors import InvariantBroken
from engine.lab.audit import Trace
from engine.market.as_of import Market
from engine.services import FolderCuts, Services


class FolderCopies:
    """Legs on copies (CutLegs): the copy is written here, and a process without sight of the original plays the leg.

    early: texts of the folder that are stamped before their release, in words.
    hidden: True where nothing that runs there can open the original, False where only Python cannot.
    opened: files of the folder that were opened nevertheless, each with the line of the user's code that did it;
        `outside` those beside it.
    """

    def __init__(self, connection: Connection, cuts: FolderCuts, task: LegsTask) -> None:
        self._connection, self._cuts, self._task = connection, cuts, task
        self.early = tuple(cuts.early)
        self.hidden: bool | None = None
        self.opened: dict[str, str] = {}
        self.outside: dict[str, str] = {}

    async def leg(self, read: date, now: datetime) -> Trace | str:
        """The trace of the leg to the decision that reads a session, taken at `now`; or what went wrong."""
        self._cuts.write(self._task.copy, now)
        leg = await asyncio.to_thread(self._played, read)
        self.opened.update(leg.opened)
        self.outside.update(leg.outside)
        return leg.trace

    def _played(self, read: date) -> CopiedLeg:
        try:
            if self.hidden is None:
                self._connection.send(self._task)
                self.hidden = self._connection.recv()
            self._connection.send(read)
            leg: CopiedLeg = self._connection.recv()
        except (EOFError, OSError):
            raise InvariantBroken(f"the process that plays legs on copies of the folder ended before {read}") from None
        return leg


@contextmanager
def folder_copies(services: Services, spec: RunSpec, market: Market) -> Iterator[FolderCopies | None]:
    """Legs of a run of a market on copies of its data folder, until the block ends; None on the demo market, which has
    none. Raises MalformedData for a file of the folder that cannot be read."""
    if spec.data.folder is None:
        yield None
        return
    folder = Path(spec.data.folder).expanduser().resolve()
    cuts = services.open_cuts(folder, spec.symbols)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=begin, args=(theirs,), daemon=True)
    with TemporaryDirectory(prefix="paperdesk-audit-") as copy:
        process.start()
        theirs.close()
        try:
            yield FolderCopies(ours, cuts, LegsTask(services, spec, market, folder, Path(copy)))
        finally:
            ours.close()
            process.terminate()
            process.join()
