"""Try the rows of the fault table, each on a desk of its own.

The steps of a row, by the names that they have in the fault table.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from engine.app.desk.reconciliation import Reconciled
from engine.app.memory import memory_of_desk
from engine.app.orders.own_orders import Canceled
from engine.app.upkeep.drill.fault_table import Row, Step, chosen, fault_table
from engine.app.upkeep.drill.practice import (
    DESK,
    DoesNotHold,
    DrillParts,
    Practice,
    as_it_is,
    at_home,
    check_end,
    check_run,
    copied_home,
    held,
    prepare,
    write_configuration,
)
from engine.app.upkeep.drill.results import keep_result
from engine.clock import LiveClock
from engine.errors import Interrupted, PaperdeskError
from engine.journal.schema import VERSIONS
from engine.reports.documents.drill import SANDBOX, RowResult, drill_document
from engine.reports.documents.row_json import Row as Document
from engine.services import Services
from engine.settings import places
from memory.record import Cause

OnResult = Callable[[RowResult, int], None]
"""Receives each result, and its number."""
AFTER_ALL = datetime.fromisoformat("2025-07-11T21:00:00+00:00")
"""A time after the last session of any row: the data of all of them is fetched then."""


def drill_sandbox(names: Sequence[str], parts: DrillParts, on_result: OnResult) -> Document:
    """The document of a drill of some rows, which is kept where all were tried. Raises UsageError for a name that no
    row has, and as `try_rows` does."""
    rows = chosen(names)
    document = drill_document(SANDBOX, try_rows(rows, parts, on_result), LiveClock().now())
    if len(rows) == len(fault_table()):
        keep_result(document)
    return document


def try_rows(rows: Sequence[Row], parts: DrillParts, on_result: OnResult) -> tuple[RowResult, ...]:
    """Try rows, one after another. Nothing of the configured desk, its home or its environment is touched. Raises
    Interrupted, and PaperdeskError where the local broker cannot be opened or its data not be fetched."""
    results = list[RowResult]()
    with tempfile.TemporaryDirectory(prefix="paperdesk-drill-") as folder:
        template = Path(folder, "template")
        symbols = sorted({symbol for row in fault_table() for symbol in row.symbols} | {"BXWD"})
        market = prepare(template, symbols, AFTER_ALL, parts)
        for number, row in enumerate(rows, 1):
            with _practice(row, Path(folder, row.name), template, market, parts) as practice:
                results.append(_tried(row, practice))
            on_result(results[-1], number)
    return tuple(results)


@contextmanager
def _practice(row: Row, home: Path, template: Path, market: Path, parts: DrillParts) -> Iterator[Practice]:
    own, fetches = row.settings.get("own_data", False), row.settings.get("refresh", False)
    copied_home(template, home, with_data=(own or fetches) and not row.settings.get("empty", False))
    folder = home / market.relative_to(template) if own else market
    write_configuration(home, row.symbols, None if fetches else folder)
    with parts.open_account(row.start, row.settings) as account, at_home(home, account):
        yield Practice(home, account, parts)


def _tried(row: Row, practice: Practice) -> RowResult:
    begun, problem = time.monotonic(), ""
    try:
        _play(row, practice)
    except DoesNotHold as failure:
        problem = str(failure)
    except Interrupted:
        raise
    except PaperdeskError as error:
        problem = f"{error} (code {error.exit_code})"
    except Exception as error:  # a bug is what the drill looks for
        problem = f"a bug: {type(error).__name__}: {error}"
    return RowResult(
        name=row.name,
        fault=row.fault,
        expected=row.codes,
        got=tuple(practice.codes[: len(row.codes)]),
        held=not problem,
        detail=problem,
        seconds=round(time.monotonic() - begun, 1),
    )


def _play(row: Row, practice: Practice) -> None:
    """Take the steps of a row, have the fault be over, and go on to the next session."""
    steps = Steps(practice)
    with as_it_is():
        try:
            for step in row.steps:
                steps.take(step)
        finally:
            steps.undo()
    if not row.ends:
        practice.account.clear_faults()
    if practice.codes[-1]:
        steps.take({"run": 0})
    check_end(practice)
    for move in ("close", "5m"):
        practice.account.advance(move)
    steps.take({"run": 0})
    check_end(practice)


ORDERS = "/v2/orders"


class Steps:
    """Takes the steps of one row."""

    def __init__(self, practice: Practice) -> None:
        self._practice = practice
        self._account = practice.account
        self._damage = Damage(practice.home, practice.services)
        self._kinds: Mapping[str, Callable[[Step], None]] = {
            "fault": self._fault,
            "clear": lambda step: self._account.clear_faults(),
            "full_at": self._full,
            "run": self._run,
            "runs": self._runs,
            "advance": self._advance,
            "order": self._order,
            "adopt": self._adopt,
            "rebuild": lambda step: self._coded(step["rebuild"], "recovering", practice.rebuild),
            "cash": lambda step: self._transfer(step, "cash"),
            "entry": lambda step: self._transfer(step, "entry"),
            "shares_of": lambda step: self._transfer(step, "shares"),
            "set": self._set,
            "damage": lambda step: self._damage.do(step["damage"]),
            "watch": self._watch,
            "cancel": lambda step: self._coded(0, "canceling", partial(practice.cancel, step["cancel"])),
            "reconcile": lambda step: self._coded(step["reconcile"], "reconciling", practice.reconcile),
        }

    def take(self, step: Step) -> None:
        """Take one step. Raises DoesNotHold where it comes out otherwise."""
        kind = next(name for name in self._kinds if name in step)
        self._kinds[kind](step)

    def undo(self) -> None:
        """Undo what was damaged and is not yet."""
        self._damage.do("undone")

    def _fault(self, step: Step) -> None:
        rule = {name: self._with_keys(value) for name, value in step.items() if name != "fault"}
        self._account.fault(step["fault"], **rule)

    def _with_keys(self, value: Any) -> Any:
        """A text of a fault with the account's keys in it."""
        if not isinstance(value, str):
            return value
        keys = self._account.environment
        return value.replace("{key}", keys["APCA_API_KEY_ID"]).replace("{secret}", keys["APCA_API_SECRET_KEY"])

    def _run(self, step: Step) -> None:
        check_run(step, self._practice.run(), self._account)

    def _full(self, step: Step) -> None:
        most = step["full_at"]
        limited = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"
        (ended,) = self._practice.processes(
            1, [sys.executable, "-c", f"{limited}; os.execv(sys.argv[1], sys.argv[1:])"]
        )
        check_run(step, ended, self._account)

    def _runs(self, step: Step) -> None:
        ended = sorted(self._practice.processes(len(step["runs"])), key=lambda one: one.code)
        codes = [one.code for one in ended]
        held(codes == list(step["runs"]), f"the runs ended with {codes}: {ended[-1].line}")

    def _advance(self, step: Step) -> None:
        to = step["advance"]
        moment = datetime.fromisoformat(to) if "T" in to else to
        self._account.advance(moment)

    def _order(self, step: Step) -> None:
        ticket = {"symbol": step["order"], "qty": step["shares"], "side": step["side"], "type": "market"}
        self._account.control_request("POST", ORDERS, ticket | {"time_in_force": "day"})

    def _transfer(self, step: Step, part: str) -> None:
        moved = {"amount": step.get(part, ""), "symbol": step.get("shares_of", ""), "part": part}
        self._account.control_request("POST", "/sandbox/transfers", moved)

    def _set(self, step: Step) -> None:
        for name, value in step["set"].items():
            os.environ[name if name.isupper() else f"PAPERDESK_{name.replace('.', '__').upper()}"] = value

    def _adopt(self, step: Step) -> None:
        try:
            self._practice.adopt(step["adopt"])
        except PaperdeskError as error:
            held(error.exit_code == step.get("refused"), f"adopting ended with {error.exit_code}: {error}")
        else:
            held("refused" not in step, "adopting was not refused")

    def _watch(self, step: Step) -> None:
        said = self._practice.compare()
        missed = [word for word in step["watch"] if not any(word in text for text in said)]
        held(len(said) == len(step["watch"]) and not missed, f"a watch said: {'; '.join(said) or 'nothing'}")

    def _coded(self, wanted: int, doing: str, act: Callable[[], Reconciled | Canceled]) -> None:
        try:
            error: PaperdeskError | None = act().error
        except PaperdeskError as raised:
            error = raised
        code = 0 if error is None else error.exit_code
        held(code == wanted, f"{doing} ended with {code}, not with {wanted}: {error or 'both sides agree'}")


_PRICES = re.compile(r"prices of (\S+) on (\S+) times (\S+)")


class Damage:
    """Damages done to one home; each is undone before the next."""

    def __init__(self, home: Path, services: Callable[[], Services]) -> None:
        self._home = home
        self._services = services
        self._undo: list[Callable[[], None]] = []

    def do(self, what: str) -> None:
        """Do a damage of the fault table, or undo those that are done."""
        while self._undo:
            self._undo.pop()()
        prices = _PRICES.fullmatch(what)
        if prices:
            symbols, session, factors = prices.groups()
            for symbol, factor in zip(symbols.split(","), factors.split(","), strict=True):
                self._scale_prices(symbol, session, factor)
        elif what != "undone":
            getattr(self, f"_{what.replace(' ', '_').replace('-', '_')}")()

    def _home_read_only(self) -> None:
        # Under a file nobody makes a folder, not even who may do everything.
        before = os.environ[places.HOME]
        os.environ[places.HOME] = str(self._home / "config.toml" / "home")
        self._undo.append(lambda: os.environ.update({places.HOME: before}))

    def _journal_cut(self) -> None:
        journal = self._copied_journal()
        with closing(sqlite3.connect(journal)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        whole = journal.read_bytes()
        journal.write_bytes(whole[: len(whole) // 2])

    def _journal_newer(self) -> None:
        with closing(sqlite3.connect(self._copied_journal())) as connection:
            connection.execute("PRAGMA user_version = 9999")
            connection.execute(f"INSERT INTO {VERSIONS} (version, earlier, schema) VALUES (9999, 0, x'00')")
            connection.commit()

    def _journal_text(self) -> None:
        with closing(sqlite3.connect(self._copied_journal())) as connection:
            connection.execute("DROP TRIGGER equity_no_update")
            connection.execute("UPDATE equity SET cash = 'a bird'")
            connection.commit()

    def _journal_locked(self) -> None:
        other = sqlite3.connect(places.desk_journal(DESK), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        self._undo.append(other.close)

    def _journal_lost(self) -> None:
        shutil.rmtree(places.desk_journal(DESK).parent)

    def _backup_taken(self) -> None:
        shutil.copytree(places.desk_journal(DESK).parent, self._home / "backup")

    def _backup_restored(self) -> None:
        self._journal_lost()
        shutil.copytree(self._home / "backup", places.desk_journal(DESK).parent)

    def _another_home(self) -> None:
        before = os.environ[places.HOME]
        os.environ[places.HOME] = str(self._home / "another")
        self._undo.append(lambda: os.environ.update({places.HOME: before}))

    def _keys_readable(self) -> None:
        file = places.keys_file()
        file.write_text("APCA_API_KEY_ID=readable-by-all\n", encoding="utf-8")
        file.chmod(0o644)
        self._undo.append(file.unlink)

    def _memory_gone(self) -> None:
        self._copied_journal()
        shutil.rmtree(places.desk_memory(DESK))

    def _memory_damaged(self) -> None:
        self._copied_journal()
        for manifest in places.desk_memory(DESK).glob("*.lance/_versions/*.manifest"):
            manifest.write_bytes(bytes(manifest.stat().st_size))

    def _memory_set_aside(self) -> None:
        shutil.copytree(places.desk_memory(DESK), self._home / "earlier")

    def _memory_older(self) -> None:
        self._copied_journal()
        shutil.rmtree(places.desk_memory(DESK))
        shutil.copytree(self._home / "earlier", places.desk_memory(DESK))

    def _memory_newer(self) -> None:
        self._copied_journal()
        with memory_of_desk(self._services()).opened(writing=True) as memory:
            memory.mark(memory.records()[0].id, Cause.PINNED, memory.latest, "written past the journal")

    def _preset_sells_short(self) -> None:
        """From here on the desk's agents may sell short."""
        file = self._home / "short.toml"
        file.write_text('extends = "finvision"\nname = "short"\n[sizing]\nallow_short = true\n', encoding="utf-8")
        os.environ["PAPERDESK_DESK__PRESET"] = str(file)

    def _scale_prices(self, symbol: str, session: str, factor: str) -> None:
        file = places.market_folder() / "prices" / f"{symbol}.csv"
        sound = file.read_text(encoding="utf-8")
        head, *rows = sound.splitlines()
        scaled = [_scaled(row, Decimal(factor)) if row.startswith(session) else row for row in rows]
        file.write_text("\n".join([head, *scaled]) + "\n", encoding="utf-8")
        self._undo.append(lambda: _write(file, sound))

    def _copied_journal(self) -> Path:
        """The journal, with a copy of all its files that is put back afterwards."""
        journal = places.desk_journal(DESK)
        kept = self._home / "kept"
        shutil.copytree(journal.parent, kept)

        def put_back() -> None:
            shutil.rmtree(journal.parent)
            shutil.move(kept, journal.parent)

        self._undo.append(put_back)
        return journal


def _scaled(row: str, factor: Decimal) -> str:
    day, *prices, volume = row.split(",")
    return ",".join([day, *(price and str(round(Decimal(price) * factor, 4)) for price in prices), volume])


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
