"""`paperdesk study` (research): backtest a grid of agents, rules, models, symbols and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import MENDED, Interrupted, MissingData, PaperdeskError
from tui.commands.options import ABSTAIN_LIMIT, JOBS, SCHEDULER, folder_option
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import agree_to_jobs, yes_option
from tui.shell.interruption import interruptible
from tui.shell.progress import Show, progress_bar, work_line
from tui.text.console import as_json, show, show_document, show_json, standard_output

if TYPE_CHECKING:
    from engine.app.research.run_spec import Stop
    from engine.services import Services

LIST = "list"
sensitivity_option = click.option(
    "--sensitivity", is_flag=True, help="Re-run 20 decisions with news flipped, prices mirrored and tickers swapped."
)
TEXT, CSV, LATEX, JSON = "text", "csv", "latex", "json"


@command("study")
@click.argument("file", metavar="FILE.toml|list")
@folder_option
@click.option("--jobs", **JOBS)
@click.option("--scheduler", **SCHEDULER)
@click.option("--format", "chosen", type=click.Choice([TEXT, CSV, LATEX, JSON]), help="Default: text; --json is json.")
@yes_option
def study_command(
    *,
    invocation: Invocation,
    file: str,
    folder: str | None,
    jobs: int,
    scheduler: str | None,
    chosen: str | None,
    yes: bool,
) -> None:
    """Backtests every combination of what the [study] of a TOML file names.

    Keys of [study]: presets and strategies (either or both), models, masks, symbols (a run each) or portfolios (lists
    of symbols), windows = [[FROM, TO], ...], seeds, repeats, and light = false for whole runs with baselines. Called
    again, it plays the runs that are not there yet, after Ctrl-C too; finished ones are not run again unless their
    settings, your code or the program has changed. list shows all studies: study, file, runs, done, and of these
    without_figures.

    \b
    Columns (csv, and rows of json):
      run                  id of the run; equal combinations share one
      name, model, mask    preset or strategy; models of its agents; mask of what they read
      symbols, from, to    what was traded, and the window
      seed, repeat         seed; number of the repeat
      sessions, currency, convention
                           sessions measured, and the convention of the metrics
      final_value, trades  value at the last close; count of trades
      total_return, ...    metrics of the convention (json: metrics)
      luck_...             trials, psr, deflated_sharpe, ... (json: luck)
      abstentions          questions without a valid answer
      input_tokens, output_tokens, cost
                           use of models; cost in USD
      training_cutoff      month until which the model knows the world
      past_cutoff          whether the whole window is later than that
      fingerprint          SHA-256 of decisions, trades and equity
      note                 why a run has no figures
      settings             everything that decided the run (json)

    \b
    Pairs (json), every two on the same symbols and window:
      first, other         name, model and mask of each, means of their seeds
      mean, low, high      other less first, a day, 95 % interval
      sessions, distinguishable, sessions_needed
                           compared; whether 0 is outside the interval; needed for that
      p, adjusted          of "other is not better", alone and in the family
      superior             the same of the best that is held against first
      discovery            counted over symbols and windows
    cutoffs (json): windows after the training cut-off less those before

    \b
    Examples:
      paperdesk study grid.toml --jobs 2
      paperdesk study grid.toml --scheduler tcp://10.0.0.5:8786
      paperdesk study grid.toml --format latex
      paperdesk study list
    """
    from engine.app.study import prepare_study, run_study, studies
    from tui.text.study_text import list_lines

    if as_json() and chosen not in (None, JSON):
        raise click.UsageError(f"--json and --format {chosen} contradict each other: give one of them")
    if file == LIST:
        if chosen in (CSV, LATEX) or folder or scheduler or jobs > 1:
            raise click.UsageError("list prints text or --json, and plays no run: leave out the other options")
        found = studies()
        show_document(found, lambda: list_lines(found))
        return
    services = replace(invocation.services(), abstain_limit=ABSTAIN_LIMIT)
    if folder is not None:
        services = replace(services, data=replace(services.data, folder=folder))
    prepared = prepare_study(services, Path(file))
    agree_to_jobs(services, prepared.open_jobs, yes)
    again = f"`paperdesk study {file}` continues"
    document, trouble = played(partial(run_study, services, prepared, jobs, scheduler=scheduler), again)
    _print(document, chosen)
    if trouble is not None:
        raise trouble


def played(play: Callable[[Show, Stop], dict[str, Any]], again: str) -> tuple[dict[str, Any], PaperdeskError | None]:
    """The document of runs that are played with a bar; where Ctrl-C or an error that can be mended ended them that of
    those that are done, and the error, which says how to go on. Raises it where none is done."""
    with progress_bar() as on_done, interruptible() as stop:
        try:
            document = play(on_done, stop)
            stopped = Interrupted(f"interrupted; what was done is kept: {again}") if document["interrupted"] else None
            return document, stopped
        except PaperdeskError as error:
            if error.exit_code not in MENDED:
                raise
            error.args = (f"{error}; {again}",)
            with suppress(Interrupted, MissingData):
                document = play(on_done, lambda: True)
                if document.get("rows", document):
                    return document, error
            raise


def keep_sensitivities(services: Services, runs: Sequence[str]) -> PaperdeskError | None:
    """Keep the input sensitivity of each run; the error, where one that can be mended came between."""
    from engine.app.redecision.sensitivity import keep_sensitivity

    try:
        for run in runs:
            with work_line() as report:
                keep_sensitivity(services, run, report)
    except PaperdeskError as error:
        if error.exit_code not in MENDED:
            raise
        return error
    return None


def _print(document: Mapping[str, Any], chosen: str | None) -> None:
    from engine.reports.documents.study import study_csv
    from tui.text.study_text import study_latex, study_lines

    if chosen == CSV:
        show(study_csv(document).rstrip("\n"))
    elif chosen == LATEX:
        show(study_latex(document))
    elif chosen == JSON:
        show_json(document)
    else:
        show_document(document, lambda: study_lines(document, standard_output().room))
