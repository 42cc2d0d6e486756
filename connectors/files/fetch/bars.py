"""Daily bars and corporate actions from a service into a data folder: only new ones are requested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from connectors.files.fetch.job import FetchJob, Tally, in_parts
from connectors.files.merge import Counts, checked_row, merge_actions, merge_bars
from connectors.files.prices import BarRow, read_rows, sessions_without_bar
from engine.domain.fetched import Fetched
from engine.domain.market import CORRECT_SYMBOLS, UNKNOWN, Bar, Symbol, SymbolActions, is_crypto
from engine.errors import ConfigError, MalformedData, MissingData

FIRST_BARS = timedelta(days=3 * 366)
"""Lookback of the bars of a symbol that is fetched for the first time without --from."""
NOT_OVER = "session not over yet"
NO_SESSION = "no session of the calendar"

_REPEATED = 5
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
            spans.append((date.fromordinal(rows[-_REPEATED:][0][0]), last))
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
        """Write the requested actions of each symbol."""
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
