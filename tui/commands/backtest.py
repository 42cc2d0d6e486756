"""`paperdesk backtest` (research): backtest agents or a rule strategy.
`paperdesk rerun` (research): repeat a run from its journal and show the differences.
`paperdesk audit` (research): prove that no decision saw the future, or show where one did.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.domain.model_call import ModelKind, replays
from engine.errors import MENDED, Interrupted, PaperdeskError
from engine.settings import places
from tui.commands.options import BUDGET, CUTS, DOLLARS, REPEATS, RunFlags, abstain_option, run_options
from tui.commands.study import keep_sensitivities, sensitivity_option
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import agree_to_jobs, yes_option
from tui.shell.interruption import interruptible
from tui.shell.progress import session_progress, work_line
from tui.text.console import as_json, show, show_document, show_json_text, standard_output

MOST_SHOWN = 12
"""Texts that are listed; the rest is counted."""

if TYPE_CHECKING:
    from engine.app.research.agent_run import FirstPart
    from engine.domain.run import RunSpec
    from engine.services import Services


@command("backtest")
@run_options
@click.option("--budget", type=DOLLARS, metavar="USD", help=BUDGET)
@abstain_option
@click.option(
    "--repeats", **REPEATS, help="Runs of the same decisions: their noise is the least difference that counts."
)
@click.option("--light", is_flag=True, help="Record settings, returns, trades and fingerprint alone; no baselines.")
@sensitivity_option
@click.option("--resume", metavar="RUN", help="Resume a stopped run, with its model or another --model.")
@click.option(
    "--batch", is_flag=True, help="Ask agents that read the market alone in batches: half price, within 24 hours."
)
@yes_option
def backtest_command(
    *,
    invocation: Invocation,
    flags: RunFlags,
    batch: bool,
    budget: Decimal | None,
    abstain_limit: int,
    repeats: int,
    light: bool,
    sensitivity: bool,
    resume: str | None,
    yes: bool,
) -> None:
    """Backtests agents or a rule strategy against buy and hold, rule strategies and random traders.

    Without flags it runs the desk's settings, or the generated demo market if nothing is configured. Decisions are made
    after a session's close and fill at the next open, costs included. Ctrl-C stops after the current session and keeps
    the results; a second Ctrl-C stops at once. --run names the new run. --resume continues a run stopped by Ctrl-C, by
    its --budget or by an unavailable model; recorded answers are reused, not paid for again. A model without a usable
    decision in two sessions in a row stops the run (75); --resume retries it, or another --model. A --budget below the
    maximum cost of one call is refused up front (2).

    --repeats N plays a run N times (RUN, RUN-2, ...) and shows the first, how far the others are from it, and whether
    its lead over buy and hold is more than the noise of the repeats (JSON: repeats, pairs, floor).

    With --batch the questions of agents that read the market alone (news, filings, intelligence, charts) go out for the
    whole window as one batch per step, to openai or anthropic. Waiting may be interrupted or killed: --resume collects
    the batch and sends nothing twice. Lines without an answer are asked one by one.

    With --mask a model is not told which market it reads, and what it answers is translated back: what is lost without
    names, dates and prices was recalled. Several levels (0,4) are played one after the other, as RUN-mask0 and
    RUN-mask4, and compared session by session with the first.

    With --sensitivity 20 decisions are re-run with the news flipped, the prices mirrored and the tickers swapped, from
    recorded answers where a question stays the same (JSON: sensitivity). A model whose decisions neither news nor
    prices move recalled them.

    \b
    Examples:
      paperdesk backtest
      paperdesk backtest --strategy macd --param fast=6
      paperdesk backtest --data DIR --symbols AAPL,MSFT --from 2023-06-01 --to 2023-12-29 --json
    """
    from engine.app.research.run_spec import check_spec
    from engine.reports.stored import stored_document
    from engine.services import SpendingLimit, Spent

    _check_flags(flags, sensitivity=sensitivity, light=light)
    services = replace(invocation.services(), abstain_limit=abstain_limit)
    stopped = None if resume is None else _stopped_part(resume, flags, invocation.run, light=light)
    spec = _named(flags.spec(services), invocation.run) if stopped is None else _spec_of(stopped, flags)
    spec = replace(spec, batch=spec.batch or batch)
    check_spec(spec, services.clock.now())
    specs = _runs(services, spec, flags.masks or (), repeats, whole=not light and stopped is None)
    _agree(services, specs, budget, yes=yes, sampled=len(flags.masks or (0,)) if sensitivity else 0)
    if budget is not None:
        spent = Spent() if stopped is None else stopped.spent
        limit = SpendingLimit.of_dollars(services.config.budget, budget, spent)
        services = replace(services, limit=limit)
    documents, trouble = _played(services, specs, stopped, light=light)
    ended = trouble is None
    if sensitivity and ended:
        trouble = keep_sensitivities(services, [one.run for one in specs[: len(flags.masks or (0,))]])
        documents = [stored_document(one.run) for one in specs]
    _show(documents if ended else documents[:1], repeats if ended else 1)
    if trouble is not None:
        raise trouble


def _played(
    services: Services, specs: Sequence[RunSpec], stopped: FirstPart | None, *, light: bool
) -> tuple[list[dict[str, Any]], PaperdeskError | None]:
    """The documents of runs, and what stopped one of them. Raises that where it left no document of any."""
    from engine.reports.stored import stored_document

    documents = list[dict[str, Any]]()
    for one in specs:
        try:
            _run(services, one, stopped, light=light)
        except PaperdeskError as error:
            if not documents:
                raise
            return documents, error
        documents.append(stored_document(one.run, light=True))
        if documents[-1]["interrupted"]:
            return documents, Interrupted(_stopped(documents[-1]))
    return documents, None


def _check_flags(flags: RunFlags, *, sensitivity: bool, light: bool) -> None:
    """Raise a usage error for flags that do not go together."""
    if flags.preset is not None and flags.strategy is not None:
        raise click.UsageError("--preset (agents) and --strategy (rules) exclude each other: give one of them")
    if flags.params and flags.strategy is None:
        raise click.UsageError("--param sets a strategy's parameter: give --strategy with it")
    if sensitivity and (light or flags.strategy is not None):
        raise click.UsageError("--sensitivity re-runs decisions of agents: leave out --light and --strategy")


def _show(documents: Sequence[dict[str, Any]], repeats: int) -> None:
    """Print a backtest, with what its repeats add; without repeats several are compared, by their masks."""
    from engine.reports.documents.backtest import row_pieces
    from engine.reports.documents.run_comparison import comparison_document
    from engine.reports.documents.side_by_side import repeats_part
    from tui.text.backtest_text import summary_text
    from tui.text.runs_text import comparison_lines, repeats_lines

    console = standard_output()
    if repeats == 1 and len(documents) > 1:
        compared = comparison_document(documents)
        show_document(compared, lambda: comparison_lines(compared, console.width))
        return
    document = documents[0] if repeats == 1 else documents[0] | repeats_part(documents, repeats)
    if as_json():
        show_json_text(row_pieces(document))
        return
    show(summary_text(document, str(places.run_journal(document["run"])), console))
    if repeats > 1:
        show("\n".join(repeats_lines(document)))


def _agree(services: Services, specs: Sequence[RunSpec], budget: Decimal | None, *, yes: bool, sampled: int) -> None:
    """Ask for the cost of runs, of which the first `sampled` are decided again in parts. Raises as `agree_to_jobs`, and
    ConfigError for batches that cannot be had."""
    if specs[0].preset is not None:  # a rule loads nothing of the agents
        from engine.app.bench.jobs import Job
        from engine.app.redecision.sensitivity import SAMPLE
        from engine.app.research.run_spec import settled

        if specs[0].batch:
            _check_batches(services, specs[0])
        jobs = [Job(settled(services, one), None, one.run) for one in specs]
        jobs[:sampled] = [replace(job, sampled=SAMPLE) for job in jobs[:sampled]]
        agree_to_jobs(services, jobs, yes, budget=budget)


def _runs(services: Services, spec: RunSpec, masks: Sequence[int], repeats: int, *, whole: bool) -> list[RunSpec]:
    """A run, with its repeats or under each of several masks."""
    if len(masks) < 2:
        return [spec] if repeats == 1 else _repeated(services, spec, repeats, whole=whole)
    if repeats > 1 or not whole:
        raise click.UsageError("--mask compares whole runs: leave out --light, and give one level with --repeats")
    named = [_named(spec, f"{spec.run}-mask{level}") for level in masks]
    return [replace(one, options=replace(spec.options, mask=m or None)) for one, m in zip(named, masks, strict=True)]


def _repeated(services: Services, spec: RunSpec, repeats: int, *, whole: bool) -> list[RunSpec]:
    """A run and its repeats, of which there are none where the rules alone are asked."""
    from engine.app.bench.forecast import asks_service
    from engine.app.research.run_spec import settled
    from engine.app.study import RULES_REPEAT

    if not whole:
        raise click.UsageError("--repeats compares whole runs: leave out --light and --resume")
    if not asks_service(services, settled(services, spec)):
        click.echo(RULES_REPEAT, err=True)
        return [spec]
    others = (replace(_named(spec, f"{spec.run}-{number + 1}"), sample=number) for number in range(1, repeats))
    return [spec, *others]


def _check_batches(services: Services, spec: RunSpec) -> None:
    """Say that batches take time. Raises ConfigError for a run whose agents cannot be asked in them."""
    from engine.app.bench.jobs import agents_of
    from engine.app.models.models import check_batches

    check_batches(agents_of(spec), services.config, spec)
    if not replays(spec.model):
        click.echo(f"batches may take 24 hours; stopped or killed, the run loses none: {_go_on(spec.run)}", err=True)


@command("rerun")
@click.argument("of", metavar="ID")
@click.option("--model", metavar="SPEC", help="Another model; replay: only the answers that run ID recorded.")
@yes_option
def rerun_command(invocation: Invocation, of: str, model: str | None, yes: bool) -> int:
    """Repeats a backtest from its journal and shows the differences.

    It reuses every setting of the run: symbols, window, costs, cash, seed, parameters, the preset's text and the
    briefing, even if the configuration or a file has changed since. Data, prompts and program are today's; changes to
    them are reported. With --model replay no model is called: each agent gets its recorded answers, and a question
    without one ends the run. A light run is repeated as one. Exits with 0 if decisions, trades and equity are the same,
    else 1. --run names the new run.

    \b
    Examples:
      paperdesk rerun backtest-20251122-101500-ab12
      paperdesk rerun mine --run mine-again --json
      paperdesk rerun mine --model replay
    """
    from engine.app.bench.jobs import Job
    from engine.app.research.backtest import recorded_spec
    from engine.reports.documents.run_comparison import rerun_document
    from engine.reports.stored import stored_document
    from tui.text.runs_text import rerun_lines

    before, services = stored_document(of, light=True), invocation.services()
    spec = _named(recorded_spec(of), invocation.run)
    if model is not None:
        spec = replace(spec, model=f"{ModelKind.REPLAY}:{of}" if model == ModelKind.REPLAY else model)
    agree_to_jobs(services, [Job(spec, None, spec.run)], yes)
    _run(services, spec, None, light="light" in before)
    document = rerun_document(before, stored_document(spec.run, light=True))
    show_document(document, lambda: rerun_lines(document))
    return 0 if document["same"] else 1


@command("audit")
@run_options
@click.option("--cuts", type=CUTS, default="12", show_default=True, metavar="N", help="Sessions to cut at, or all.")
def audit_command(invocation: Invocation, flags: RunFlags, cuts: int) -> int:
    """Checks that no decision saw the future: the same run, on data that ends at the decision.

    Takes the flags of a backtest. The data is cut at --cuts decisions, drawn by --seed, each of which must come out
    unchanged; then future records are planted in every source and must not surface anywhere. The certificate identifies
    program, data, your code and the run. Under a --mask the questions are searched for what the level hides. With --run
    it checks that run, with its settings unless other flags are given. Exits with 0 if clean, 1 if anything leaked or
    the run differs.

    \b
    Examples:
      paperdesk audit
      paperdesk audit --data DIR --symbols MSFT,JNJ --from 2020-10-01 --to 2021-03-31 --cuts all
      paperdesk audit --strategy macd --json
      paperdesk audit --run backtest-20251122-101500-ab12
    """
    from engine.app.audit.audit import run_audit
    from engine.app.research.backtest import recorded_spec
    from engine.reports.documents.research import audit_document

    if len(flags.masks or ()) > 1:
        raise click.UsageError("--mask takes one level here: each has an audit of its own")
    services, of = invocation.services(), invocation.run
    given = any(getattr(flags, one.name) for one in fields(flags))
    spec = flags.spec(services) if of is None or given else recorded_spec(of)
    with work_line() as report:

        def on_step(done: int, steps: int) -> None:
            report(f"audit: {done} of {steps} runs")

        document = audit_document(spec, run_audit(services, spec, cuts or None, on_step, of=of))
    show_document(document, lambda: _audit_lines(document))
    return 1 if document["verdict"] == "leak" or document.get("same") is False else 0


def _named(spec: RunSpec, run: str | None) -> RunSpec:
    """The run under its id: the given one, which has to be new, or one made of the time."""
    from engine.app.research.run_spec import new_run_id
    from engine.clock import LiveClock

    if run is None:
        return replace(spec, run=new_run_id("backtest", LiveClock().now()))
    if places.run_journal(run).exists() or places.arena_file(run).exists():
        raise click.UsageError(f"--run {run}: this run already exists; choose another name")
    return replace(spec, run=run)


def _stopped_part(run: str, flags: RunFlags, new: str | None, *, light: bool) -> FirstPart:
    """The recorded part of the run to go on with. Raises UsageError for flags that it has already."""
    from engine.app.research.agent_run import first_part

    if light or new is not None or any(getattr(flags, one.name) for one in fields(flags) if one.name != "model"):
        raise click.UsageError(
            "--resume continues a run with its original settings: the only flag of a run that it takes is --model"
        )
    return first_part(run)


def _spec_of(stopped: FirstPart, flags: RunFlags) -> RunSpec:
    spec = stopped.run.spec
    assert spec is not None  # a run of a desk is in no journal of a backtest
    return spec if flags.model is None else replace(spec, model=flags.model, models=())


def _run(services: Services, spec: RunSpec, stopped: FirstPart | None, *, light: bool = False) -> None:
    from engine.app.research.backtest import run_backtest

    gc.freeze()  # what is loaded stays: no collection in the run has to look at it
    try:
        with interruptible() as stop, session_progress() as publish, work_line() as report:
            run_backtest(services, spec, publish, stop, first_part=stopped, report=report, light=light)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_go_on(spec.run)}") from None
    except PaperdeskError as error:
        if places.run_journal(spec.run).exists() and error.exit_code in MENDED:
            error.args = (f"{error}; {_go_on(spec.run)}",)
        raise


def _go_on(run: str) -> str:
    return f"`paperdesk backtest --resume {run}` continues"


def _stopped(document: Mapping[str, Any]) -> str:
    done, run = document["last_session"], document["run"]
    part = f"after {done}" if done else "during the warm-up" if document.get("warm_up") else "at once"
    return f"interrupted {part}; what was done is kept: see `paperdesk report --run {run}`, {_go_on(run)}"


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
    for name, faults, text in _checks(document):
        yield f"{name:<14} {'FAILED' if faults else 'passed'}: {text}"
    if document["hindsight_memories"] is not None:
        count = document["hindsight_memories"]
        yield f"Hindsight      {count} memories of the warm-up rest on what followed, as training may"
    yield from _to_be_looked_at(document)
    yield from (f"  - {finding}" for finding in document["findings"])
    yield ""
    yield from _bound_lines(document)
    yield f"Verdict: {document['verdict']}"
    yield from document["notes"]


def _checks(document: Mapping[str, Any]) -> Iterator[tuple[str, object, str]]:
    """The checks of a certificate: name, what was found, and words."""
    cut, access, planted = document["truncation"], document["door"], document["planted"]
    again = f"{cut['compared']} decisions taken again, {cut['differing']} differ"
    yield "Truncation", cut["differing"], f"{cut['cuts']} cuts, {again}"
    if copies := document["folder_copies"]:
        original = "hidden" if copies["hidden"] else "refused to Python"
        again = f"{copies['compared']} decisions taken again on copies cut there"
        yield "Folder copies", copies["differing"], f"{again}, the original {original}, {copies['differing']} differ"
    shown = f"{access['differing']} show what a cut removes"
    yield "Data access", access["differing"], f"compared in {access['sessions']} sessions, {shown}"
    surfaced = ", ".join(one["source"] for one in planted if one["surfaced"])
    sources = ", ".join(one["source"] for one in planted)
    yield "Planted future", surfaced, f"{sources}: {surfaced or 'nothing'} surfaced"
    opened = ", ".join(document["opened_files"])
    yield "Files", opened, opened or "the run opened no file of the data folder itself"
    if training := document["training"]:
        unmarked = f"{training['unmarked']} texts rest on it and do not say so"
        where = f"with another future of {len(training['sessions'])} sessions of the warm-up"
        yield "Training", training["unmarked"], f"{where} {unmarked}"
    if mask := document["mask"]:
        named = ", ".join(mask["named"]) or "nothing"
        yield "Mask", mask["named"], f"of what level {mask['level']} hides the questions name {named}"


def _to_be_looked_at(document: Mapping[str, Any]) -> Iterator[str]:
    """Everything that a certificate cannot judge."""
    days = [one for one in document["foretold"] if ": names " in one]
    told = [one for one in document["foretold"] if one not in days]
    for name, what, found in (
        ("Not audited", "files that your code read outside of the data folder", document["not_audited"]),
        ("Foretold", "texts that tell a close of the 60 sessions after them, to be looked at", told),
        ("Later days", "texts that name a day after their own, most of them appointments", days),
        (
            "Stamped early",
            "texts with a stamp before their release, from which on they count",
            document["stamped_early"],
        ),
        ("Undated texts", "no cut tells of when they are", document["undated_texts"]),
    ):
        if found:
            yield f"{name:<14} {what}: {len(found)}"
            yield from (f"  - {one}" for one in found[:MOST_SHOWN])


def _bound_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The run that a certificate is of, and whether a recorded one is the same."""
    code = "" if document["code"] is None else f", code {document['code'][:12]}"
    data, result = document["data_fingerprint"][:12], document["fingerprint"][:12]
    yield f"Certifies      version {document['version']}, data {data}{code}, result {result}"
    if document["run"] is None:
        return
    words = {True: "the same", False: f"another: {', '.join(document['differs'])}", None: "not known to be the same"}
    yield f"Run            {document['run']}: {words[document['same']]}"


def _utc(time: str | None) -> str:
    return "-" if time is None else f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S} UTC"
