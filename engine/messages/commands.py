"""What a person or a schedule asks of the desk, as plain values in the imperative."""

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
    """Finish the step at hand, then wait."""


@dataclass(frozen=True, slots=True)
class ResumeCycle(Command):
    """Go on after a pause."""


@dataclass(frozen=True, slots=True)
class StartBacktest(Command):
    """Run a backtest in a process of its own."""

    spec: RunSpec


@dataclass(frozen=True, slots=True)
class StopBacktest(Command):
    """Stop the backtest that is running; what was done is kept."""

    run: str


@dataclass(frozen=True, slots=True)
class Halt(Command):
    """The kill switch: from now on nothing is sent, whoever runs; orders that wait go on waiting."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume(Command):
    """What a halt stopped may go on."""


@dataclass(frozen=True, slots=True)
class Approve(Command):
    """An order that waits may be sent."""

    order_id: str


@dataclass(frozen=True, slots=True)
class Veto(Command):
    """An order that waits must not be sent."""

    order_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Shutdown(Command):
    """Finish what is in flight and stop."""
