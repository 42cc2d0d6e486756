"""Commands for the desk, from the app's thread, and the events that answer them."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.messages.commands import Approve, Command, PlaceOrder, RunCycle, Shutdown, Undo, Veto
from engine.messages.events import CommandEnded, Event, Noticed, RunFinished, RunStarted

if TYPE_CHECKING:
    from engine.app.desk_runner import DeskRunner

WATCHED = 60.0
"""Seconds from the request for a cycle within which its end is seen by the person who asked for it."""


class DeskRequests:
    """Commands on their way to the desk, and the cycle that was asked for last.

    runner: carries them out; None until the desk is served, and after its end.
    answers: approvals (True) and vetoes by order id that were sent and that no reading of the journal has shown yet.
    asked: the cycle that was asked for last.
    began: when the running cycle was asked for, or began, by the monotonic clock.
    starting: True from the request for a cycle until its run begins.
    unbegun: the reason why the cycle that was asked for last did not begin; empty for none.
    """

    def __init__(self) -> None:
        self.runner: DeskRunner | None = None
        self.answers: dict[str, bool] = {}
        self.asked = RunCycle()
        self.began: float | None = None
        self.starting = False
        self.unbegun = ""
        self._early: deque[Command] = deque()
        self._carried_out: set[str] = set()
        """Orders whose answers are in the journal."""
        self._asked_at: float | None = None
        """When a person asked for the cycle that is at work, by the monotonic clock."""

    @property
    def busy(self) -> bool:
        """True while a run of this desk is at work."""
        runner = self.runner
        return runner is not None and runner.busy

    @property
    def cycle_seconds(self) -> float | None:
        """The age of the running cycle; None without one."""
        began = self.began
        return None if began is None else time.monotonic() - began

    @property
    def own_orders(self) -> tuple[PlaceOrder, ...]:
        """Orders of the operator's own that can still be taken back."""
        runner = self.runner
        return () if runner is None else runner.own_orders.waiting

    # From the app's thread

    def send(self, command: Command, trouble: str) -> str:
        """Pass a command on; return the reason why it cannot be, or an empty text. With a `trouble` a desk that is not
        open does not open any more."""
        runner = self.runner
        if runner is None:
            if trouble:
                return "the desk could not be opened"
            self._early.append(command)
            if (runner := self.runner) is not None:  # it was opened meanwhile
                self._send_early(runner)
            return "the desk is opening: this is done as soon as it is open"
        if isinstance(command, RunCycle) and not runner.busy:
            self.asked = command
            self.starting, self.began, self.unbegun = True, time.monotonic(), ""
            self._asked_at = self.began
        if isinstance(command, Approve | Veto):
            self._carried_out.discard(command.order_id)
            self.answers[command.order_id] = isinstance(command, Approve)
        if isinstance(command, Undo):
            self.answers.pop(command.order_id, None)
        runner.send(command)
        return ""

    def shut_down(self) -> None:
        """Ask the desk to end; returns at once."""
        if self.runner is not None:
            self.runner.send(Shutdown())

    # From the desk's thread

    def serve(self, runner: DeskRunner) -> None:
        """Have commands carried out from now on, those first that were asked for before the desk was open."""
        self.runner = runner
        self._send_early(runner)

    def _send_early(self, runner: DeskRunner) -> None:
        # Each once, whichever thread comes first.
        with suppress(IndexError):
            while True:
                runner.send(self._early.popleft())

    def after(self, event: Event) -> None:
        """Note an event, of this process or another."""
        match event:
            case RunStarted():
                self.began = self.began if self.starting else time.monotonic()
                self.starting = False
            case RunFinished():
                self.began = None
            case Noticed(level="error"):
                self.answers.clear()  # it may not have been written: what the journal has holds
            case CommandEnded(order=order) if order:
                self._carried_out.add(order)
            case Noticed(level="info", run=run) if run and self.starting:
                self.unbegun, self.starting = event.text, False

    def answers_in_journal(self) -> frozenset[str]:
        """Orders whose answers a reading of the journal that begins now shows."""
        return frozenset(self._carried_out)

    def were_shown(self, orders: frozenset[str]) -> None:
        """Forget answers that the journal has shown: others may have been given since, by another process too."""
        for order in orders & self._carried_out:  # without those that were answered again meanwhile
            self._carried_out.discard(order)
            self.answers.pop(order, None)

    def watched_end(self) -> bool:
        """True at the end of a run of this process where the person who asked for it can be taken to see it."""
        asked_at, self._asked_at = self._asked_at, None
        return asked_at is not None and time.monotonic() - asked_at < WATCHED
