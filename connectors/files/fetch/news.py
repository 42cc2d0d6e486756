"""News from a service into a data folder: only new items are requested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from connectors.files.fetch.job import FetchJob, Tally, in_parts
from connectors.files.texts import append_news
from engine.domain.fetched import Fetched
from engine.domain.market import NewsItem, Symbol

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
