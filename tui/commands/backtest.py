"""`paperdesk backtest` (research): run agents or a rule strategy over market days and measure them.
`paperdesk audit` (research): prove that no decision saw the future, or say where one did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import CUTS, RunFlags, json_option, run_options
from tui.console import show_document, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.run import RunSpec
    from engine.services import Services


@click.command("backtest")
@run_options
@click.option("--yes", is_flag=True, help="Do not ask where the models' forecast is above budget.ask_above.")
@json_option
@desk_options
def backtest_command(invocation: Invocation, flags: RunFlags, yes: bool, as_json: bool) -> None:
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
    from engine.app.bench.jobs import Job
    from engine.app.run_spec import check_spec, settled
    from engine.errors import Interrupted
    from engine.reports.stored import stored_document
    from tui.agreement import agreed

    if flags.preset is not None and flags.strategy is not None:
        raise click.UsageError("--preset runs agents and --strategy runs rules: give one of them")
    if flags.params and flags.strategy is None:
        raise click.UsageError("--param belongs to a rule: give --strategy with it")
    services = invocation.services()
    spec = _named(flags.spec(services), invocation.run)
    check_spec(spec, services.clock.now())
    if not agreed(services, [Job(settled(services, spec), None, spec.run)], yes):
        click.echo("nothing was run", err=True)
        return
    _run(services, spec)
    document = stored_document(spec.run)

    def lines() -> list[str]:
        from tui.backtest_text import summary_text

        return [summary_text(document, str(places.run_journal(spec.run)), standard_output())]

    show_document(document, as_json, lines)
    if document["interrupted"]:
        raise Interrupted(_stopped(document))


@click.command("audit")
@run_options
@click.option(
    "--cuts", type=CUTS, default="12", show_default=True, metavar="N", help="Sessions to cut the data at, or all."
)
@json_option
@desk_options
def audit_command(invocation: Invocation, flags: RunFlags, cuts: int, as_json: bool) -> int:
    """Checks that no decision saw the future: the same run, on data that ends at the decision.

    Takes the flags of a backtest. The data is cut at a number of decisions, which have to come out the same; then
    records from the future are planted into each source and must surface nowhere. Ends with 0 where all is clean and
    with 1 where something leaked.

    \b
    Examples:
      paperdesk audit
      paperdesk audit --data DIR --symbols MSFT,JNJ --from 2020-10-01 --to 2021-03-31 --cuts all
      paperdesk audit --strategy macd --json
    """
    from engine.app.audit import run_audit
    from engine.reports.documents.research import audit_document

    services = invocation.services()
    spec = flags.spec(services)
    with _progress() as on_step:
        document = audit_document(spec, run_audit(services, spec, cuts or None, on_step))
    show_document(document, as_json, lambda: _audit_lines(document))
    return 1 if document["verdict"] == "leak" else 0


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
    from tui.interruption import interruptible
    from tui.progress import session_progress

    try:
        with interruptible() as stop, session_progress() as publish:
            run_backtest(services, spec, publish, stop)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; what was done is kept: see `paperdesk report --run {spec.run}`") from None


def _stopped(document: Mapping[str, Any]) -> str:
    done = document["sessions"]
    part = f"after {document['last_session']}" if done else "during the warm-up" if document["warm_up"] else "at once"
    return f"interrupted {part}; what was done is kept: see `paperdesk report --run {document['run']}`"


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A line on standard error with the number of runs that are done, where that is a terminal."""
    watched = sys.stderr.isatty()

    def on_step(done: int, steps: int) -> None:
        if watched:
            click.echo(f"\r\x1b[Kaudit: {done} of {steps} runs ...", nl=False, err=True)

    try:
        yield on_step
    finally:
        if watched:
            click.echo("\r\x1b[K", nl=False, err=True)


def _audit_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """A certificate in plain text, with what it does not cover."""
    subject = document.get("strategy") or document["preset"]
    yield f"Look-ahead audit of {subject}, decisions of {document['first_decision']} to {document['last_decision']}"
    yield ""
    yield "Inputs         items   latest available          read by the decision of"
    for read in document["inputs"]:
        latest, decision = _utc(read["latest_available"]), _utc(read["decision"])
        late = "  AFTER IT" if read["from_the_future"] else ""
        yield f"  {read['source']:<10}{read['items']:>8,}   {latest:<24}  {decision}{late}"
    yield ""
    truncation, access, planted = document["truncation"], document["door"], document["planted"]
    yield (
        f"Truncation     {_passed(truncation['differing'])}: {truncation['cuts']} cuts, {truncation['compared']} "
        f"decisions taken again, {truncation['differing']} differ"
    )
    yield (
        f"Data access    {_passed(access['differing'])}: compared in {access['sessions']} sessions, "
        f"{access['differing']} show what a cut removes"
    )
    surfaced = ", ".join(one["source"] for one in planted if one["surfaced"])
    sources = ", ".join(one["source"] for one in planted)
    yield f"Planted future {_passed(surfaced)}: {sources}: {surfaced or 'nothing'} surfaced"
    opened = ", ".join(document["opened_files"])
    yield f"Files          {_passed(opened)}: {opened or 'the run opened no file of the data folder itself'}"
    if document["hindsight_memories"] is not None:
        count = document["hindsight_memories"]
        yield f"Hindsight      {count} memories of the warm-up rest on what followed, as training may"
    yield from (f"  - {finding}" for finding in document["findings"])
    yield ""
    yield f"Verdict: {document['verdict']}"
    yield from document["notes"]


def _utc(time: str | None) -> str:
    return "-" if time is None else f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S} UTC"


def _passed(faults: object) -> str:
    return "FAILED" if faults else "passed"
