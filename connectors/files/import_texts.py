"""News, filings and commentary of foreign files, as the data folder will have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path

from connectors.files.columns import column_names
from connectors.files.foreign_file import ForeignFile, Planned, appending, cell
from connectors.files.foreign_rows import Row, foreign_rows
from connectors.files.reading import Reading
from connectors.files.rows import json_line
from connectors.files.stamps import iso_stamp, read_stamp, stamp_text
from connectors.files.texts import COMMENTARY, FILINGS, NEWS, TextKind, form_of
from engine.domain.fetched import Imported
from engine.domain.market import Symbol


def plan_news(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """News. An item without a date or text is dropped and counted."""
    always = ("date", "time", "headline", "summary", "source", "sentiment")
    return plan_texts(foreign, folder / "news", NEWS, always, reading)


def plan_filings(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Filings; drops as news."""
    return plan_texts(foreign, folder / "filings", FILINGS, ("date", "form", "summary"), reading)


def plan_texts(
    foreign: ForeignFile, folder: Path, kind: TextKind, always: Sequence[str], reading: Reading
) -> Iterator[Planned]:
    """Records of a kind that are new; names in `always` are written where they are blank too."""
    names = [name for name in foreign.names if name != "symbol"]
    moments = ("date", *kind.first, *kind.last)
    existing: dict[Symbol, Counter[tuple[str | None, ...]]] = {}
    lines: dict[Symbol, list[str]] = {}
    same = Counter[Symbol]()

    def add(symbol: Symbol, row: Row) -> str | None:
        if len(row.values.get("time") or "") > len("HH:MM:SS AM") and not any(row.values.get(one) for one in moments):
            # A whole moment may stand under `time`.
            row = replace(row, values={**row.values, "time": None, kind.first[0]: iso_stamp(cell(row, "time"), None)})
        own = lines.setdefault(symbol, [])
        if reason := kind.unusable(row.values):
            return reason
        values = _with_stamps(row.values, kind, reading.zone)
        kind.dates(values)
        if kind is FILINGS:
            form_of(values)
        if symbol not in existing:
            existing[symbol] = _stored(folder / f"{symbol}.jsonl", foreign.kind, names)
        content = tuple(values.get(name) for name in names)
        if existing[symbol][content] > 0:
            # One old item answers for one new one: a file that says a thing twice is kept as it is.
            existing[symbol][content] -= 1
            same[symbol] += 1
        else:
            known = zip(names, content, strict=True)
            own.append(json_line({name: text for name, text in known if text or name in always}))
        return None

    for symbol in foreign.each(add):
        path, new = folder / f"{symbol}.jsonl", lines[symbol]
        yield Planned(
            symbol=symbol,
            imported=Imported(path, len(new), 0, same[symbol], foreign.dropped(symbol)),
            write=appending(path, new),
        )


def plan_commentary(foreign: ForeignFile, folder: Path, reading: Reading) -> Iterator[Planned]:
    """Commentary of funds; drops as news."""
    return plan_texts(foreign, folder / "commentary", COMMENTARY, ("date", "source", "text"), reading)


def _stored(path: Path, kind: str, names: Sequence[str]) -> Counter[tuple[str | None, ...]]:
    """The items of a file of the data folder, by content. Raises MalformedData."""
    if not path.exists():
        return Counter()
    stored = foreign_rows(path, column_names(kind, {}))
    if stored.read.bad:
        raise stored.read.bad[0]
    return Counter(tuple(row.values.get(name) for name in names) for row in stored.rows)


def _with_stamps(values: Mapping[str, str | None], kind: TextKind, zone: tzinfo | None) -> Mapping[str, str | None]:
    """A record with its stamps as the data folder has them. Raises ValueError."""
    stamped = dict(values)
    for name in ("date", *kind.first, *kind.last):
        if text := values.get(name):
            stamped[name] = stamp_text(text, zone)
    clock = values.get("time")
    if clock and stamped.get("date") and len(clock) <= len("HH:MM:SS"):
        day, of_day = read_stamp(str(stamped["date"]), zone), _time_of_day(clock)
        if zone is None:
            raise ValueError(f"{clock!r} is a time without a zone; say which it is in with --tz ZONE, such as UTC")
        moment = datetime.combine(day, of_day, zone).astimezone(UTC)
        stamped |= {"time": None, kind.first[0]: f"{moment.replace(tzinfo=None).isoformat()}Z"}
    return stamped


def _time_of_day(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no time of day; write HH:MM:SSZ, or null") from None
