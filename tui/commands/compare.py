"""`paperdesk compare` (research): compare models on a window, or the books of a desk."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from functools import partial

import click

from tui.commands.options import DOLLARS, JOBS, REPEATS, SCHEDULER, RunFlags, abstain_option, run_options
from tui.commands.report import page_target, write_file
from tui.commands.study import keep_sensitivities, played, sensitivity_option
from tui.settings.invocation import Invocation, OptionOf, command
from tui.shell.cost_confirmation import agree_to_jobs, yes_option
from tui.text.console import show_document, standard_output

OF_MODELS = ("--models",)
AGAIN = "the same command continues"


@command("compare", "--run")
@click.option("--models", metavar="A,B,C", help="Models, each in place of models.default; without it the desk's books.")
@click.option("--repeats", cls=OptionOf, of=OF_MODELS, **REPEATS, help="Runs of each model, for their noise.")
@partial(run_options, left_out=("model", "strategy", "params"))
@click.option("--jobs", cls=OptionOf, of=OF_MODELS, **JOBS)
@click.option("--scheduler", cls=OptionOf, of=OF_MODELS, **SCHEDULER)
@click.option("--budget", cls=OptionOf, of=OF_MODELS, type=DOLLARS, metavar="USD", help="Maximum model cost.")
@abstain_option
@sensitivity_option
@click.option("--out", metavar="FILE", help="Also write the page to an HTML file.")
@yes_option
def compare_command(
    *,
    invocation: Invocation,
    models: str | None,
    repeats: int,
    flags: RunFlags,
    jobs: int,
    scheduler: str | None,
    budget: Decimal | None,
    abstain_limit: int,
    sensitivity: bool,
    out: str | None,
    yes: bool,
) -> None:
    """Compares models on a window, or the books of a desk whose owners have models of their own.

    With --models it backtests the same agents with each model, with the flags of a backtest, and shows the models side
    by side: metrics, luck, dollars, abstentions, refusals, figures that stand in no source, repairs, and the sessions
    before and after each model's training cut-off. Every two are paired: the mean difference of daily returns with a
    95 % interval, "not distinguishable" and how many sessions or runs it would take, and how often they decide alike.
    Agents and owners with a model of their own keep it; what models ask alike is asked once. Several levels of --mask
    play every model under each. Called again it plays what is missing.

    With --sensitivity 20 decisions of each model are re-run with the news flipped, the prices mirrored and the tickers
    swapped (JSON: sensitivity): one that none of them moves was recalled, not made.

    Without --models it shows the books of the desk (a preset with combine = "books" and [owners.NAME] model) the same
    way.

    \b
    Examples:
      paperdesk compare --models openai:gpt-5.4-mini,anthropic:claude-haiku-4-5 --symbols AAPL \\
        --from 2026-03-02 --to 2026-06-30 --data DIR --budget 20
      paperdesk compare --models offline,ollama:qwen3 --repeats 3 --out models.html
      paperdesk compare --desk live
    """
    from engine.reports.comparison_page import comparison_html
    from tui.text.runs_text import comparison_lines

    target = None if out is None else page_target(out)
    if models is None:
        if sensitivity or any(getattr(flags, one.name) for one in fields(flags)):
            raise click.UsageError("the flags of a run need models: give --models A,B with them")
        from engine.app.model_comparison import compare_books

        trouble = None
        with invocation.records() as records:
            document = compare_books(invocation.services(), records)
    else:
        from engine.app.model_comparison import prepare_comparison
        from engine.app.redecision.sensitivity import SAMPLE
        from engine.app.study import run_study
        from engine.services import SpendingLimit

        services = replace(invocation.services(), abstain_limit=abstain_limit)
        masks = flags.masks if flags.masks and len(flags.masks) > 1 else ()
        names = [name.strip() for name in models.split(",") if name.strip()]
        prepared = prepare_comparison(services, flags.spec(services), names, repeats, masks)
        agree_to_jobs(services, prepared.due(SAMPLE if sensitivity else 0), yes, budget=budget)
        if budget is not None:
            services = replace(services, limit=SpendingLimit.of_dollars(services.config.budget, budget))
        play = partial(run_study, services, prepared, jobs, scheduler=scheduler)
        document, trouble = played(play, AGAIN)
        if sensitivity and trouble is None:
            trouble = keep_sensitivities(services, [one["runs"][0] for one in document["models"]])
            document = play()
    show_document(document, lambda: comparison_lines(document, standard_output().room))
    if target is not None:
        write_file(target, comparison_html(document, "Models side by side"))
    if trouble is not None:
        raise trouble
