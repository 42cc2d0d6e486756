"""The desk that a row is tried on: in a home of its own, with an account of its own at the local broker.

Checks of a run, and of every row once its fault is over.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from engine.app.desk.notification import run_and_notify
from engine.app.desk.reconciliation import Reconciled, adopt_account, rebuild_account, reconcile
from engine.app.desk.watch import DeskWatch
from engine.app.orders.own_orders import Canceled, cancel_orders
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import ALL, fetch
from engine.app.upkeep.drill.fault_table import Step
from engine.domain.market import Symbol
from engine.domain.order import Order, OrderState, is_final
from engine.domain.run import RunKind
from engine.domain.text import counted
from engine.errors import PaperdeskError
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.messages.events import Event, Noticed, Publish
from engine.services import FetchOptions, Services
from engine.settings import places
from engine.settings.config import Config, load_config
from engine.settings.keys import load_keys

DESK = "drill"
_OURS = ("PAPERDESK_", "APCA_")
"""Prefixes of the variables that a practice desk has of its own."""
_LONGEST = 300
"""Seconds that a process of its own may take."""


class LocalAccount(Protocol):
    """An account at the local broker."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that point a desk to it."""

    def control_request(self, method: str, path: str, document: Any = None) -> Any:
        """The document that answers one of its requests, without a fault."""

    def advance(self, to: str | datetime) -> None:
        """Move its clock."""

    def fault(self, kind: str, **rule: Any) -> int:
        """Add a fault; the number of its rule."""

    def clear_faults(self, rule: int | None = None) -> None:
        """Remove a fault, or all."""

    def state(self) -> dict[str, Any]:
        """Books, orders and counts."""


OpenAccount = Callable[[datetime, Mapping[str, Any]], AbstractContextManager[LocalAccount]]
"""Opens an account at a time, with settings: pay_dividends, crypto_fee."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillParts:
    """Everything from outside that the drill needs.

    open_account: opens an account at the local broker.
    services: the services of a configuration.
    program: the command line of `paperdesk` in a process of its own.
    """

    open_account: OpenAccount
    services: Callable[[Config], Services]
    program: Sequence[str]


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run: its code, the line of its error, and its warnings."""

    code: int
    line: str = ""
    warnings: tuple[str, ...] = ()


@contextmanager
def own_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """No variable of Paperdesk's or of an account's but these, until the block ends."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_OURS):
            del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def at_home(home: Path, account: LocalAccount) -> AbstractContextManager[None]:
    """The environment of a desk in its home, at its account."""
    return own_environment({**account.environment, places.HOME: str(home)})


@contextmanager
def as_it_is() -> Iterator[None]:
    """The environment is afterwards what it was."""
    with own_environment({name: value for name, value in os.environ.items() if name.startswith(_OURS)}):
        yield


@dataclass(slots=True)
class Practice:
    """A desk at an account, for one row. Its environment has to be in place while anything is asked of it.

    home: its own.
    account: the local one.
    parts: from outside.
    codes: the codes that its runs have ended with so far.
    """

    home: Path
    account: LocalAccount
    parts: DrillParts
    codes: list[int] = field(default_factory=list)

    def services(self) -> Services:
        """The services of the desk's configuration as it is now."""
        load_keys()
        return self.parts.services(load_config(self.home / "config.toml").config)

    def run(self) -> Ended:
        """A daily run."""
        warnings, publish = _heard("warning")
        code, line = 0, ""
        try:
            services = self.services()
            with DeskJournal(services.desk) as journal:
                done = asyncio.run(run_and_notify(services, publish=publish, journal=journal))
            if done.error is not None:
                raise done.error
        except PaperdeskError as error:
            code, line = error.exit_code, str(error)
            warnings += [f"{one.what}: {one.note}" for one in getattr(error, "differences", ())]
        except Exception as error:  # a bug is what the drill looks for
            code, line = PaperdeskError.exit_code, f"a bug: {type(error).__name__}: {error}"
        self.codes.append(code)
        return Ended(code, line, tuple(warnings))

    def processes(self, count: int, through: Sequence[str] = ()) -> list[Ended]:
        """Daily runs at once, each in a process of its own, which a command line `through` may start."""
        started = [
            subprocess.Popen(
                [*through, *self.parts.program, "--daily", "--config", str(self.home / "config.toml")],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        told = [process.communicate(timeout=_LONGEST)[1] for process in started]
        ended = [Ended(process.returncode, line.strip()) for process, line in zip(started, told, strict=True)]
        self.codes += sorted(one.code for one in ended)
        return ended

    def compare(self) -> Sequence[str]:
        """Warnings and errors of a watch that compares the account and its prices between two runs."""
        said, publish = _heard("warning", "error")
        asyncio.run(DeskWatch(self.services(), publish).compare())
        return said

    def cancel(self, symbol: Symbol) -> Canceled:
        """Cancel the orders of a symbol. Raises as `cancel_orders` does."""
        return asyncio.run(cancel_orders(self.services(), [symbol]))

    def reconcile(self) -> Reconciled:
        """Both sides compared. Raises as `reconcile` does."""
        return asyncio.run(reconcile(self.services()))

    def adopt(self, reason: str) -> None:
        """Take the broker's side. Raises as `adopt_account` does."""
        asyncio.run(adopt_account(self.services(), reason))

    def rebuild(self) -> Reconciled:
        """Recover from the account what the journal lacks. Raises as `rebuild_account` does."""
        return asyncio.run(rebuild_account(self.services()))


def _heard(*levels: str) -> tuple[list[str], Publish]:
    """The texts of the notices of some levels, and the listener that takes them in."""
    texts = list[str]()

    def publish(event: Event) -> None:
        if isinstance(event, Noticed) and event.level in levels:
            texts.append(event.text)

    return texts, publish


def write_configuration(home: Path, symbols: Sequence[Symbol], folder: Path | None) -> None:
    """The configuration of a practice desk; without a folder it fetches its data from the account."""
    data = f"folder = {json.dumps(str(folder))}\nrefresh = false" if folder else "refresh = true"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(
        f'[desk]\nname = "{DESK}"\nsymbols = {json.dumps(list(symbols))}\npreset = "finvision"\n'
        f'[data]\n{data}\n[broker]\nkind = "alpaca"\nclock = "broker"\ntimeout = 20.0\n',
        encoding="utf-8",
    )


def prepare(home: Path, symbols: Sequence[Symbol], until: datetime, parts: DrillParts) -> Path:
    """Fetch the data of all rows into a home, from which those of the rows are copied; its data folder."""
    write_configuration(home, symbols, None)
    with parts.open_account(until, {}) as account, at_home(home, account):
        services = parts.services(load_config(places.config_file()).config)
        folder = services.data_folder
        assert folder is not None  # the account brings data
        asyncio.run(fetch(services, ALL, FetchOptions(folder=folder), symbols))
    return folder


def copied_home(template: Path, home: Path, *, with_data: bool) -> None:
    """A row's home from the template: what is slow to make, and the data where the row needs its own."""
    ignored = None if with_data else shutil.ignore_patterns("market")
    shutil.copytree(template, home, ignore=ignored)


class DoesNotHold(Exception):
    """Something that had to hold does not."""


def held(holds: bool, otherwise: str) -> None:
    """Raise DoesNotHold where something does not hold."""
    if not holds:
        raise DoesNotHold(otherwise)


def check_run(step: Step, ended: Ended, account: LocalAccount) -> None:
    """Check a run against what its step says of it. Raises DoesNotHold."""
    held(ended.code == step["run"], f"a run ended with {ended.code}, not with {step['run']}: {ended.line}")
    said = " ".join((ended.line, *ended.warnings))
    for word in step.get("says", ()):
        held(word in said, f"a run did not say {word!r}: {said}")
    if "warns" in step:
        count = sum(step["warns"] in text for text in ended.warnings)
        held(count == 1, f"{count} warnings say {step['warns']!r}: {'; '.join(ended.warnings)}")
    if "placed" in step:
        placed = len(_of_latest_run(account))
        held(
            placed == step["placed"],
            f"the broker has {counted(placed, 'order')} of the run, not {step['placed']}: {ended.line}",
        )
    if any(name in step for name in ("session", "flows", "rejected", "canceled", "whole", "waiting")):
        with JournalReader(places.desk_journal(DESK)) as reader:
            _check_books(step, reader, account)


def _of_latest_run(account: LocalAccount) -> Sequence[str]:
    """The ids of the latest run's orders that the broker has; of all orders where no run has begun."""
    there = [one["client_order_id"] for one in account.state()["orders"]]
    if not places.desk_journal(DESK).exists():
        return there
    with JournalReader(places.desk_journal(DESK)) as reader:
        run = reader.latest_run(RunKind.DAILY)
        ours = {entry.order.id for entry in reader.orders(run=None if run is None else run.id)}
    return [name for name in there if name in ours]


def _check_books(step: Step, reader: JournalReader, account: LocalAccount) -> None:
    run = reader.latest_run(RunKind.DAILY)
    held(run is not None, "the journal has no run")
    assert run is not None
    if "session" in step:
        held(run.session == step["session"], f"the run was for {run.session}, not for {step['session']}")
    for kind in step.get("flows", ()):
        kinds = [flow.kind for flow in reader.cash_flows()]
        held(kind in kinds, f"no {kind} was booked, but {', '.join(kinds) or 'nothing'}")
    for state in ("rejected", "canceled"):
        if state in step:
            _check_ended(reader, run, step[state], OrderState(state))
    if "whole" in step:
        quantity = _order(reader, run, step["whole"]).quantity
        held(quantity is not None and quantity == quantity.to_integral_value(), f"{quantity} shares were ordered")
    if "waiting" in step:
        order = _order(reader, run, step["waiting"])
        there = [one for one in account.state()["orders"] if one["client_order_id"] == order.id]
        held(len(there) == 1 and Decimal(there[0]["filled_qty"]) == 0, f"the order {order.id} is not waiting")


def _check_ended(reader: JournalReader, run: RunEntry, symbol: str, state: OrderState) -> None:
    order = _order(reader, run, symbol)
    reason = reader.order_moves(order.id)[-1].detail
    held(order.state is state and bool(reason), f"the order {order.id} is {order.state} ({reason or 'no reason'})")


def _order(reader: JournalReader, run: RunEntry, symbol: str) -> Order:
    found = [entry.order for entry in reader.orders(run=run.id, symbol=symbol)]
    held(len(found) == 1, f"{counted(len(found), 'order')} of {symbol} in {run.id}")
    return found[0]


def check_end(practice: Practice) -> None:
    """No order doubled or lost, both books equal. Raises DoesNotHold."""
    there = [one["client_order_id"] for one in practice.account.state()["orders"]]
    ours = [name for name in there if name.startswith(f"{DESK}-")]
    with JournalReader(places.desk_journal(DESK)) as reader:
        sent, entries = reader.orders_sent(), reader.orders()
    doubled = [name for name, count in Counter(map(_without_attempt, ours)).items() if count > 1]
    held(not doubled, f"orders doubled: {', '.join(doubled)}")
    unknown = sorted(set(ours) - sent)
    held(not unknown, f"orders at the broker that the journal did not send: {', '.join(unknown)}")
    lost = [entry.order.id for entry in entries if entry.order.id not in there and _counts(entry, sent)]
    held(not lost, f"orders lost: {', '.join(lost)}")
    differences = practice.reconcile().report.differences
    held(not differences, f"the books differ in {', '.join(one.what for one in differences)}")


def _counts(entry: OrderEntry, sent: frozenset[str]) -> bool:
    """True for an order that the broker has to have: it was sent, and nothing kept it from being placed."""
    state = entry.order.state
    return not is_final(state) or (entry.order.id in sent and state not in (OrderState.REJECTED, OrderState.CANCELED))


def _without_attempt(order_id: str) -> str:
    return order_id.rpartition("-")[0]
