"""Between the screen and the desk: the desk has a thread of its own; commands go in, one snapshot comes out.

The screen never waits for the engine: it takes `snapshot()` a few times a second, immutable values that other threads
have put there. What goes wrong on the other side is `trouble`, a line to show, never an exception here.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from engine.errors import PaperdeskError, UsageError
from engine.messages.commands import Command, Halt, Resume, RunCycle
from engine.settings import places
from tui.desk.backtest_process import BacktestProcess, Target
from tui.desk.desk_follower import DeskFollower, DeskOpener
from tui.desk.last_seen import keep_visit
from tui.desk.readings import opened_desk
from tui.playback.playback import Playback
from tui.text.plain_text import one_line
from tui.view.backtest_run import BacktestState, ResumeBacktest, StartBacktest, StopBacktest
from tui.view.desk_port import Source
from tui.view.market_view import MarketView, at_prices
from tui.view.snapshot import PAST, Place, Retry, Snapshot
from tui.view.state import Books, DeskState, Line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from engine.app.open_desk import OpenDesk
    from engine.domain.run import RunSpec
    from engine.messages.commands import MemoryChange
    from tui.view.desk_port import OpenedDesk
    from tui.view.live_view import LiveView

LOGGED_FAILURES = 20
"""Lines of the log about what failed in the app itself at most."""

HALTED = "Halted. Press K or run `paperdesk resume`"
"""The answer to what would have it go on."""
PAUSED = "Paused. Press p or run `paperdesk resume`"
"""The answer to what would begin a cycle meanwhile."""


class Bridge:
    """Opens the desk in a thread, passes commands on, runs backtests in processes, plays recorded histories, and has a
    snapshot of all of it."""

    def __init__(
        self,
        open_desk: DeskOpener,
        backtest: Target,
        *,
        first: Callable[[], Source | None] = lambda: None,
        refusal: str = "",
    ) -> None:
        """`first` gives the journal that is shown before the desk is open. With a `refusal` no command is passed on: it
        is the reason."""
        self._first = first
        self._refusal = refusal
        self._open_desk = open_desk
        self._backtest = backtest
        self._follower = DeskFollower()
        self._thread: Thread | None = None
        self._priced: tuple[tuple[object, ...], Books | None, MarketView] | None = None
        """Books and market at live prices, after what they were made from."""
        self._backtests: dict[str, BacktestProcess] = {}
        self.playback: Playback | None = None
        """The recorded history that is shown in place of the present; None for the present."""
        self._failures: tuple[Line, ...] = ()

    def start(self) -> None:
        """Open the desk in a thread; after a failure, try again."""
        follower = self._follower
        if follower.working:
            return
        follower.working, follower.trouble, follower.dismissed = True, "", frozenset()
        self._thread = Thread(target=follower.run, args=(self._open_desk, self._first), name="desk", daemon=True)
        self._thread.start()

    @property
    def _desk(self) -> OpenDesk:
        """The open desk. Raises UsageError before it is open."""
        if self._follower.services is None:
            raise UsageError("the desk is still opening")
        return self._follower.services

    def visited(self) -> None:
        """Note that a person is there and sees what is shown; the past is no visit."""
        if self.playback is None:
            self._follower.visited()

    def stop(self) -> None:
        """Ask everything to end; returns at once, and `wait` waits for the end."""
        follower = self._follower
        if follower.visit is not None and follower.services is not None:
            keep_visit(follower.services.desk, follower.visit)
        follower.stop()
        self.to_present()
        for process in self._running():
            process.stop()

    def wait(self, seconds: float) -> bool:
        """Wait for the desk to end and end what is left of the backtests; false where it took longer."""
        until = time.monotonic() + seconds
        for process in self._running():
            process.kill()
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))
        return self._thread is None or not self._thread.is_alive()

    def _running(self) -> list[BacktestProcess]:
        return [process for process in self._backtests.values() if process.running]

    def send(self, command: Command) -> str:
        """Pass a command on; return the reason why it cannot be, or an empty text."""
        if self._refusal:
            return self._refusal
        try:
            return self._taken(command)
        except PaperdeskError as error:
            return str(error)

    def _taken(self, command: Command) -> str:
        match command:
            case StartBacktest(spec):
                name = f"{spec.preset or spec.strategy} {len(self._backtests) + 1}"
                return self._begin(name, replace(spec, run=self._desk.backtest_id()), self._backtest)
            case ResumeBacktest(run, name) if self.playback is None:
                return self._resumed(run, name)
            case StopBacktest(run):
                return self._stop_backtest(run)
            case Halt() | Resume():
                pass  # whatever is shown: orders must be stopped at once
            case _ if self.playback is not None:
                return PAST
            case RunCycle() if self._follower.controls.paused is not None:
                return PAUSED
        return self._follower.send(command)

    def repeat_cycle(self) -> str:
        """Ask again for the cycle that was asked for last; return the reason why that cannot be, or an empty text."""
        return self.send(self._follower.requests.asked)

    def next_session(self) -> str:
        """Have the desk decide what is due, else go on to its next session and decide for it; return the reason why
        that cannot be, or an empty text."""
        follower = self._follower
        if self._refusal or self.playback is not None:
            return self._refusal or PAST
        if follower.requests.busy or follower.unread:  # its prices would be shown beside the books before
            return "a cycle is running already"
        if follower.controls.halted is not None:
            return HALTED
        if follower.controls.paused is not None:
            return PAUSED
        try:
            return self._desk.next_session() or follower.send(RunCycle())
        except PaperdeskError as error:
            return one_line(str(error))

    def _stop_backtest(self, run: str) -> str:
        process = self._backtests.get(run)
        if process is None or not process.running:
            return "no backtest is running"
        process.stop()
        return ""

    def _resumed(self, run: str, name: str) -> str:
        from engine.app.research.backtest import recorded_spec

        return self._begin(name, recorded_spec(run), partial(self._backtest, resume=True))

    def _begin(self, name: str, spec: RunSpec, target: Target) -> str:
        """Run a backtest in a process of its own, one at a time. Raises UsageError."""
        if any(process.state.running for process in self._backtests.values()):
            return "a backtest is running: stop it with x first"
        costs, spec = self._desk.costs_of(spec), replace(spec, cash=self._desk.cash_of(spec))
        before = next(reversed(self._backtests.values()), None)
        self._backtests.pop(spec.run, None)  # one that goes on is the newest
        self._backtests[spec.run] = BacktestProcess(name, spec, target, costs, before)
        self._backtests[spec.run].start()
        return ""

    def go_on(self, run: str) -> None:
        """Answer the question of a backtest with yes."""
        self._backtests[run].go_on()

    def dismiss(self) -> None:
        """Hide the trouble, which has been read."""
        if self.playback is not None:
            self.playback.trouble = ""
        else:
            self._follower.dismissed |= {self.present().trouble}

    def log_failure(self, text: str) -> None:
        """Add a line to the log about what failed in the app itself; before the desk is open there is none."""
        if (services := self._follower.services) is not None:
            self._failures = (*self._failures[-LOGGED_FAILURES + 1 :], Line(services.clock.now(), "error", text))

    def forget_trouble(self) -> None:
        """Drop the trouble: what failed is being tried again."""
        shown, self._follower.trouble = self.present().trouble, ""
        if self.present().trouble == shown:
            self.dismiss()

    # Recorded histories

    def to_past(self, source: Source | None = None) -> str:
        """Show a recorded history, at its end, in place of the present: a source's, the desk's by default. Return the
        reason why that cannot be, or an empty text."""
        try:
            services = self._desk
        except PaperdeskError as error:
            return str(error)
        wanted = source or self._sources(services)[0]
        if self.playback is None or self.playback.source.journal != wanted.journal:
            self.to_present()
            self.playback = Playback(
                wanted, services, opened_desk(services, self._follower.board, past=True), self._follower.prices
            )
        return ""

    def to_present(self) -> None:
        """Show the present again."""
        if self.playback is not None:
            self.playback.close()
            self.playback = None

    # What is shown

    @property
    def start_refusal(self) -> str:
        """The reason why the cycle that was asked for last did not begin; empty for none."""
        return self._follower.requests.start_refusal

    def play_on(self, shown: Place | None) -> None:
        """Have a history that is played go on, from the place that is shown."""
        if self.playback is not None:
            self.playback.play_on(shown)

    def snapshot(self) -> Snapshot:
        """The state of everything now, or at the place of the playback; cheap."""
        if self.playback is None:
            return self.present()
        past = self.playback.snapshot()
        if past is not None:
            controls = self._follower.controls
            stopped = "HALTED now" if controls.halted else "PAUSED now" if controls.paused else ""
            return replace(past, backtests=self._backtest_states(), note=stopped)
        opened, place = self._opened(past=True), self.playback.place
        return replace(self.present(), opened=opened, place=place, trouble=self.playback.trouble, retry=None)

    def _opened(self, *, past: bool) -> OpenedDesk | None:
        follower = self._follower
        return None if follower.services is None else opened_desk(follower.services, follower.board, past=past)

    def present(self) -> Snapshot:
        """The state of everything now, whatever is shown; cheap."""
        follower = self._follower
        requests, services, board = follower.requests, follower.services, follower.board
        desk, market = follower.moment
        lacks = "" if services is None or self._refusal else services.lacks_key
        troubles, live = (follower.trouble, follower.changed, desk.error, desk.refusal, lacks), None
        trouble = next((trouble for trouble in troubles if trouble and trouble not in follower.dismissed), "")
        now = None if services is None else services.clock.now()
        market = market if services is not None else None  # read before the desk is open: screens count from a time
        if board is not None and services is not None:
            live = board.view(tuple(services.symbols), services.clock.now())
            desk, market = self._at_live_prices(desk, market, live, services)
        if self._failures:
            lines = sorted((*desk.lines, *self._failures), key=lambda line: line.time)
            desk = replace(desk, lines=tuple(lines))
        return Snapshot(
            desk=desk,
            # At once, whatever the desk's thread is busy with: nobody is asked about an order twice.
            controls=follower.controls.after(requests.answers),
            market=market,
            live=live,
            opened=self._opened(past=False),
            now=now,
            busy=requests.busy,
            starting=requests.starting and requests.busy,
            trouble=trouble,
            retry=self._retry(trouble, lacks),
            own_orders=requests.own_orders,
            cycle_seconds=requests.cycle_seconds,
            backtests=self._backtest_states(),
            sources=() if services is None else self._sources(services),
        )

    def _retry(self, trouble: str, lacks_key: str) -> Retry | None:
        """The way to try again what an error is about."""
        if not trouble:
            return None
        if trouble in (lacks_key, self._follower.changed):
            return None if self._refusal else Retry.REOPEN
        if self._follower.requests.runner is None:
            return Retry.OPEN
        desk = self._follower.desk
        return Retry.RUN_CYCLE if desk.cycle_failed and trouble == desk.error and not self._refusal else None

    def _backtest_states(self) -> tuple[BacktestState, ...]:
        return tuple(process.state for process in self._backtests.values())

    def _at_live_prices(
        self, desk: DeskState, market: MarketView | None, live: LiveView, services: OpenDesk
    ) -> tuple[DeskState, MarketView | None]:
        """The books and the market at the prices of the feed: the only place from which screens have them."""
        now = services.clock.now()
        # The minute too: a price counts once its session has opened, also where the clock learns of that after it.
        seen = (market, desk.books, live.prices, now.replace(second=0, microsecond=0))
        if market is None or not live.prices:
            return desk, market
        if self._priced is None or self._priced[0] != seen:
            priced = at_prices(market, live.prices, now)
            books = None if desk.books is None else desk.books.at_quotes(priced.quotes, priced.splits)
            self._priced = (seen, books, priced)
        return replace(desk, books=self._priced[1]), self._priced[2]

    def _sources(self, services: OpenDesk) -> tuple[Source, ...]:
        runs = (process.state for process in self._backtests.values())
        return (
            Source(f"desk {services.desk}", services.journal, version=self._follower.version),
            *(self.run_source(one.spec.run, one.name) for one in runs if one.curve and not one.running),
        )

    def run_source(self, run: str, name: str = "") -> Source:
        """The record of a finished backtest by its id."""
        return Source(name or run, places.run_journal(run), run)

    def export(self, run: str, folder: Path) -> Sequence[str]:
        """Write a backtest as a new folder; return the names of its files. Raises as the use case does."""
        return self._desk.export(run, folder)

    def studies(self) -> Sequence[Mapping[str, Any]]:
        """The studies of this machine, each with the ids of its runs. Raises MalformedData."""
        from engine.app.study import stored_studies

        return stored_studies()

    def study(self, record: str) -> Mapping[str, Any]:
        """A study, by the name of its record, as far as its runs are done. Raises MalformedData."""
        from engine.app.study import stored_study

        return stored_study(record)

    def books(self, source: Source) -> Mapping[str, Any]:
        """The books of the desk's owners beside each other, as a record has them. Raises as the use case does."""
        return source.read(self._desk.compare_books)

    def change_memory(self, memory_id: str, change: MemoryChange, reason: str) -> Mapping[str, Any]:
        """Pin a memory of the desk, forget it, or take that back. Raises as the use case does."""
        return self._desk.change_memory(memory_id, change, reason)

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The groups of the watchlist by name. Raises MalformedData."""
        from engine.app.upkeep.watchlists import read_groups

        return read_groups()

    def change_group(self, name: str, add: Sequence[str], remove: Sequence[str]) -> None:
        """Add symbols to a group of the watchlist, and take some out. Raises as the use case does."""
        from engine.app.upkeep.watchlists import change_group

        change_group(name, add=add, remove=remove)
