"""`paperdesk backtest` (research): run agents or a rule strategy over market days and measure them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tui.commands.run_options import RunFlags, run_options
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.run import RunSpec
    from engine.services import Services


@click.command("backtest")
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, flags: RunFlags, as_json: bool) -> None:
    """Runs agents or a rule strategy over market days and measures them beside buy and hold, rules and chance.

    Without flags it is the desk's own backtest, on the generated demo market where nothing is configured. It decides
    after a session's close and fills at the next open; costs are on. Ctrl-C stops after the session, and what was done
    is kept; a second one stops at once. --run names the new run.

    \b
    Examples:
      paperdesk backtest
      paperdesk backtest --strategy macd --param fast=6
      paperdesk backtest --data DIR --symbols AAPL,MSFT --from 2023-06-01 --to 2023-12-29 --json
    """
    from engine import places
    from engine.errors import Interrupted
    from engine.reports.stored import stored_document
    from tui.console import show, show_json, standard_output

    if flags.preset is not None and flags.strategy is not None:
        raise click.UsageError("--preset runs agents and --strategy runs rules: give one of them")
    if flags.params and flags.strategy is None:
        raise click.UsageError("--param belongs to a rule: give --strategy with it")
    services = invocation.services()
    spec = _named(flags.spec(services), invocation.run)
    _run(services, spec)
    document = stored_document(spec.run)
    if as_json:
        show_json(document)
    else:
        from tui.backtest_text import summary_text

        show(summary_text(document, str(places.run_journal(spec.run)), standard_output()))
    if document["interrupted"]:
        raise Interrupted(_stopped(document))


def _named(spec: RunSpec, run: str | None) -> RunSpec:
    """The run under its id: the given one, which has to be new, or one made of the time."""
    from dataclasses import replace

    from engine import places
    from engine.app.run_spec import new_run_id
    from engine.clock import LiveClock

    if run is None:
        return replace(spec, run=new_run_id("backtest", LiveClock().now()))
    if places.run_journal(run).exists():
        raise click.UsageError(f"--run {run}: there is a run of that name already; choose another")
    return replace(spec, run=run)


def _run(services: Services, spec: RunSpec) -> None:
    from engine.app.backtest import run_backtest
    from engine.errors import Interrupted
    from tui.interruption import Interruption
    from tui.progress import session_progress

    try:
        with Interruption() as interruption, session_progress() as publish:
            run_backtest(services, spec, publish, interruption.asked)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; what was done is kept: see `paperdesk report --run {spec.run}`") from None


def _stopped(document: dict[str, Any]) -> str:
    done = document["sessions"]
    part = f"after {document['last_session']}" if done else "during the warm-up" if document["warm_up"] else "at once"
    return f"interrupted {part}; what was done is kept: see `paperdesk report --run {document['run']}`"
