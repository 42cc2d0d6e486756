"""Read decisions, the opinions and answers that they were made of, and what came of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import MalformedData
from engine.journal.row_reader import RowReader, where

if TYPE_CHECKING:
    from datetime import date

    from engine.domain.chart import ChartSpec
    from engine.domain.decision import Decision, DecisionKey, Opinion, Outcome
    from engine.journal.entries import AnswerEntry, CallCost, Recalled


class DecisionReader(RowReader):
    """The tables of decisions, opinions, answers, recollections, inputs and outcomes."""

    def decisions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Decision, ...]:
        """Decisions by symbol and range of decision sessions."""
        from engine.journal.decision_rows import decision_of

        narrow, values = where({"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last})
        return self._all(decision_of, f"SELECT * FROM decisions{narrow} ORDER BY rowid", *values)

    def opinions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Opinion, ...]:
        """Opinions of all owners by symbol and range of decision sessions."""
        from engine.journal.decision_rows import opinion_of

        narrow, values = where({"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last})
        return self._all(opinion_of, f"SELECT * FROM opinions{narrow} ORDER BY rowid", *values)

    def answers(self, key: DecisionKey) -> tuple[AnswerEntry, ...]:
        """Every call of a model for one opinion, with its prompts and charts."""
        from engine.journal.answer_rows import answer_of
        from engine.journal.decision_rows import key_row

        narrow, values = where(key_row(key))
        rows = self._rows(
            "SELECT answers.*, prompts.text AS system_text FROM answers JOIN prompts ON prompts.hash = answers.system"
            f"{narrow} ORDER BY seq",
            *values,
        )
        return tuple(answer_of(row, row["system_text"], self._chart) for row in rows)

    def calls(self, run: str | None = None, session: date | None = None) -> tuple[CallCost, ...]:
        """Every call of a model by its cost, without its texts."""
        from engine.journal.answer_rows import call_of

        narrow, values = where({"run": run, "session": session})
        columns = "agent, model, outcome, cached, input_tokens, cached_input_tokens, output_tokens, cost, latency"
        return self._all(call_of, f"SELECT {columns} FROM answers{narrow} ORDER BY seq", *values)

    def recalled(self, key: DecisionKey) -> tuple[Recalled, ...]:
        """The memories that were recalled for one opinion, layer by layer, best first."""
        from engine.journal.decision_rows import key_row, recalled_of

        narrow, values = where(key_row(key))
        sql = "SELECT * FROM recollections JOIN memories ON memories.id = recollections.memory"
        return self._all(recalled_of, f"{sql}{narrow} ORDER BY recollections.rowid", *values)

    def inputs(self, run: str, cycle: int = 1) -> dict[str, tuple[bytes, ...]]:
        """The data that a run could read in a cycle, by name, in parts; empty for a run of before that was stored.
        Raises MalformedData where a part is gone."""
        import json
        import zlib

        found: dict[str, tuple[bytes, ...]] = {}
        for row in self._rows("SELECT name, chunks FROM inputs WHERE run = ? AND cycle = ? ORDER BY rowid", run, cycle):
            parts = []
            for name in json.loads(row["chunks"]):
                chunk = self._rows("SELECT data FROM chunks WHERE hash = ?", name)
                if not chunk:
                    raise MalformedData(f"the journal {self.path} lacks a part of {row['name']}: restore a backup")
                parts.append(zlib.decompress(chunk[0]["data"]))
            found[row["name"]] = tuple(parts)
        return found

    def outcomes(
        self, run: str | None = None, symbol: str | None = None, owner: str | None = None, last: date | None = None
    ) -> tuple[Outcome, ...]:
        """Outcomes of decisions, as far as they were known at the close of `last`."""
        from engine.journal.decision_rows import outcome_of

        narrow, values = where({"run": run, "symbol": symbol, "owner": owner, "session <=": last})
        return self._all(outcome_of, f"SELECT * FROM outcomes{narrow} ORDER BY seq", *values)

    def _chart(self, fingerprint: str) -> ChartSpec:
        from engine.journal.answer_rows import chart_of

        found = self._rows("SELECT json, packed FROM charts WHERE fingerprint = ?", fingerprint)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the chart {fingerprint}: restore a backup")
        return chart_of(found[0])
