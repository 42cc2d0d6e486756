"""`paperdesk tune` (research): search a rule strategy's parameters on a training window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from engine.errors import Interrupted
from tui.commands.options import COUNT, DAY, PROCESSES, both_ends, folder_option, key_values, symbol_list
from tui.settings.invocation import Invocation, command
from tui.shell.progress import progress_bar
from tui.text.console import show_document
from tui.text.plain_text import table

if TYPE_CHECKING:
    from datetime import date


TRIALS = click.IntRange(1)


@command("tune")
@click.argument("strategy", metavar="STRATEGY")
@click.option("--symbols", metavar="A,B", help="Symbols, tuned separately (default: the desk's).")
@click.option("--from", "first", type=DAY, required=True, metavar="DATE", help="First session of the training window.")
@click.option("--to", "last", type=DAY, required=True, metavar="DATE", help="Last session of the training window.")
@click.option("--warm-up-from", type=DAY, metavar="DATE", help="Start of the warm-up, on which a strategy is fitted.")
@click.option("--test-from", type=DAY, metavar="DATE", help="First session of a later window, to test the best on.")
@click.option("--test-to", type=DAY, metavar="DATE", help="Last session of that window.")
@click.option(
    "--walk-forward", "folds", type=COUNT, default=0, metavar="N", help="Stretches to search and test again on."
)
@click.option("--trials", type=TRIALS, default=100, show_default=True, metavar="N", help="Trials per symbol.")
@click.option("--jobs", **PROCESSES, help="Trials at a time, one process each: N decides which are drawn, too.")
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="Parameter to hold fixed.")
@folder_option
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Random seed of the search.")
def tune_command(
    *,
    invocation: Invocation,
    strategy: str,
    symbols: str | None,
    first: date,
    last: date,
    warm_up_from: date | None,
    test_from: date | None,
    test_to: date | None,
    folds: int,
    trials: int,
    jobs: int,
    params: Sequence[str],
    folder: str | None,
    seed: int | None,
) -> None:
    """Searches a strategy's parameters on a training window, and prints them ready for a backtest.

    STRATEGY is a name or FILE:CLASS. A strategy that is fitted is fitted on the sessions before each window.

    The winner's Sharpe ratio is deflated by all looks at its window, those of the search included. --walk-forward cuts
    the training window into N + 1 stretches of equal length, searches on each but the last, and tests on the next one.

    Ctrl-C ends the search; the best so far is printed. Called again, also with more --trials, it goes on: what was
    measured is not measured again.

    \b
    Examples:
      paperdesk tune macd --from 2022-06-01 --to 2023-06-01 --symbols AAPL,TSLA --data DIR
      paperdesk tune z-score --from 2023-01-03 --to 2024-06-28 --test-from 2024-07-01 --test-to 2025-06-30
      paperdesk tune sma-cross --from 2023-01-03 --to 2024-12-31 --walk-forward 3
    """
    from engine.app.research.parameter_search import search_parameters
    from engine.domain.run import DataSpec, RunSpec
    from engine.reports.documents.research import tune_document

    services = invocation.services()
    config = services.config
    test = both_ends(test_from, test_to, "--test-from and --test-to")
    spec = RunSpec(
        symbols=services.symbols if symbols is None else symbol_list(symbols),
        first=first,
        last=last,
        warm_up_from=warm_up_from,
        strategy=strategy,
        params=key_values(params),
        data=services.data if folder is None else DataSpec(folder),
        convention=config.metrics.convention,
        seed=config.desk.seed if seed is None else seed,
    )
    with progress_bar() as on_trial:
        search = search_parameters(services, spec, trials=trials, test=test, folds=folds, jobs=jobs, on_trial=on_trial)
        found = list(search)
    document = tune_document(spec, test, found)
    show_document(document, lambda: _lines(document))
    if document["interrupted"]:
        done = found[-1]
        raise Interrupted(f"interrupted after {done.trials} trials of {done.symbol}; the best so far is printed")


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    metric, window = document["metric"], f"{document['from']} to {document['to']}"
    yield f"{document['strategy']} tuned on {window} for {metric} ({document['convention']})"
    for tuned in document["tuned"]:
        yield ""
        yield f"{tuned['symbol']}, {tuned['trials']} trials"
        yield f"  {' '.join(f'--param {key}={value}' for key, value in tuned['params'].items())}"
        folds = tuned["walk_forward"]
        spans = [
            ("  in sample", tuned["in_sample"]),
            ("  out of sample", tuned["out_of_sample"] or {}),
            *((f"  walk forward to {fold['test_last']}", fold["out_of_sample"]) for fold in folds),
        ]
        rows = [(name, *map(partial(_figure, digits=4), figures.values())) for name, figures in spans if figures]
        head = ("", metric, "defaults", "buy and hold")
        yield from table(head, rows, head[1:])
        luck = tuned["luck"]
        psr, deflated, risk = (_figure(luck[name]) for name in ("psr", "deflated_sharpe", "overfitting"))
        told = f"probabilistic Sharpe {psr}, deflated {deflated}, probability of overfitting {risk}"
        yield f"  {told}; {luck['sentence']}"


def _figure(value: float | None, digits: int = 2) -> str:
    return "undefined" if value is None else f"{value:.{digits}f}"
