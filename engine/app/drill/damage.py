"""Damages of a practice desk's files, and how they are undone."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

from engine import places
from engine.app.drill.practice import DESK
from engine.app.stored_memory import memory_of_desk
from engine.journal.schema import VERSIONS
from engine.services import Services
from memory.record import Cause

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
