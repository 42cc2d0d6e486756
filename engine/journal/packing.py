"""Long texts of rows, compressed against the texts before them: prompts, answers and charts repeat most of what was
written a session earlier.

The packed columns of a row stand empty, and their texts together in its column `packed`: a header, then a raw deflate
stream with a dictionary. The dictionary is the end of what came before in the row's thread, which is all that was
written about a symbol. Rows that lead (LEADING) go on their thread; others only use it. A thread begins anew after
MOST_LED rows, so that a text is never far from its beginning. Standard library only.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from engine.journal.database import sqlite_errors

PACKED: Mapping[str, tuple[str, ...]] = {
    "answers": (
        *("messages", "system", "prompt_hash", "prompt_version", "charts", "view", "notes", "reason"),
        *("failure_detail", "answer", "raw", "text"),
    ),
    "charts": ("json",),
    "inputs": ("chunks",),
    "opinions": ("reason", "evidence"),
    "decisions": ("explanation", "evidence", "cuts"),
    "events": ("json",),
    "memories": ("text",),
    "recalls": ("memories",),
    "outcomes": ("key_factors",),
    "run_states": ("model",),
    "documents": ("json",),
    "chunks": ("text",),
    "debates": ("advice", "comments"),
}
"""Columns that are packed, by table. A table is named by its place here, and a column by its place in its tuple: new
ones come last."""

THREADS: Mapping[str, tuple[str, ...]] = {
    "answers": ("symbol", "agent"),
    "charts": ("about",),
    "inputs": ("name",),
    "recalls": ("symbol", "owner"),
    "documents": ("kind",),
    "chunks": ("name",),
}
"""Columns that tell the threads of a table apart. A row of any other table uses the last answer about its symbol."""

THREAD = "thread"
"""Not a column: the thread of a row that has no symbol of its own."""

WINDOW, NEAR = 32_000, 12_000
"""Bytes of a thread that a leading row, and any other, is compressed against: more takes longer and finds little."""
MOST_LED = 128
_PRIMERS = {
    "events": b'{"detail":"","order_id":"","side":"BUY","state":"acknowledged","session":"20","symbol":"}'
    b'{"action":"HOLD","cut":"","owner":"desk","reason":"HOLD by the rule \\"","session":"20","size":"0","symbol":"'
    b'{"owner":"desk","session":"2026-","step":"short-term reflection","symbol":"","time":"2026-01-01T21:00:01+00:00"}'
    b'{"abstained":false,"cached":false,"cost":"0","input_tokens":0,"model":"offline","output_tokens":0,"owner":"desk",'
    b'"seconds":0.0,"session":"2026-","step":"decision","symbol":"","text":"","time":"2026-01-01T21:00:00.000000+00:00"}',
}
"""Words that most rows of a table have and answers do not; never to be changed."""
_LEAST = 24
"""Texts of a row that are shorter than this, all together, stay in their columns."""
_LEVEL = 9
_CACHED = 512
_FORMAT = 2
_HEADER = struct.Struct(">BBBBI")
"""Format, table, number of leading rows before in the thread, and the last of them: its table and its row, or 0."""

_TABLES = tuple(PACKED)
Place = tuple[str, int]
"""A table and the number of a row."""
_Thread = tuple[str, ...]
"""A leading table and the values of its columns in THREADS."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a thread: the last leading row, how many there are, and their last bytes."""

    place: Place
    led: int
    window: bytes


class Unpacker:
    """Reader of packed rows of one connection, which is asked for the rows that they rest on."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._windows: OrderedDict[Place, bytes] = OrderedDict()

    def unpack(self, row: MutableMapping[str, Any]) -> None:
        """Put the texts of a row into their columns, where they were packed. Raises ValueError, LookupError or
        zlib.error for bytes that were written otherwise."""
        data = row.get("packed")
        if data is None or data[0] != _FORMAT:
            return
        header = _header(data)
        window = self._window(header.before, header.led)
        row.update(_columns(header.table, _inflated(data, _dictionary(header.table, window))))
        del row["packed"]

    def _window(self, place: Place | None, led: int) -> bytes:
        """The last bytes of a thread of so many leading rows, which ends with the row at a place."""
        due: list[tuple[Place, bytes]] = []
        window = b""
        while place is not None:
            known = self._windows.get(place)
            if known is not None:
                self._windows.move_to_end(place)
                window = known
                break
            data = self._packed(place)
            due.append((place, data))
            before = _header(data)
            if before.led != led - 1:
                raise ValueError("a thread of texts that does not end")
            place, led = before.before, before.led
        for place, data in reversed(due):
            window = self._keep(place, window, _inflated(data, window))
        return window

    def _keep(self, place: Place, window: bytes, text: bytes) -> bytes:
        window = (window + text)[-WINDOW:]
        self._windows[place] = window
        if len(self._windows) > _CACHED:
            self._windows.popitem(last=False)
        return window

    def _packed(self, place: Place) -> bytes:
        table, number = place
        with sqlite_errors(self._path), closing(self._connection.cursor()) as cursor:
            cursor.row_factory = None
            # `main`: a view may hide the row from whoever reads as of a point.
            found = cursor.execute(f"SELECT packed FROM main.{table} WHERE rowid = ?", (number,)).fetchone()
        if found is None:
            raise LookupError(place)
        data: bytes = found[0]
        return data


class Packer(Unpacker):
    """Writer of packed rows; belongs to the connection that writes."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._ends: dict[_Thread, _End | None] = {}
        self._last: tuple[_Thread, _End] | None = None

    def packed(self, table: str, row: Mapping[str, Any], number: int) -> dict[str, Any]:
        """A row that is about to be inserted under a number, with its texts packed. Raises sqlite3.Error."""
        self._last = None
        plain = {name: value for name, value in row.items() if name != THREAD}
        texts = [row.get(name) for name in PACKED[table]]
        if sum(len(text) for text in texts if text) < _LEAST:
            return plain
        leads = table in THREADS
        about = row.get(THREAD) or row.get("symbol") or ""
        thread = (table, *(row[name] for name in THREADS[table])) if leads else ("answers", about)
        end = self._end(thread)
        if end is not None and leads and end.led >= MOST_LED:
            end = None
        text, window = _joined(texts), b"" if end is None else end.window
        before = (0, 0, 0) if end is None else (end.led, _TABLES.index(end.place[0]), end.place[1])
        head = _HEADER.pack(_FORMAT, _TABLES.index(table), *before)
        empty = dict.fromkeys((name for name in PACKED[table] if name in plain), "")
        if leads:
            led = 1 if end is None else end.led + 1
            self._last = thread, _End((table, number), led, (window + text)[-WINDOW:])
        return plain | empty | {"packed": head + _deflated(text, _dictionary(table, window))}

    def inserted(self) -> None:
        """The row that was packed last is in: later ones of its thread go on from it."""
        if self._last is not None:
            thread, end = self._last
            self._ends[thread] = end
            if thread[0] == "answers":
                self._ends[thread[:2]] = end

    def forget(self) -> None:
        """Let go of rows that were rolled back."""
        self._ends.clear()
        self._windows.clear()

    def _end(self, thread: _Thread) -> _End | None:
        """The end of a thread, which an earlier process may have written; of the last answer's where it names a symbol
        alone."""
        if thread not in self._ends:
            table, *names = thread
            narrow = " AND ".join(f"{column} = ?" for column, _ in zip(THREADS[table], names, strict=False))
            with closing(self._connection.cursor()) as cursor:
                cursor.row_factory = None
                last = f"SELECT rowid, packed FROM {table} WHERE {narrow} ORDER BY rowid DESC LIMIT 1"
                found = cursor.execute(last, names).fetchone() if any(names) else None
            self._ends[thread] = None if found is None else self._end_after((table, found[0]), found[1])
        return self._ends[thread]

    def _end_after(self, place: Place, data: bytes | None) -> _End | None:
        if data is None or data[0] != _FORMAT:
            return None  # written before there were threads, or too short to be packed
        led = _header(data).led + 1
        return _End(place, led, self._window(place, led))


class _Header(NamedTuple):
    """The header of a packed text: the row's table, the number of rows that lead its thread, and the last of them."""

    table: str
    led: int
    before: Place | None


def _header(data: bytes) -> _Header:
    if len(data) < _HEADER.size:
        raise ValueError("a packed text without its header")
    _, table, led, leading, row = _HEADER.unpack_from(data)
    return _Header(_TABLES[table], led, (_TABLES[leading], row) if row else None)


def _joined(texts: Iterable[str | None]) -> bytes:
    """Texts as one: a line of their lengths in bytes, then all of them; `-` is NULL."""
    parts = [None if text is None else text.encode() for text in texts]
    lengths = ",".join("-" if part is None else str(len(part)) for part in parts)
    return b"".join([lengths.encode(), b"\n", *(part for part in parts if part)])


def _columns(table: str, text: bytes) -> dict[str, str | None]:
    lengths, _, rest = text.partition(b"\n")
    columns: dict[str, str | None] = {}
    for name, length in zip(PACKED[table], lengths.decode().split(","), strict=False):
        size = 0 if length == "-" else int(length)
        columns[name] = None if length == "-" else rest[:size].decode()
        rest = rest[size:]
    return columns


def _dictionary(table: str, window: bytes) -> bytes:
    return window if table in THREADS else window[-NEAR:] + _PRIMERS.get(table, b"")


def _deflated(text: bytes, window: bytes) -> bytes:
    make = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, window)
    return make.compress(text) + make.flush()


def _inflated(data: bytes, window: bytes) -> bytes:
    made = zlib.decompressobj(-zlib.MAX_WBITS, window)
    text = made.decompress(data[_HEADER.size :])
    if not made.eof:
        raise ValueError("a packed text without its end")
    return text
