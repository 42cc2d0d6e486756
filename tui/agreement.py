"""The forecast of runs whose models may cost money, and the question before them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.app.bench.jobs import Job
    from engine.services import Services


def agreed(
    services: Services, jobs: Sequence[Job], yes: bool, report: Callable[[str], None] = lambda text: None
) -> bool:
    """True to go on: print the forecast of runs, and ask where it is above `budget.ask_above` and not answered by
    `yes`. Raises UsageError where nobody can be asked."""
    from engine.app.bench.forecast import forecast, is_free

    if all(is_free(services, job) for job in jobs):
        return True
    found, limit = forecast(services, jobs, report), services.config.budget.ask_above
    for line in found.lines():
        click.echo(f"{wiped()}{line}", err=True)
    if yes or found.known_cost <= limit:
        return True
    if not _at_a_terminal():
        cost = f"${found.known_cost:,.2f}"
        raise UsageError(f"the forecast of about {cost} is above budget.ask_above (${limit:,.2f}): --yes runs it")
    return click.confirm("Run it?", err=True)


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def wiped() -> str:
    """The sequence that wipes the line at work from a terminal."""
    return "\r\x1b[K" if sys.stderr.isatty() else ""
