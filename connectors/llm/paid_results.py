"""Files of paid results, shared by processes: recorded answers by request hash, vectors by embedder and text.

Both are opened, versioned and locked alike; a difference here would be a file that one process cannot read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout

from engine.domain.json_text import from_json, to_json
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult, RecordedAnswer, Usage
from engine.errors import MalformedData, TryAgainLater
from engine.settings import places

_LOCK_TIMEOUT = 10.0
"""Seconds to wait for the lock of another process."""
_FORMAT = 1
"""Format of the hash; it is raised when recorded answers must no longer match."""
_AT_ONCE = 500  # below SQLite's limit on parameters


def request_hash(provider: str, model: str, request: ModelRequest, painter_version: str | None) -> str:
    """SHA-256 (hex) over canonical JSON of everything that can change an answer, and nothing else.

    Charts count by their data and the version of the painter; `painter_version` is None for a model without vision,
    whose charts do not count at all. Purpose, symbol, session, owner and view are not part of it: their text is in the
    messages. Neither are the deadline and the treatment of a refused setting.
    """
    settings = request.settings
    temperature = None if settings.temperature is None else float(settings.temperature)
    content: dict[str, Any] = {
        "format": _FORMAT,
        "provider": provider,
        "model": model,
        "system": request.system,
        "messages": [
            {
                "role": message.role,
                "text": message.text,
                "charts": []
                if painter_version is None
                else [[chart.fingerprint(), painter_version] for chart in message.charts],
            }
            for message in request.messages
        ],
        "schema": request.schema,
        "settings": {"temperature": temperature, "max_output_tokens": settings.max_output_tokens},
        "sample": request.sample,
    }
    chosen = {name: value for name, value in asdict(request.options).items() if value is not None}
    if chosen:  # without any, answers that were recorded before there were options still match
        content["options"] = chosen
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class _PaidResults:
    """One SQLite file; may be used from several threads and by several processes."""

    CONTENT: ClassVar[str]
    """Name of the stored results in messages."""
    SCHEMA: ClassVar[Sequence[str]]
    """Statements of each version of the file, from the first on; the number of them is the version."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises MalformedData for a file of something else or of a newer program, TryAgainLater while it is locked.
        """
        self.path = path
        places.make_folder(path.parent)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            try:
                # SQLite refuses at once, without waiting, where two connections turn write-ahead logging on together.
                with self.alone():
                    self._prepare()
            except sqlite3.OperationalError as error:
                raise TryAgainLater(f"{path} cannot be used now: {error}") from None
            except sqlite3.DatabaseError:
                raise MalformedData(f"{path} holds no {self.CONTENT}; move it away or name another") from None
            on_failure.pop_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process that opens the file, or does this, until the block ends, which is to be soon. Raises
        TryAgainLater."""
        try:
            with FileLock(f"{self.path}.lock", timeout=_LOCK_TIMEOUT):
                yield
        except Timeout:
            raise TryAgainLater(f"{self.path} is in use: another process is opening it") from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(self.SCHEMA):
            raise MalformedData(f"{self.path} was written by a newer Paperdesk (version {version}); upgrade this one")
        self._db.execute("PRAGMA journal_mode = WAL")
        # A crash may lose the last rows, never the file: they would be requested again.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("BEGIN IMMEDIATE")
        for statement in self.SCHEMA[version:]:
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {len(self.SCHEMA)}")
        self._db.execute("COMMIT")

    def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The connection for a write; TryAgainLater while another process holds the file."""
        try:
            with self._lock, self._db:
                yield self._db
        except sqlite3.OperationalError as error:
            raise TryAgainLater(f"{self.CONTENT} could not be stored in {self.path}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """Questions that are asked as one batch, by their hashes.

    key: our name for it, which a vendor that takes one keeps with it.
    run, spec: of the run that pays for it, and of the model.
    sent: when they were about to be sent, UTC.
    id: the vendor's, None until it is known.
    collected: True once its answers are recorded.
    """

    key: str
    run: str
    spec: str
    sent: datetime
    questions: tuple[str, ...]
    id: str | None = None
    collected: bool = False


class AnswerStore(_PaidResults):
    """Recorded answers by request hash, and the batches that others are asked in."""

    CONTENT = "recorded answers"
    SCHEMA = (
        """
    CREATE TABLE IF NOT EXISTS answers (
        request_hash TEXT PRIMARY KEY,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        sees INTEGER NOT NULL,
        spec TEXT NOT NULL,
        answer TEXT,
        failure_kind TEXT,
        failure_detail TEXT,
        text TEXT NOT NULL,
        stop_reason TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        cached_input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cost TEXT,
        latency REAL NOT NULL,
        notes TEXT NOT NULL,
        CHECK ((answer IS NULL) <> (failure_kind IS NULL))
    ) WITHOUT ROWID
    """,
        "ALTER TABLE answers ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE answers ADD COLUMN recorded TEXT",
        "ALTER TABLE answers ADD COLUMN tier TEXT NOT NULL DEFAULT ''",
        "CREATE TABLE batches (key TEXT PRIMARY KEY, batch TEXT NOT NULL) WITHOUT ROWID",
    )

    def answer(self, request_hash: str) -> RecordedAnswer | None:
        """A recorded answer with what the file knows of it, or None."""
        rows = self._rows("SELECT * FROM answers WHERE request_hash = ?", request_hash)
        if not rows:
            return None
        row = rows[0]
        failed, cost = row["failure_kind"], row["cost"]
        result = ModelResult(
            model=row["spec"],
            answer=None if failed else json.loads(row["answer"]),
            failure=ModelFailure(FailureKind(failed), row["failure_detail"]) if failed else None,
            text=row["text"],
            stop_reason=row["stop_reason"],
            tier=row["tier"],
            usage=Usage(**{field.name: row[field.name] for field in fields(Usage)}),
            cost=None if cost is None else Decimal(cost),
            latency=row["latency"],
            request_hash=request_hash,
            notes=tuple(json.loads(row["notes"])),
        )
        return RecordedAnswer(
            provider=row["provider"],
            model=row["model"],
            sees=bool(row["sees"]),
            result=result,
            recorded=None if row["recorded"] is None else datetime.fromisoformat(row["recorded"]),
        )

    def record(self, answer: RecordedAnswer, *, overwrite: bool = False) -> bool:
        """Store an answer under the hash of its result. Without `overwrite` an earlier one stays, such as another
        process's, and the result is False."""
        result, failure = answer.result, answer.result.failure
        row = {
            "request_hash": result.request_hash,
            "provider": answer.provider,
            "model": answer.model,
            "sees": int(answer.sees),
            "spec": result.model,
            "answer": None if result.answer is None else json.dumps(result.answer),
            "failure_kind": None if failure is None else failure.kind.value,
            "failure_detail": None if failure is None else failure.detail,
            "text": result.text,
            "stop_reason": result.stop_reason,
            "tier": result.tier,
            **asdict(result.usage),
            "cost": None if result.cost is None else str(result.cost),
            "latency": result.latency,
            "notes": json.dumps(result.notes),
            "recorded": None if answer.recorded is None else answer.recorded.isoformat(),
        }
        verb = "INSERT OR REPLACE" if overwrite else "INSERT OR IGNORE"
        places = ", ".join(f":{name}" for name in row)
        with self._writing() as db:
            return db.execute(f"{verb} INTO answers ({', '.join(row)}) VALUES ({places})", row).rowcount > 0

    def batches(self, spec: str) -> list[StoredBatch]:
        """The batches of questions to a model."""
        stored = (from_json(StoredBatch, row["batch"]) for row in self._rows("SELECT batch FROM batches"))
        return [batch for batch in stored if batch.spec == spec]

    def keep_batch(self, batch: StoredBatch) -> None:
        """Store a batch in the place of what was known of it."""
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO batches VALUES (?, ?)", (batch.key, to_json(batch)))

    def mean_reasoning(self, provider: str, model: str) -> float | None:
        """The mean of the reasoning tokens of a model's recorded answers; None where there is none."""
        query = "SELECT avg(reasoning_tokens) AS mean FROM answers WHERE provider = ? AND model = ?"
        mean: float | None = self._rows(query, provider, model)[0]["mean"]
        return mean

    def hashes(self) -> list[str]:
        """The hash of every recorded answer, sorted."""
        return [row["request_hash"] for row in self._rows("SELECT request_hash FROM answers ORDER BY request_hash")]

    def remove(self, hashes: Iterable[str]) -> None:
        """Remove answers, all or none of them, and give their space back."""
        with self._writing() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("DELETE FROM answers WHERE request_hash = ?", ((name,) for name in hashes))
        with self._writing() as db:
            db.execute("VACUUM")

    def models(self) -> dict[tuple[str, str], bool]:
        """Provider and name of every model with recorded answers; True where some were given with charts."""
        rows = self._rows("SELECT DISTINCT provider, model, sees FROM answers ORDER BY sees")
        return {(row["provider"], row["model"]): bool(row["sees"]) for row in rows}


class EmbeddingStore(_PaidResults):
    """Vectors (little-endian float32, as bytes) by embedder and text."""

    CONTENT = "vectors"
    SCHEMA = (
        """
    CREATE TABLE IF NOT EXISTS vectors (
        embedder TEXT NOT NULL,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (embedder, text_hash)
    ) WITHOUT ROWID
    """,
    )

    def find(self, embedder: str, texts: Sequence[str]) -> dict[str, bytes]:
        """Stored vectors of texts; texts without one are left out."""
        by_hash = {_hash(text): text for text in texts}
        hashes = list(by_hash)
        vectors: dict[str, bytes] = {}
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            places = ", ".join("?" * len(some))
            query = f"SELECT text_hash, vector FROM vectors WHERE embedder = ? AND text_hash IN ({places})"
            vectors |= {by_hash[row["text_hash"]]: row["vector"] for row in self._rows(query, embedder, *some)}
        return vectors

    def any_vector(self, embedder: str) -> bytes | None:
        """A vector of an embedder, for its dimension; None where there is none."""
        rows = self._rows("SELECT vector FROM vectors WHERE embedder = ? LIMIT 1", embedder)
        return bytes(rows[0]["vector"]) if rows else None

    def store(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors by text, all or none of them; existing ones stay, such as another process's."""
        rows = [(embedder, _hash(text), vector) for text, vector in vectors.items()]
        with self._writing() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
