"""Fills the data folder, when a person asks or before a daily run: what is there stays, only what is new is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, timedelta
from pathlib import Path

from connectors.files.fetch_log import FetchLog
from connectors.files.importing import folder_symbol
from connectors.files.merging import kept_bars
from connectors.wiring.bar_fetching import fetch_actions, fetch_bars
from connectors.wiring.broker import goes_by_broker, open_broker, open_data
from connectors.wiring.fetched import Fetched, Fetching, OnProgress, Stop
from connectors.wiring.news_fetching import fetch_news
from connectors.wiring.reference_fetching import fetch_filings
from connectors.wiring.sources import calendars, fetch_folder
from engine.clock import LiveClock, OffsetClock
from engine.config import Config
from engine.domain.market import Symbol
from engine.errors import MissingData, PaperdeskError, StaleData, TryAgainLater
from engine.messages.events import Event, Noticed
from engine.ports import Clock

__all__ = ["alpaca_fetching", "fetch_clock", "fetch_folder", "fetch_market", "late_symbols", "refresh"]

_PATIENCE = 30
"""Seconds for which a fetch waits for another one into the same folder."""

_KINDS: Mapping[str, Callable[[Fetching, Sequence[Symbol], date | None], Awaitable[list[Fetched]]]] = {
    "bars": fetch_bars,
    "actions": fetch_actions,
    "news": fetch_news,
}
PAUSES = (2.0, 5.0, 10.0, 20.0)
"""Seconds after which bars that the feed does not have yet are asked for again, before a daily run."""
FILINGS_BACK = timedelta(days=400)
"""How far back a daily run fetches filings: an annual report and what follows it."""

FROM_ALPACA = tuple(_KINDS)
"""What Alpaca is asked for, by the word that `paperdesk fetch` takes."""


async def fetch_clock(config: Config) -> Clock:
    """The clock by which sessions are over: this machine's, or the broker's where the configuration says so. Raises as
    the broker does."""
    if not goes_by_broker(config):
        return LiveClock()
    broker = open_broker(config)
    try:
        theirs = await broker.clock()
    finally:
        await broker.aclose()
    return OffsetClock(LiveClock(), theirs.now - LiveClock().now())


@asynccontextmanager
async def alpaca_fetching(
    config: Config,
    folder: Path,
    clock: Clock,
    hear: OnProgress = lambda what, done, total: None,
    stop: Stop = lambda: False,
    *,
    again: bool = False,
) -> AsyncIterator[Fetching]:
    """One fetch from Alpaca into a folder, which nobody else fills meanwhile. Raises ConfigError and
    CredentialsRefused for keys and addresses, TryAgainLater where another fetch does not end."""
    source = open_data(config)
    try:
        async with _alone(folder):
            yield Fetching(
                source=source,
                folder=folder,
                log=FetchLog(folder),
                calendar_for=calendars(),
                clock=clock,
                hear=hear,
                stop=stop,
                again=again,
            )
    finally:
        await source.aclose()


async def fetch_market(
    kinds: Sequence[str],
    config: Config,
    folder: Path,
    symbols: Sequence[Symbol],
    since: date | None,
    hear: OnProgress,
    stop: Stop,
    *,
    again: bool = False,
    clock: Clock | None = None,
) -> list[Fetched]:
    """Adds bars, actions or news of some symbols, one kind after the other until it is stopped. Raises UsageError for
    what cannot be a symbol, ConfigError, CredentialsRefused, MissingData, MalformedData, NetworkError, TryAgainLater;
    what was written by then stays."""
    wanted = list(dict.fromkeys(folder_symbol(symbol) for symbol in symbols))
    now = clock or await fetch_clock(config)
    done: list[Fetched] = []
    async with alpaca_fetching(config, folder, now, hear, stop, again=again) as fetching:
        for kind in kinds:
            done += await _KINDS[kind](fetching, wanted, since)
            if stop():
                break
    return done


async def refresh(
    config: Config,
    symbols: Sequence[Symbol],
    session: date,
    clock: Clock,
    publish: Callable[[Event], None] = lambda event: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    run: str | None = None,
) -> None:
    """What a run at Alpaca fetches before it loads its market: bars, actions and news of some symbols, and filings
    once a day where filings.user_agent is set. `run` is the one that warns, the session's daily run unless it is named.

    Bars of `session` have to come for the desk's own symbols; they are waited for a little. Anything else that fails
    is published as a warning. Raises StaleData where a bar does not come, and as `fetch_market` does for bars.
    """
    from engine.session.desk_context import run_id

    folder = fetch_folder(config)
    if folder is None:
        return
    identity = run or run_id(config.desk.name, session)

    def warn(text: str) -> None:
        publish(Noticed(identity, clock.now(), "warning", text))

    own = list(dict.fromkeys(config.desk.symbols or symbols))
    held = [symbol for symbol in dict.fromkeys(symbols) if symbol not in own]
    async with alpaca_fetching(config, folder, clock) as fetching:
        _differing(fetching, await _own_bars(fetching, own, session, sleep), warn)
        try:
            _differing(fetching, await fetch_bars(fetching, held), warn)
        except MissingData as error:
            warn(str(error))
        try:
            await fetch_news(fetching, [*own, *held])
        except PaperdeskError as error:
            warn(f"news was not fetched, the desk decides on what it has: {error}")
        if config.filings.user_agent:
            today = clock.now().date()
            due = [one for one in (*own, *held) if fetching.log.of(one).filings_on != str(today)]
            try:
                await fetch_filings(config, folder, due, today - FILINGS_BACK, fetching.hear, fetching.stop)
                for symbol in due:
                    fetching.log.note(symbol, filings_on=str(today))
            except PaperdeskError as error:
                warn(f"filings were not fetched, the desk decides on what it has: {error}")


async def _own_bars(
    fetching: Fetching, symbols: Sequence[Symbol], session: date, sleep: Callable[[float], Awaitable[None]]
) -> list[Fetched]:
    done, late = await fetch_bars(fetching, symbols), late_symbols(fetching, symbols, session)
    for pause in PAUSES:
        if not late:
            break
        await sleep(pause)
        done += await fetch_bars(fetching, late)
        late = late_symbols(fetching, symbols, session)
    if late:
        source = fetching.source
        raise StaleData(
            f"{source.vendor} has no bar of {session} for {', '.join(late)} yet (feed {source.feed}); run again later, "
            "or take what does not trade any more off desk.symbols"
        )
    return done


def late_symbols(fetching: Fetching, symbols: Sequence[Symbol], session: date) -> list[Symbol]:
    """Symbols whose bars in the folder do not reach a session; a coin's day may end later than the session does."""
    late = []
    for symbol in symbols:
        kept = kept_bars(fetching.file("prices", symbol), symbol)
        needed = min(session, fetching.calendar_for(symbol).last_closed(fetching.clock.now()))
        if not kept or date.fromordinal(kept[-1][0]) < needed:
            late.append(symbol)
    return late


def _differing(fetching: Fetching, done: Sequence[Fetched], warn: Callable[[str], None]) -> None:
    for one in done:
        if one.differing:
            warn(
                f"{one.path}: {one.differing} rows differ from what {fetching.source.vendor} says now; they are kept, "
                f"`paperdesk fetch {'actions' if one.path.parent.name == 'actions' else 'bars'} --symbols {one.name} "
                "--again` replaces them"
            )


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[None]:
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
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
        yield
    finally:
        lock.release()
