"""`paperdesk`: the app on the configured desk, or on the demo desk where nothing is configured."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from engine.errors import UsageError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from engine.app.desk_runner import OpenDesk
    from engine.domain.run import Result, RunSpec
    from engine.messages.events import Event
    from tui.invocation import Invocation

NOT_SENT = frozenset({"AgentSaid", "AgentAnswered", "StepStarted", "OrderMoved"})
"""Events of a backtest that the app does not show: a run has tens of thousands of them."""


def run(invocation: Invocation) -> None:
    """Open the app. Raises UsageError without a terminal, ConfigError (and UsageError for an unknown preset) before
    anything is painted."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("the app needs a terminal; without one use a command, such as paperdesk backtest")
    check_configuration(invocation)
    for size in ("COLUMNS", "LINES"):
        os.environ.pop(size, None)  # exported by some shells; the app would never see its window change
    from engine import places
    from tui.app import PaperdeskApp
    from tui.leaving import Watchdog

    watchdog = Watchdog()
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    app = PaperdeskApp(
        partial(open_desk, invocation),
        partial(run_in_process, invocation=invocation),
        plain=plain,
        images=places.data_dir() / "screenshots",
        options=invocation.options,
        leaving=watchdog.start,
    )
    try:
        remains = app.run()
    finally:
        watchdog.stop()
    if app.bug is not None:
        raise app.bug
    if remains:
        click.echo(f"paperdesk: {remains}", err=True)


def check_configuration(invocation: Invocation) -> None:
    """Read the configuration, so that a fault in it ends the command as it ends every other. Where there is none,
    nothing can be wrong, and the app paints without waiting for the classes of the configuration."""
    if invocation.configured:
        from engine.preset import load_preset

        load_preset(invocation.load().config.desk.preset)


def open_desk(invocation: Invocation) -> OpenDesk:
    """The configured desk; the heavy imports happen here, in the desk's thread. Raises ConfigError."""
    from engine.app.desk_runner import OpenDesk

    return OpenDesk(invocation.services())


def run_in_process(spec: RunSpec, connection: Connection, *, invocation: Invocation) -> None:
    """A backtest as a process that talks to the app (tui.backtest_run has the messages)."""
    from engine.app.backtest import run_backtest
    from engine.app.bench.forecast import paid_forecast
    from engine.app.bench.jobs import Job
    from engine.app.run_spec import check_spec, settled
    from engine.messages.events import to_plain
    from engine.reports.documents.backtest import document
    from engine.reports.performance import BENCHMARK
    from tui.backtest_run import goes_on, stop_wanted

    services = invocation.services()
    check_spec(spec, services.clock.now())
    found = paid_forecast(services, [Job(settled(services, spec), None, spec.run)])
    reason = "" if found is None else found.too_much(services.config.budget)
    if found is not None and reason:
        connection.send({"type": "question", "text": "\n".join((*found.lines(), "", reason))})
        if not goes_on(connection):
            return

    def send(event: Event) -> None:
        if type(event).__name__ not in NOT_SENT:
            connection.send(to_plain(event))

    def beside(name: str, result: Result) -> None:
        if name == BENCHMARK:
            equity = [[point.session.isoformat(), str(point.value)] for point in result.test.equity]
            connection.send({"type": "baseline", "name": name, "equity": equity})

    report = run_backtest(services, spec, send, stop_wanted(connection), on_baseline=beside)
    connection.send({"type": "result", "document": document(report)})
