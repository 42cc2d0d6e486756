"""`paperdesk runs` (research): list, compare, export or remove the runs of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import MalformedData
from tui.commands.options import lines_shown
from tui.settings.invocation import Invocation, command
from tui.shell.agreement import asks
from tui.text.console import show_document, standard_output

if TYPE_CHECKING:
    from engine.reports.documents.runs import StoredRun

LIST, COMPARE, EXPORT, PRUNE = "list", "compare", "export", "prune"
OF_DESKS = ("daily", "session", "symbol", "order")
KINDS = ("backtest", "arena", *OF_DESKS)
_BELONG = {
    **dict.fromkeys(("kind", "name", "symbol"), (LIST, PRUNE)),
    **dict.fromkeys(("keep", "older_than", "yes"), (PRUNE,)),
    "folder": (EXPORT,),
    "limit": (LIST,),
}
"""The actions that an option belongs to."""
_FLAGS = {"folder": "--to", "older_than": "--older-than", "name": "--preset"}


@command("runs")
@click.argument("action", metavar="list|compare|export|prune", type=click.Choice([LIST, COMPARE, EXPORT, PRUNE]))
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--kind", type=click.Choice(KINDS), help=f"Runs of this kind: {', '.join(KINDS)}.")
@click.option("--preset", "name", metavar="NAME", help="Runs of this preset or strategy.")
@click.option("--symbol", metavar="SYMBOL", help="Runs that traded this symbol.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The latest N (default: 20; 0 and --json: all).")
@click.option("--to", "folder", type=click.Path(path_type=Path), metavar="DIR", help="New folder (default: ./ID).")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="With prune: the latest N of each kind stay.")
@click.option("--older-than", type=click.IntRange(min=0), metavar="DAYS", help="With prune: those begun before that.")
@click.option("--yes", is_flag=True, help="Remove without a question.")
def runs_command(*, invocation: Invocation, action: str, ids: tuple[str, ...], limit: int | None, **given: Any) -> None:
    """Lists, compares, exports or removes runs: backtests, arenas and the runs of desks.

    list shows every run of this machine with its window, metrics, cost and size. compare holds two runs or more against
    the first of them: settings, metrics, the paired difference of daily returns with a 95 % interval, decisions and
    trades that differ. export writes a run as a folder with its document, tables, reports and journal. prune removes
    runs by name, or those beyond --keep and --older-than, once it has said which and asked; the count of looks at
    windows, the journals of desks and runs that are being played stay.

    \b
    Examples:
      paperdesk runs list --symbol AAPL --kind backtest
      paperdesk runs compare backtest-20251122-101500-ab12 mine
      paperdesk runs export mine --to ~/mine
      paperdesk runs prune --older-than 90 --keep 20
    """
    invocation.refuse_run()
    _check_options(action, ids, {**given, "limit": limit})
    from engine.app.runs.inventory import Wanted, named_runs, stored_runs
    from engine.reports.documents.runs import StoredKind

    kind, symbol = given["kind"], given["symbol"]
    wanted = Wanted(
        kind=None if kind is None else StoredKind(kind),
        name=given["name"],
        symbol=None if symbol is None else symbol.upper(),
    )
    runs = stored_runs(wanted)
    chosen = named_runs(runs, ids)
    if action == LIST:
        _list(runs, lines_shown(limit))
    elif action == COMPARE:
        _compare(chosen)
    elif action == EXPORT:
        _export(invocation, chosen[0], given["folder"])
    else:
        _prune(runs, chosen, given)


def _check_options(action: str, ids: Sequence[str], given: Mapping[str, Any]) -> None:
    """Raise a usage error for ids or options that do not belong to the action."""
    for option, actions in _BELONG.items():
        if given[option] not in (None, False) and action not in actions:
            flag = _FLAGS.get(option, f"--{option}")
            raise click.UsageError(f"{flag} belongs to {' and '.join(actions)}, not to {action}")
    if action == LIST and ids:
        raise click.UsageError("list takes no ID; filter with --kind, --preset and --symbol")
    if action == EXPORT and len(ids) != 1:
        raise click.UsageError("export takes one run: paperdesk runs export ID")
    if action == PRUNE and bool(ids) is any(given[name] is not None for name in ("keep", "older_than")):
        raise click.UsageError("prune takes the IDs of runs, or --keep N, --older-than DAYS or both")


def _list(runs: Sequence[StoredRun], limit: int) -> None:
    from engine.reports.documents.runs import runs_document
    from tui.text.runs_text import list_lines

    document = runs_document(runs[: limit or None], of=runs)
    show_document(document, lambda: list_lines(document))
    unread = [run for run in runs if run.problem]
    if unread:
        raise MalformedData(f"{len(unread)} of the runs cannot be read: {unread[0].problem}")


def _compare(runs: Sequence[StoredRun]) -> None:
    from engine.app.runs.inventory import compare_runs
    from tui.text.runs_text import comparison_lines

    document = compare_runs(runs)
    show_document(document, lambda: comparison_lines(document, standard_output().width))


def _export(invocation: Invocation, run: StoredRun, folder: Path | None) -> None:
    from engine.app.runs.inventory import export_run
    from engine.reports.documents.runs import exported_document

    target = (Path(run.id) if folder is None else folder.expanduser()).absolute()
    document = exported_document(run, target, export_run(invocation.services(), run, target))
    show_document(document, lambda: [f"{target}: {', '.join(document['files'])}"])


def _prune(runs: Sequence[StoredRun], named: Sequence[StoredRun], given: Mapping[str, Any]) -> None:
    from engine.app.runs.inventory import Pruned, check_prunable, prune_runs, to_prune
    from engine.clock import LiveClock
    from engine.reports.documents.runs import pruned_document
    from tui.text.runs_text import candidate_lines, pruned_lines

    if given["kind"] in OF_DESKS:
        raise click.UsageError(f"--kind {given['kind']}: these runs are in the journals of desks, which are not pruned")
    check_prunable(named)
    now = LiveClock().now()
    going = named or to_prune(runs, now, keep=given["keep"], older_than=given["older_than"])
    for line in candidate_lines(going):
        click.echo(line, err=True)
    if going and not given["yes"]:
        if not asks():
            raise click.UsageError("prune removes runs for good, and nobody can be asked here: --yes does it")
        if not click.confirm("Remove them?", err=True):
            going = ()
    done = prune_runs(going) if going else Pruned((), ())
    document = pruned_document(done.removed, done.at_work, len(runs) - len(done.removed))
    show_document(document, lambda: pruned_lines(document))
