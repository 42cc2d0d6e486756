"""`paperdesk fetch` (data): download bars, actions, news, filings and macro series.
`paperdesk import` (data): import prices, actions, news or filings into the data folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.domain.text import first_few
from engine.errors import Interrupted, MalformedData
from tui.commands.options import DAY, key_values, listed
from tui.settings.invocation import Invocation, command
from tui.shell.interruption import interruptible
from tui.shell.progress import progress_bar
from tui.text.console import as_json, show, show_document

if TYPE_CHECKING:
    from engine.domain.fetched import Fetched, FileImport, Imported, ImportResult
    from engine.services import Services

IMPORTED = ("prices", "actions", "news", "filings", "macro", "holdings", "commentary")
KINDS = ("all", "bars", "actions", "news", "filings", "macro")

folder_option = click.option("--data", "folder", metavar="DIR", help="Data folder (default: the configured one).")


@command("fetch")
@click.argument("kind", type=click.Choice(KINDS), default="all")
@click.option("--symbols", metavar="A,B", help="Symbols to fetch (default: the desk's).")
@click.option("--from", "since", type=DAY, metavar="DATE", help="Start date (default: the end of the existing data).")
@click.option("--again", is_flag=True, help="Fetch existing dates again, and replace bars and actions that differ.")
@folder_option
def fetch_command(
    *,
    invocation: Invocation,
    kind: str,
    symbols: str | None,
    since: date | None,
    again: bool,
    folder: str | None,
) -> None:
    """Downloads market data into the data folder: bars, corporate actions and news from Alpaca, filings from SEC EDGAR,
    macro series with all vintages from FRED. Without a kind it fetches bars, actions and news, plus filings and macro
    series if configured.

    Alpaca needs the paper account's keys in APCA_API_KEY_ID and APCA_API_SECRET_KEY. The SEC requires a contact: set
    filings.user_agent to your name and e-mail address. FRED needs a free key in FRED_API_KEY.

    Bars are daily and unadjusted; adj_close is computed from the actions. A bar is written after its session has
    closed. Existing data stays: fetching again adds only new data, reports how many recent bars the vendor has
    corrected since, and continues after Ctrl-C. At first it takes 3 years of bars, 60 days of news and all filings.

    \b
    Examples:
      paperdesk fetch
      paperdesk fetch bars --symbols AAPL,BTC-USD --from 2020-01-01 --data DIR
      paperdesk fetch filings --symbols AAPL,MSFT --from 2020-01-01 --data DIR
      paperdesk fetch macro --data DIR
    """
    from engine.app.research.market_data import fetch
    from engine.reports.documents.files import fetched_document
    from engine.services import FetchOptions

    services = invocation.services()
    to = _folder(services, folder, "fetch")
    if kind == "macro" and (symbols is not None or since is not None):
        raise click.UsageError("macro takes no --symbols or --from; macro.series lists the series")
    if again and kind in ("filings", "macro"):
        raise click.UsageError(f"--again is for bars, actions and news; {kind} are never replaced")
    wanted = list(listed(symbols) or services.config.desk.symbols)
    if kind != "macro" and not wanted:
        raise click.UsageError("no symbols: give --symbols A,B or set desk.symbols")
    with interruptible() as stop, progress_bar() as show_progress:
        options = FetchOptions(folder=to, progress=show_progress, stop=stop, again=again)
        done = asyncio.run(fetch(services, kind, options, wanted, since))
    whole = all(one.complete for one in done) and not stop()
    if as_json() or done:
        document = fetched_document(kind, done, whole)
        show_document(document, lambda: (line for one in done for line in _fetched_lines(one)))
    impossible = [why for one in done for why in one.impossible.values()]
    if impossible:
        raise MalformedData(f"{impossible[0]}; impossible bars left out: {len(impossible)}")
    if not whole:
        raise Interrupted("interrupted; fetched data is kept, and the same command continues")


@command("import")
@click.argument("kinds", metavar="KIND[,KIND]")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--symbol", metavar="A,B", help="Symbols, macro series or funds to import (default: all in the file).")
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="A field's column; an empty one skips it (repeatable).",
)
@click.option("--tz", "zone", metavar="ZONE", help="Time zone of times without one, such as America/New_York.")
@click.option("--currency", metavar="CODE", help="Currency of prices if the file names none: GBX for pence, or GBP.")
@click.option("--dates", type=click.Choice(("mdy", "dmy", "ymd")), help="Order of day, month and year if ambiguous.")
@click.option("--decimal", type=click.Choice(("point", "comma")), help="Decimal mark if ambiguous.")
@click.option(
    "--header", type=click.BOOL, default=True, metavar="yes|no", help="no: --map open=2 means the second column."
)
@click.option("--from-adjusted", is_flag=True, help="actions: derive missing ones from adj_close (FILE or the folder).")
@click.option("--dry-run", is_flag=True, help="Show the detected format without writing anything.")
@folder_option
def import_command(
    *,
    invocation: Invocation,
    kinds: str,
    file: Path | None,
    symbol: str | None,
    columns: Sequence[str],
    from_adjusted: bool,
    dry_run: bool,
    folder: str | None,
    **form: Any,
) -> None:
    """Imports a CSV, JSON, JSONL or Parquet file into the data folder: prices, actions, news and filings (several at
    once if the file has them), macro series, fund holdings and fund commentary. Files from yfinance, Alpaca, Polygon,
    Finnhub, Alpha Vantage, Tiingo, Stooq, Nasdaq, tushare and InvestorBench are recognized; --map names the columns of
    others, and --dry-run shows the detected format.

    Nothing is written unless every row is valid and bars and splits agree; invalid rows are listed with their line
    numbers. Rows of the same date are replaced; importing a file again changes nothing.

    \b
    Examples:
      paperdesk import prices aapl.csv --symbol AAPL --data DIR
      paperdesk import prices,actions tiingo.csv --symbol AAPL
      paperdesk import news headlines.json --tz America/New_York
      paperdesk import macro supplier-deliveries.csv --symbol ISM_DELIVERIES
      paperdesk import commentary letters.jsonl --symbol ARKK
      paperdesk import prices quotes.csv --symbol SAP.DE --map close=Schluss --map date=Datum
      paperdesk import prices vod.csv --symbol VOD.L --currency GBX
      paperdesk import actions --from-adjusted --symbol AAPL,MSFT --dry-run
      paperdesk import prices quotes.csv --symbol AAPL --dates dmy --dry-run
      paperdesk import prices klines.csv --symbol BTC-USDT --header no --map date=1 --map open=2 --map close=5
    """
    from engine.domain.fetched import FileImport
    from engine.reports.documents.files import imported_document

    services = invocation.services()
    unknown = [kind for kind in listed(kinds) if kind not in IMPORTED]
    if unknown or not listed(kinds):
        raise click.UsageError(f"{', '.join(unknown) or 'nothing'} cannot be imported; name {', '.join(IMPORTED)}")
    if from_adjusted and listed(kinds) != ("actions",):
        raise click.UsageError("--from-adjusted derives actions: `paperdesk import actions --from-adjusted [FILE]`")
    if file is None and not from_adjusted:
        raise click.UsageError("no file: name one, or derive actions from the folder's prices with --from-adjusted")
    request = FileImport(
        kinds=listed(kinds),
        file=file,
        folder=_folder(services, folder, "import"),
        symbols=listed(symbol),
        columns=dict(key_values(columns, "--map")),
        **form,
        write=not dry_run,
        from_adjusted=from_adjusted,
    )
    if from_adjusted and not as_json():
        # What is derived is shown before it is written.
        for one in services.import_file(replace(request, write=False)).files:
            for act in one.derived:
                show(f"{act.symbol}: {act.ex_date},{act.kind},{act.value:f}")
    done = services.import_file(request)
    document = imported_document(kinds, done, written=request.write)
    show_document(document, lambda: _import_lines(done, request))


def _folder(services: Services, given: str | None, action: str) -> Path:
    """The data folder that is written to."""
    folder = Path(given).expanduser() if given else services.data_folder
    if folder is None:
        raise click.UsageError(f"no data folder to {action} into: give --data DIR or set data.folder")
    return folder


def _fetched_lines(one: Fetched) -> Iterator[str]:
    counts = [(one.added, "added"), (one.replaced, "replaced"), (one.unchanged, "there before")]
    yield f"{one.path}: {_counted(counts) or 'nothing'}"
    if one.differing:
        yield f"  kept, but different now: {one.differing:,} (--again replaces them)"
    yield from (f"  left out: {drop.count:,} ({drop.reason})" for drop in one.dropped)
    yield from (f"  left out: {why}" for why in one.impossible.values())
    if one.missing:
        yield f"  no bar, where there are earlier and later ones: {first_few(one.missing, 5)}"


def _import_lines(result: ImportResult, request: FileImport) -> Iterator[str]:
    for taken in () if request.write else result.taken:
        columns = ", ".join(f"{ours} = {theirs}" for ours, theirs in taken.columns.items())
        yield f"{request.file}: {taken.rows:,} rows of {taken.kind}; {columns}"
        yield f"  not read: {', '.join(taken.unread) or 'no column'}"
        yield f"  decimal {taken.decimal}; dates {taken.dates or 'ymd'}; times without a zone: {taken.zone or 'none'}"
    for one in result.files:
        yield from _imported_lines(one, result.notes)
    yield from (f"note: {note}" for note in result.notes)
    if not request.write:
        yield "nothing was written (--dry-run)"


def _imported_lines(done: Imported, notes: Sequence[str]) -> Iterator[str]:
    """Counts of a file's rows by outcome; those that a note names with their days are not repeated."""
    counts = [(done.added, "added"), (done.replaced, "replaced"), (done.unchanged, "unchanged")]
    yield f"{done.path}: {_counted(counts) or 'nothing to add'}"
    said = [one for one in done.dropped if not any(one.reason in note for note in notes)]
    yield from (f"dropped {one.count:,} of {one.source}: {one.reason}" for one in said)


def _counted(counts: list[tuple[int, str]]) -> str:
    return ", ".join(f"{count:,} {name}" for count, name in counts if count)
