"""The forecast of runs whose models may cost money, and the question before them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.app.bench.forecast import Forecast
    from engine.app.bench.jobs import Job
    from engine.services import Services


def agreed(
    services: Services,
    jobs: Sequence[Job],
    yes: bool,
    report: Callable[[str], None] = lambda text: None,
    *,
    budget: Decimal | None = None,
) -> bool:
    """True to go on: print the forecast of runs, and ask where it is more than the configuration allows without a
    question and not answered by `yes`. Raises UsageError where nobody can be asked, and where `budget`, the dollars of
    a --budget, is not enough for one call."""
    from engine.app.bench.forecast import paid_forecast

    return agreed_to(services, paid_forecast(services, jobs, report), yes, budget=budget)


def agreed_to(services: Services, forecast: Forecast | None, yes: bool, *, budget: Decimal | None = None) -> bool:
    """The same for a forecast that is made; None asks nobody who might charge for it."""
    if forecast is None:
        return True
    for line in forecast.lines():
        click.echo(f"{wiped()}{line}", err=True)
    if budget is not None and (reason := forecast.too_little(budget)):
        raise UsageError(reason)
    reason = "" if yes else forecast.too_much(services.config.budget)
    if reason and not _at_a_terminal():
        raise UsageError(f"{reason}: --yes runs it")
    return not reason or click.confirm("Run it?", err=True)


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def wiped() -> str:
    """The sequence that wipes the line at work from a terminal."""
    return "\r\x1b[K" if sys.stderr.isatty() else ""
