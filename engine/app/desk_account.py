"""A desk's account at the configured broker: the clock, the check of calendars, and the venue over the account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, timedelta

from engine.clock import OffsetClock
from engine.errors import ConfigError, StaleData
from engine.journal.reader import JournalReader
from engine.market.trading_hours import AroundTheClock
from engine.ports import Broker, Calendar, Clock
from engine.services import BrokerService, Services

APART = timedelta(minutes=5)
"""How far this machine's clock may be from the broker's."""
AROUND = timedelta(days=7)
"""How many days before and after a session the two calendars are compared."""


@dataclass(frozen=True, slots=True)
class DeskAccount:
    """A broker that can be asked, and the clock that the desk goes by."""

    kind: str
    broker: Broker
    clock: Clock


@asynccontextmanager
async def desk_account(services: Services, service: BrokerService) -> AsyncIterator[DeskAccount]:
    """The configured account, open. Raises ConfigError for addresses and clocks, CredentialsRefused for keys, and what
    the broker raises."""
    broker = service.open()
    try:
        yield DeskAccount(service.kind, broker, await agreed_clock(services, broker))
    finally:
        await broker.aclose()


def desk_clock(services: Services) -> Clock:
    """The clock of an open desk: this machine's, or the broker's as it is found now, where it answers (every run asks
    it again). Raises ConfigError and CredentialsRefused."""
    machine = services.clock
    if services.broker is None or not services.goes_by_broker:
        return machine
    theirs = services.broker.time()
    return machine if theirs is None else OffsetClock(machine, theirs - machine.now())


async def agreed_clock(services: Services, broker: Broker) -> Clock:
    """The broker's clock: orders go by its closes, and minutes around one decide for which session they are. Raises
    ConfigError where this machine's is configured and wrong."""
    machine = services.clock
    theirs = (await broker.clock()).now
    ahead = machine.now() - theirs
    if services.config.broker.clock == "machine" and abs(ahead) > APART:
        raise ConfigError(
            f"this machine's clock says {machine.now():%Y-%m-%d %H:%M:%S} UTC and the broker's "
            f"{theirs:%Y-%m-%d %H:%M:%S}: set the machine's, or broker.clock to broker for a sandbox"
        )
    return OffsetClock(machine, -ahead)


def refuse_bound(reader: JournalReader, desk: str) -> None:
    """Raises ConfigError for the simulated market where the desk trades in an account."""
    bound = reader.account()
    if bound is not None:
        raise ConfigError(
            f"the desk {desk} trades in the account {bound.account}: set broker.kind to {bound.kind}, or give the "
            "simulated market a desk of its own (desk.name)"
        )


async def check_calendar(broker: Broker, calendar: Calendar, session: date) -> None:
    """Raises StaleData where the broker's sessions around one, or their closing times, are not the desk's."""
    if isinstance(calendar, AroundTheClock):
        return
    first, last = session - AROUND, session + AROUND
    theirs = {one.session: one.closes_at for one in await broker.session_hours(first, last)}
    ours = {day: calendar.closes_at(day) for day in calendar.sessions(first, last)}
    for day in sorted(ours.keys() | theirs.keys()):
        if ours.get(day) != theirs.get(day):
            mine, other = (
                "no session" if closes is None else f"a close at {closes:%H:%M} UTC"
                for closes in (ours.get(day), theirs.get(day))
            )
            raise StaleData(
                f"the calendars disagree on {day}: {calendar.name} has {mine} and the broker {other}; bring "
                "exchange_calendars up to date, or wait until the day has passed"
            )
