"""A desk's life in an account, drawn by chance from a seed: runs that are cut and disturbed at any request and any
commit, a person who halts, vetoes and trades by hand, time that passes in between and in the middle."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from connectors.sandbox.protocol import Request, to_json
from engine.account.disagreement import BooksDisagree
from engine.domain.model_call import ModelRequest
from engine.errors import CredentialsRefused, InvariantBroken, NetworkError, TryAgainLater, UsageError
from engine.execution import controls
from engine.journal.reader import JournalReader
from engine.journal.store import RowStore
from engine.journal.writer import JournalWriter
from engine.messages.commands import Approve, Command, Halt, Resume, Veto
from engine.session.context import run_id
from tests.connectors.alpaca.sandbox_markets import market_data
from tests.engine.account.account_wire import Wire, broker_on
from tests.engine.account.account_witness import Witness
from tests.engine.account.accounts import SYMBOLS, XNYS, BrokerClockOf, Desk
from tests.engine.desks import DECISION_ONLY, hold, trade

DATA = market_data()
ENDS = date(2024, 3, 15)
_SHARED_MEMORY = Path("/dev/shm")
FOLDER = str(_SHARED_MEMORY) if _SHARED_MEMORY.is_dir() else None
"""Nothing here waits for a disk: whether a commit is on it is SQLite's to keep."""

BOLD = DECISION_ONLY.model_copy(
    update={"sizing": DECISION_ONLY.sizing.model_copy(update={"cash_floor": Decimal("0.85")})}
)
"""Two purchases at most meet the cash floor."""


class Killed(BaseException):
    """The end of a process: nothing catches it."""


@dataclass(frozen=True)
class Cut:
    """A process ends at its Nth request, or its Nth commit, before it is carried out or after."""

    what: str
    number: int
    after: bool


@dataclass(frozen=True)
class Meanwhile:
    """Something happens just before a run's Nth request arrives."""

    number: int
    what: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A rule of the sandbox's."""

    kind: str
    method: str
    path: str
    count: int
    skip: int
    after: bool
    long: bool

    def stands_on(self, desk: Desk) -> None:
        """Has it happen."""
        rule: dict[str, Any] = {"count": self.count, "skip": self.skip, "path": self.path, "method": self.method}
        if self.kind == "partial_fill":
            then = "cancel" if self.after else "expire" if self.long else "fill"
            rule = {"count": self.count, "skip": self.skip % 2, "fraction": "0.37", "then": then}
        elif self.kind in ("reject", "refuse"):
            rule = {"count": 1, "skip": self.skip % 2}
        elif self.kind == "too_many_requests":
            rule["seconds"] = 300.0 if self.long else 0.0
        elif self.kind == "hang":
            rule |= {"seconds": 1.0, "after": self.after}
        elif self.kind != "wrong_key":
            rule["after"] = self.after
        desk.local.fault(self.kind, **rule)


Wishes = tuple[tuple[str, int], ...]
"""What the desk's model wants for each symbol, should it be asked: B, S or H, and percent of the portfolio."""

KINDS = (
    "server_error",
    "gateway_timeout",
    "hang",
    "reset",
    "html",
    "too_many_requests",
    "partial_fill",
    "reject",
    "refuse",
    "wrong_key",
)


class Process:
    """What one run does to the world, counted; after its cut it does nothing any more."""

    def __init__(self, cut: Cut | None) -> None:
        self.cut = cut
        self.counts = {"request": 0, "commit": 0}
        self.dead = False

    def begins(self, what: str) -> None:
        if self.dead:
            raise Killed
        self.counts[what] += 1
        self._dies(what, after=False)

    def ended(self, what: str) -> None:
        self._dies(what, after=True)

    def _dies(self, what: str, *, after: bool) -> None:
        cut = self.cut
        if cut is not None and (cut.what, cut.number, cut.after) == (what, self.counts[what], after):
            self.dead = True
            raise Killed


TALLY = Counter[str]()
"""What the runs of all lives came to, for whoever wants to know what was tried."""


@dataclass(frozen=True)
class Standing:
    """What the journal says of the last completed session: whether its run is done, and has decided; whether the desk
    has an account; which orders wait."""

    finished: bool
    bound: bool
    decided: bool
    waiting: list[str]


@cache
def _new_journal() -> bytes:
    """A journal that nobody wrote in yet: making one takes longer than a run."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = Path(folder) / "new.db"
        JournalWriter(path).close()
        return path.read_bytes()


class Life:
    """One desk in `mode`, by steps."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="paperdesk-life-"))
        self.desk = Desk(folder=self.folder, script=self._answer, data=DATA, mode=mode, preset=BOLD)
        self.desk.journal.write_bytes(_new_journal())
        self.witness = Witness(desk=self.desk, mode=mode, floor=BOLD.sizing.cash_floor)
        self.wire = Wire(self.desk.local)
        self.wishes: Wishes = (("H", 1), ("H", 1))
        self.taken_over: set[str] = set()
        """Trades by hand that are no surprise any more."""
        self.doubtful: set[str] = set()
        """Trades by hand in the middle of the desk's first look at its account: it may have seen them, or not."""
        self.ghosts = False
        """Whether an order may have arrived after the journal gave it up."""
        self.outside = False

    def ends(self) -> None:
        """Leaves nothing behind."""
        self.desk.local.close()
        shutil.rmtree(self.folder)

    def _answer(self, request: ModelRequest) -> Any:
        action, size = self.wishes[SYMBOLS.index(request.symbol)]
        if action == "H":
            return hold(request)
        return (
            trade(request, "BUY", size, "strong uptrend") if action == "B" else trade(request, "SELL", size, "reversal")
        )

    # Time

    def time_passes(self, to: str) -> None:
        """To the next close and five minutes on, to the open and ten, or a little."""
        self._arrives()
        self.desk.local.advance(to)
        if to in ("open", "close"):
            self.desk.local.advance("10m" if to == "open" else "5m")

    def the_close_is_near(self, seconds: int) -> None:
        """Seconds before a close."""
        self._arrives()
        now = self.desk.local.exchange.now
        closes = next(at for s in XNYS.sessions(now.date(), ENDS) if (at := XNYS.closes_at(s)) > now)
        self.desk.local.advance(max(now, closes - timedelta(seconds=seconds)))

    # What happens at the broker

    def something_breaks(self, fault: Fault) -> None:
        fault.stands_on(self.desk)

    def all_works_again(self) -> None:
        self.desk.local.clear_faults()

    def money_moves(self, amount: int) -> None:
        """A transfer, in hundreds."""
        self._transfers(amount)

    def somebody_trades_by_hand(self, symbol: str, side: str, quantity: int) -> None:
        """At the broker, past the desk."""
        self._trades_by_hand(symbol, side, quantity)

    def what_was_late_arrives(self) -> None:
        self._arrives()

    # The person

    def halts(self) -> None:
        self._says(Halt("a test"))

    def resumes(self) -> None:
        self._says(Resume())

    def a_word(self, which: int, good: bool) -> None:
        """On one of the orders that wait, or on all."""
        waiting = self._stands().waiting
        for order_id in waiting if which == 3 else waiting[which : which + 1]:
            self._says(Approve(order_id) if good else Veto(order_id))

    def takes_the_brokers_side(self, cut: Cut | None) -> None:
        """`paperdesk reconcile --adopt`, which may be killed as well."""
        self._adopts(cut)

    # The desk

    def runs(self, wishes: Wishes, again: bool) -> None:
        """A run that nothing disturbs but what stands already."""
        self._run(wishes, again=again)

    def is_killed(self, wishes: Wishes, cut: Cut) -> None:
        """A run that comes to its end too early."""
        self._run(wishes, cut)

    def is_disturbed(self, wishes: Wishes, happens: Sequence[Meanwhile], late: int) -> None:
        """A run in whose middle something happens; its first `late` orders stay on the way until it is over."""
        self._run(wishes, None, happens, late)

    def books(self, cut: Cut | None) -> None:
        """What the account did is booked between runs, as far as both sides agree; that may be killed as well."""
        if not self._stands().bound:
            return
        posts, before = self.witness.posts, len(self.desk.model.requests)
        try:
            with self._process(cut, (), 0):
                TALLY["booked"] += self.desk.book()
        except (Killed, BooksDisagree, TryAgainLater, NetworkError, CredentialsRefused):
            TALLY["not booked"] += 1
        assert (self.witness.posts, len(self.desk.model.requests)) == (posts, before), "a booking decides nothing"

    def all_ends_well(self, wishes: Wishes) -> None:
        """Nothing is in the way any more: within two runs the desk is done, and its journal and broker agree."""
        desk = self.desk
        desk.local.clear_faults()
        self._arrives()
        self._says(Resume())
        for order in desk.local.exchange.book.open_orders():
            if order not in self.witness.ours():
                desk.local.exchange.cancel(order)
        if self._surprises(self._stands().bound) is not False or self.ghosts:
            self._adopts(None)
        for _ in range(2):
            if (stood := self._stands()).finished:
                return
            for order_id in stood.waiting:
                self._says(Approve(order_id))
            self._run(wishes)
        assert self._stands().finished, "nothing stood in its way, and it is not done"

    # How

    def _run(
        self,
        wishes: Wishes,
        cut: Cut | None = None,
        happens: Sequence[Meanwhile] = (),
        late: int = 0,
        again: bool = False,
    ) -> None:
        """One run, and all that it may come to. A finished session's is for the next, unless it is tried `again`."""
        stood = self._stands()
        if stood.finished and not again:
            self.time_passes("close")
            stood = self._stands()
        desk, witness, session = self.desk, self.witness, self.desk.session
        self.wishes, surprising, ghosts = wishes, self._surprises(stood.bound), self.ghosts
        quiet = not (cut or happens or late or desk.local.exchange.faults.rules)
        asked, orders, by_hand = len(desk.model.requests), len(witness.ours()), self._by_hand()
        witness.run_begins()
        try:
            with self._process(cut, happens, late) as process:
                result = desk.run()
        except Killed:
            assert cut is not None
            TALLY["killed"] += 1
            return
        except InvariantBroken:
            assert stood.finished
            TALLY["refused, as done before"] += 1
            return
        except BooksDisagree:
            TALLY["stopped by a difference"] += 1
            assert surprising is not False or ghosts or happens, "nobody touched the account"
            assert len(desk.model.requests) == asked
            assert len(witness.ours()) == orders
            return
        except (TryAgainLater, NetworkError, CredentialsRefused):
            assert not quiet, "nothing stood in its way"
            TALLY["broken off"] += 1
            return
        except UsageError:
            assert happens  # the session passed while it began
            return
        finally:
            if not stood.bound and self._stands().bound:
                self.taken_over |= by_hand
                self.doubtful |= self._by_hand() - by_hand
            self.ghosts |= bool(self.wire.kept)
        TALLY[result.outcome] += 1
        TALLY["orders sent"] += witness.posts
        assert not stood.finished, "a finished session was run again"
        assert surprising is not True or happens, "the account was changed, and nobody said so"
        assert (result.session, process.dead) == (session, False)
        assert not stood.decided or len(desk.model.requests) == asked, "what was decided was asked again"
        witness.run_ended(result, quiet=quiet and not ghosts, fresh=not stood.decided)

    def _adopts(self, cut: Cut | None) -> None:
        from tests.engine.account.test_account_reconciling import taken_over

        seen = self._by_hand()
        try:
            with self._process(cut, (), 0):
                taken_over(self.desk, "by a test")
        except Killed:
            return
        except BooksDisagree:
            assert self._strangers(), "only a stranger's open order cannot be taken over"
            return
        except (TryAgainLater, NetworkError, CredentialsRefused):
            assert self.desk.local.exchange.faults.rules
            return
        self.taken_over |= seen
        self.ghosts = False

    @contextmanager
    def _process(self, cut: Cut | None, happens: Sequence[Meanwhile], late: int) -> Iterator[Process]:
        process, transaction = Process(cut), RowStore._transaction
        due = {one.number: one for one in happens}

        @contextmanager
        def counted(store: RowStore) -> Iterator[None]:
            if self.outside:
                with transaction(store):
                    yield
                return
            process.begins("commit")
            with transaction(store):
                yield
            process.ended("commit")

        def before(request: Request) -> None:
            process.begins("request")
            self.witness.sees(request)
            one = due.pop(process.counts["request"], None)
            if one is not None:
                self._meanwhile(one, request)

        sent = [0]

        def is_late(request: Request) -> bool:
            if request.method != "POST":
                return False
            sent[0] += 1
            if sent[0] > late:
                return False
            self.witness.late.add(request.json()["client_order_id"])
            return True

        self.wire.before, self.wire.late = before, is_late
        self.wire.after = lambda request: process.ended("request")
        with broker_on(self.wire) as broker, mock.patch.object(RowStore, "_transaction", counted):
            self.desk.wrap = lambda account: broker
            try:
                yield process
            finally:
                self.wire.before = self.wire.after = lambda request: None

    def _meanwhile(self, one: Meanwhile, request: Request) -> None:
        self.outside = True
        try:
            match one.what:
                case "halt":
                    self._says(Halt("in the middle"))
                case "veto":
                    for order_id in self._stands().waiting[: one.size % 2 + 1]:
                        self._says(Veto(order_id))
                case "transfer":
                    self._transfers(-40 * one.size)
                case "by hand":
                    self._trades_by_hand(SYMBOLS[one.size % 2], "sell", one.size)
                case "minutes":  # an order is on its way for seconds, not for minutes
                    self.desk.local.advance(f"{one.size + 5}s" if request.method == "POST" else f"{one.size}m")
                case to if request.method != "POST":
                    self.desk.local.advance(to)
        finally:
            self.outside = False

    def _says(self, command: Command) -> None:
        """A word as the app and the command line say it."""
        said = controls.carry_out(self.desk.journal, command, BrokerClockOf(self.desk.local).now())
        match command:
            case Halt():
                self.witness.halted = True
            case Resume():
                self.witness.halted = False
            case Approve(order_id) | Veto(order_id) if not said.endswith("already"):
                self.witness.words[order_id] = isinstance(command, Approve)

    def _transfers(self, amount: int) -> None:
        if amount:
            self.desk.local.control_request("POST", "/sandbox/transfers", {"amount": str(amount * 100)})

    def _trades_by_hand(self, symbol: str, side: str, quantity: int) -> None:
        settings = self.desk.local.settings
        headers = {"apca-api-key-id": settings.key, "apca-api-secret-key": settings.secret}
        body = {"symbol": symbol, "side": side, "type": "market", "time_in_force": "day", "qty": str(quantity)}
        self.desk.local.answer(Request(method="POST", path="/v2/orders", query={}, headers=headers, body=to_json(body)))

    def _arrives(self) -> None:
        self.wire.deliver()

    # What there is

    def _stands(self) -> Standing:
        session, run = self.desk.session, run_id(self.desk.name, self.desk.session)
        with JournalReader(self.desk.journal) as reader:
            return Standing(
                finished=reader.finished_run(session) is not None,
                bound=reader.account() is not None,
                decided=bool(reader.decisions(run=run)),
                waiting=[entry.order.id for entry in controls.not_sent(reader)],
            )

    def _by_hand(self) -> set[str]:
        book = self.desk.local.exchange.book
        ours = {order.id for order in self.witness.ours()}
        return {a["id"] for a in book.activities if a["activity_type"] == "FILL" and a["order_id"] not in ours}

    def _strangers(self) -> bool:
        ours = self.witness.ours()
        return any(order not in ours for order in self.desk.local.exchange.book.open_orders())

    def _surprises(self, bound: bool) -> bool | None:
        """Whether the account holds what the journal cannot know of; None where it does, and it comes to nothing or may
        be known."""
        book = self.desk.local.exchange.book
        if self._strangers():
            return True
        if not bound:
            return bool(book.portfolio.positions)
        new, net = self._by_hand() - self.taken_over, defaultdict[str, Decimal](Decimal)
        for line in book.activities:
            if line["id"] in new:
                net[line["symbol"]] += Decimal(line["qty"]) * (1 if line["side"] == "buy" else -1)
        if new & self.doubtful:
            return None
        return True if any(net.values()) else None if new else False
