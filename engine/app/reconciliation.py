"""The configured desk's account beside its journal, for a person to look at and to take over."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.wiring.accounts import build_booking, build_looking, check_calendar, desk_account
from connectors.wiring.broker import broker_of
from connectors.wiring.desk_lock import desk_lock
from connectors.wiring.desk_market import load_desk
from connectors.wiring.desk_session import session_to_run
from engine import places
from engine.account.adoption import adopt, ended_at_the_broker
from engine.account.claim import claim_account
from engine.account.reconciliation import ReconciliationReport
from engine.config import Config
from engine.domain.run import Adoption
from engine.errors import ConfigError
from engine.journal.upgrade import bring_up_to_date
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.ports import Clock
from engine.session.desk_context import run_id


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Both sides as they were found (`found.differences` is empty where they agree), and what was `adopted`."""

    desk: str
    found: ReconciliationReport
    adopted: tuple[Adoption, ...] = ()


async def look_at_account(config: Config, machine: Clock | None = None) -> Reconciled:
    """Compares journal and broker; writes nothing. Raises ConfigError for a desk without an account at a broker,
    TryAgainLater while a run is at work, and what the broker raises."""
    async with desk_account(_at_a_broker(config), machine) as account:
        calendar, _ = session_to_run(config, None, account.clock.now())
        with desk_lock(config.desk.name):
            bring_up_to_date(places.desk_journal(config.desk.name))
            return Reconciled(config.desk.name, await build_looking(config, account, calendar).look())


async def adopt_account(config: Config, reason: str, machine: Clock | None = None) -> Reconciled:
    """Takes the broker's side in every difference, recorded with its reason. Raises as `look_at_account` does,
    BooksDisagree while a stranger's order is open, MissingData for positions without prices where the desk's books are
    opened with them."""
    desk = config.desk.name
    async with desk_account(_at_a_broker(config), machine) as account:
        calendar, session = session_to_run(config, None, account.clock.now())
        await check_calendar(account.broker, calendar, session)
        with desk_lock(desk):
            journal = places.desk_journal(desk)
            bring_up_to_date(journal)
            looking = build_looking(config, account, calendar)
            found = await looking.look()
            claim_account(places.account_file(found.account.id), desk, found.account.id)
            found = await ended_at_the_broker(account.broker, looking, found, desk)
            market = Market(histories={}, actions={}, news={}, filings={}, calendars={})
            if found.kept.bound is None:
                market = await load_desk(config, session, found.account.positions)
            with JournalWriter(journal) as writer:
                booking = build_booking(account, writer, run_id(desk, session), market, calendar)
                return Reconciled(desk, found, adopt(found, booking, calendar, session, reason))


def _at_a_broker(config: Config) -> Config:
    if broker_of(config) is None:
        raise ConfigError(
            f"the desk {config.desk.name} trades on the simulated market, whose books are the journal: nothing "
            "is to be reconciled (broker.kind)"
        )
    return config
