"""A desk's account at the configured broker: whose time it is, whether the calendars agree, and the venue over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from connectors.wiring.broker import broker_time, goes_by_broker, open_broker
from engine import places
from engine.account.booking import Booking
from engine.account.broker_venue import BrokerVenue
from engine.account.claim import claim_account
from engine.account.reconciliation import Reconciler
from engine.clock import LiveClock, OffsetClock
from engine.config import Config
from engine.errors import ConfigError, StaleData
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock, decision_time
from engine.ports import Broker, Calendar, Clock, Pause

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
async def desk_account(config: Config, machine: Clock | None = None) -> AsyncIterator[DeskAccount]:
    """The configured account, open. Raises ConfigError for addresses and clocks, CredentialsRefused for keys, and what
    the broker raises."""
    broker = open_broker(config)
    try:
        yield DeskAccount(config.broker.kind, broker, await agreed_clock(config, broker, machine or LiveClock()))
    finally:
        await broker.aclose()


def desk_clock(config: Config) -> Clock:
    """The clock that an open desk goes by: this machine's, or the broker's as it is found now, where it answers (every
    run asks it again). Raises ConfigError and CredentialsRefused."""
    machine = LiveClock()
    if not goes_by_broker(config):
        return machine
    theirs = broker_time(config)
    return machine if theirs is None else OffsetClock(machine, theirs - machine.now())


async def agreed_clock(config: Config, broker: Broker, machine: Clock) -> Clock:
    """The broker's clock: orders go by its closes, and minutes around one decide for which session they are. Raises
    ConfigError where this machine's is configured and wrong."""
    theirs = (await broker.clock()).now
    ahead = machine.now() - theirs
    if config.broker.clock == "machine" and abs(ahead) > APART:
        raise ConfigError(
            f"this machine's clock says {machine.now():%Y-%m-%d %H:%M:%S} UTC and the broker's "
            f"{theirs:%Y-%m-%d %H:%M:%S}: set the machine's, or broker.clock to broker for a sandbox"
        )
    return OffsetClock(machine, -ahead)


def refuse_bound(journal: Path, desk: str) -> None:
    """Raises ConfigError for the simulated market where the desk trades in an account."""
    with JournalReader(journal) as reader:
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


def build_looking(config: Config, account: DeskAccount, calendar: Calendar, pause: Pause = asyncio.sleep) -> Reconciler:
    """What compares the desk's journal with its account."""
    desk = config.desk.name
    return Reconciler(account.broker, places.desk_journal(desk), desk, calendar, account.clock, pause)


def build_booking(
    account: DeskAccount, journal: JournalWriter, run: str, market: Market, calendar: Calendar
) -> Booking:
    """What writes the findings of a run into the desk's journal."""
    return Booking(journal, run, account.kind, market, calendar, account.clock)


def build_venue(
    config: Config,
    account: DeskAccount,
    journal: JournalWriter,
    run: str,
    session: date,
    market: Market,
    calendar: Calendar,
    pause: Pause = asyncio.sleep,
) -> BrokerVenue:
    """The desk's account as the market that it trades in."""
    desk, known = config.desk.name, market.at(decision_time(calendar, session))

    return BrokerVenue(
        account.broker,
        build_looking(config, account, calendar, pause),
        build_booking(account, journal, run, market, calendar),
        journal,
        known.close,
        lambda identity: claim_account(places.account_file(identity), desk, identity),
        desk,
    )
