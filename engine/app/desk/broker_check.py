"""Checks of a desk's broker: the place that orders go to, and on request the account there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from engine.app.desk.context import check_exchange
from engine.clock import LiveClock
from engine.domain.brokerage import SessionHours
from engine.domain.market import Symbol
from engine.domain.run import TradingMode
from engine.domain.text import counted, money
from engine.errors import CredentialsRefused, PaperdeskError
from engine.reports.documents.set_up import FAIL, NOTE, OK, Finding
from engine.settings.config import Config

if TYPE_CHECKING:
    from engine.broker_registration import BrokerService
    from engine.ports import Broker, Calendar
    from engine.services import Services

AREA = "Broker"
_MODES = {
    TradingMode.AUTO: "orders are sent",
    TradingMode.ASK: "orders wait for approval",
    TradingMode.OBSERVE: "nothing is sent",
}
_APART, _FAR_APART = timedelta(seconds=2), timedelta(seconds=60)
"""Largest distance of this machine's clock from the broker's: worth knowing, and too far."""
_AROUND = timedelta(days=30)
"""The period on both sides of now in which the calendars are compared."""
_LATELY = timedelta(days=10)
"""The period within which every share has a bar."""
ANY_SHARE = "AAPL"


def broker_checks(services: Services, connect: bool) -> Iterator[Finding]:
    """Every finding about the broker. Nobody is asked unless `connect` says so; keys are named, never shown."""
    broker, mode = services.broker, services.config.broker.mode
    if broker is None:
        yield Finding(AREA, "kind", OK, "the simulated market, with its books in the desk's journal")
        return
    yield Finding(AREA, "kind", OK, f"{broker.registration.title}; mode {mode}: {_MODES[mode]}")
    try:
        described = broker.settings.described
    except CredentialsRefused as error:
        yield Finding(AREA, "account", FAIL, str(error))
        return
    except PaperdeskError as error:
        yield Finding(AREA, "address", FAIL, str(error))
        return
    for name, detail in described.items():
        yield Finding(AREA, name, OK, detail)
    try:
        check_exchange(broker.registration, services.config.exchanges, services.symbols)
    except PaperdeskError as error:
        yield Finding(AREA, "symbols", FAIL, str(error))
    if connect:
        yield from asyncio.run(_answers(services.config, broker, services.calendar_for(ANY_SHARE)))


async def _answers(config: Config, service: BrokerService, calendar: Calendar) -> list[Finding]:
    here = LiveClock().now
    broker = service.open()
    try:
        try:
            now = (await broker.clock()).now
        except PaperdeskError as error:
            # Whoever does not tell the time answers nothing else of the account either, after as long a wait.
            return [Finding(AREA, "clock", FAIL, str(error)), *await _data_findings(config, service, here().date())]
        found = [_clock_finding(config, now - here(), now)]
        found += [await _account_finding(broker), await _calendar_finding(broker, calendar, now.date())]
    finally:
        await broker.aclose()
    return [*found, *await _data_findings(config, service, now.date())]


def _clock_finding(config: Config, ahead: timedelta, theirs: datetime) -> Finding:
    detail = f"{theirs:%Y-%m-%d %H:%M:%S} UTC, {abs(ahead).total_seconds():,.1f} s "
    detail += "ahead of this machine" if ahead > timedelta() else "behind this machine"
    if config.broker.clock == "broker":
        return Finding(AREA, "clock", OK, f"{detail}; the desk goes by the broker's")
    if abs(ahead) > _FAR_APART:
        advice = 'set this machine\'s clock, or broker.clock = "broker" for a sandbox with a clock of its own'
        return Finding(AREA, "clock", FAIL, f"{detail}: {advice}")
    return Finding(AREA, "clock", NOTE if abs(ahead) > _APART else OK, detail)


async def _account_finding(broker: Broker) -> Finding:
    try:
        account, waiting = await broker.account(), len(await broker.open_orders())
    except PaperdeskError as error:
        return Finding(AREA, "account", FAIL, str(error))
    detail = (
        f"{account.status or 'no status'}, cash {money(account.cash)} {account.currency}, worth "
        f"{money(account.equity)}, {counted(len(account.positions), 'position')}, {counted(waiting, 'open order')}"
    )
    if account.blocked:
        return Finding(AREA, "account", FAIL, f"{detail}: {account.blocked}; look at the account at the broker")
    odd = account.status.upper() != "ACTIVE" or account.currency != "USD" or account.cash < 0
    return Finding(AREA, "account", NOTE if odd else OK, detail)


async def _calendar_finding(broker: Broker, calendar: Calendar, today: date) -> Finding:
    first, last = today - _AROUND, today + _AROUND
    try:
        days = calendar.sessions(first, last)
        ours = {SessionHours(day, calendar.opens_at(day), calendar.closes_at(day)) for day in days}
        differing = sorted({one.session for one in ours ^ set(await broker.session_hours(first, last))})
    except PaperdeskError as error:
        return Finding(AREA, "calendar", FAIL, str(error))
    if differing:
        detail = f"it differs from XNYS as known here on {', '.join(map(str, differing[:3]))}"
        return Finding(AREA, "calendar", FAIL, f"{detail} ({len(differing)} in all): update exchange_calendars")
    return Finding(AREA, "calendar", OK, f"the same {len(ours)} sessions from {first} to {last} as known here")


async def _data_findings(config: Config, service: BrokerService, today: date) -> list[Finding]:
    """The latest daily bars of a symbol of the desk, which a daily run asks for; nothing of a broker without data."""
    source = service.open_data()
    if source is None:
        return []
    symbol: Symbol = config.desk.symbols[0] if config.desk.symbols else ANY_SHARE
    try:
        bars = [bar async for _, some in source.bars([symbol], today - _LATELY, today) for bar in some]
    except PaperdeskError as error:
        return [Finding(AREA, "data", FAIL, str(error))]
    finally:
        await source.aclose()
    if not bars:
        detail = f"answers, and has no bar of {symbol} from {today - _LATELY} to {today}"
        return [Finding(AREA, "data", NOTE, detail)]
    return [Finding(AREA, "data", OK, f"answers; the latest daily bar of {symbol} is of {bars[-1].session}")]
