"""`paperdesk`: the app on the configured desk, or on the demo desk where nothing is configured."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from engine.errors import InvariantBroken, UsageError
from engine.program_files import own_command
from tui.commands.options import ABSTAIN_LIMIT

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from engine.app.open_desk import OpenDesk
    from engine.domain.run import Result, RunSpec
    from engine.messages.events import Event
    from tui.app.deep_link import Link
    from tui.settings.invocation import Invocation
    from tui.view.desk_port import Source

NOT_SENT = frozenset({"AgentSaid", "AgentAnswered", "StepStarted", "OrderMoved"})
"""Events of a backtest that the app does not show: a run has tens of thousands of them."""


def run(invocation: Invocation, *, cycle: bool = False, read_only: bool = False, link: Link | None = None) -> None:
    """Open the app, with `link` at that place; with `cycle` a cycle runs as soon as the desk is open. Where it set an
    account up, the command starts anew in place of this process; in a browser its page is opened again.

    Raises UsageError without a terminal, and before anything is painted ConfigError, CredentialsRefused, and UsageError
    for an unknown preset.
    """
    in_browser = "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")  # its terminal is a page of `paperdesk serve`
    if not in_browser and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("the app needs a terminal; without one use a command, such as `paperdesk backtest`")
    plain = not in_browser and _fit_terminal()
    from rich.console import Console as Terminal

    from engine.settings import places
    from tui.app.app import PaperdeskApp
    from tui.app.shutdown import Watchdog
    from tui.set_up.set_up_offer import offered
    from tui.settings.app_settings import checked_settings
    from tui.settings.pixels import Pixels, ask_terminal

    eight_bit = not in_browser and Terminal(force_terminal=True).color_system == "256"
    settings = replace(checked_settings(invocation, read_only=read_only), eight_bit=eight_bit)

    watchdog = Watchdog()
    app = PaperdeskApp(
        partial(open_desk, invocation, read_only=settings.read_only),
        partial(run_in_process, invocation=invocation),
        plain=plain,
        images=places.data_dir() / "screenshots",
        first=partial(demo_journal, invocation),
        invocation=invocation,
        set_up=offered(invocation),
        cycle=cycle,
        link=link,
        settings=settings,
        on_shutdown=watchdog.start,
        pixels=Pixels.CELLS if in_browser or plain else ask_terminal(),
    )
    try:
        remains = app.run()
    finally:
        watchdog.stop()
    if app.return_code:
        raise app.failure or InvariantBroken("a bug: the app ended without an exception")
    if app.reopening is not None and not in_browser:  # its page is closed, and opens an app of its own
        again = [*own_command(), *invocation.options, *app.reopening]
        os.execv(sys.executable, again)
    if remains:
        click.echo(f"paperdesk: {remains}", err=True)


def _fit_terminal() -> bool:
    """Take the environment of this process as the terminal needs it; return True for one of plain characters alone."""
    for size in ("COLUMNS", "LINES"):
        os.environ.pop(size, None)  # exported by some shells; the app would never see its window change
    if os.environ.get("TERM") == "dumb":
        os.environ |= {"NO_COLOR": "1", "TEXTUAL_COLOR_SYSTEM": "standard"}
    from tui.text.console import plain_characters

    return plain_characters(os.environ, sys.stdout.encoding or "")


def open_desk(invocation: Invocation, *, read_only: bool = False) -> OpenDesk:
    """The configured desk, which runs cycles by itself where the configuration says so and it is not `read_only`, or
    the demo desk. The heavy imports happen here, in the desk's thread; a cycle has a process of its own, and the
    configuration that the app was opened with. Raises ConfigError."""
    from connectors.wiring.services import services
    from engine.app.desk.notification import CycleProcess
    from engine.app.open_desk import OpenDesk
    from engine.domain.run import RunTrigger
    from tui.settings.configuration_changes import ConfigurationChanges

    configured = partial(services, invocation.load().config)
    by_app = replace(configured(), trigger=RunTrigger.APP)
    changed = ConfigurationChanges(invocation, by_app.config)
    return OpenDesk(by_app, read_only=read_only, run_cycle=CycleProcess(configured), changed=changed)


def demo_journal(invocation: Invocation) -> Source | None:
    """The journal of the demo desk where nothing is configured; a configuration takes as long to read as a desk to
    open. Raises as `begun_desk` does."""
    from engine.settings import places
    from tui.view.desk_port import Source

    if invocation.configured:
        return None
    name = invocation.begun_desk()
    return Source(f"desk {name}", places.desk_journal(name))


def run_in_process(spec: RunSpec, connection: Connection, *, invocation: Invocation, resume: bool = False) -> None:
    """A backtest as a process that talks to the app (tui.view.backtest_run has the messages); with `resume` the rest
    of one that was stopped."""
    from engine.app.bench.forecast import paid_forecast
    from engine.app.bench.jobs import Job
    from engine.app.research.agent_run import first_part
    from engine.app.research.backtest import run_backtest
    from engine.app.research.run_spec import check_spec, settled
    from engine.messages.events import to_plain
    from engine.reports.performance import BENCHMARK
    from engine.reports.stored import stored_document
    from tui.desk.backtest_process import goes_on, stop_wanted

    services = replace(invocation.services(), abstain_limit=ABSTAIN_LIMIT)
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

    first = first_part(spec.run) if resume else None
    run_backtest(services, spec, send, stop_wanted(connection), on_baseline=beside, first_part=first)
    connection.send({"type": "result", "document": stored_document(spec.run)})
