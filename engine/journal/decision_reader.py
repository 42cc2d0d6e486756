"""Read decisions, the opinions and answers that they were made of, and their outcomes."""

from __future__ import annotations

import json
import zlib
from datetime import date, datetime

from engine.domain.chart import ChartSpec
from engine.domain.debate import Debate
from engine.domain.decision import Decision, DecisionKey, Opinion, Outcome
from engine.errors import MalformedData
from engine.journal.database import reading
from engine.journal.entries import AnswerEntry, CallCost, Recalled, UnansweredEntry
from engine.journal.row_reader import RowReader, where
from engine.journal.rows import answer_of, chart_of, row_of, stored


class DecisionReader(RowReader):
    """The tables of decisions, opinions, debates, answers, recollections, inputs and outcomes."""

    def decisions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Decision, ...]:
        """Decisions by symbol and range of decision sessions."""
        narrow = {"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last}
        return self._values(Decision, "decisions", narrow)

    def opinions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Opinion, ...]:
        """Opinions of all owners by symbol and range of decision sessions."""
        narrow = {"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last}
        return self._values(Opinion, "opinions", narrow)

    def debates(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
    ) -> tuple[Debate, ...]:
        """Debates by symbol and range of decision sessions."""
        narrow = {"run": run, "symbol": symbol, "session >=": first, "session <=": last}
        return self._values(Debate, "debates", narrow)

    def answers(self, key: DecisionKey | None = None, run: str | None = None) -> tuple[AnswerEntry, ...]:
        """Every call of a model for one opinion, or of a run, with its prompts and charts."""
        narrow, values = where({"run": run} if key is None else row_of(key))
        rows = self._rows(
            "SELECT answers.*, prompts.text AS system_text FROM answers JOIN prompts ON prompts.hash = answers.system"
            f"{narrow} ORDER BY seq",
            *values,
        )
        return tuple(answer_of(row, self._chart) for row in rows)

    def calls(self, run: str | None = None, since: datetime | None = None) -> tuple[CallCost, ...]:
        """Every call of a model by its cost, without its texts; those without an answer come last."""
        columns = "agent, model, input_tokens, output_tokens, cost, latency"
        answers = (
            f"SELECT {columns}, cached, cached_input_tokens, reasoning_tokens, outcome = 'abstained' AS abstained, "
            "'' AS kind, 0 AS estimated FROM answers"
        )
        others = (
            f"SELECT {columns}, 0 AS cached, 0 AS cached_input_tokens, 0 AS reasoning_tokens, 0 AS abstained, kind, "
            "estimated FROM unanswered"
        )
        narrow = {"run": run, "time >=": None if since is None else stored(since)}
        return (*self._values(CallCost, answers, narrow), *self._values(CallCost, others, narrow))

    def unanswered(self, key: DecisionKey | None = None, run: str | None = None) -> tuple[UnansweredEntry, ...]:
        """The calls of models that no agent got an answer from: those for one opinion, or of a run."""
        return self._values(UnansweredEntry, "unanswered", {"run": run} if key is None else row_of(key))

    def request_hashes(self, run: str | None = None, *, besides: str | None = None) -> frozenset[str]:
        """The hashes of the recorded answers that a run has, or all runs besides one."""
        rows = self._rows("SELECT DISTINCT run, request_hash FROM answers WHERE request_hash <> ''")
        return frozenset(row["request_hash"] for row in rows if row["run"] != besides and run in (None, row["run"]))

    def recalled(self, key: DecisionKey) -> tuple[Recalled, ...]:
        """The memories that were recalled for one opinion, layer by layer, best first."""
        select = "SELECT * FROM recollections JOIN memories ON memories.id = recollections.memory"
        return self._values(Recalled, select, row_of(key), "recollections.rowid")

    def inputs(self, run: str, cycle: int = 1) -> dict[str, tuple[bytes, ...]]:
        """The data that a run could read in a cycle, by name, in parts; empty for a run of before that was stored.
        Raises MalformedData where a part is gone."""
        found: dict[str, tuple[bytes, ...]] = {}
        for row in self._rows("SELECT name, chunks FROM inputs WHERE run = ? AND cycle = ? ORDER BY rowid", run, cycle):
            parts = []
            with reading(row):
                names = json.loads(row["chunks"])
            for name in names:
                chunk = self._rows("SELECT hash, data FROM chunks WHERE hash = ?", name)
                if not chunk:
                    raise MalformedData(f"the journal {self.path} lacks a part of {row['name']}: restore a backup")
                with reading(chunk[0]):
                    parts.append(zlib.decompress(chunk[0]["data"]))
            found[row["name"]] = tuple(parts)
        return found

    def outcomes(
        self, run: str | None = None, symbol: str | None = None, owner: str | None = None, last: date | None = None
    ) -> tuple[Outcome, ...]:
        """Outcomes of decisions, as far as they were known at the close of `last`."""
        return self._values(Outcome, "outcomes", {"run": run, "symbol": symbol, "owner": owner, "session <=": last})

    def _chart(self, fingerprint: str) -> ChartSpec:
        found = self._rows("SELECT json, packed FROM charts WHERE fingerprint = ?", fingerprint)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the chart {fingerprint}: restore a backup")
        return chart_of(found[0])
