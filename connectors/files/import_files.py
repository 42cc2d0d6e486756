"""Import of prices, actions, news, filings, macro series, holdings and commentary from files of any origin into the
data folder.

Nothing is written unless every row of every kind is good, and bars and actions agree. Stored rows stay, except that a
bar or an action of the same date is replaced. Importing a file a second time changes nothing. import_files.toml has
the names of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from connectors.files.foreign_file import ForeignFile, Planned
from connectors.files.import_macro import plan_holdings, plan_macro
from connectors.files.import_prices import plan_actions, plan_prices, planned_actions
from connectors.files.import_texts import plan_commentary, plan_filings, plan_news
from connectors.files.prices import history_of, read_actions, read_bars
from connectors.files.reading import Reading
from connectors.files.stamps import zone_named
from engine.domain.exchanges import LISTED, Exchanges
from engine.domain.fetched import FileImport, ImportResult
from engine.domain.market import UNKNOWN, Symbol, parse_symbol
from engine.errors import MissingData
from engine.market.implied_actions import implied_actions
from engine.market.price_faults import Comparison, compare, refuse_faults
from engine.ports import Calendar

_PAYING = ("prices", "actions")
CalendarFor = Callable[[Symbol], Calendar]


def import_file(
    request: FileImport, calendar_for: CalendarFor, now: datetime, exchanges: Exchanges = LISTED
) -> ImportResult:
    """Bring the kinds of data of one file into the folder, a file for each kind and symbol.

    A kind of several that the file has no row of is noted. Raises MalformedData over all bad rows, and where bars and
    actions contradict each other; MissingData for a file without rows; UsageError for an unknown field, kind of file or
    time zone, and rows that name no symbol.
    """
    zone = None if request.zone is None else zone_named(request.zone)
    wanted = tuple(map(parse_symbol, request.symbols))
    reading = Reading(calendar_for=calendar_for, exchanges=exchanges, now=now, zone=zone, currency=request.currency)
    kinds = ("prices",) if request.from_adjusted else request.kinds
    files, without = _files(request, kinds, wanted, reading) if request.file is not None else ([], [])
    planned = [plan for foreign in files for plan in _PLANS[foreign.kind](foreign, request.folder, reading)]
    if request.from_adjusted:
        planned = list(_derived(request.folder, wanted, planned, request.file))
    comparisons = list(_comparisons(request.folder, planned))
    refuse_faults([fault for compared in comparisons for fault in compared.faults], date.max)
    read = [column for foreign in files for column in foreign.read_columns]
    notes = [*without, *(note for foreign in files for note in foreign.notes)]
    notes += [note for foreign in files if foreign.kind in _PAYING for note in foreign.unread_money(read)]
    notes += [note for compared in comparisons for note in compared.notes(date.min, date.max)]
    if request.write:
        for plan in planned:
            plan.write()
    return ImportResult(
        tuple(plan.imported for plan in planned),
        tuple(foreign.taken for foreign in files),
        tuple(dict.fromkeys(notes)),
    )


def _files(
    request: FileImport, kinds: Sequence[str], wanted: Sequence[Symbol], reading: Reading
) -> tuple[list[ForeignFile], list[str]]:
    """The file as each kind of data that it has rows of, and a note on each other. Raises MissingData where it has none
    of any."""
    files, without = [], []
    for kind in kinds:
        try:
            files.append(ForeignFile(request, kind, wanted, reading))
        except MissingData as error:
            without.append(error)
    if not files:
        raise without[0]
    return files, list(map(str, without))


def _derived(folder: Path, wanted: Sequence[Symbol], read: Sequence[Planned], file: Path | None) -> Iterator[Planned]:
    """The actions that adj_close implies and that the folder lacks, of the bars read from a file, else of the folder's
    own. Raises MissingData where there is no adj_close."""
    prices = folder / "prices"
    bars = {plan.symbol: plan.own_bars for plan in read}
    if file is None:
        found = sorted(path.stem for path in prices.glob("*.csv"))
        bars = {symbol: read_bars(prices / f"{symbol}.csv") for symbol in wanted or found}
    known = {symbol: own for symbol, own in bars.items() if any(bar[5] != UNKNOWN for bar in own)}
    without = [symbol for symbol in wanted if symbol not in known]
    if without or not known:
        of = f" of {', '.join(without)}" if without else ""
        raise MissingData(f"there is no adj_close{of} in {file or prices}; nothing can be derived from it")
    for symbol, own in known.items():
        stored = read_actions(folder / "actions" / f"{symbol}.csv", symbol)
        missing = implied_actions(history_of(symbol, own), stored).missing
        planned = replace(planned_actions(folder, symbol, missing, derived=missing), bars=own)
        # A file of actions would say that there were none, where adj_close may only not tell them.
        yield planned if missing else replace(planned, write=lambda: None)


def _comparisons(folder: Path, planned: Sequence[Planned]) -> Iterator[Comparison]:
    """Bars and actions of each symbol, as they would be afterwards, against each other."""
    for symbol in dict.fromkeys(plan.symbol for plan in planned if plan.bars is not None or plan.actions is not None):
        own = [plan for plan in planned if plan.symbol == symbol]
        bars = next((plan.bars for plan in own if plan.bars is not None), None)
        actions = next((plan.actions for plan in own if plan.actions is not None), None)
        bars = read_bars(folder / "prices" / f"{symbol}.csv") if bars is None else bars
        actions = read_actions(folder / "actions" / f"{symbol}.csv", symbol) if actions is None else actions
        if bars:
            yield compare(history_of(symbol, bars), actions)


_PLANS: Mapping[str, Callable[[ForeignFile, Path, Reading], Iterator[Planned]]] = {
    "prices": plan_prices,
    "actions": plan_actions,
    "news": plan_news,
    "filings": plan_filings,
    "macro": plan_macro,
    "holdings": plan_holdings,
    "commentary": plan_commentary,
}
"""Ways to read a file by the kinds of `paperdesk import`."""
