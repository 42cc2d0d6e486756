"""`paperdesk report` (research): write a run's metrics, equity, trades and costs, with charts."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import Parsed
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.reports.documents.records import Records

FORMATS = {"md": ".md", "html": ".html", "json": ".json", "csv": ".csv"}
"""Formats with how their files end."""


OF_A_SESSION = frozenset({"md", "html", "json"})
"""Those of a session of the desk."""


LATEST = "latest"


def _session_named(text: str) -> date | str:
    return text if text == LATEST else date.fromisoformat(text)


@click.command("report")
@click.option(
    "--session",
    type=Parsed("session", _session_named, "is no date; write it as YYYY-MM-DD, or leave it out for the latest"),
    is_flag=False,
    flag_value=LATEST,
    metavar="[DATE]",
    help="The desk's run of a session instead of a backtest; without a date the latest.",
)
@click.option("--format", "chosen", type=click.Choice(list(FORMATS)), help="Default: by the ending of FILE, else md.")
@click.option("--table", metavar="NAME", help="With csv: equity (the default), metrics, trades, cash-flows, ...")
@click.option("--out", metavar="FILE", help="File to write instead of standard output; a folder for all csv tables.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@desk_options
def report_command(
    *,
    invocation: Invocation,
    session: date | str | None,
    chosen: str | None,
    table: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Writes the result of a backtest as its journal has it: the run and its data are not needed again.

    With --run of an arena it is the arena's: prices against the fundamental value, wealth by agent, volume, chat and
    strategies, in md, html or json.

    Without --run it is the latest backtest. With --session it is the desk's run of a session as its journal has it now,
    in md or json: what was decided and why, ordered, filled, held and noticed. A daily run leaves the same beside the
    journal when it ends. In html it is the whole desk up to that session, as a backtest is shown.

    \b
    Examples:
      paperdesk report
      paperdesk report --session
      paperdesk report --session 2026-11-20 --out desk.html
      paperdesk report --run ID --out report.html
      paperdesk report --run arena-20261120-120000-ab12 --out arena.html
      paperdesk report --format csv --table trades
    """
    from tui.console import show

    target = None if out is None else Path(out).expanduser()
    if session is not None and invocation.run is not None:
        raise click.UsageError("--session and --run both name a run: give one of them")
    chosen = _format(chosen, as_json, table, target)
    if session is not None or _is_of_the_desk(invocation.run):
        if chosen not in OF_A_SESSION:
            raise click.UsageError(f"a session of the desk is written as md, html or json, not as {chosen}")
        text = _session(invocation, session, chosen)
    elif _is_of_an_arena(invocation.run):
        text = _arena(str(invocation.run), chosen)
    else:
        from engine.reports.stored import stored_document

        document = stored_document(invocation.run)
        if target is not None and chosen == "csv" and table is None and target.suffix != ".csv":
            _write_tables(document, target)
            return
        text = _rendered(document, chosen, table)
    if target is None:
        show(text.rstrip("\n"))
    else:
        write_file(target, text)


def _format(chosen: str | None, as_json: bool, table: str | None, target: Path | None) -> str:
    """The format that is named, or that the file's ending means."""
    if as_json and chosen not in (None, "json"):
        raise click.UsageError(f"--json and --format {chosen} say different things: give one of them")
    if as_json:
        chosen = "json"
    if chosen is None and target is not None:
        ending = target.suffix.lower()
        chosen = next((name for name, known in FORMATS.items() if known == ending), None)
        if chosen is None and ending:
            raise click.UsageError(f"--out {target}: {ending} is no format; give --format md, html, json or csv")
    chosen = chosen or ("md" if table is None else "csv")
    if table is not None and chosen != "csv":
        raise click.UsageError(f"--table belongs to --format csv, not to {chosen}")
    return chosen


def _is_of_the_desk(run: str | None) -> bool:
    """True for the name of a desk's run: there is no backtest of that name."""
    from engine import places

    return run is not None and run.startswith(("daily-", "session-")) and not places.run_journal(run).is_file()


def _is_of_an_arena(run: str | None) -> bool:
    """True for the name of an arena's run: there is no backtest of that name."""
    from engine import places

    return run is not None and not places.run_journal(run).is_file() and places.arena_file(run).is_file()


def _arena(run: str, chosen: str) -> str:
    """The report of an arena, or of its repeats."""
    from engine.app.arena_record import load_document
    from engine.reports.arena_report import arena_html, arena_markdown
    from engine.reports.documents.backtest import as_text
    from tui.plain_text import printable

    document = load_document(run)
    if chosen == "json":
        return as_text(document) + "\n"
    if chosen == "csv" or (chosen == "html" and "repeats" in document):
        kind = "repeats of an arena are" if "repeats" in document else "an arena is"
        raise click.UsageError(
            f"{kind} written as md{'' if 'repeats' in document else ', html'} or json, not as {chosen}"
        )
    return printable(arena_html(document) if chosen == "html" else arena_markdown(document))


def _session(invocation: Invocation, session: date | str | None, chosen: str) -> str:
    """The report of the desk's run of a session (LATEST: its latest), or of the run that is named."""
    from engine.reports.day_markdown import day_markdown
    from engine.reports.documents.backtest import as_text
    from engine.reports.documents.session import run_of_session, session_document

    with invocation.records() as records:
        run = records.run or run_of_session(records, session if isinstance(session, date) else None)
        if chosen == "html":
            return _desk_page(invocation, records, run)
        document = session_document(records.required, records.desk, run)
    return as_text(document) + "\n" if chosen == "json" else day_markdown(document)


def _desk_page(invocation: Invocation, records: Records, run: str) -> str:
    """The page of a desk up to the session of a run."""
    from engine.reports.documents.desk_performance import desk_performance
    from engine.reports.html import html
    from tui.plain_text import printable

    config = invocation.load().config
    risk_free, exchanges = config.metrics.risk_free, config.exchanges
    document = desk_performance(records.required, records.desk, run, exchanges=exchanges, risk_free=risk_free)
    return printable(html(document))


def _rendered(document: Mapping[str, Any], chosen: str, table: str | None) -> str:
    if chosen == "json":
        from engine.reports.documents.backtest import as_text

        return as_text(document) + "\n"
    from tui.plain_text import printable

    if chosen == "html":
        from engine.reports.html import html

        return printable(html(document))
    if chosen == "csv":
        from engine.reports.csv_tables import csv_table

        return printable(csv_table(document, table or "equity"))
    from engine.reports.markdown import markdown

    return printable(markdown(document))


def _write_tables(document: Mapping[str, Any], folder: Path) -> None:
    from engine.errors import DataError
    from engine.reports.csv_tables import TABLES

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be made a folder ({error.strerror}): name another with --out") from None
    for table in TABLES:
        write_file(folder / f"{table}.csv", _rendered(document, "csv", table))


def write_file(target: Path, text: str) -> None:
    from engine.errors import DataError

    try:
        # Half of a surrogate pair, which models do answer with, has no place in UTF-8.
        target.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(f"{target} cannot be written ({error.strerror}): name another with --out") from None
    click.echo(f"wrote {target}", err=True)
