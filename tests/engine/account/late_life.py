"""A desk's days in an account whose entries come late, whose journal is put back or lost, and whose runs are killed,
and the same days without any of that.

Both are in one world: the same transfers, partial fills, splits and dividends. What happened at the broker is the same
as long as every run sends its orders before the next open, so the books of both have to be equal in the end.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from engine.account.booking import Booking, adopt
from engine.account.disagreement import BooksDisagree
from engine.account.time_weighted import is_external, measured, net_deposits
from engine.app.desk.reconciliation import Recovery
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.store import RowStore
from engine.journal.writer import JournalWriter
from engine.session.context import run_id
from tests.connectors.alpaca.sandbox_markets import START, market_data
from tests.engine.account.account_life import FOLDER, Killed
from tests.engine.account.accounts import XNYS, BrokerClockOf, Desk, LocalAccount, assert_equal

DATA = market_data()
TONIGHT, TOMORROW, LATER = 1, 2, 3
"""How late an entry of the account's history comes: when somebody waits for it, the next evening, or the one after."""
TALLY = Counter[str]()
"""What the lives came to, for whoever wants to know what was tried."""


@dataclass(frozen=True)
class Evening:
    """What happens around one close. World: a transfer of cash, or of shares of AAA, and how an order is filled in
    part. Faults: how late the new entries come (in their order, over and over); the Nth request or commit at which each
    of the first runs is killed (0: none); whether a difference is waited for (else adopted); the evening whose journal
    is put back before the run, and whether it is lost (-1)."""

    transfer: int = 0
    shares: int = 0
    partial: str = ""
    late: tuple[int, ...] = (0,)
    kills: tuple[int, ...] = ()
    waits: bool = True
    restored: int | None = None


class Withheld:
    """The account, whose history lacks some entries, and which a kill ends at its Nth request."""

    def __init__(self, inner: LocalAccount, hidden: dict[str, int], count: Callable[[], None]) -> None:
        self._inner, self._hidden, self._count = inner, hidden, count

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._inner, name)

        async def counted(*arguments: Any) -> Any:
            self._count()
            return await asked(*arguments)

        return counted

    async def activities(self, after: datetime) -> Any:
        self._count()
        return [one for one in await self._inner.activities(after) if one.id not in self._hidden]


class LateLife:
    """One desk, evening by evening; a `sound` one has the world alone."""

    def __init__(self, folder: Path, *, sound: bool) -> None:
        self.sound = sound
        self.desk = Desk(folder=folder, data=DATA, start=START)
        self.hidden: dict[str, int] = {}
        self._seen = 0
        self._left: int | None = None
        self.desk.wrap = lambda inner: Withheld(inner, self.hidden, self._count)

    def _count(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Killed

    def evening(self, number: int, one: Evening) -> None:
        """One evening: what came about, then runs until the session is done."""
        if number:
            self.desk.next_close()
        local = self.desk.local
        moved = {"": one.transfer, "AAA": one.shares if number else 0}  # a new desk is not asked to hold shares
        for symbol, amount in moved.items():
            if amount:
                local.control_request("POST", "/sandbox/transfers", {"amount": str(amount), "symbol": symbol})
        if one.partial and all(rule.used for rule in local.exchange.faults.rules):
            local.fault("partial_fill", count=1, fraction="0.37", then=one.partial)
        if self.sound:
            assert self.desk.run().outcome == "done"
            return
        self._withhold(one.late)
        if one.restored is not None:
            self._put_back(one.restored, number)
            # Of trades the orders tell the session, of splits the actions; of nothing else without its entry, and of
            # nothing at all what a desk began with.
            known = ("FILL", "SPLIT") if one.restored >= 0 else ()
            kinds = {entry["id"]: entry["activity_type"] for entry in local.exchange.book.activities}
            self.hidden = {entry: delay for entry, delay in self.hidden.items() if kinds[entry] in known}
        self._until_done(one)
        kept = self.desk.folder.parent / f"kept-{number}"
        kept.mkdir()
        for file in self.desk.folder.glob("desk.db*"):
            shutil.copy(file, kept)

    def ends(self) -> None:
        """Every entry has come; one more session closes the books."""
        self.hidden.clear()
        self.desk.next_close()
        self._until_done(Evening())
        assert_equal(self.desk)
        assert quick_check(self.desk.journal) == ()

    def _withhold(self, late: Sequence[int]) -> None:
        self.hidden = {entry: evenings - 1 for entry, evenings in self.hidden.items() if evenings > TOMORROW}
        activities = self.desk.local.exchange.book.activities
        for place, entry in enumerate(activities[self._seen :]):
            if delay := late[place % len(late)]:
                self.hidden[entry["id"]] = delay
        self._seen = len(activities)

    def _put_back(self, kept: int, number: int) -> None:
        for file in self.desk.folder.glob("desk.db*"):
            file.unlink()
        source = self.desk.folder.parent / f"kept-{min(kept, number - 1)}"
        TALLY["lost" if kept < 0 or not number else "put back"] += 1
        if kept >= 0 and number:
            for file in source.glob("desk.db*"):
                shutil.copy(file, self.desk.folder)

    def _until_done(self, one: Evening) -> None:
        kills = list(one.kills)
        for _ in range(12):
            try:
                with self._killed_at(kills.pop(0) if kills else 0):
                    if self._step(one):
                        return
            except Killed:
                TALLY["killed"] += 1
        raise AssertionError("nothing stood in its way, and it is not done")

    def _step(self, one: Evening) -> bool:
        """One run, and what a person does where it stops; True where the session is done."""
        if self._finished():
            return True
        try:
            if self.desk.run().outcome == "done":
                return True
        except BooksDisagree as halt:
            if "--rebuild" in str(halt):
                self._recovers()
            elif one.waits and (due := [entry for entry, delay in self.hidden.items() if delay == TONIGHT]):
                TALLY["waited"] += 1
                del self.hidden[due[0]]
            else:
                self._adopts()
        return False

    def _finished(self) -> bool:
        if not self.desk.journal.exists():
            return False
        with JournalReader(self.desk.journal) as reader:
            return reader.finished_run(self.desk.session) is not None

    def _adopts(self) -> None:
        with self._booking() as booking:
            report = asyncio.run(self.desk.reconciler(booking.reader).reconcile())
            TALLY["adopted"] += bool(report.differences)
            adopt(report, booking, self.desk.session, "no entry came")

    def _recovers(self) -> None:
        TALLY["recovered"] += 1
        with self._booking() as booking:
            reconciler = self.desk.reconciler(booking.reader)
            report = asyncio.run(reconciler.reconcile())
            history = asyncio.run(reconciler.broker.activities(START - timedelta(days=1)))  # type: ignore[attr-defined]
            recovery = Recovery(booking, desk=self.desk.name, preset="finvision", run_of=run_id)
            recovery.write(report, history)
            after = asyncio.run(reconciler.reconcile())
            booking.orders(after, self.desk.session)

    @contextmanager
    def _booking(self) -> Iterator[Booking]:
        desk = self.desk
        with JournalWriter(desk.journal) as journal, JournalReader(desk.journal) as reader:
            yield Booking(
                journal,
                reader,
                run=run_id(desk.name, desk.session),
                kind="alpaca",
                market=desk.market,
                calendar=XNYS,
                clock=BrokerClockOf(desk.local),
            )

    @contextmanager
    def _killed_at(self, number: int) -> Iterator[None]:
        transaction = RowStore._transaction

        @contextmanager
        def counted(store: RowStore) -> Iterator[None]:
            self._count()
            with transaction(store):
                yield

        self._left = number or None
        with mock.patch.object(RowStore, "_transaction", counted):
            try:
                yield
            finally:
                self._left = None


@dataclass(frozen=True)
class Outcome:
    """What a journal says in the end: its trades, the value and cash of each close with its shares, and what one unit
    of money came to at each."""

    trades: list[tuple[Any, ...]]
    closes: list[tuple[Any, ...]]
    growth: list[float]


def outcome(journal: Path) -> Outcome:
    """The outcome of a desk."""
    with JournalReader(journal) as reader:
        points, flows = reader.equity(), [flow for flow in reader.cash_flows() if is_external(flow)]
        rows = measured(points, net_deposits(points, flows, reader.adoptions()))
        fills = reader.fills()
    return Outcome(
        trades=sorted((f.session, f.order_id, f.quantity, f.price) for f in fills),
        closes=[
            (p.session, p.value, p.portfolio.cash, sorted((s, h.quantity) for s, h in p.portfolio.positions.items()))
            for p in points
        ],
        growth=[float(row.growth) for row in rows],
    )


def both(evenings: Sequence[Evening]) -> tuple[Outcome, Outcome]:
    """The same days without a fault and with them."""
    found = []
    for sound in (True, False):
        root = Path(tempfile.mkdtemp(dir=FOLDER, prefix="paperdesk-late-"))
        try:
            (root / "desk").mkdir()
            life = LateLife(root / "desk", sound=sound)
            for number, one in enumerate(evenings):
                life.evening(number, one)
            life.ends()
            found.append(outcome(life.desk.journal))
            life.desk.local.close()
        finally:
            shutil.rmtree(root)
    return found[0], found[1]
