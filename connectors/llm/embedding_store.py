"""Store of paid vectors: SQLite, addressed by embedder and text, shared by processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from connectors.llm.sqlite_file import SqliteFile

_AT_ONCE = 500  # below SQLite's limit on parameters

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    embedder TEXT NOT NULL,
    text_hash BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, text_hash)
) WITHOUT ROWID
"""


class EmbeddingStore(SqliteFile):
    """Vectors (little-endian float32, as bytes) by embedder and text, in one file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        super().__init__(path, _SCHEMA, "vectors")

    def find(self, embedder: str, texts: Sequence[str]) -> dict[str, bytes]:
        """Stored vectors of texts; texts without one are left out."""
        by_hash = {_hash(text): text for text in texts}
        hashes = list(by_hash)
        vectors: dict[str, bytes] = {}
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            query = (
                "SELECT text_hash, vector FROM vectors WHERE embedder = ? "
                f"AND text_hash IN ({', '.join('?' * len(some))})"
            )
            with self._lock:
                rows = self._db.execute(query, (embedder, *some)).fetchall()
            vectors.update({by_hash[digest]: vector for digest, vector in rows})
        return vectors

    def any_vector(self, embedder: str) -> bytes | None:
        """A vector of an embedder, for its dimension; None where there is none."""
        with self._lock:
            row = self._db.execute("SELECT vector FROM vectors WHERE embedder = ? LIMIT 1", (embedder,)).fetchone()
        return None if row is None else bytes(row[0])

    def store(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors by text, all or none of them; existing ones stay, such as another process's."""
        rows = [(embedder, _hash(text), vector) for text, vector in vectors.items()]
        with self._writing() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
