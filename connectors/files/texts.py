"""Reader of news/SYMBOL.jsonl and filings/SYMBOL.jsonl: dated texts, in order of availability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from connectors.files.availability import Availability, parse_stamp, parse_time
from connectors.files.rows import json_rows, malformed
from engine.domain.market import Dropped, Filing, FilingBatch, NewsBatch, NewsItem, Symbol

Record = Mapping[str, Any]
Item = TypeVar("Item", NewsItem, Filing)

NO_DATE = "no date"
NO_TEXT = "no text"

_CREATED = ("created", "created_at")
_UPDATED = ("updated", "updated_at")
_ACCEPTED = ("accepted", "accepted_at", "acceptance")


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates of a record: its day, its publication and its last change, the latter two as a time (UTC) where it is
    known."""

    day: date
    first: date | datetime
    last: date | datetime | None

    def available(self, availability: Availability) -> datetime:
        """The later of publication and change."""
        first = availability.of(self.first)
        return first if self.last is None else max(first, availability.of(self.last))


def read_news(path: Path, symbol: Symbol, availability: Availability) -> NewsBatch:
    """All news of a symbol's file. An item without a date or without any text is dropped and counted.

    Raises MalformedData at a line that cannot be read.
    """
    ids = Ids(symbol)

    def item(record: Record) -> NewsItem:
        dates = news_dates(record)
        return NewsItem(
            id=ids.of(record, ("date", "time", *_CREATED, *_UPDATED, "headline", "summary", "source")),
            symbol=symbol,
            date=dates.day,
            available_at=dates.available(availability),
            summary=text_of(record, "summary") or "",
            headline=text_of(record, "headline"),
            published=dates.first if isinstance(dates.first, datetime) else None,
            source=text_of(record, "source"),
            sentiment=text_of(record, "sentiment"),
            url=text_of(record, "url"),
        )

    return NewsBatch(*_read(path, item, ("headline", "summary"), _CREATED + _UPDATED))


def read_filings(path: Path, symbol: Symbol, availability: Availability) -> FilingBatch:
    """All filings of a file, available from their acceptance, or from the close of their date where only that is given.

    Drops and raises as `read_news`.
    """
    ids = Ids(symbol)

    def item(record: Record) -> Filing:
        dates = filing_dates(record)
        return Filing(
            id=ids.of(record, ("date", "time", *_ACCEPTED, "form", "summary")),
            symbol=symbol,
            form=form_of(record),
            date=dates.day,
            available_at=dates.available(availability),
            summary=text_of(record, "summary") or "",
        )

    return FilingBatch(*_read(path, item, ("summary",), _ACCEPTED))


def _read(
    path: Path, item: Callable[[Record], Item], texts: Sequence[str], stamps: Sequence[str]
) -> tuple[tuple[Item, ...], tuple[Dropped, ...]]:
    """Items of a file's usable records in order of availability, and the dropped ones."""
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    for line, record in json_rows(path):
        try:
            reason = unusable(record, texts, stamps)
            if reason is None:
                items.append(item(record))
            else:
                dropped[reason] += 1
        except ValueError as problem:
            raise malformed(path, line, str(problem)) from None
    items.sort(key=lambda one: one.available_at)
    source = f"{path.parent.name}/{path.name}"
    return tuple(items), tuple(Dropped(source, reason, count) for reason, count in sorted(dropped.items()))


def unusable(record: Record, texts: Sequence[str], stamps: Sequence[str]) -> str | None:
    """Reason why a record cannot be used (NO_DATE, NO_TEXT), or None."""
    if not any(text_of(record, key) for key in ("date", *stamps)):
        return NO_DATE
    if not any((text_of(record, key) or "").strip() for key in texts):
        return NO_TEXT
    return None


def news_dates(record: Record) -> Dates:
    """Dates of a news record. Raises ValueError where a date or time cannot be read."""
    return _dates(record, _CREATED, _UPDATED)


def filing_dates(record: Record) -> Dates:
    """Dates of a filing's record. Raises ValueError where a date or time cannot be read."""
    return _dates(record, _ACCEPTED, ())


def form_of(record: Record) -> str:
    """The form of a filing, such as 10-Q. Raises ValueError where it is missing."""
    form = text_of(record, "form")
    if not form:
        raise ValueError("the filing has no form; write 10-Q, 10-K, 8-K or another")
    return form


def text_of(record: Record, key: str) -> str | None:
    """The text at a key, or None where it is null or absent. Raises ValueError for anything else."""
    value = record.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{key} is {str(value)[:40]}, which is no text; put it in quotes or write null")


def _dates(record: Record, first_keys: Sequence[str], last_keys: Sequence[str]) -> Dates:
    given = _stamp(record, ("date",))
    created = _stamp(record, first_keys)
    last = _stamp(record, last_keys)
    time = text_of(record, "time")
    if given is not None and time:
        # A whole moment may stand under `time`, as some feeds have it; else it is a time of day on the date.
        created = parse_stamp(time) if len(time) > 10 and time[4] == "-" else parse_time(_day(given), time)
    first = created or given or last
    if first is None:
        raise ValueError("there is no date; write one as YYYY-MM-DD")
    return Dates(_day(given or first), first, last)


def _stamp(record: Record, keys: Sequence[str]) -> date | datetime | None:
    for key in keys:
        text = text_of(record, key)
        if text:
            return parse_stamp(text)
    return None


def _day(stamp: date | datetime) -> date:
    return stamp.astimezone(UTC).date() if isinstance(stamp, datetime) else stamp


class Ids:
    """Ids of one file's records: the record's own, else a hash of its content; repeats get a number."""

    def __init__(self, symbol: Symbol) -> None:
        self._symbol = symbol
        self._seen: Counter[str] = Counter()

    def of(self, record: Record, keys: Sequence[str]) -> str:
        """Id of the next record; `keys` make up its content."""
        name = text_of(record, "id") or content_hash(self._symbol, *(text_of(record, key) for key in keys))
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}-{self._seen[name]}"


def content_hash(*texts: str | None) -> str:
    """Sixteen hexadecimal digits, the same for the same texts."""
    joined = "\x1f".join("" if text is None else text for text in texts)
    return blake2b(joined.encode(), digest_size=8).hexdigest()
