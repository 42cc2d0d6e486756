"""Import of prices, actions, news and filings from foreign files into the data folder.

Nothing is written unless every row is good. Stored rows stay, except that a bar or an action of the same date is
replaced. Importing a file a second time changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from connectors.files.actions import action_row, read_actions
from connectors.files.foreign import (
    ACTION_NAMES,
    FILING_NAMES,
    NEWS_NAMES,
    PRICE_NAMES,
    Row,
    day_of,
    foreign_rows,
    is_for,
)
from connectors.files.prices import BarRow, bar_row, number, read_prices, rows_of
from connectors.files.rows import malformed
from connectors.files.texts import filing_dates, form_of, news_dates, unusable
from connectors.files.write import actions_text, json_line, prices_text, write_text
from engine.domain.fetched import Imported
from engine.domain.market import ActionKind, CorporateAction, Dropped, Symbol, parse_symbol
from engine.errors import MalformedData, MissingData

_SHOWN = 3  # how many bad rows the one line of an error lists


def import_prices(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Merge daily bars; rows may be in any order. Raises MalformedData over all bad rows."""
    symbol = parse_symbol(symbol)
    path = folder / "prices" / f"{symbol}.csv"
    foreign = _ForeignFile(source, PRICE_NAMES, symbol)
    new: dict[int, BarRow] = {}

    def add(row: Row) -> None:
        bar = bar_row([day_of(_cell(row, "date")), *(_cell(row, name) for name in _PRICE_CELLS)])
        if new.setdefault(bar[0], bar) is not bar:
            raise ValueError(f"{date.fromordinal(bar[0])} stands twice; keep one row per date")

    foreign.each(add)
    old = {bar[0]: bar for bar in rows_of(read_prices(path, symbol))} if path.exists() else {}
    merged = old | new
    # Two bars are the same if they would be written the same: an unknown volume equals itself.
    same = sum(prices_text([bar]) == prices_text([old[day]]) for day, bar in new.items() if day in old)
    if same < len(new):
        write_text(path, prices_text(merged[day] for day in sorted(merged)))
    added = len(merged) - len(old)
    return Imported(path, added, len(new) - added - same, same, foreign.dropped())


def import_actions(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Merge splits and dividends. Raises MalformedData over all bad rows.

    Rows have ex_date, kind and value, or the dividend and split columns of a price file.
    """
    symbol = parse_symbol(symbol)
    path = folder / "actions" / f"{symbol}.csv"
    foreign = _ForeignFile(source, ACTION_NAMES, symbol)
    new: dict[tuple[date, ActionKind], CorporateAction] = {}

    def add(row: Row) -> None:
        for action in _actions_in(row, symbol):
            if new.setdefault((action.ex_date, action.kind), action) is not action:
                raise ValueError(f"a second {action.kind} on {action.ex_date}; keep one row")

    foreign.each(add)
    old = {(act.ex_date, act.kind): act for act in read_actions(path, symbol)} if path.exists() else {}
    same = sum(old.get(key) == action for key, action in new.items())
    # A file without a single action still says something: that there were none.
    if same < len(new) or not path.exists():
        write_text(path, actions_text((old | new).values()))
    added = len(new.keys() - old.keys())
    return Imported(path, added, len(new) - added - same, same, foreign.dropped())


def import_news(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Add new news. An item without a date or text is dropped and counted. Raises MalformedData over all bad rows."""

    def check(record: Mapping[str, str | None]) -> str | None:
        why = unusable(record, ("headline", "summary"), ("created", "updated"))
        if why is None:
            news_dates(record)
        return why

    always = ("date", "time", "headline", "summary", "source", "sentiment")
    return _import_texts(source, folder, symbol, "news", names=NEWS_NAMES, always=always, check=check)


def import_filings(source: Path, folder: Path, symbol: Symbol) -> Imported:
    """Add new filings; drops and raises as `import_news`."""

    def check(record: Mapping[str, str | None]) -> str | None:
        why = unusable(record, ("summary",), ("accepted",))
        if why is None:
            filing_dates(record)
            form_of(record)
        return why

    return _import_texts(
        source, folder, symbol, "filings", names=FILING_NAMES, always=("date", "form", "summary"), check=check
    )


IMPORTERS: dict[str, Callable[[Path, Path, Symbol], Imported]] = {
    "prices": import_prices,
    "actions": import_actions,
    "news": import_news,
    "filings": import_filings,
}
"""Importers by the argument of `paperdesk import`."""

_PRICE_CELLS = ("open", "high", "low", "close", "adj_close", "volume")


class _ForeignFile:
    """Rows of one foreign file: good rows are passed on, bad ones collected, dropped ones counted."""

    def __init__(self, source: Path, names: Mapping[str, Sequence[str]], symbol: Symbol) -> None:
        self._source = source
        self._names = names
        self._symbol = symbol
        self._counts: Counter[str] = Counter()

    def each(self, take: Callable[[Row], str | None]) -> None:
        """Pass every row of the symbol to `take`, which returns the reason for dropping it, or raises ValueError for a
        bad one.

        Raises MalformedData over all bad rows, MissingData for a file without rows of the symbol.
        """
        bad: list[MalformedData] = []
        rows = 0
        for row in foreign_rows(self._source, self._names, bad):
            if not is_for(row, self._symbol):
                self._counts["another symbol"] += 1
                continue
            rows += 1
            try:
                why = take(row)
            except ValueError as problem:
                bad.append(malformed(self._source, row.line, str(problem)))
            else:
                self._counts.update([why] if why else [])
        if len(bad) == 1:
            raise bad[0]
        if bad:
            # The file is named once; each row keeps its line and its problem.
            details = [str(error).removeprefix(f"{self._source}, ") for error in bad[:_SHOWN]]
            more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
            raise MalformedData(
                f"{self._source}: {len(bad)} bad rows, nothing was imported: {'; '.join(details)}{more}"
            )
        if not rows:
            raise MissingData(f"{self._source} has no row for {self._symbol}; check the file and --symbol")

    def dropped(self) -> tuple[Dropped, ...]:
        """Dropped rows by reason."""
        return tuple(Dropped(self._source.name, why, count) for why, count in sorted(self._counts.items()))


def _import_texts(
    source: Path,
    folder: Path,
    symbol: Symbol,
    kind: str,
    *,
    names: Mapping[str, Sequence[str]],
    always: Sequence[str],
    check: Callable[[Mapping[str, str | None]], str | None],
) -> Imported:
    symbol = parse_symbol(symbol)
    path = folder / kind / f"{symbol}.jsonl"
    existing = Counter(_content(row, names) for row in _existing(path, names))
    foreign = _ForeignFile(source, names, symbol)
    lines: list[str] = []
    same = 0

    def add(row: Row) -> str | None:
        nonlocal same
        why = check(row.values)
        if why is not None:
            return why
        content = _content(row, names)
        if existing[content] > 0:
            # One old item answers for one new one: a file that says a thing twice is kept as it is.
            existing[content] -= 1
            same += 1
        else:
            known = {name: row.values.get(name) for name in names if name != "symbol"}
            lines.append(json_line({name: text for name, text in known.items() if text or name in always}))
        return None

    foreign.each(add)
    if lines:
        old = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        write_text(path, old + ("\n" if old and not old.endswith("\n") else "") + "".join(lines))
    return Imported(path, len(lines), 0, same, foreign.dropped())


def _existing(path: Path, names: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    if path.exists():
        bad: list[MalformedData] = []
        yield from foreign_rows(path, names, bad)
        if bad:
            raise bad[0]


def _content(row: Row, names: Mapping[str, Sequence[str]]) -> tuple[str | None, ...]:
    return tuple(row.values.get(name) for name in names if name != "symbol")


def _cell(row: Row, name: str) -> str:
    return row.values.get(name) or ""


def _actions_in(row: Row, symbol: Symbol) -> Iterator[CorporateAction]:
    day = day_of(_cell(row, "ex_date"))
    if "kind" in row.values:
        yield action_row(symbol, [day, _cell(row, "kind").lower(), _ratio(_cell(row, "value"))])
        return
    if "dividend" not in row.values and "split" not in row.values:
        raise ValueError("neither kind and value nor dividend or split; name the columns so")
    for kind in ActionKind:
        text = _ratio(_cell(row, kind.value))
        # A price file says zero, or nothing, on the days without an action.
        if text and number(kind.value, text) != 0:
            yield action_row(symbol, [day, kind, text])


def _ratio(text: str) -> str:
    """A number, with a split written 4:1 as 4."""
    new, colon, old = text.partition(":")
    if not colon:
        return text
    per_old = number("split", old)
    if per_old <= 0:
        raise ValueError(f"split {text} is no ratio; write new shares:old shares, such as 4:1")
    return str(number("split", new) / per_old)
