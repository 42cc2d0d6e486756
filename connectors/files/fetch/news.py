"""News from a service into a data folder: only what is new is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from connectors.files.append import append_news
from connectors.files.fetch.job import FetchJob, Tally, in_parts
from connectors.files.merge import Merged
from engine.domain.fetched import Fetched
from engine.domain.market import NewsItem, Symbol

FIRST_NEWS = timedelta(days=60)
"""How far back the news of a symbol goes that is fetched for the first time without --from."""

_ASKED_AGAIN = timedelta(days=2)
"""News that is asked for a second time: an item may reach the service later than its own time says."""
_PAGES_AT_ONCE = 20
"""Pages that are written together: what a crash may cost."""

Tallies = Mapping[Symbol, Tally]


async def fetch_news(job: FetchJob, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
    """Adds news up to now, in order of its last change; what was written before an error stays, and the next fetch
    goes on from there. Raises as the service does, and MalformedData."""
    now = job.clock.now()
    tallies = {symbol: Tally(symbol, job.file("news", symbol, "jsonl")) for symbol in symbols}
    groups: dict[tuple[datetime, datetime], list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        for span in _unread(job, symbol, since, now):
            groups[span].append(symbol)
    for (first, last), group in sorted(groups.items()):
        for some in in_parts(group):
            if not await _read(job, some, first, last, tallies):
                for tally in tallies.values():
                    tally.complete = False
                return [tally.fetched() for tally in tallies.values()]
    return [tally.fetched() for tally in tallies.values()]


def _unread(job: FetchJob, symbol: Symbol, since: date | None, now: datetime) -> Sequence[tuple[datetime, datetime]]:
    """The stretches of time that have to be asked for."""
    log = job.log.of(symbol)
    wanted = None if since is None else datetime.combine(since, time(0), UTC)
    if not log.news_from or not log.news_through:
        return [(min(wanted or now - FIRST_NEWS, now), now)]
    begins, through = datetime.fromisoformat(log.news_from), datetime.fromisoformat(log.news_through)
    if job.options.again:
        return [(min(wanted or begins, now), now)]
    spans = [(wanted, begins)] if wanted is not None and wanted < begins else []
    return [*spans, (max(begins, through - _ASKED_AGAIN), now)] if through < now else spans


async def _read(job: FetchJob, symbols: Sequence[Symbol], first: datetime, last: datetime, tallies: Tallies) -> bool:
    """Reads one stretch, oldest change first. Whether it was read to its end."""
    waiting: dict[Symbol, list[NewsItem]] = defaultdict(list)
    total, reached, number = max(1, (last - first).days), first, 0
    stopped = job.options.stop()
    try:
        if stopped:
            return False
        async for page in job.source.news(symbols, first, last):
            for item in page:
                waiting[item.symbol].append(item)
                reached = max(reached, min(item.available_at, last))
            job.options.progress(f"news of {reached.date()}", min((reached - first).days, total - 1), total)
            stopped = job.options.stop()
            if stopped:
                return False
            number += 1
            if number % _PAGES_AT_ONCE == 0:
                _write(job, symbols, first, reached, waiting, tallies)
        reached = last
    finally:
        _write(job, symbols, first, reached, waiting, tallies, whole=reached == last)
    job.options.progress("news", total, total)
    return True


def _write(
    job: FetchJob,
    symbols: Sequence[Symbol],
    first: datetime,
    reached: datetime,
    waiting: dict[Symbol, list[NewsItem]],
    tallies: Tallies,
    *,
    whole: bool = False,
) -> None:
    for symbol in symbols:
        added, unchanged = append_news(tallies[symbol].path, waiting.pop(symbol, []))
        tallies[symbol].count(Merged(added=added, unchanged=unchanged))
        log = job.log.of(symbol)
        # An earlier stretch counts once it was read to its end: before, there would be a gap after it.
        if not log.news_from or (whole and first < datetime.fromisoformat(log.news_from)):
            job.log.note(symbol, news_from=first.isoformat())
        if not log.news_through or reached > datetime.fromisoformat(log.news_through):
            job.log.note(symbol, news_through=reached.isoformat())
