"""Daily bars and corporate actions from a service into a data folder: only what is new is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

from connectors.files.fetch.job import FetchJob, Tally, in_parts
from connectors.files.merge import Merged, checked_row, has_adjusted, merge_actions, merge_bars, stored_bars
from connectors.files.prices import BarRow
from engine.domain.fetched import Fetched
from engine.domain.market import Bar, Symbol, SymbolActions, is_crypto
from engine.errors import ConfigError, MissingData

FIRST_BARS = timedelta(days=3 * 366)
"""How far back the bars of a symbol go that is fetched for the first time without --from."""
NOT_OVER = "session not over yet"
NO_SESSION = "no session of the calendar"

_LOOKED_AT_AGAIN = 5
"""Bars at the end of a file that are asked for together with new ones: has one been corrected since?"""

Spans = Sequence[tuple[date, date]]


async def fetch_actions(job: FetchJob, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
    """Merges the splits and dividends of shares since their first bar, or `since`, up to the last session that is
    over, and computes adj_close anew where it is ours. Raises as the service does, and MalformedData."""
    work = _Bars(job, since)
    await work.ask_actions(symbols)
    return work.write_actions(symbols)


async def fetch_bars(job: FetchJob, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
    """Adds the bars of all sessions that are over, with the actions that adj_close is computed from. What was written
    before an error stays, and the next fetch goes on from there. Raises as the service does, MalformedData, ConfigError
    for another feed than the kept bars have, and, when all others are done, MissingData for symbols without a bar."""
    work = _Bars(job, since)
    spans = {symbol: work.missing(symbol) for symbol in symbols}
    asked = [symbol for symbol in symbols if spans[symbol]]
    if asked:
        await work.ask_actions(asked)
    tallies = {symbol: Tally(symbol, job.file("prices", symbol)) for symbol in symbols}
    actions: list[Fetched] = []
    try:
        whole = await work.ask_bars({symbol: spans[symbol] for symbol in asked}, tallies)
    finally:
        actions = work.write_actions(asked)
    for symbol in asked:
        tallies[symbol].complete = whole
    if whole:
        work.found(symbols)
    return [*actions, *(tally.fetched() for tally in tallies.values())]


class _Bars:
    def __init__(self, job: FetchJob, since: date | None) -> None:
        self._job = job
        self._since = since
        self._said: dict[Symbol, SymbolActions] = {}

    def missing(self, symbol: Symbol) -> Spans:
        """The stretches of sessions that have to be asked for."""
        job, since = self._job, self._since
        path, last = job.file("prices", symbol), self._job.last_session(symbol)
        rows, log = stored_bars(path, symbol), job.log.of(symbol)
        if not rows:
            return [(min(since or last - FIRST_BARS, last), last)]
        if not log.bars_from:  # a file of other hands, or the log is lost
            log = job.log.note(symbol, bars_from=str(date.fromordinal(rows[0][0])), computed=not has_adjusted(rows))
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
            spans.append((date.fromordinal(rows[-_LOOKED_AT_AGAIN:][0][0]), last))
        return spans

    async def ask_actions(self, symbols: Sequence[Symbol]) -> None:
        """Asks for everything since the first bar that there is, or is to be: the service may hear of an action
        late."""
        shares = [symbol for symbol in symbols if not is_crypto(symbol)]
        if not shares or self._job.options.stop():
            return
        self._job.options.progress("corporate actions", 0, 1)
        last = self._job.last_session(shares[0])
        firsts = {symbol: self._first(symbol, last) for symbol in shares}
        found = await self._job.source.actions(shares, min(firsts.values()), last)
        self._said = {
            symbol: SymbolActions(
                tuple(action for action in said.actions if action.ex_date >= firsts[symbol]), said.unsupported
            )
            for symbol, said in found.items()
        }
        self._job.options.progress("corporate actions", 1, 1)

    async def ask_bars(self, spans: Mapping[Symbol, Spans], tallies: Mapping[Symbol, Tally]) -> bool:
        """Asks for the same stretch of several symbols at once. Whether all was fetched to its end."""
        groups: dict[tuple[bool, date, date], list[Symbol]] = defaultdict(list)
        for symbol, wanted in spans.items():
            for first, last in wanted:
                groups[is_crypto(symbol), first, last].append(symbol)
        total, done = sum(map(len, groups.values())), 0
        for (_, first, last), group in sorted(groups.items()):
            for some in in_parts(group):
                self._job.options.progress(f"bars since {first}", done, total)
                if self._job.options.stop():
                    return False
                held: dict[Symbol, list[BarRow]] = {
                    symbol: [] for symbol in some if str(first) < self._job.log.of(symbol).bars_from
                }
                async for symbol, bars in self._job.source.bars(some, first, last):
                    rows = list(self._closed(symbol, bars, tallies[symbol]))
                    if symbol in held:
                        held[symbol] += rows  # before kept ones: half of them would leave a gap
                    else:
                        tallies[symbol].count(self._merge(symbol, rows, first))
                    if self._job.options.stop():
                        return False
                for symbol, rows in held.items():
                    tallies[symbol].count(self._merge(symbol, rows, first))
                    # Asked for once, whether there was a bar so early or not.
                    self._job.log.note(symbol, bars_from=str(first))
                done += len(some)
        self._job.options.progress("bars", total, total)
        return True

    def write_actions(self, symbols: Sequence[Symbol]) -> list[Fetched]:
        """Writes what was said of each symbol that there is."""
        done = []
        for symbol, said in ((symbol, self._said[symbol]) for symbol in symbols if symbol in self._said):
            tally = Tally(symbol, self._job.file("actions", symbol))
            if self._job.file("prices", symbol).exists():
                self._merge(symbol, ())
            elif not said.actions:
                continue
            tally.count(merge_actions(tally.path, symbol, said.actions, replace=self._job.options.again)[1])
            tally.dropped.update(words for _, words in said.unsupported)
            done.append(tally.fetched())
        return done

    def found(self, symbols: Sequence[Symbol]) -> None:
        """Raises MissingData for symbols without a bar."""
        unknown = [symbol for symbol in symbols if not self._job.file("prices", symbol).exists()]
        if unknown:
            when = f" since {self._since}" if self._since else ""
            others = "; the other symbols were fetched" if len(unknown) < len(symbols) else ""
            vendor = self._job.source.vendor
            raise MissingData(
                f"{vendor} has no bars of {', '.join(unknown)}{when}; correct desk.symbols or --symbols{others}"
            )

    def _closed(self, symbol: Symbol, bars: Sequence[Bar], tally: Tally) -> Iterator[BarRow]:
        """The rows of sessions that are over by the calendar."""
        calendar, last = self._job.calendar_for(symbol), self._job.last_session(symbol)
        for bar in bars:
            if bar.session > last:
                tally.dropped[NOT_OVER] += 1
            elif not calendar.sessions(bar.session, bar.session):
                tally.dropped[NO_SESSION] += 1
            else:
                yield checked_row(symbol, bar)

    def _merge(self, symbol: Symbol, rows: Sequence[BarRow], first: date | None = None) -> Merged:
        job, path = self._job, self._job.file("prices", symbol)
        if rows and first is not None:
            feed = "" if is_crypto(symbol) else job.source.feed
            begun = {} if path.exists() else {"bars_from": str(first), "computed": True}
            job.log.note(symbol, feed=feed, **begun)
        said = self._said.get(symbol, SymbolActions())
        there = job.file("actions", symbol)
        known, _ = merge_actions(there, symbol, said.actions, replace=job.options.again, write=False)
        unsupported = [day for day, _ in said.unsupported]
        keep = not job.log.of(symbol).computed
        return merge_bars(path, symbol, rows, known, unsupported, replace=job.options.again, keep_adjusted=keep)

    def _first(self, symbol: Symbol, last: date) -> date:
        rows = stored_bars(self._job.file("prices", symbol), symbol)
        first = date.fromordinal(rows[0][0]) if rows else self._since or last - FIRST_BARS
        return min(first, self._since or first, last)
