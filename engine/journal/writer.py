"""Write the journal: methods named after what happened, each all or nothing.

A desk's journal is committed, and synced to the disk, before a method returns: an order that is sent has always been
written down before. A backtest's is committed in batches, a fraction of a second behind.
"""

from __future__ import annotations

from datetime import datetime

from engine.domain.run import Result, RunOutcome, Stretch
from engine.journal.book_writer import BookWriter
from engine.journal.decision_writer import DecisionWriter
from engine.journal.run_writer import RunWriter
from engine.journal.schema import TEST, WARM_UP


class JournalWriter(RunWriter, DecisionWriter, BookWriter):
    """Writer of one journal; belongs to one thread. A context manager that commits and closes.

    Every method raises TryAgainLater where another process holds the write lock for longer than `wait` seconds,
    InvariantBroken for what contradicts the journal, and DataError where the disk refuses.
    """

    def backtest_result(self, run: str, result: Result, time: datetime) -> None:
        """A backtest came to its result: write all of it, except the parts that were written down as they went, and
        finish the run."""
        self.flush()
        for part, stretch in ((WARM_UP, result.warm_up), (TEST, result.test)):
            if stretch is not None and not self._find("stretches", {"run": run, "part": part}):
                self._stretch(run, part, stretch)
        for dropped in result.dropped:
            self.dropped(run, dropped)
        for note in result.notes:
            self.noted(run, "info", note)
        equity = result.test.equity
        self.run_finished(
            run,
            RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE,
            time,
            value=equity[-1].value if equity else result.test.initial_value,
            model=result.model,
            extra=result.extra,
        )

    def _stretch(self, run: str, part: str, stretch: Stretch) -> None:
        self.stretch_started(run, part, stretch.initial_value)
        for opinion in stretch.opinions:
            self.opinion(opinion)
        for decision in stretch.decisions:
            self.decision(decision)
        for fill in (*stretch.fills, *stretch.book_fills):
            self.fill(run, fill)
        for flow in stretch.cash_flows:
            self.cash_flow(run, flow)
        for point in (*stretch.equity, *stretch.books):
            self.session_settled(run, point)
