"""Builds the local paper broker over the configured data: a folder, or the demo market."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from statistics import mode
from typing import Any

from connectors.alpaca.registration import BROKER
from connectors.sandbox import MarketData, SandboxServer, SandboxSettings
from connectors.sandbox.market import Load
from connectors.wiring.sources import calendars, open_source
from engine.clock import LiveClock
from engine.domain.market import LISTED, Symbol, in_effect, is_crypto
from engine.domain.run import DataSpec, ExecutionRules
from engine.errors import MissingData, UsageError
from engine.market.trading_hours import AroundTheClock, desk_calendar, session_to_decide
from engine.ports import Calendar
from engine.settings import places
from engine.settings.config import Config

PRACTICE_SEED = 7
"""The demo market of the drill, whose table names its sessions."""
LEFT = 20
"""Sessions that a data folder has left after the start, where none is named."""
FEW = 4
"""Symbols of a data folder that a desk trades where none are configured."""
_AFTER_CLOSE = timedelta(minutes=5)


def loader(data: DataSpec) -> Load:
    """Loads everything that a data spec names."""

    async def load(through: date) -> MarketData:
        calendar_for = calendars()
        source = open_source(calendar_for, data, through)
        symbols = await source.symbols()
        for symbol in symbols:
            exchange = LISTED.of(symbol)
            if not BROKER.trades(exchange):
                raise UsageError(
                    f"{symbol} trades {exchange.described}: the sandbox has shares on {BROKER.calendar} and crypto, in "
                    f"{BROKER.currency}; give it a folder of those with --data"
                )
        return MarketData(
            histories={symbol: await source.history(symbol) for symbol in symbols},
            actions={symbol: in_effect(await source.actions(symbol)) for symbol in symbols},
            news={symbol: (await source.news(symbol)).items for symbol in symbols},
            calendars={symbol: calendar_for(symbol) for symbol in symbols},
            exchange=_exchange(),
            through=through if data.folder is None else None,
        )

    return load


def build_sandbox(data: DataSpec, settings: SandboxSettings) -> SandboxServer:
    """A sandbox over a data spec, which is not started yet."""
    return SandboxServer(loader(data), settings)


def practice_accounts() -> Callable[[datetime, Mapping[str, Any]], SandboxServer]:
    """Opens accounts at sandboxes over the demo market, which is drawn once for all: at a time, with settings
    (pay_dividends, crypto_fee), without a spread."""
    drawn: dict[tuple[int, int], MarketData] = {}
    load = loader(DataSpec(None, PRACTICE_SEED))

    async def load_once(through: date) -> MarketData:
        month = through.year, through.month
        if month not in drawn:
            drawn[month] = await load(through)
        return drawn[month]

    def opened(start: datetime, settings: Mapping[str, Any]) -> SandboxServer:
        return SandboxServer(
            load_once,
            SandboxSettings(
                start=start,
                rules=ExecutionRules(slippage_bp=Decimal(0)),
                pay_dividends=settings.get("pay_dividends", False),
                crypto_fee=Decimal(settings.get("crypto_fee", "0")),
            ),
        )

    return opened


def desk_environment(server: SandboxServer, config: Config, data: DataSpec) -> Mapping[str, str]:
    """The environment variables of a desk at a sandbox over `data`: address, clock, and, where none are configured,
    symbols. A desk that reads the sandbox's own data folder need not fetch from it."""
    variables = {**server.environment, "PAPERDESK_BROKER__KIND": "alpaca", "PAPERDESK_BROKER__CLOCK": "broker"}
    if not config.desk.symbols:
        from connectors.demo.market import DEFAULT_WATCHLIST

        symbols = DEFAULT_WATCHLIST if data.folder is None else server.exchange.market.symbols[:FEW]
        variables["PAPERDESK_DESK__SYMBOLS"] = ",".join(symbols)
    if data.folder is not None and data.folder == config.data.folder:
        variables["PAPERDESK_DATA__REFRESH"] = "false"
    return variables


def ready(symbols: Sequence[Symbol], session: date) -> datetime:
    """The time at which a desk can decide for a session.

    It is five minutes after the close, and after the UTC day where crypto is among the symbols.
    """
    closes = _exchange().closes_at(session)
    if any(is_crypto(symbol) for symbol in symbols):
        closes = max(closes, AroundTheClock().closes_at(session))
    return closes + _AFTER_CLOSE


def ready_by(symbols: Sequence[Symbol], now: datetime) -> datetime:
    """The time at which the session that was the last to close by a moment is ready; the moment itself, where it is."""
    return max(now, ready(symbols, _exchange().last_closed(now)))


def sessions_before(symbols: Sequence[Symbol], count: int, now: datetime) -> datetime:
    """The time at which the first of so many sessions is ready of which the last is the last completed one."""
    calendar = desk_calendar(symbols, places.session_table)
    last = session_to_decide(calendar, symbols, None, now)
    days = _exchange().sessions(last - timedelta(days=2 * count + 14), last)
    return ready(symbols, days[-count])


async def start_of(data: DataSpec, session: date | None) -> datetime:
    """The time at which a sandbox begins: five minutes after a session's close.

    Without one it is now on the demo market, which never ends, and LEFT sessions before most histories of a data folder
    end. Raises UsageError for a day without a session, MissingData for one before the first bar or after the last.
    """
    exchange = _exchange()
    if session is None and data.folder is None:
        return LiveClock().now()
    if session is not None and not exchange.sessions(session, session):
        raise UsageError(f"--start {session}: {exchange.name} was closed that day")
    if data.folder is not None:
        first, last, usual = await _range(data)
        if session is None:
            days = exchange.sessions(first, usual)
            session = days[max(0, len(days) - 1 - LEFT)]
        if not first <= session <= last:
            raise MissingData(f"--start {session} is not between the first and the last bar, {first} and {last}")
    assert session is not None
    return exchange.closes_at(session) + _AFTER_CLOSE


async def _range(data: DataSpec) -> tuple[date, date, date]:
    """The first and the last bar of all, and where most histories end."""
    source = open_source(calendars(), data, date.min)
    histories = [await source.history(symbol) for symbol in await source.symbols()]
    last = [history.session(-1) for history in histories]
    return min(history.session(0) for history in histories), max(last), mode(last)


def _exchange() -> Calendar:
    return calendars()("SHARES")
