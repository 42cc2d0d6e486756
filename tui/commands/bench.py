"""`paperdesk bench` (research): print a published table with our figures beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from engine.errors import Interrupted
from tui.commands.bench_arena import bench_arena, bench_prices
from tui.commands.bench_memory import OWN, check_options, study_memory
from tui.commands.bench_recall import measure_recall
from tui.commands.options import DAY, DOLLARS, RunFlags, abstain_option, listed, symbol_list
from tui.commands.report import page_target, write_file
from tui.settings.invocation import Invocation, command
from tui.shell.agreement import agree_to_jobs, yes_option
from tui.shell.interruption import interruptible
from tui.shell.progress import work_line
from tui.text.console import show_document, standard_output
from tui.text.plain_text import printable

if TYPE_CHECKING:
    from engine.app.bench.bench import PreparedBench
    from engine.services import Services


@command("bench")
@click.argument("name", metavar="BENCH")
@click.option("--baselines", is_flag=True, help="The rows of the rule strategies alone, without agents.")
@click.option(
    "--tune",
    "trials",
    type=click.IntRange(1, 10_000),
    metavar="TRIALS",
    help="Tunes the rules anew on the training period, in place of the authors' values.",
)
@click.option("--symbols", metavar="A,B", help="Only these of the table's symbols.")
@click.option("--data", "folder", metavar="DIR", help="Data folder with prices of the paper's symbols.")
@click.option("--models", "--model", "models", metavar="SPEC,SPEC", help="Models that answer the agents, a row each.")
@click.option(
    "--repeats",
    type=click.IntRange(1, 99),
    default=1,
    show_default=True,
    metavar="N",
    help="Runs of each row; the one with the median Sharpe stands for all.",
)
@click.option("--ablations", is_flag=True, help="Also the rows of the paper's ablations.")
@click.option("--without", multiple=True, metavar="STEP,STEP", help="Also a row without these steps (repeatable).")
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Runs at a time, each in a process of its own.",
)
@click.option(
    "--preset",
    "presets",
    multiple=True,
    metavar="NAME|FILE",
    help="Runs this preset in the place of the paper's agents (repeatable); memory: studies it (default: desk, finmem, "
    "tradinggpt-single).",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME|FILE:CLASS",
    help="Runs this strategy in the paper's environment (repeatable).",
)
@click.option("--from", "first", type=DAY, metavar="DATE", help="memory, arena, tradinggpt: first session that fills.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="memory, arena, tradinggpt: last session that fills.")
@click.option("--warm-up-from", type=DAY, metavar="DATE", help="memory, tradinggpt: warm up from here.")
@click.option("--budget", type=DOLLARS, metavar="USD", help="Most that the models may cost, resumed parts included.")
@abstain_option
@click.option("--resume", metavar="RUN", help="Go on with a bench that was stopped: nothing is asked twice.")
@click.option("--keep", is_flag=True, help="Keep a journal of every run (tens of megabytes each).")
@click.option("--out", metavar="FILE", help="Also draws the cumulative returns of all rows: an HTML file.")
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
    """Prints the tables of a paper with our figures beside the printed ones.

    BENCH is finagent, investorbench or finvision. The rule strategies run as the paper's authors ran them, then the
    paper's agents, with its warm-up, window and costs, on each symbol alone. Ctrl-C keeps the rows that are done, and a
    bench that was stopped, by Ctrl-C, by its --budget or because a model could not be had, goes on with --resume. A
    model that decides nothing usable in two sessions in a row stops it (75); --resume asks it again.

    With --preset or --strategy your own agent or strategy is run in the paper's environment, beside the printed rows;
    rows of ours are held against each other and buy and hold, paired over the sessions.

    BENCH may be tradinggpt: one trader against three who debate, each with a book and a row of its own, in the paper's
    window or from --from to --to, on a symbol of the demo market or, with --data, on TSLA; --symbols names others. The
    paper prints no results.

    BENCH may be memory as well: the same window without memory, with recall, with an oracle that knows what will be
    paid for, with each layer switched off, and with false memories; differences are paired over the sessions.

    BENCH may be recall: questions made by rule from news and filings, in other words than theirs, put to every ranking
    of memories; of the demo market, or of a folder with --data.

    BENCH may be arena: a trader in the closed market with text, charts or both, with and without reflection, and a duel
    of text against charts, beside the printed tables 3 to 6, 8 and 9. With --data it is the arena's portfolio agent on
    real prices, on the paper's window or on --from and --to, beside buy and hold, SMA, ZMR and MACD; on two symbols
    also beside their average trend (Table 8). --ablations adds the windows and inputs of Table 6.

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
    from engine.app.bench.bench import prepare, resumed
    from engine.app.bench.plan import BenchRequest, requested_ablations

    page = None if out is None else page_target(out)
    asked = models is not None or ablations or bool(without)
    agents = bool(presets) or asked or not (baselines or strategies)
    left_out = [_each(text, "--without names no step; write them as STEP,STEP") for text in without]
    services = replace(invocation.services(), abstain_limit=abstain_limit)
    check_options(name, _given())
    if name == "arena" and folder is not None:
        asked = bool(presets) or not (baselines or strategies) or models is not None or ablations
        bench_prices(
            services,
            folder,
            _models(models),
            symbols=None if symbols is None else symbol_list(symbols),
            window=_window(first, last),
            agents=asked,
            ablations=ablations,
            presets=presets,
            strategies=strategies,
            yes=yes,
        )
        return
    if name == "arena":
        bench_arena(services, _models(models), repeats, jobs, windows=ablations, yes=yes)
        return
    if name == "recall":
        measure_recall(services, folder, () if symbols is None else tuple(symbol_list(symbols)))
        return
    if name == "memory":
        flags = RunFlags(
            symbols=symbols, first=first, last=last, warm_up_from=warm_up_from, model=models, folder=folder
        )
        study_memory(services, flags, presets, yes=yes)
        return
    if resume is not None:
        if _given() & CHANGES:
            raise click.UsageError("--resume goes on with a bench as it was begun: leave out what would change it")
        prepared = resumed(services, resume, jobs)
        if prepared.request.name != name:
            raise click.UsageError(f"--resume {resume} is a bench of {prepared.request.name}")
        _print(services, prepared, budget, page, yes=yes)
        return
    request = BenchRequest(
        name=name,
        window=_window(first, last),
        warm_up_from=warm_up_from,
        folder=folder or services.config.data.folder,
        symbols=() if symbols is None else symbol_list(symbols),
        trials=trials or 0,
        agents=agents,
        models=_models(models),
        ablations=requested_ablations(name, ablations, left_out),
        presets=tuple(presets),
        strategies=tuple(strategies),
        repeats=repeats,
        jobs=jobs,
        keep=keep,
    )
    _print(services, prepare(services, request), budget, page, yes=yes)


NAMED = (
    "baselines",
    "trials",
    "symbols",
    "folder",
    "models",
    "repeats",
    "ablations",
    "presets",
    "strategies",
    *OWN,
)
CHANGES = frozenset((*NAMED, "without", "keep"))
"""Options that would change a bench that is gone on with."""


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
    show_document(document, lambda: lines(bench, standard_output().width, agents))
    if out is not None:
        page = figures_html(f"Bench {bench.name}", growth_charts(document), bench.notes)
        write_file(out, printable(page))
    if bench.interrupted:
        raise Interrupted(bench.interrupted)


def _window(first: date | None, last: date | None) -> tuple[date, date] | None:
    """Both ends of a window, or none. Raises a usage error for one end."""
    if (first is None) != (last is None):
        raise click.UsageError("a window has two ends: give --from and --to, or neither")
    return None if first is None or last is None else (first, last)


def _given() -> set[str]:
    """The options of the call that were given, by the names of their values."""
    context = click.get_current_context()
    default = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    names = (one.name for one in context.command.params if one.name)
    return {name for name in names if context.get_parameter_source(name) not in default}


def _models(models: str | None) -> tuple[str, ...]:
    """The models that `--models` names, none without it."""
    return () if models is None else _each(models, "--models names no model; write them as SPEC,SPEC")


def _each(text: str, missing: str) -> tuple[str, ...]:
    """The parts of `A,B`, each once. Raises a usage error where there are none."""
    parts = listed(text)
    if not parts:
        raise click.UsageError(missing)
    return parts
