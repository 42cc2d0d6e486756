"""The forecast of runs whose models may cost money, and the question before them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from engine.errors import UsageError
from tui.shell.progress import WIPE
from tui.text.console import as_json

if TYPE_CHECKING:
    from engine.app.bench.forecast import Forecast
    from engine.app.bench.jobs import Job
    from engine.services import Services


yes_option = click.option(
    "--yes", is_flag=True, help="Skip confirmation when the forecast model cost exceeds budget.ask_above."
)


def agree_to_jobs(
    services: Services,
    jobs: Sequence[Job],
    yes: bool,
    report: Callable[[str], None] = lambda text: None,
    *,
    budget: Decimal | None = None,
) -> None:
    """Forecast runs and ask as `agree` does."""
    from engine.app.bench.forecast import paid_forecast

    agree(services, paid_forecast(services, jobs, report), yes, budget=budget)


def agree(
    services: Services, forecast: Forecast | None, yes: bool, *, budget: Decimal | None = None, declined: int = 0
) -> None:
    """Print a forecast, and ask where it is more than the configuration allows without a question and not answered by
    `yes`; None asks nobody who might charge for it. A no ends the command with the code `declined`. Raises UsageError
    where nobody can be asked, and where `budget`, the dollars of a --budget, is not enough for one call."""
    if forecast is None:
        return
    wiped = WIPE if sys.stderr.isatty() else ""
    for line in forecast.lines():
        click.echo(f"{wiped}{line}", err=True)
    if budget is not None and (reason := forecast.too_little(budget)):
        raise UsageError(reason)
    reason = "" if yes else forecast.too_much(services.config.budget)
    if reason and not asks():
        raise UsageError(f"{reason}: pass --yes to run it")
    if reason and not click.confirm("Run it?", err=True):
        click.echo("nothing was run", err=True)
        raise click.exceptions.Exit(declined)


def check_asks(yes: bool, hint: str = "pass --yes") -> None:
    """Raise UsageError where something has to be confirmed, `yes` does not, and nobody can be asked."""
    if not yes and (as_json() or not sys.stdin.isatty()):
        raise UsageError(f"cannot ask for confirmation without a terminal: {hint}")


def asks() -> bool:
    """True where somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
