"""`paperdesk report` (research): write a run's metrics, equity, trades and costs, with charts."""

from __future__ import annotations

import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DataError
from engine.reports import amounts
from engine.settings import places
from tui.commands.options import Parsed
from tui.settings.invocation import Invocation, command
from tui.text.console import as_json, standard_output
from tui.text.plain_text import facts, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.reports.documents.records import Records

FORMATS = {"html": ".html", "json": ".json", "csv": ".csv"}
"""Formats with how their files end."""

SHARPEBENCH = "sharpebench"
PAGES, OF_A_BACKTEST = ("html", "json"), ("html", "json", "csv", SHARPEBENCH)
"""The formats of a session and an arena, and of a backtest."""

LATEST = "latest"


def _session_named(text: str) -> date | str:
    return text if text == LATEST else date.fromisoformat(text)


@command("report")
@click.option(
    "--session",
    type=Parsed("session", _session_named, "is not a date; write it as YYYY-MM-DD, or leave it out for the latest"),
    is_flag=False,
    flag_value=LATEST,
    metavar="[DATE]",
    help="Report the desk's run of a session instead of a backtest (default: the latest).",
)
@click.option(
    "--format", "chosen", type=click.Choice([*FORMATS, SHARPEBENCH]), help="Default: by the extension of FILE."
)
@click.option("--table", metavar="NAME", help="With csv: equity (the default), metrics, trades, cash-flows, ...")
@click.option("--out", metavar="FILE", help="Output file instead of standard output; a folder for all csv tables.")
def report_command(
    *,
    invocation: Invocation,
    session: date | str | None,
    chosen: str | None,
    table: str | None,
    out: str | None,
) -> None:
    """Writes the result of a backtest from its journal, as html, json or csv, without running it again. Without a
    format it prints the summary; --json is --format json. sharpebench is the JSON that `sharpebench score` takes.

    With the --run of an arena it reports prices against fundamental value, wealth by agent, volume, chat and
    strategies, as html or json.

    Without --run it reports the latest backtest. With --session it reports the desk's run of that session, as text or
    json: decisions with their reasons, orders, fills, positions and notes. As html it covers the whole desk up to that
    session, laid out like a backtest.

    \b
    Examples:
      paperdesk report
      paperdesk report --session
      paperdesk report --session 2026-11-20 --out desk.html
      paperdesk report --run ID --out report.html
      paperdesk report --run arena-20261120-120000-ab12 --out arena.html
      paperdesk report --format csv --table trades
    """
    from tui.text.console import show

    target = None if out is None else Path(out).expanduser()
    if session is not None and invocation.run is not None:
        raise click.UsageError("give --session or --run, not both")
    chosen = _format(chosen, table, target)
    if session is not None or _is_of_the_desk(invocation.run):
        _check(chosen, PAGES, "a session of the desk is", target)
        text = _session(invocation, session, chosen)
    elif _is_of_an_arena(invocation.run):
        text = _arena(str(invocation.run), chosen, target)
    else:
        from engine.reports.stored import stored_document

        _check(chosen, OF_A_BACKTEST, "a backtest is", target)
        document = stored_document(invocation.run)
        if target is not None and chosen == "csv" and table is None and target.suffix != ".csv":
            _write_tables(document, target)
            return
        text = _rendered(document, chosen, table)
    if target is None:
        show(text.rstrip("\n"))
    else:
        write_file(target, text)


def _check(chosen: str | None, known: Sequence[str], what: str, target: Path | None) -> None:
    """Refuse a format in which something (`a backtest is`) is not written, and a file without a format."""
    *others, last = known
    formats = f"{', '.join(others)} or {last}" if others else last
    if chosen is None and target is not None:
        raise click.UsageError(f"--out {target} has no known extension: {what} written as {formats}")
    if chosen is not None and chosen not in known:
        raise click.UsageError(f"{what} written as {formats}, not as {chosen}")


def _format(chosen: str | None, table: str | None, target: Path | None) -> str | None:
    """The format that is named, or that the file's ending means; None for neither."""
    if as_json() and chosen not in (None, "json"):
        raise click.UsageError(f"--json and --format {chosen} contradict each other: give one of them")
    if as_json():
        chosen = "json"
    if chosen is None and target is not None:
        ending = target.suffix.lower()
        chosen = next((name for name, known in FORMATS.items() if known == ending), None)
        if chosen is None and ending:
            raise click.UsageError(f"--out {target}: {ending} is not a known format; give --format html, json or csv")
    if chosen is None and table is not None:
        return "csv"
    if table is not None and chosen != "csv":
        raise click.UsageError(f"--table belongs to --format csv, not to {chosen}")
    return chosen


def _is_of_the_desk(run: str | None) -> bool:
    """True for the name of a desk's run: there is no backtest of that name."""
    return run is not None and run.startswith(("daily-", "session-")) and not places.run_journal(run).is_file()


def _is_of_an_arena(run: str | None) -> bool:
    """True for the name of an arena's run: there is no backtest of that name."""
    return run is not None and not places.run_journal(run).is_file() and places.arena_file(run).is_file()


def _arena(run: str, chosen: str | None, target: Path | None) -> str:
    """The report of an arena, or of its repeats, of which there is no page."""
    from engine.app.arena.record import load_document
    from engine.reports.arena_report import arena_html
    from engine.reports.documents.backtest import as_text
    from tui.text.arena_text import arena_lines

    document = load_document(run)
    repeats = "repeats" in document
    _check(chosen, ("json",) if repeats else PAGES, "repeats are" if repeats else "an arena is", target)
    if chosen is None:
        return "\n".join(arena_lines(document))
    return as_text(document) + "\n" if chosen == "json" else printable(arena_html(document))


def _session(invocation: Invocation, session: date | str | None, chosen: str | None) -> str:
    """The report of the desk's run of a session (LATEST: its latest), or of the run that is named."""
    from engine.reports.documents.backtest import as_text
    from engine.reports.documents.session import run_of_session, session_document
    from tui.commands.daily import lines

    with invocation.records() as records:
        run = records.run or run_of_session(records, session if isinstance(session, date) else None)
        if chosen == "html":
            return _desk_page(invocation, records, run)
        document = session_document(records.required, records.desk, run)
    return as_text(document) + "\n" if chosen == "json" else "\n".join((*lines(document), *_noted(document)))


def _noted(document: Mapping[str, Any]) -> Iterator[str]:
    """Outcome, settings and notices of a run of the desk, which a run that is watched has printed already."""
    from engine.reports.documents.row_json import breakdowns
    from engine.reports.settings_text import changed_text, costs_text, version_text
    from engine.reports.summary import figures_text
    from tui.commands.daily import difference_lines

    outcome = document["outcome"] or "unfinished: running, or killed and resumed by the next run"
    settings, changed = document["settings"], document["changed"]
    adopted = (f"{one['what']}: {one['before']} became {one['after']}" for one in document["adoptions"])
    rows = [
        ("Change", _change(document)),
        *(breakdowns(document["model"]) if document["model"] else ()),
        ("Outcome", f"{outcome}: {document['detail']}" if document["detail"] else outcome),
        ("Costs", costs_text(settings) if settings else ""),
        ("Version", version_text(settings) if settings else ""),
        ("Changed", changed_text(changed) if changed else ""),
        ("Figures", figures_text(document)),
        ("Differences", "\n".join(difference_lines(document["differences"]))),
        ("Adopted", "\n".join(adopted)),
        ("Notes", "\n".join(f"{one['level']}: {one_line(one['text'])}" for one in document["notes"])),
    ]
    return facts(rows, standard_output().width)


def _change(document: Mapping[str, Any]) -> str:
    """Gain since the close before; empty without one."""
    before = document["before"]
    if before is None:
        return ""
    deposits = Decimal(before["brought_in"])
    earned = amounts.gain(Decimal(document["value"]) - Decimal(before["value"]) - deposits)
    without = f", without deposits and withdrawals of {amounts.gain(deposits)}" if deposits else ""
    return f"{earned} ({amounts.percent(before['change'])}) since {before['session']}{without}"


def _desk_page(invocation: Invocation, records: Records, run: str) -> str:
    """The page of a desk up to the session of a run."""
    from engine.reports.documents.desk_performance import desk_performance
    from engine.reports.documents.trail import with_cards
    from engine.reports.html import html

    config = invocation.load().config
    risk_free, exchanges = config.metrics.risk_free, config.exchanges
    document = desk_performance(records.required, records.desk, run, exchanges=exchanges, risk_free=risk_free)
    return printable(html(with_cards(records.required, document)))


def _rendered(document: Mapping[str, Any], chosen: str | None, table: str | None) -> str:
    if chosen == "json":
        from engine.reports.documents.backtest import in_rows

        return in_rows(document) + "\n"

    if chosen == SHARPEBENCH:
        from engine.reports.documents.backtest import as_text
        from engine.reports.sharpebench import submission

        return as_text(submission(document)) + "\n"
    if chosen == "html":
        from engine.reports.html import html
        from engine.reports.stored import stored_cards

        return printable(html(stored_cards(document)))
    if chosen == "csv":
        from engine.reports.csv_tables import csv_table

        return printable(csv_table(document, table or "equity"))
    from tui.text.backtest_text import summary_text

    return summary_text(document, str(places.run_journal(document["run"])), standard_output())


def _write_tables(document: Mapping[str, Any], folder: Path) -> None:
    from engine.reports.csv_tables import TABLES

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be created ({error.strerror}): name another with --out") from None
    for table in TABLES:
        write_file(folder / f"{table}.csv", _rendered(document, "csv", table))


def page_target(name: str) -> Path:
    """The HTML file that a page goes to once it is made, which may take long. Raises a usage error for a file that is
    none, DataError where it cannot be written."""
    from engine.errors import DataError

    target = Path(name).expanduser()
    if target.suffix.lower() != ".html":
        raise click.UsageError(f"{name}: a page is HTML; name a file that ends in .html")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise DataError(f"{target} cannot be written: name another file, in an existing folder")
    return target


def write_file(target: Path, text: str) -> None:
    try:
        # Half of a surrogate pair, which models do answer with, has no place in UTF-8.
        target.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(f"{target} cannot be written ({error.strerror}): name another with --out") from None
    click.echo(f"wrote {target}", err=True)
