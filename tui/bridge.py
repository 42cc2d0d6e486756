"""Between the screen and the desk: the desk has a thread of its own; commands go in, one snapshot comes out.

The screen never waits for the engine: it takes `snapshot()` a few times a second, immutable values that other threads
have put there. What goes wrong on the other side is `trouble`, a line to show, never an exception here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from engine.messages.commands import Command, StartBacktest, StopBacktest
from tui.backtest_run import RUNNING, BacktestProcess, Target
from tui.desk_follower import DeskFollower, DeskOpener
from tui.live import LiveView
from tui.market_view import MarketView, at_prices
from tui.playback import Playback
from tui.snapshot import Snapshot, Source
from tui.state import Books, DeskState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from engine.app.desk_runner import OpenDesk
    from engine.domain.decision import Decision
    from engine.domain.run import RunSpec
    from engine.market.point_in_time import MarketAsOf
    from engine.reports.documents.decisions import FollowedDecision
    from engine.reports.documents.records import Records

SWITCH_SECONDS = 0.001
"""Seconds that Python lets one thread keep the interpreter while another wants it: a key passes about seven times
through the loop, and the usual 5 ms would be felt while a cycle runs."""


class Bridge:
    """Opens the desk in a thread, passes commands on, runs backtests in processes, plays recorded histories, and has a
    snapshot of all of it."""

    def __init__(self, open_desk: DeskOpener, backtest: Target) -> None:
        self._open_desk = open_desk
        self._backtest = backtest
        self._follower = DeskFollower()
        self._thread: Thread | None = None
        self._priced: tuple[tuple[object, ...], Books | None, MarketView] | None = None
        """Books and market at live prices, after what they were made from."""
        self._backtests: dict[str, BacktestProcess] = {}
        self.playback: Playback | None = None
        """The recorded history that is shown in place of the present; None for the present."""

    def start(self) -> None:
        """Open the desk in a thread; after a failure, try again."""
        if self._thread is not None and self._thread.is_alive():
            return
        sys.setswitchinterval(SWITCH_SECONDS)
        self._follower.trouble = self._follower.dismissed = ""
        self._thread = Thread(target=self._follower.run, args=(self._open_desk,), name="desk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask everything to end; returns at once, and `wait` waits for the end."""
        self._follower.stop()
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
        match command:
            case StartBacktest(spec):
                return self._start_backtest(spec)
            case StopBacktest(run):
                process = self._backtests.get(run)
                if process is None or not process.running:
                    return "no backtest is running"
                process.stop()
                return ""
            case _ if self.playback is not None:
                return "this is the past, where nothing can be done: \\ goes back to the present"
        return self._follower.send(command)

    def _start_backtest(self, spec: RunSpec) -> str:
        if self._running():
            return "a backtest is running: stop it with x first"
        services = self._follower.services
        if services is None:
            return "the desk is still opening"
        from engine.app.run_spec import new_run_id
        from engine.errors import PaperdeskError

        name = f"{spec.preset or spec.strategy} {len(self._backtests) + 1}"
        spec = replace(spec, run=new_run_id("backtest", services.clock.now()))
        try:
            costs = services.costs_of(spec)
        except PaperdeskError as error:
            return str(error)
        self._backtests[spec.run] = BacktestProcess(name, spec, self._backtest, costs)
        self._backtests[spec.run].start()
        return ""

    def go_on(self, run: str) -> None:
        """Answer the question of a backtest with yes."""
        self._backtests[run].go_on()

    def dismiss(self) -> None:
        """Hide the trouble, which has been read."""
        self._follower.dismissed = self._follower.trouble or self._follower.desk.error

    def forget_trouble(self) -> None:
        """Drop the trouble: what failed is being tried again."""
        self._follower.trouble = ""
        self.dismiss()

    # Recorded histories

    def to_past(self, source: Source | None = None) -> str:
        """Show a recorded history, at its end, in place of the present: a source's, the desk's by default. Return the
        reason why that cannot be, or an empty text."""
        services = self._follower.services
        if services is None:
            return "the desk is still opening"
        wanted = source or self._sources(services)[0]
        if self.playback is None or self.playback.source.journal != wanted.journal:
            self.to_present()
            self.playback = Playback(wanted, services, self._follower.prices)
        return ""

    def to_present(self) -> None:
        """Show the present again."""
        if self.playback is not None:
            self.playback.close()
            self.playback = None

    # What is shown

    def snapshot(self) -> Snapshot:
        """The state of everything now, or at the place of the playback; cheap."""
        if self.playback is None:
            return self._present()
        past = self.playback.snapshot()
        if past is not None:
            return past
        return replace(self._present(), place=self.playback.place)

    def _present(self) -> Snapshot:
        follower = self._follower
        runner, services, board, desk = follower.runner, follower.services, follower.board, follower.desk
        trouble = follower.trouble or desk.error
        live, market = None, follower.market
        now = None if services is None else services.clock.now()
        if board is not None and services is not None:
            live = board.view(tuple(services.symbols), services.clock.now())
            desk, market = self._at_live_prices(desk, live, services)
        return Snapshot(
            desk=desk,
            # At once, whatever the desk's thread is busy with: nobody is asked about an order twice.
            controls=follower.controls.after(follower.answers),
            market=market,
            live=live,
            services=services,
            now=now,
            busy=runner is not None and runner.busy,
            starting=follower.starting and runner is not None and runner.busy,
            paused=runner is not None and runner.paused,
            trouble="" if trouble == follower.dismissed else trouble,
            cycle_seconds=None if follower.began is None else time.monotonic() - follower.began,
            backtests=tuple(process.state for process in self._backtests.values()),
            sources=() if services is None else self._sources(services),
        )

    def _at_live_prices(
        self, desk: DeskState, live: LiveView, services: OpenDesk
    ) -> tuple[DeskState, MarketView | None]:
        """The books and the market at the prices of the feed: the only place from which screens have them."""
        market = self._follower.market
        seen = (market, desk.books, live.prices)
        if market is None or not live.prices:
            return desk, market
        if self._priced is None or self._priced[0] != seen:
            priced = at_prices(market, live.prices, services.clock.now())
            books = None if desk.books is None else desk.books.at_quotes(priced.quotes, priced.splits)
            self._priced = (seen, books, priced)
        return replace(desk, books=self._priced[1]), self._priced[2]

    def _sources(self, services: OpenDesk) -> tuple[Source, ...]:
        from engine import places

        runs = (process.state for process in self._backtests.values())
        return (
            Source(f"desk {services.desk}", services.journal, version=self._follower.version),
            *(
                Source(one.name, places.run_journal(one.spec.run), one.spec.run)
                for one in runs
                if one.curve and one.status != RUNNING
            ),
        )

    async def decisions(self, source: Source) -> tuple[FollowedDecision, ...]:
        """The decisions of a journal, read beside the screen. Raises what JournalReader raises."""
        from engine.reports.documents.decisions import followed_decisions

        return await asyncio.to_thread(source.read, lambda records: followed_decisions(records, self._closes))

    async def why(self, source: Source, wanted: Decision | str) -> Mapping[str, Any]:
        """The trail of a decision, or of the latest for a symbol, read beside the screen. Raises MissingData where
        there is none."""
        from engine.reports.documents.trail import latest, why_document

        def document(records: Records) -> Mapping[str, Any]:
            made = latest(records, wanted) if isinstance(wanted, str) else [wanted]
            return why_document(records, made, market=self._closes(records, (made[0].key.symbol,)))

        return await asyncio.to_thread(source.read, document)

    def _closes(self, records: Records, symbols: Sequence[str]) -> MarketAsOf | None:
        """The prices behind some records; None until the desk is open."""
        services = self._follower.services
        return None if services is None else services.closes(records, symbols)


class DeskApp(Protocol):
    """The app, as its screens know it."""

    bridge: Bridge
    options: Sequence[str]

    def keep_image(self, name: str, image: bytes) -> Path:
        """Write a picture; return its path. Raises OSError."""

    def switch_mode(self, mode: str) -> object:
        """Show another of the screens."""
