"""Bars, corporate actions and news from a service into a data folder, which one process at a time fills: only what is
new is requested, new rows are added, stored ones stay.

Adjusted closes are computed from closes as traded and corporate actions: the last bar unchanged, earlier ones scaled.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isnan
from pathlib import Path
from typing import Any

from connectors.files.prices import (
    BarRow,
    actions_text,
    bar_row,
    history_of,
    prices_text,
    read_actions,
    read_rows,
    sessions_without_bar,
)
from connectors.files.texts import append_news
from engine.domain.fetched import Fetched
from engine.domain.market import (
    CORRECT_SYMBOLS,
    NANO,
    UNKNOWN,
    ActionKind,
    Bar,
    CorporateAction,
    Dropped,
    NewsItem,
    Symbol,
    SymbolActions,
    is_crypto,
)
from engine.errors import ConfigError, MalformedData, MissingData, TryAgainLater
from engine.market.price_faults import price_faults
from engine.ports import Calendar, Clock, MarketDataService
from engine.services import FetchOptions
from engine.settings import places
from engine.settings.places import write_whole

_SYMBOLS_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolRequests:
    """Requests of one symbol so far, dates and moments as ISO 8601 text, empty where there was none.

    bars_from: first day of the requested bars.
    feed: the feed of the bars.
    computed: True where adj_close is ours, computed from the actions.
    news_from: beginning of the requested news, UTC.
    news_through: end of the requested news, UTC.
    filings_on: the day on which filings were requested last.
    """

    bars_from: str = ""
    feed: str = ""
    computed: bool = False
    news_from: str = ""
    news_through: str = ""
    filings_on: str = ""


class FetchLog:
    """Requests of one data folder in fetched.json, so that one without a result is not sent again.

    Only a shortcut: where it is lost or damaged, more is requested than had to be.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "fetched.json"
        self._requests = _read(self._path)

    def of(self, symbol: Symbol) -> SymbolRequests:
        """Requests of a symbol."""
        return self._requests.get(symbol, SymbolRequests())

    def note(self, symbol: Symbol, **changes: Any) -> SymbolRequests:
        """Write down a request, and return all of the symbol's."""
        changed = replace(self.of(symbol), **changes)
        if changed == self.of(symbol):
            return changed
        self._requests[symbol] = changed
        plain = {name: asdict(one) for name, one in sorted(self._requests.items())}
        write_whole(self._path, json.dumps({"schema": 1, "symbols": plain}, indent=1) + "\n")
        return changed


def _read(path: Path) -> dict[Symbol, SymbolRequests]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))["symbols"]
        return {name: _requests(one) for name, one in plain.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _requests(plain: dict[str, Any]) -> SymbolRequests:
    """A log of a later program may hold more. Raises TypeError for values of another kind."""
    defaults = asdict(SymbolRequests())
    known = {name: value for name, value in plain.items() if name in defaults}
    if any(type(value) is not type(defaults[name]) for name, value in known.items()):
        raise TypeError
    return SymbolRequests(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchJob:
    """One fetch of market data.

    source: the service that is asked.
    options: the folder, and how it is filled.
    log: earlier requests.
    calendar_for: the trading calendar of a symbol.
    clock: the time by which sessions are over.
    """

    source: MarketDataService
    options: FetchOptions
    log: FetchLog
    calendar_for: Callable[[Symbol], Calendar]
    clock: Clock

    def file(self, kind: str, symbol: Symbol, suffix: str = "csv") -> Path:
        """A symbol's file of prices, actions or news."""
        return self.options.folder / kind / f"{symbol}.{suffix}"

    def last_session(self, symbol: Symbol) -> date:
        """The last session of a symbol that is over."""
        return self.calendar_for(symbol).last_closed(self.clock.now())


@dataclass(slots=True)
class Tally:
    """Count of what is done to one file."""

    name: str
    path: Path
    counts: Counts = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    complete: bool = True
    missing: tuple[date, ...] = ()
    impossible: dict[date, str] = field(default_factory=dict)

    def fetched(self) -> Fetched:
        """The count so far."""
        source = f"{self.path.parent.name}/{self.path.name}"
        dropped = tuple(Dropped(source, reason, count) for reason, count in sorted(self.dropped.items()))
        counts = {name: self.counts[name] for name in ("added", "unchanged", "differing", "replaced")}
        return Fetched(
            name=self.name,
            path=self.path,
            dropped=dropped,
            complete=self.complete,
            missing=self.missing,
            impossible=self.impossible,
            **counts,
        )


def in_parts(symbols: Sequence[Symbol]) -> Iterator[Sequence[Symbol]]:
    """Parts of a list of symbols, each as many as one request may name."""
    for at in range(0, len(symbols), _SYMBOLS_AT_ONCE):
        yield symbols[at : at + _SYMBOLS_AT_ONCE]


_PATIENCE = 30
"""Seconds for which a fetch waits for another one into the same folder."""


class FolderFetch:
    """MarketFetch from one service into one folder."""

    def __init__(self, job: FetchJob) -> None:
        self._job = job
        self.vendor = job.source.vendor
        self.feed = job.source.feed

    async def bars(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Add bars, and the actions that adj_close is computed from."""
        return await BarsFetch(self._job, since).bars(symbols)

    async def actions(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Merge corporate actions."""
        return await BarsFetch(self._job, since).actions(symbols)

    async def news(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Add news."""
        return await fetch_news(self._job, symbols, since)

    def late(self, symbols: Sequence[Symbol], session: date) -> list[Symbol]:
        """Symbols whose bars do not reach a session. A crypto pair's day may end later than the session."""
        late = []
        for symbol in symbols:
            stored = read_rows(self._job.file("prices", symbol)).bars
            needed = min(session, self._job.last_session(symbol))
            if not stored or date.fromordinal(stored[-1][0]) < needed:
                late.append(symbol)
        return late

    def without_filings(self, symbols: Sequence[Symbol], day: date) -> list[Symbol]:
        """Symbols whose filings not fetched on a day."""
        return [symbol for symbol in symbols if self._job.log.of(symbol).filings_on != str(day)]

    def note_filings(self, symbols: Sequence[Symbol], day: date) -> None:
        """Note that filings were fetched on a day."""
        for symbol in symbols:
            self._job.log.note(symbol, filings_on=str(day))


@asynccontextmanager
async def open_folder_fetch(
    source: MarketDataService, options: FetchOptions, calendar_for: Callable[[Symbol], Calendar], clock: Clock
) -> AsyncIterator[FolderFetch]:
    """A fetch into a folder that no other process fills until the block ends. Raises TryAgainLater where another
    fetch does not end."""
    from filelock import FileLock, Timeout

    folder = options.folder
    places.make_folder(folder)
    lock = FileLock(folder / ".fetch.lock")
    for waited in range(_PATIENCE + 1):
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            if waited == _PATIENCE:
                raise TryAgainLater(f"another fetch fills {folder} (lock {lock.lock_file}); try again later") from None
            await asyncio.sleep(1)
    try:
        log = FetchLog(folder)
        yield FolderFetch(FetchJob(source=source, options=options, log=log, calendar_for=calendar_for, clock=clock))
    finally:
        lock.release()


FIRST_NEWS = timedelta(days=60)
"""Lookback of the news of a symbol that is fetched for the first time without --from."""

_REPEATED = timedelta(days=2)
"""News that is requested a second time: an item may reach the service later than its own time says."""
_PAGES_AT_ONCE = 20
"""Pages that are written together: what a crash may cost."""


async def fetch_news(job: FetchJob, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
    """Add news up to now, in order of its last change; what was written before an error stays, and the next fetch
    goes on from there. Raises as the service does, and MalformedData."""
    now = job.clock.now()
    tallies = {symbol: Tally(symbol, job.file("news", symbol, "jsonl")) for symbol in symbols}
    groups: dict[tuple[datetime, datetime], list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        for span in _unread(job, symbol, since, now):
            groups[span].append(symbol)
    for (first, last), group in sorted(groups.items()):
        for some in in_parts(group):
            if not await _Span(job, some, first, last, tallies).read():
                for tally in tallies.values():
                    tally.complete = False
                return [tally.fetched() for tally in tallies.values()]
    return [tally.fetched() for tally in tallies.values()]


def _unread(job: FetchJob, symbol: Symbol, since: date | None, now: datetime) -> Sequence[tuple[datetime, datetime]]:
    """The spans of time that have to be requested."""
    log = job.log.of(symbol)
    wanted = None if since is None else datetime.combine(since, time(0), UTC)
    if not log.news_from or not log.news_through:
        return [(min(wanted or now - FIRST_NEWS, now), now)]
    begins, through = datetime.fromisoformat(log.news_from), datetime.fromisoformat(log.news_through)
    if job.options.again:
        return [(min(wanted or begins, now), now)]
    spans = [(wanted, begins)] if wanted is not None and wanted < begins else []
    return [*spans, (max(begins, through - _REPEATED), now)] if through < now else spans


@dataclass(slots=True)
class _Span:
    """A span of time (UTC) of the news of some symbols, read up to `reached`."""

    job: FetchJob
    symbols: Sequence[Symbol]
    first: datetime
    last: datetime
    tallies: Mapping[Symbol, Tally]
    waiting: dict[Symbol, list[NewsItem]] = field(default_factory=lambda: defaultdict(list))
    reached: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.reached = self.first

    async def read(self) -> bool:
        """Read the span, oldest change first; True where it was read to its end."""
        options, total, pages = self.job.options, max(1, (self.last - self.first).days), 0
        try:
            if options.stop():
                return False
            async for page in self.job.source.news(self.symbols, self.first, self.last):
                for item in page:
                    self.waiting[item.symbol].append(item)
                    self.reached = max(self.reached, min(item.available_at, self.last))
                done = min((self.reached - self.first).days, total - 1)
                options.progress(f"news of {self.reached.date()}", done, total)
                if options.stop():
                    return False
                pages += 1
                if pages % _PAGES_AT_ONCE == 0:
                    self._write()
            self.reached = self.last
        finally:
            self._write(whole=self.reached == self.last)
        options.progress("news", total, total)
        return True

    def _write(self, *, whole: bool = False) -> None:
        for symbol in self.symbols:
            added, unchanged = append_news(self.tallies[symbol].path, self.waiting.pop(symbol, []))
            self.tallies[symbol].counts += {"added": added, "unchanged": unchanged}
            log = self.job.log.of(symbol)
            # An earlier span counts once it was read to its end: before, there would be a gap after it.
            if not log.news_from or (whole and self.first < datetime.fromisoformat(log.news_from)):
                self.job.log.note(symbol, news_from=self.first.isoformat())
            if not log.news_through or self.reached > datetime.fromisoformat(log.news_through):
                self.job.log.note(symbol, news_through=self.reached.isoformat())


FIRST_BARS = timedelta(days=3 * 366)
"""Lookback of the bars of a symbol that is fetched for the first time without --from."""
NOT_OVER = "session not over yet"
NO_SESSION = "no session of the calendar"

_BARS_AGAIN = 5
"""Bars at the end of a file that are requested together with new ones: a vendor may have corrected one since."""

Spans = Sequence[tuple[date, date]]


class BarsFetch:
    """One fetch of bars and actions into a data folder, of everything new or of everything since a day."""

    def __init__(self, job: FetchJob, since: date | None = None) -> None:
        self._job = job
        self._since = since
        self._actions: Mapping[Symbol, SymbolActions] = {}
        self._tallies: dict[Symbol, Tally] = {}

    async def actions(self, symbols: Sequence[Symbol]) -> list[Fetched]:
        """Merge the splits and dividends of shares since their first bar, or `since`, up to the last session that is
        over, and compute adj_close anew where it is ours. Raises as the service does, and MalformedData."""
        await self._request_actions(symbols)
        return self._write_actions(symbols)

    async def bars(self, symbols: Sequence[Symbol]) -> list[Fetched]:
        """Add the bars of all sessions that are over, with the actions that adj_close is computed from.

        An impossible bar is left out and named, as are sessions without a bar; of a row of the file that cannot be, a
        bar takes the place. What was written before an error stays, and the next fetch goes on from there. Raises as
        the service does, MalformedData, ConfigError for another feed than the stored bars have, and, when all others
        are done, MissingData for symbols without a bar.
        """
        spans = {symbol: wanted for symbol in symbols if (wanted := self._missing(symbol))}
        if spans:
            await self._request_actions(list(spans))
        self._tallies = {symbol: Tally(symbol, self._job.file("prices", symbol)) for symbol in symbols}
        actions: list[Fetched] = []
        try:
            complete = await self._request_bars(spans)
        finally:
            actions = self._write_actions(list(spans))
        for symbol, tally in self._tallies.items():
            calendar = self._job.calendar_for(symbol)
            tally.missing = sessions_without_bar(symbol, read_rows(tally.path).bars, calendar)
        for symbol in spans:
            self._tallies[symbol].complete = complete
        if complete:
            self._check_found(symbols)
        return [*actions, *(tally.fetched() for tally in self._tallies.values())]

    def _missing(self, symbol: Symbol) -> Spans:
        """The spans of sessions that have to be requested."""
        job, since = self._job, self._since
        path, last = job.file("prices", symbol), job.last_session(symbol)
        rows, log = read_rows(path).bars, job.log.of(symbol)
        if not rows:
            return [(min(since or last - FIRST_BARS, last), last)]
        if not log.bars_from:  # a file of another origin, or the log is lost
            first = str(date.fromordinal(rows[0][0]))
            log = job.log.note(symbol, bars_from=first, computed=all(row[5] == UNKNOWN for row in rows))
        begins = date.fromisoformat(log.bars_from)
        anew = job.options.again and (since is None or since <= begins)
        if not anew and not is_crypto(symbol) and log.feed not in ("", job.source.feed):
            raise ConfigError(
                f"{path} holds bars of the feed {log.feed}, and broker.feed is {job.source.feed}: set it back, "
                "fetch all bars with --again, or name another folder"
            )
        if job.options.again:
            return [(min(since or begins, last), last)]
        spans = [(since, begins - timedelta(days=1))] if since is not None and since < begins else []
        if date.fromordinal(rows[-1][0]) < last:
            spans.append((date.fromordinal(rows[-_BARS_AGAIN:][0][0]), last))
        return spans

    async def _request_actions(self, symbols: Sequence[Symbol]) -> None:
        """Request everything since the first bar that there is, or is to be: the service may learn of an action
        late."""
        shares = [symbol for symbol in symbols if not is_crypto(symbol)]
        if not shares or self._job.options.stop():
            return
        self._job.options.progress("corporate actions", 0, 1)
        last = self._job.last_session(shares[0])
        firsts = {symbol: self._first(symbol, last) for symbol in shares}
        answered = await self._job.source.actions(shares, min(firsts.values()), last)
        self._actions = {
            symbol: replace(one, actions=tuple(act for act in one.actions if act.ex_date >= firsts[symbol]))
            for symbol, one in answered.items()
        }
        self._job.options.progress("corporate actions", 1, 1)

    async def _request_bars(self, spans: Mapping[Symbol, Spans]) -> bool:
        """Request equal spans of several symbols at once; True where all was fetched to its end."""
        groups: dict[tuple[bool, date, date], list[Symbol]] = defaultdict(list)
        for symbol, wanted in spans.items():
            for first, last in wanted:
                groups[is_crypto(symbol), first, last].append(symbol)
        total, done = sum(map(len, groups.values())), 0
        for (_, first, last), group in sorted(groups.items()):
            for some in in_parts(group):
                self._job.options.progress(f"bars since {first}", done, total)
                if not await self._request_span(some, first, last):
                    return False
                done += len(some)
        self._job.options.progress("bars", total, total)
        return True

    async def _request_span(self, symbols: Sequence[Symbol], first: date, last: date) -> bool:
        """Request one span and merge it; True where it was fetched to its end."""
        job = self._job
        if job.options.stop():
            return False
        # Bars before stored ones are merged together: half of them would leave a gap.
        held: dict[Symbol, list[BarRow]] = {s: [] for s in symbols if str(first) < job.log.of(s).bars_from}
        async for symbol, bars in job.source.bars(symbols, first, last):
            rows = list(self._closed(symbol, bars))
            if symbol in held:
                held[symbol] += rows
            else:
                self._tallies[symbol].counts += self._merge(symbol, rows, first)
            if job.options.stop():
                return False
        for symbol, rows in held.items():
            self._tallies[symbol].counts += self._merge(symbol, rows, first)
            # Requested once, whether there was a bar so early or not.
            job.log.note(symbol, bars_from=str(first))
        return True

    def _write_actions(self, symbols: Sequence[Symbol]) -> list[Fetched]:
        done = []
        for symbol in symbols:
            if (answered := self._actions.get(symbol)) is None:
                continue
            tally = Tally(symbol, self._job.file("actions", symbol))
            if self._job.file("prices", symbol).exists():
                self._merge(symbol, ())
            elif not answered.actions:
                continue
            tally.counts = merge_actions(tally.path, symbol, answered.actions, replace=self._job.options.again)[1]
            tally.dropped.update(description for _, description in answered.unsupported)
            done.append(tally.fetched())
        return done

    def _check_found(self, symbols: Sequence[Symbol]) -> None:
        """Raise MissingData for symbols without a bar."""
        unknown = [symbol for symbol in symbols if not self._job.file("prices", symbol).exists()]
        if unknown:
            when = f" since {self._since}" if self._since else ""
            others = "; the other symbols were fetched" if len(unknown) < len(symbols) else ""
            vendor = self._job.source.vendor
            raise MissingData(f"{vendor} has no bars of {', '.join(unknown)}{when}{CORRECT_SYMBOLS}{others}")

    def _closed(self, symbol: Symbol, bars: Sequence[Bar]) -> Iterator[BarRow]:
        """The rows of sessions that are over by the calendar; the others are counted."""
        calendar, last = self._job.calendar_for(symbol), self._job.last_session(symbol)
        for bar in bars:
            if bar.session > last:
                self._tallies[symbol].dropped[NOT_OVER] += 1
            elif not calendar.sessions(bar.session, bar.session):
                self._tallies[symbol].dropped[NO_SESSION] += 1
            else:
                try:
                    yield checked_row(symbol, bar)
                except MalformedData as error:
                    self._tallies[symbol].impossible[bar.session] = str(error)

    def _merge(self, symbol: Symbol, rows: Sequence[BarRow], first: date | None = None) -> Counts:
        job, path = self._job, self._job.file("prices", symbol)
        if rows and first is not None:
            feed = "" if is_crypto(symbol) else job.source.feed
            begun = {} if path.exists() else {"bars_from": str(first), "computed": True}
            job.log.note(symbol, feed=feed, **begun)
        answered, again = self._actions.get(symbol, SymbolActions()), job.options.again
        stored = job.file("actions", symbol)
        known, _ = merge_actions(stored, symbol, answered.actions, replace=again, write=False)
        unsupported = [day for day, _ in answered.unsupported]
        keep = not job.log.of(symbol).computed
        return merge_bars(path, rows, known, unsupported, replace=again, keep_adjusted=keep)

    def _first(self, symbol: Symbol, last: date) -> date:
        rows = read_rows(self._job.file("prices", symbol)).bars
        first = date.fromordinal(rows[0][0]) if rows else self._since or last - FIRST_BARS
        return min(first, self._since or first, last)


Counts = Counter[str]
"""Rows of a merge: `added` are new, `unchanged` were stored already. Of rows that differ from stored ones, `replaced`
took their place and `differing` did not. They are the fields of engine.domain.fetched.Fetched."""

_WIDE = Context(prec=40, rounding=ROUND_HALF_EVEN)
_ONE = Decimal(1)


def checked_row(symbol: Symbol, bar: Bar) -> BarRow:
    """A service's bar as a row without adj_close. Raises MalformedData for an impossible one."""
    cells = [bar.session.isoformat(), *(f"{price:f}" for price in (bar.open, bar.high, bar.low, bar.close)), ""]
    try:
        return bar_row([*cells, "" if bar.volume is None else f"{bar.volume:f}"])
    except ValueError as problem:
        reason = str(problem).partition(";")[0]
        raise MalformedData(f"the bar of {symbol} on {bar.session} cannot be: {reason}; try again later") from None


def merge_bars(
    path: Path,
    rows: Iterable[BarRow],
    actions: Iterable[CorporateAction],
    unsupported: Iterable[date],
    *,
    replace: bool,
    keep_adjusted: bool,
) -> Counts:
    """Merge raw bars into a price file in a single step, with adj_close computed from the actions; rows of the file
    that cannot be are left out. Raises MalformedData.

    adj_close is computed for the whole file, or with `keep_adjusted` for the added rows alone, as an extension of the
    stored ones.
    """
    old = {row[0]: row for row in read_rows(path).bars}
    new = {row[0]: row for row in rows}
    differing = sum(not _same(row, old[day]) for day, row in new.items() if day in old)
    raw = old | new if replace else new | old
    days = sorted(raw)
    known, closes = tuple(actions), [raw[day][4] for day in days]
    bars = [(*raw[day][:5], UNKNOWN, raw[day][6]) for day in days]
    # Where a jump has no action, one may be missing: an adj_close without it would bear witness that there is none.
    jumps = [fault.session for fault in price_faults(history_of(path.stem, bars), known)] if bars else []
    adjusted = adjusted_closes(days, closes, known, (*unsupported, *jumps))
    if keep_adjusted and old:
        adjusted = extended_closes({at: old[day][5] for at, day in enumerate(days) if day in old}, adjusted)
    text = prices_text((*raw[day][:5], nano, raw[day][6]) for day, nano in zip(days, adjusted, strict=True))
    if raw and (not path.exists() or text != prices_text(old.values())):
        write_whole(path, text)
    return _counted(len(new), len(new.keys() & old.keys()), differing, replace=replace)


def merge_actions(
    path: Path, symbol: Symbol, actions: Iterable[CorporateAction], *, replace: bool, write: bool = True
) -> tuple[Sequence[CorporateAction], Counts]:
    """Merge actions into a file in a single step; with `write` off only return the result. Raises MalformedData.

    A file without a single action is written too: it says that there were none.
    """
    old = {(one.ex_date, one.kind): one for one in read_actions(path, symbol)}
    new = {(one.ex_date, one.kind): one for one in actions}
    differing = sum(one != old[key] for key, one in new.items() if key in old)
    merged = old | new if replace else new | old
    if write and (merged != old or not path.exists()):
        write_whole(path, actions_text(merged.values()))
    return tuple(merged.values()), _counted(len(new), len(new.keys() & old.keys()), differing, replace=replace)


def adjusted_closes(
    sessions: Sequence[int], closes: Sequence[int], actions: Iterable[CorporateAction], unsupported: Iterable[date] = ()
) -> array[int]:
    """Adjusted closes in nano-units for session ordinals and their closes.

    Before a split closes are divided by its ratio, before a dividend multiplied by 1 - dividend / previous close: so
    their ratios are the gains of a holder who reinvests dividends. `unsupported` are ex-dates of actions that are
    neither: everything before the last of them is UNKNOWN.
    """
    due: dict[int, list[CorporateAction]] = {}
    for action in sorted(actions, key=lambda one: one.kind):  # a dividend counts per share of before the split
        due.setdefault(bisect_left(sessions, action.ex_date.toordinal()), []).append(action)
    breaks = (bisect_left(sessions, day.toordinal()) for day in unsupported)
    unknown_before = max((row for row in breaks if row < len(sessions)), default=0)
    result = array("q", [UNKNOWN]) * len(sessions)
    factor = _ONE
    for row in range(len(sessions) - 1, unknown_before - 1, -1):
        result[row] = _scaled(closes[row], factor, _ONE)
        if row == 0:
            break
        for action in due.get(row, ()):
            if action.kind is ActionKind.SPLIT:
                factor = _WIDE.divide(factor, action.value)
            elif action.kind is ActionKind.DIVIDEND:
                paid = _WIDE.divide(_WIDE.multiply(action.value, Decimal(NANO)), Decimal(closes[row - 1]))
                factor = _WIDE.multiply(factor, _ONE - paid)
        if factor <= 0:
            break  # more was paid than the share was worth: what is before has no adjusted price
    return result


def extended_closes(stored: Mapping[int, int], computed: Sequence[int]) -> array[int]:
    """Stored adjusted closes (by row) extended with computed ones.

    A row without a stored value has the computed ratio to the nearest stored row before it, or, without one, after it.
    """
    result = array("q")
    anchor = min(stored)
    for row, nano in enumerate(computed):
        if row in stored:
            anchor = row
            result.append(stored[row])
        elif UNKNOWN in (nano, stored[anchor], computed[anchor]):
            result.append(UNKNOWN)
        else:
            result.append(_scaled(nano, Decimal(stored[anchor]), Decimal(computed[anchor])))
    return result


def _scaled(nano: int, by: Decimal, per: Decimal) -> int:
    scaled = _WIDE.divide(_WIDE.multiply(Decimal(nano), by), per)
    return max(1, int(scaled.to_integral_value(ROUND_HALF_EVEN)))


def _counted(new: int, shared: int, differing: int, *, replace: bool) -> Counts:
    """Counts of `new` rows, of which `shared` were stored and `differing` of those differ."""
    changed = {"replaced" if replace else "differing": differing}
    return Counter({"added": new - shared, "unchanged": shared - differing, **changed})


def _same(one: BarRow, other: BarRow) -> bool:
    return one[:5] == other[:5] and (one[6] == other[6] or (isnan(one[6]) and isnan(other[6])))
