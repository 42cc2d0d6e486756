"""Commands of an operator or a schedule, as plain values in the imperative."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.run import RunSpec


@dataclass(frozen=True, slots=True)
class Command:
    """Base of all commands."""


@dataclass(frozen=True, slots=True)
class RunCycle(Command):
    """Decide now for the last completed session."""


@dataclass(frozen=True, slots=True)
class PauseCycle(Command):
    """Finish the present step, then wait."""


@dataclass(frozen=True, slots=True)
class ResumeCycle(Command):
    """Go on after a pause."""


@dataclass(frozen=True, slots=True)
class StartBacktest(Command):
    """Run a backtest in a process of its own."""

    spec: RunSpec


@dataclass(frozen=True, slots=True)
class StopBacktest(Command):
    """Stop the running backtest; its results so far are kept."""

    run: str


@dataclass(frozen=True, slots=True)
class Halt(Command):
    """The kill switch: nothing is sent from now on, by any process; waiting orders go on waiting."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume(Command):
    """Lift a halt."""


@dataclass(frozen=True, slots=True)
class Approve(Command):
    """Approve a waiting order."""

    order_id: str


@dataclass(frozen=True, slots=True)
class Veto(Command):
    """Refuse a waiting order."""

    order_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Shutdown(Command):
    """Finish the requests in flight and stop."""
