"""Store of recorded answers: SQLite, addressed by the request hash, shared by processes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from connectors.llm.sqlite_file import SqliteFile
from engine.domain.model_call import FailureKind, ModelFailure, ModelResult, Usage

_SCHEMA = """
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
"""
_COLUMNS = (
    "spec, answer, failure_kind, failure_detail, text, stop_reason, input_tokens, cached_input_tokens, "
    "output_tokens, cost, latency, notes"
)


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A model with recorded answers; `sees` is True where they were given with charts."""

    provider: str
    model: str
    sees: bool
    answers: int


class AnswerStore(SqliteFile):
    """Recorded answers in one file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        super().__init__(path, _SCHEMA, "recorded answers")

    def find(self, request_hash: str) -> ModelResult | None:
        """The recorded result of a question, as it was given, or None."""
        query = f"SELECT {_COLUMNS} FROM answers WHERE request_hash = ?"
        with self._lock:
            row = self._db.execute(query, (request_hash,)).fetchone()
        if row is None:
            return None
        spec, answer, kind, detail, text, stop_reason, *counts, cost, latency, notes = row
        return ModelResult(
            model=spec,
            answer=None if answer is None else json.loads(answer),
            failure=None if kind is None else ModelFailure(FailureKind(kind), detail),
            text=text,
            stop_reason=stop_reason,
            usage=Usage(*counts),
            cost=None if cost is None else Decimal(cost),
            latency=latency,
            request_hash=request_hash,
            notes=tuple(json.loads(notes)),
        )

    def holds(self, request_hash: str) -> bool:
        """True where a question has a recorded answer; for forecasts of cost."""
        query = "SELECT 1 FROM answers WHERE request_hash = ?"
        with self._lock:
            return self._db.execute(query, (request_hash,)).fetchone() is not None

    def record(
        self, request_hash: str, provider: str, model: str, sees: bool, result: ModelResult, *, overwrite: bool = False
    ) -> None:
        """Store a result; without `overwrite` an earlier one stays, such as another process's."""
        failure, usage = result.failure, result.usage
        values = (
            request_hash,
            provider,
            model,
            int(sees),
            result.model,
            None if result.answer is None else json.dumps(result.answer),
            None if failure is None else failure.kind.value,
            None if failure is None else failure.detail,
            result.text,
            result.stop_reason,
            usage.input_tokens,
            usage.cached_input_tokens,
            usage.output_tokens,
            None if result.cost is None else str(result.cost),
            result.latency,
            json.dumps(result.notes),
        )
        columns = f"request_hash, provider, model, sees, {_COLUMNS}"
        verb = "INSERT OR REPLACE" if overwrite else "INSERT OR IGNORE"
        with self._writing() as db:
            db.execute(f"{verb} INTO answers ({columns}) VALUES ({', '.join('?' * len(values))})", values)

    def models(self) -> list[RecordedModel]:
        """All models with recorded answers, the one with the most first."""
        query = (
            "SELECT provider, model, sees, count(*) FROM answers GROUP BY provider, model, sees "
            "ORDER BY count(*) DESC, provider, model, sees"
        )
        with self._lock:
            rows = self._db.execute(query).fetchall()
        return [RecordedModel(provider, model, bool(sees), count) for provider, model, sees, count in rows]
