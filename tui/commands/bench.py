"""`paperdesk bench` (research): reproduce a published table beside the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.errors import Interrupted
from tui.commands.options import (
    ABSTAINING,
    BUDGET,
    DAY,
    DOLLARS,
    PROCESSES,
    REPEATS,
    SCHEDULER,
    RunFlags,
    both_ends,
    listed,
    option_of,
    symbol_list,
)
from tui.commands.report import page_target, write_file
from tui.settings.invocation import Invocation, OptionOf, command, is_given
from tui.shell.cost_confirmation import agree, agree_to_jobs, yes_option
from tui.shell.interruption import interruptible
from tui.shell.progress import work_line
from tui.text.arena_prices_text import arena_lines, prices_lines
from tui.text.console import show_document, standard_output
from tui.text.plain_text import printable

if TYPE_CHECKING:
    from engine.app.arena.bench import PricesBench
    from engine.app.bench.bench import PreparedBench
    from engine.app.bench.jobs import Job
    from engine.app.bench.recall import RecallBench
    from engine.app.research.run_spec import Stop
    from engine.services import Services


F = TypeVar("F", bound=Callable[..., Any])
PAPERS = ("finagent", "finvision", "investorbench", "tradinggpt")
ARENA, MEMORY, RECALL = "arena", "memory", "recall"
TABLES, AGENTS = (*PAPERS, ARENA), (*PAPERS, ARENA, MEMORY)
EVERY = (*AGENTS, RECALL)
WINDOWS, WARMED_UP = ("tradinggpt", MEMORY, ARENA), ("tradinggpt", MEMORY)
TRIALS = click.IntRange(1, 10_000)
STUDIED = ("desk", "finmem", "tradinggpt-single")
"""Presets that `bench memory` plays where none is named."""
THROUGH = date(2025, 12, 31)
"""The last day of the demo market's documents: the questions of `bench recall` are the same on every day."""
STAYS = frozenset({"name", "jobs", "scheduler", "budget", "abstain_limit", "resume", "out", "yes"})
"""Options that a resumed bench takes."""
PRICED = frozenset({"baselines", "symbols", "presets", "strategies", "first", "last"})
"""Options of the arena's bench on real prices alone."""
PLAYED = frozenset({"repeats", "jobs"})
"""Those of its bench in the closed market alone."""
REUSED = "interrupted: what is finished is printed, recorded answers will be reused"


def _option(of: Sequence[str], *names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, cls=OptionOf, of=of, **attributes)


@command("bench")
@click.argument("name", metavar="BENCH", is_eager=True)
@_option(TABLES, "--baselines", is_flag=True, help="Rule strategies and learned baselines only, no agents.")
@_option(PAPERS, "--tune", "trials", type=TRIALS, metavar="TRIALS", help="Tune the rules on the training period.")
@_option(EVERY, "--symbols", metavar="A,B", help="Restrict to these symbols of the table.")
@click.option("--data", "folder", metavar="DIR", help="Data folder with prices of the paper's symbols.")
@_option(AGENTS, "--models", "--model", "models", metavar="SPEC,SPEC", help="Models to run, one row each.")
@_option(TABLES, "--repeats", **REPEATS, help="Runs per row; the one with the median Sharpe is reported.")
@_option(TABLES, "--ablations", is_flag=True, help="Add the paper's ablations.")
@_option(PAPERS, "--without", multiple=True, metavar="STEP,STEP", help="Add a row without these steps (repeatable).")
@_option(TABLES, "--jobs", **PROCESSES, help="Parallel runs, one process each.")
@_option(PAPERS, "--scheduler", **SCHEDULER)
@_option(
    AGENTS, "--preset", "presets", multiple=True, metavar="NAME|FILE", help="Run this preset's agents (repeatable)."
)
@_option(
    TABLES, "--strategy", "strategies", multiple=True, metavar="NAME|FILE:CLASS", help="Run this strategy (repeatable)."
)
@option_of(WINDOWS, "--from", "first", type=DAY, metavar="DATE", help="First session of the test.")
@option_of(WINDOWS, "--to", "last", type=DAY, metavar="DATE", help="Last session of the test.")
@option_of(WARMED_UP, "--warm-up-from", type=DAY, metavar="DATE", help="Start of the warm-up.")
@_option(PAPERS, "--budget", type=DOLLARS, metavar="USD", help=BUDGET)
@_option(TABLES, "--abstain-limit", **ABSTAINING)
@_option(PAPERS, "--resume", metavar="RUN", help="Resume a stopped bench; answered questions are not asked again.")
@_option(PAPERS, "--keep", is_flag=True, help="Keep a journal of every run (tens of megabytes each).")
@_option(PAPERS, "--out", metavar="FILE", help="Also plot the cumulative returns of all rows to an HTML file.")
@yes_option
def bench_command(
    *,
    invocation: Invocation,
    name: str,
    baselines: bool,
    trials: int | None,
    symbols: str | None,
    folder: str | None,
    models: str | None,
    repeats: int,
    ablations: bool,
    without: Sequence[str],
    jobs: int,
    scheduler: str | None,
    presets: Sequence[str],
    strategies: Sequence[str],
    first: date | None,
    last: date | None,
    warm_up_from: date | None,
    budget: Decimal | None,
    abstain_limit: int,
    resume: str | None,
    keep: bool,
    out: str | None,
    yes: bool,
) -> None:
    """Reproduces a paper's tables, with our figures beside the printed ones.

    BENCH is finagent, investorbench or finvision. The rule strategies run as the paper's authors ran them, then the
    paper's agents, with its warm-up, window and costs, one symbol at a time. Ctrl-C keeps finished rows; --resume
    continues a bench stopped by Ctrl-C, by its --budget or by an unavailable model. A model without a usable decision
    in two sessions in a row stops it (75); --resume retries.

    --preset and --strategy run your own agents or strategy in the paper's environment, beside the printed rows; our
    rows are compared with each other and with buy and hold, paired by session.

    BENCH tradinggpt: one trader against three who debate, each with its own book and row, over the paper's window or
    --from to --to, on a demo symbol or, with --data, on TSLA; --symbols selects others. The paper prints no results.

    BENCH memory: the same window without memory, with recall, with an oracle that knows which memories will pay off,
    with each layer switched off, and with false memories; differences are paired by session. Without --preset it
    studies desk, finmem and tradinggpt-single.

    BENCH recall: paraphrased questions generated from news and filings, put to every memory ranking; on the demo
    market, or on a folder with --data.

    BENCH arena: a trader in the closed market with text, charts or both, with and without reflection, and a duel of
    text against charts, beside the printed tables 3 to 6, 8 and 9. With --data it runs the arena's portfolio agent on
    real prices, over the paper's window or --from to --to, against buy and hold, SMA, ZMR and MACD; on two symbols also
    against their average trend (Table 8). --ablations adds the windows and inputs of Table 6.

    \b
    Examples:
      paperdesk bench finagent --baselines --data DIR
      paperdesk bench finagent --ablations --without tools,vision --jobs 2 --data DIR
      paperdesk bench investorbench --models openai:gpt-4o,offline --repeats 5 --symbols TSLA --data DIR
      paperdesk bench finagent --models openai:gpt-4o --budget 20 --data DIR
      paperdesk bench finagent --resume bench-20261120-120000-ab12 --budget 40
      paperdesk bench arena --models openai:gpt-4o,offline --repeats 5 --jobs 2
      paperdesk bench arena --data DIR --symbols AAPL,MSFT,NVDA --from 2023-09-01 --to 2023-10-31
      paperdesk bench arena --data DIR --symbols 600519.SS,300750.SZ --ablations
      paperdesk bench investorbench --preset mine.toml --strategy mine.py:Ridge --data DIR
      paperdesk bench tradinggpt --warm-up-from 2025-01-02 --from 2025-02-20 --to 2025-03-14
      paperdesk bench recall --data DIR --symbols MSFT,JNJ
      paperdesk bench memory --symbols MSFT,JNJ --warm-up-from 2020-07-01 --from 2020-10-01 --to 2021-05-06 --data DIR
    """
    from engine.app.arena.bench import requested_bench
    from engine.app.bench.bench import prepare, resumed
    from engine.app.bench.plan import BenchRequest, requested_ablations

    if name not in EVERY:
        raise click.UsageError(f"unknown bench {name}; available: {', '.join(EVERY)}")
    page = None if out is None else page_target(out)
    asked = bool(presets) or models is not None or ablations or bool(without)
    agents = asked or not (baselines or strategies)
    left_out = [_each(text, "--without names no step; write them as STEP,STEP") for text in without]
    services = replace(invocation.services(), abstain_limit=abstain_limit)
    chosen = () if symbols is None else symbol_list(symbols)
    if name == ARENA and folder is not None:
        _refuse(PLAYED, "--data is about real prices")
        bench = requested_bench(
            services,
            folder,
            symbols=chosen or None,
            window=both_ends(first, last),
            models=_models(models) or (services.config.models.default,) if agents else (),
            ablations=ablations,
            presets=presets,
            strategies=strategies,
            learned=baselines,
        )
        _bench_prices(services, bench, yes=yes)
    elif name == ARENA:
        _refuse(PRICED, "the closed market has none; real prices need --data")
        _bench_arena(services, _models(models), repeats, jobs, windows=ablations, yes=yes)
    elif name == RECALL:
        _measure_recall(services, folder, chosen)
    elif name == MEMORY:
        flags = RunFlags(
            symbols=symbols, first=first, last=last, warm_up_from=warm_up_from, model=models, folder=folder
        )
        _study_memory(services, flags, presets or STUDIED, yes=yes)
    elif resume is not None:
        changing = {str(one.name) for one in click.get_current_context().command.params} - STAYS
        _refuse(changing, "--resume continues a bench with its original settings")
        prepared = resumed(services, resume, jobs, scheduler)
        if prepared.request.name != name:
            raise click.UsageError(f"--resume {resume} is a bench of {prepared.request.name}")
        _print(services, prepared, budget, page, yes=yes)
    else:
        request = BenchRequest(
            name=name,
            window=both_ends(first, last),
            warm_up_from=warm_up_from,
            folder=folder or services.config.data.folder,
            symbols=chosen,
            trials=trials or 0,
            agents=agents,
            learned=baselines,
            models=_models(models),
            ablations=requested_ablations(name, ablations, left_out),
            presets=tuple(presets),
            strategies=tuple(strategies),
            repeats=repeats,
            jobs=jobs,
            scheduler=scheduler,
            keep=keep,
        )
        _print(services, prepare(services, request), budget, page, yes=yes)


def _refuse(names: Collection[str], because: str) -> None:
    """Raise a usage error for the first of the options, by the names of their values, that was given."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and is_given(context, option):
            raise click.UsageError(f"{because}: leave out {option.opts[0]}")


def _bench_arena(
    services: Services, models: Sequence[str], repeats: int, jobs: int, *, windows: bool, yes: bool
) -> None:
    """Play all arms of the models, those of other windows where asked for, and print them beside the printed rows."""
    from engine.app.arena.bench import arms_forecast, arms_of, run_arena_bench

    arms = arms_of(services, models or (services.config.models.default,), repeats, windows=windows)
    agree(services, arms_forecast(services, arms), yes)
    with interruptible() as stop, work_line() as report:
        document = run_arena_bench(services, arms, jobs=jobs, report=report, stop=stop)
    _show(document, lambda width: arena_lines(document, width), document["interrupted"] and REUSED)


def _bench_prices(services: Services, bench: PricesBench, *, yes: bool) -> None:
    """Play the portfolio agent and the paper's rules on real prices."""
    from engine.app.arena.bench import agent_jobs, run_prices_bench

    jobs = agent_jobs(services, bench)
    with _playing(services, jobs, yes=yes) as (within, report, stop):
        document = run_prices_bench(within, bench, jobs, report, stop)
    _show(document, lambda width: prices_lines(document, width), document["interrupted"] and REUSED)


def _study_memory(services: Services, flags: RunFlags, presets: Sequence[str], *, yes: bool) -> None:
    """Play all arms of the presets and print what came of them."""
    from engine.app.bench.memory import jobs_of, run_memory_bench, studied_specs
    from tui.text.memory_worth_text import lines

    specs = studied_specs(services, flags.spec(services), tuple(presets))
    with _playing(services, jobs_of(specs), yes=yes) as (within, report, stop):
        document = run_memory_bench(within, specs, report, stop)
    _show(document, lambda width: lines(document, width), document["interrupted"])


@contextmanager
def _playing(
    services: Services, jobs: Sequence[Job], *, yes: bool
) -> Iterator[tuple[Services, Callable[[str], None], Stop]]:
    """Services within the desk's budget of the day for runs whose forecast is agreed to, until Ctrl-C."""
    from engine.app.records.spending import within_day

    with work_line() as report:
        agree_to_jobs(services, jobs, yes, report)
        with within_day(services) as within, interruptible() as stop:
            yield within, report, stop


def _show(document: Mapping[str, Any], lines: Callable[[int], Iterable[str]], interrupted: str | None) -> None:
    """Print a bench. Raises Interrupted where it was."""
    show_document(document, lambda: lines(standard_output().width))
    if interrupted:
        raise Interrupted(interrupted)


def _measure_recall(services: Services, folder: str | None, symbols: tuple[str, ...]) -> None:
    """Put the questions to every ranking and print how each did."""
    from engine.app.bench.recall import DEFAULT, run_recall_bench
    from engine.clock import LiveClock
    from engine.domain.run import DataSpec

    data = DataSpec(folder) if folder is not None else DataSpec(None, services.config.data.demo_seed)
    through = THROUGH if folder is None else LiveClock().now().date()
    bench = run_recall_bench(services, data, symbols, through)
    document = {"schema": 1, "default": DEFAULT, **asdict(bench)}
    show_document(document, lambda: _recall_lines(bench))


def _recall_lines(bench: RecallBench) -> Iterator[str]:
    console = standard_output()
    yield console.bold(f"Evidence recall: {bench.questions:,} questions over {bench.documents:,} documents")
    yield f"{'RANKING':<24} {'R@5':>6} {'R@20':>6} {'MRR':>6} {'SUPERSEDED FIRST':>17}"
    for one in sorted(bench.methods, key=lambda one: -one.r20):
        yield f"{one.name:<24} {one.r5:6.3f} {one.r20:6.3f} {one.mrr:6.3f} {one.superseded_first:17}"
    yield "R@k: share of the evidence among the first k. MRR: mean reciprocal rank of the first piece of evidence."
    later = sum(one.later for one in bench.methods)
    yield f"Ranked although from after its question: {later}. layered is the default memory, which forgets."


def _print(services: Services, prepared: PreparedBench, budget: Decimal | None, out: Path | None, *, yes: bool) -> None:
    """Run a bench once its forecast is agreed to, print its cells and draw its rows. Raises Interrupted where rows are
    missing."""
    from engine.app.bench.bench import run_bench
    from engine.reports.documents.research import bench_document
    from engine.reports.html import figures_html
    from engine.reports.html_charts import growth_charts
    from tui.text.bench_text import lines

    with work_line() as report:
        agree_to_jobs(services, prepared.open_jobs, yes, report, budget=budget)
        with interruptible() as stop:
            bench = run_bench(services, prepared, report, stop, budget=budget)
    agents = prepared.plan is not None or bool(prepared.request.strategies)
    document = bench_document(bench)
    try:
        _show(document, lambda width: lines(bench, width, agents, document["families"]), bench.interrupted)
    finally:  # a page that cannot be written takes nothing from what is printed
        if out is not None:
            page = figures_html(f"Bench {bench.name}", growth_charts(document), bench.notes)
            write_file(out, printable(page))


def _models(models: str | None) -> tuple[str, ...]:
    """The models that `--models` names, none without it."""
    return () if models is None else _each(models, "--models names no model; write them as SPEC,SPEC")


def _each(text: str, missing: str) -> tuple[str, ...]:
    """The parts of `A,B`, each once. Raises a usage error where there are none."""
    parts = listed(text)
    if not parts:
        raise click.UsageError(missing)
    return parts
