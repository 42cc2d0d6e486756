"""`paperdesk runs` (research): list, compare, export or remove the runs of this machine.
`paperdesk trials` (research): list the looks at windows that deflate every result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import click

from engine.domain.text import counted
from engine.errors import MalformedData
from engine.reports.amounts import percent
from engine.reports.documents.runs import StoredRun, exported_document, pruned_document, runs_document
from engine.reports.table import Column, sign_ink
from tui.commands.options import COUNT, DAY, actions, both_ends, limit_option, lines_shown, option_of, symbol_list
from tui.commands.report import page_target, write_file
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import check_asks
from tui.text.console import listing, show_document, standard_output
from tui.text.plain_text import cut
from tui.text.runs_text import candidate_lines, comparison_lines, list_lines, pruned_lines, run_curves

LIST, COMPARE, EXPORT, PRUNE = "list", "compare", "export", "prune"


@command("runs", "--run")
@actions({LIST: "", COMPARE: "ID ID...", EXPORT: "ID", PRUNE: "[ID]..."}, "[ID]...", default=LIST)
@option_of((LIST, PRUNE), "--preset", "name", metavar="NAME", help="Runs of this preset or strategy.")
@option_of((LIST, PRUNE), "--symbol", metavar="SYMBOL", help="Runs that traded SYMBOL.")
@option_of((LIST,), "--limit", type=COUNT, metavar="N", help="The latest N (default: 20; 0 and --json: all).")
@option_of((EXPORT,), "--to", "folder", type=click.Path(path_type=Path), metavar="DIR", help="New folder (./ID).")
@option_of((COMPARE,), "--out", metavar="FILE", help="Also write an HTML page.")
@option_of((PRUNE,), "--keep", type=COUNT, metavar="N", help="Keep the latest N of each kind.")
@option_of((PRUNE,), "--yes", is_flag=True, help="Skip confirmation.")
def runs_command(
    *,
    invocation: Invocation,
    action: str,
    what: tuple[str, ...],
    name: str | None,
    symbol: str | None,
    limit: int | None,
    folder: Path | None,
    out: str | None,
    keep: int | None,
    yes: bool,
) -> None:
    """Lists, compares, exports or removes runs: backtests, arenas and the runs of desks.

    list shows every run of this machine with its window, metrics, cost and size. compare shows how two or more
    backtests differ from the first: settings, metrics, the paired difference of daily returns with a 95 % interval,
    decisions and trades. export writes a run to a folder: its document, tables, reports and journal. prune lists the
    runs to remove, by name or beyond --keep, and asks for confirmation; it never removes trial counts, desk journals or
    runs in progress.

    \b
    Examples:
      paperdesk runs list --symbol AAPL
      paperdesk runs compare backtest-20251122-101500-ab12 mine
      paperdesk runs export mine --to ~/mine
      paperdesk runs prune --keep 20
    """
    from engine.app.runs import Wanted, named_runs, stored_runs

    if action == PRUNE and bool(what) is (keep is not None):
        raise click.UsageError("prune takes the IDs of runs, or --keep N")
    runs = stored_runs(Wanted(name=name, symbol=None if symbol is None else symbol.upper()))
    chosen = named_runs(runs, what)
    if action == LIST:
        _list(runs, lines_shown(limit))
    elif action == COMPARE:
        _compare(chosen, out)
    elif action == EXPORT:
        _export(invocation, chosen[0], folder)
    else:
        _prune(runs, chosen, keep, yes=yes)


def _list(runs: Sequence[StoredRun], limit: int) -> None:
    document = runs_document(runs[: limit or None], of=runs)
    show_document(document, lambda: list_lines(document))
    unread = [run for run in runs if run.problem]
    if unread:
        raise MalformedData(f"{len(unread)} of the runs cannot be read: {unread[0].problem}")


def _compare(runs: Sequence[StoredRun], out: str | None) -> None:
    from engine.app.runs import compare_runs
    from engine.reports.comparison_page import comparison_html

    target = None if out is None else page_target(out)
    document, console = compare_runs(runs), standard_output()
    show_document(document, lambda: chain(run_curves(document, console), comparison_lines(document, console.room)))
    if target is not None:
        write_file(target, comparison_html(document, "Runs side by side"))


def _export(invocation: Invocation, run: StoredRun, folder: Path | None) -> None:
    from engine.app.runs import export_run

    target = (Path(run.id) if folder is None else folder.expanduser()).absolute()
    document = exported_document(run, target, export_run(invocation.services(), run, target))
    show_document(document, lambda: [f"{target}: {', '.join(document['files'])}"])


def _prune(runs: Sequence[StoredRun], named: Sequence[StoredRun], keep: int | None, *, yes: bool) -> None:
    from engine.app.runs import Pruned, check_prunable, prune_runs, to_prune

    check_prunable(named)
    going = named or to_prune(runs, keep or 0)
    for line in candidate_lines(going):
        click.echo(line, err=True)
    check_asks(yes or not going)
    if going and not yes and not click.confirm("Remove them?", err=True):
        going = ()
    done = prune_runs(going) if going else Pruned((), ())
    document = pruned_document(done.removed, done.at_work, len(runs) - len(done.removed))
    show_document(document, lambda: pruned_lines(document))


@command("trials")
@click.option("--symbols", metavar="A,B", help="Trials that looked at one of these symbols.")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First session of the window.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last session of the window.")
@limit_option("latest")
def trials_command(
    *, invocation: Invocation, symbols: str | None, first: date | None, last: date | None, limit: int | None
) -> None:
    """Lists what was looked at on this machine: backtests, tuning trials, ablations, redecisions, audits and rows of
    tables, those of removed runs included.

    With a window it lists the trials whose windows overlap it by more than half of the shorter one: those that the
    `luck` of a result there counts. Trials with equal settings count once.

    \b
    Examples:
      paperdesk trials
      paperdesk trials --symbols AAPL --from 2023-06-01 --to 2023-12-29
    """
    from engine.reports.documents.luck import counted_trials, trials_document

    window = both_ends(first, last)
    document = trials_document(counted_trials(() if symbols is None else symbol_list(symbols), window))
    show_document(document, lambda: _trial_lines(document, lines_shown(limit)))


TRIALS = (
    Column("TIME", lambda one: one["time"][:16].replace("T", " ")),
    Column("KIND", "kind"),
    Column("NAME", "name"),
    Column("SYMBOLS", lambda one: cut(",".join(one["symbols"]), 24)),
    Column("WINDOW", lambda one: f"{one['first']} to {one['last']}"),
    Column("RETURN", lambda one: "" if one["total_return"] is None else one["total_return"], percent, sign_ink),
    Column("RUN", "run"),
)


def _trial_lines(document: Mapping[str, Any], limit: int) -> Iterator[str]:
    trials = document["trials"]
    yield from listing(TRIALS, trials[: limit or None], len(trials), "no trial found; `paperdesk backtest` counts one")
    yield f"{counted(document['count'], 'different trial')}; equal settings count once"
