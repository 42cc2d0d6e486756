"""Reader and writer of news/SYMBOL.jsonl, filings/SYMBOL.jsonl and commentary/FUND.jsonl: dated texts, in order of
availability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from connectors.files.rows import append_lines, in_utc, json_items, json_line, parse_stamp
from engine.domain.market import Dropped, Filing, FilingBatch, NewsBatch, NewsItem, Symbol
from engine.ports import Calendar

Record = Mapping[str, Any]
Item = TypeVar("Item", NewsItem, Filing)

NO_DATE = "no date"
NO_TEXT = "no text"

_SAME, _WEST = timedelta(minutes=1), timedelta(hours=12)
"""Times that tell one moment may differ so much; a day ends so much after that of UTC, at the latest."""
_END_OF_DAY = time(23, 59, 59, 999_000, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates of a record: its day, its publication and what came later than that (its release, where that has a stamp of
    its own, and its last change), as times (UTC) where they are known. `early` tells of a stamp before the release."""

    day: date
    first: date | datetime
    later: tuple[date | datetime, ...]
    early: str = ""


@dataclass(frozen=True, slots=True)
class TextKind:
    """Keys of one kind of record: its texts, its publication, its last change; of each group the first counts. From its
    `release` it is known at the earliest, whatever else it says."""

    texts: tuple[str, ...]
    first: tuple[str, ...]
    last: tuple[str, ...] = ()
    release: tuple[str, ...] = ()

    def unusable(self, record: Record) -> str | None:
        """Reason why a record cannot be used (NO_DATE, NO_TEXT), or None."""
        if not any(text_of(record, key) for key in ("date", *self.first, *self.last)):
            return NO_DATE
        if not any((text_of(record, key) or "").strip() for key in self.texts):
            return NO_TEXT
        return None

    def dates(self, record: Record) -> Dates:
        """Dates of a record. Raises ValueError where a date or time cannot be read."""
        given, first, last = (_stamp(record, keys) for keys in (("date",), self.first, self.last))
        stamp, clock = given, text_of(record, "time")
        if given is not None and clock:
            # A whole moment may stand under `time`, as some feeds have it; else it is a time of day on the date.
            whole = len(clock) > 10 and clock[4] == "-"
            first = stamp = parse_stamp(clock) if whole else _time_of_day(_day(given), clock)
        first = first or given or last
        if first is None:
            raise ValueError("the date is missing; write one as YYYY-MM-DD")
        known = [one for key in (*self.first, *self.release) if (one := _stamp(record, (key,))) is not None]
        # A day says nothing against a time within it.
        released = [one for one in known if isinstance(one, datetime) or one > _day(stamp or one)]
        early = next((f"stamped {stamp}, released {one}" for one in released if _is_before(stamp, one)), "")
        return Dates(_day(given or first), first, (*released, *(() if last is None else (last,))), early)


_PUBLISHED = ("published", "published_at")
NEWS = TextKind(("headline", "summary"), ("created", "created_at"), ("updated", "updated_at"), _PUBLISHED)
COMMENTARY = TextKind(("text",), ("created", "published"))
FILINGS = TextKind(("summary",), ("accepted", "accepted_at", "acceptance"))


class _SymbolFile:
    """One symbol's records: availability by its calendar, ids that are unique in the file."""

    def __init__(self, symbol: Symbol, calendar: Calendar) -> None:
        self._symbol = symbol
        self._calendar = calendar
        self._ends: dict[date, datetime] = {}
        self._ids: Counter[str] = Counter()

    def available(self, dates: Dates) -> datetime:
        """The latest of publication, release and change (UTC).

        A date counts from the close of its session, which is the next midnight for crypto, on a day without one from
        the day's end: so a dated item reaches the next decision.
        """
        stamps = (dates.first, *dates.later)
        return max(stamp if isinstance(stamp, datetime) else self._end_of(stamp) for stamp in stamps)

    def id(self, record: Record, keys: Sequence[str]) -> str:
        """The record's own id, else a hash of its content under `keys`; repeats get a number."""
        name = text_of(record, "id")
        if not name:
            texts = (self._symbol, *(text_of(record, key) or "" for key in keys))
            name = blake2b("\x1f".join(texts).encode(), digest_size=8).hexdigest()
        self._ids[name] += 1
        return name if self._ids[name] == 1 else f"{name}-{self._ids[name]}"

    def _end_of(self, day: date) -> datetime:
        if day not in self._ends:
            is_session = self._calendar.sessions(day, day)
            self._ends[day] = self._calendar.closes_at(day) if is_session else datetime.combine(day, _END_OF_DAY)
        return self._ends[day]


def read_news(path: Path, symbol: Symbol, calendar: Calendar, kind: TextKind = NEWS) -> NewsBatch:
    """All news of a symbol's file, or all commentary of a fund's. An item without a date or without any text is
    dropped and counted.

    Raises MalformedData at a line that cannot be read.
    """
    file = _SymbolFile(symbol, calendar)

    def item(record: Record) -> NewsItem | str:
        if reason := kind.unusable(record):
            return reason
        dates = kind.dates(record)
        return NewsItem(
            id=file.id(record, ("date", "time", *kind.first, *kind.last, *kind.texts, "source")),
            symbol=symbol,
            date=dates.day,
            available_at=file.available(dates),
            summary=text_of(record, kind.texts[-1]) or "",
            published=dates.first if isinstance(dates.first, datetime) else None,
            **{name: text_of(record, name) for name in ("headline", "source", "sentiment", "url")},
        )

    return NewsBatch(*_read(path, item))


def read_filings(path: Path, symbol: Symbol, calendar: Calendar) -> FilingBatch:
    """All filings of a symbol's file, available from their acceptance, or from the close of their date where only that
    is given.

    Drops and raises as `read_news`.
    """
    file = _SymbolFile(symbol, calendar)

    def item(record: Record) -> Filing | str:
        if reason := FILINGS.unusable(record):
            return reason
        dates = FILINGS.dates(record)
        return Filing(
            id=file.id(record, ("date", "time", *FILINGS.first, "form", "summary")),
            symbol=symbol,
            form=form_of(record),
            date=dates.day,
            available_at=file.available(dates),
            summary=text_of(record, "summary") or "",
        )

    return FilingBatch(*_read(path, item))


def availability(path: Path, symbol: Symbol, calendar: Calendar, kind: TextKind) -> Iterator[tuple[int, datetime, str]]:
    """Line number of every record that can be used, when (UTC) it became available, and what is told of a stamp before
    its release, empty where there is none."""
    file = _SymbolFile(symbol, calendar)

    def known(record: Record) -> Dates | None:
        return None if kind.unusable(record) else kind.dates(record)

    return ((line, file.available(dates), dates.early) for line, dates in json_items(path, known) if dates is not None)


def _read(path: Path, parse: Callable[[Record], Item | str]) -> tuple[tuple[Item, ...], tuple[Dropped, ...]]:
    """Items of a file's usable records in order of availability, and the dropped ones by the reason parsed instead."""
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    for _, item in json_items(path, parse):
        if isinstance(item, str):
            dropped[item] += 1
        else:
            items.append(item)
    items.sort(key=lambda one: one.available_at)
    source = f"{path.parent.name}/{path.name}"
    return tuple(items), tuple(Dropped(source, reason, count) for reason, count in sorted(dropped.items()))


def form_of(record: Record) -> str:
    """The form of a filing, such as 10-K. Raises ValueError where it is missing."""
    form = text_of(record, "form")
    if not form:
        raise ValueError("the filing has no form; write 10-Q, 10-K, 8-K or another")
    return form


def text_of(record: Record, key: str) -> str | None:
    """The text at a key, or None where it is null or absent. Raises ValueError for anything else."""
    value = record.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{key} is {str(value)[:40]}, which is not text; put it in quotes or write null")


def stored_filings(path: Path) -> Container[str | tuple[str, date]]:
    """Filings of a file by id, those without one by form and day. Raises MalformedData naming file and line."""

    def key(record: Record) -> str | tuple[str, date] | None:
        if id := text_of(record, "id"):
            return id
        return (form_of(record), FILINGS.dates(record).day) if text_of(record, "date") else None

    return {found for _, found in json_items(path, key) if found is not None}


def append_filings(path: Path, filings: Iterable[Filing]) -> int:
    """Append new filings in a single step; return their number."""
    stored = stored_filings(path)
    new = {one.id: one for one in filings if one.id not in stored and (one.form, one.date) not in stored}
    append_lines(path, [filing_line(one) for one in new.values()])
    return len(new)


def append_news(path: Path, items: Iterable[NewsItem]) -> tuple[int, int]:
    """Append new news in a single step; return the numbers of added and of unchanged items.

    A changed item is a further line with the same id, available from its change; the earlier line stays, since it was
    the known version until then. A change outside headline and summary adds nothing. Raises MalformedData naming file
    and line.
    """

    def version(record: Record) -> tuple[str | None, tuple[str, str]]:
        return text_of(record, "id"), (text_of(record, "headline") or "", text_of(record, "summary") or "")

    last = dict(found for _, found in json_items(path, version))
    lines: list[str] = []
    unchanged = 0
    for item in items:
        texts = item.headline or "", item.summary
        if last.get(item.id) == texts:
            unchanged += 1
        else:
            last[item.id] = texts
            lines.append(news_line(item))
    append_lines(path, lines)
    return len(lines), unchanged


def news_line(item: NewsItem) -> str:
    """One line of a news file: the time of publication, and `updated` where the item became available later."""
    record: dict[str, str | None] = {"date": item.date.isoformat(), "time": None}
    record |= {name: getattr(item, name) for name in ("headline", "summary", "source", "sentiment", "id")}
    if item.published is not None:
        on_its_date = item.published.astimezone(UTC).date() == item.date
        record["time" if on_its_date else "created"] = _moment(item.published, only_time=on_its_date)
        if item.available_at > item.published:
            record["updated"] = _moment(item.available_at)
    if item.url:
        record["url"] = item.url
    return json_line(record)


def filing_line(filing: Filing) -> str:
    """One line of a filing file, with the time of acceptance."""
    record = {"date": filing.date.isoformat(), "accepted": _moment(filing.available_at)}
    return json_line(record | {name: getattr(filing, name) for name in ("symbol", "form", "summary", "id")})


def _moment(moment: datetime, *, only_time: bool = False) -> str:
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.time().isoformat() if only_time else utc.isoformat()}Z"


def _stamp(record: Record, keys: Sequence[str]) -> date | datetime | None:
    text = next(filter(None, (text_of(record, key) for key in keys)), None)
    return None if text is None else parse_stamp(text)


def _is_before(stamp: date | datetime | None, release: date | datetime) -> bool:
    """True where a stamp is before a release, whatever the zone of its day is."""
    if stamp is None or not isinstance(release, datetime):
        return stamp is not None and _day(stamp) < release
    if isinstance(stamp, datetime):
        return stamp < release - _SAME
    return datetime.combine(stamp, _END_OF_DAY) + _WEST < release


def _time_of_day(day: date, text: str) -> datetime:
    try:
        return in_utc(datetime.combine(day, time.fromisoformat(text)))
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not a time of day; write HH:MM:SS, or null") from None


def _day(stamp: date | datetime) -> date:
    return stamp.astimezone(UTC).date() if isinstance(stamp, datetime) else stamp
