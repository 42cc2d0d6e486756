"""Read decisions, the opinions and answers that they were made of, and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from engine.domain.chart import ChartSpec
from engine.domain.debate import Debate
from engine.domain.decision import Decision, DecisionKey, Opinion, Outcome
from engine.domain.model_call import AnswerRecord
from engine.errors import MalformedData
from engine.journal.answer_rows import answer_of, chart_of, event_of_answer, stated_answer_of
from engine.journal.database import reading
from engine.journal.entries import AgentCall, CallCost, Recalled, StatedAnswer, UnansweredEntry
from engine.journal.row_reader import RowReader, where
from engine.journal.rows import row_of, stored, value_of
from engine.messages.events import AgentAnswered


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

    def decided_alone(self, session: date) -> dict[str, str]:
        """The symbols that runs of their own have decided for a session, each with its run."""
        runs = "SELECT id FROM runs WHERE kind = 'symbol' AND session = ?"
        rows = self._rows(
            f"SELECT symbol, run FROM decisions WHERE run IN ({runs}) ORDER BY rowid", session.isoformat()
        )
        return {row["symbol"]: row["run"] for row in rows}

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

    def answers(self, key: DecisionKey | None = None, run: str | None = None) -> tuple[AnswerRecord, ...]:
        """Every call of a model for one opinion, or of a run, with its prompts and charts."""
        narrow, values = where({"run": run} if key is None else row_of(key))
        prompts: dict[str, str] = {}
        entries = []
        for row in self._rows(f"SELECT * FROM answers{narrow} ORDER BY seq", *values):
            name = row["system"]
            if name not in prompts:
                prompts[name] = self._prompt(name)
            entries.append(answer_of(row | {"system_text": prompts[name]}, self._chart))
        return tuple(entries)

    def agent_calls(self, run: str, session: date) -> tuple[AgentCall, ...]:
        """The calls of a session of a run that agents got answers from, without their texts."""
        columns = "SELECT run, session, cycle, symbol, owner, agent, attempt FROM answers"
        rows = self._rows(f"{columns} WHERE run = ? AND session = ? ORDER BY seq", run, session.isoformat())
        return tuple(value_of(AgentCall, row, key=value_of(DecisionKey, row)) for row in rows)

    def answer_events(self, run: str, session: date, steps: Sequence[str], time: datetime) -> tuple[AgentAnswered, ...]:
        """The events of the answers of a session of a run, without their questions; `steps` are the names of those."""
        rows = self._rows("SELECT * FROM answers WHERE run = ? AND session = ? ORDER BY seq", run, session.isoformat())
        return tuple(event_of_answer(row, step, time) for row, step in zip(rows, steps, strict=True))

    def counted_by_session(self, run: str) -> dict[date, tuple[int, int]]:
        """The number of answers and of decisions of each session of a run."""
        found: dict[date, tuple[int, int]] = {}
        of = "SELECT session, 1 AS answer, 0 AS decision FROM answers WHERE run = ? "
        of += "UNION ALL SELECT session, 0, 1 FROM decisions WHERE run = ?"
        rows = self._rows(
            f"SELECT session, sum(answer) AS answers, sum(decision) AS decisions FROM ({of}) GROUP BY session", run, run
        )
        for row in rows:
            with reading(row):
                found[date.fromisoformat(row["session"])] = row["answers"], row["decisions"]
        return found

    def stated_answers(
        self, run: str | None = None, symbol: str | None = None, first: date | None = None, last: date | None = None
    ) -> tuple[StatedAnswer, ...]:
        """The answers that were taken, by symbol and range of decision sessions, without their questions."""
        narrow = {"run": run, "symbol": symbol, "session >=": first, "session <=": last, "outcome": "answered"}
        conditions, values = where(narrow)
        return tuple(map(stated_answer_of, self._rows(f"SELECT * FROM answers{conditions} ORDER BY seq", *values)))

    def calls(self, run: str | None = None, since: datetime | None = None) -> tuple[CallCost, ...]:
        """Every call of a model by its cost, without its texts; those without an answer come last."""
        columns = "agent, model, input_tokens, output_tokens, cost, latency"
        answers = (
            f"SELECT {columns}, cached, cached_input_tokens, reasoning_tokens, outcome = 'abstained' AS abstained, "
            "'' AS kind, 0 AS estimated, failure IS 'refused' AS refused FROM answers"
        )
        others = (
            f"SELECT {columns}, 0 AS cached, 0 AS cached_input_tokens, 0 AS reasoning_tokens, 0 AS abstained, kind, "
            "estimated, 0 AS refused FROM unanswered"
        )
        narrow = {"run": run, "time >=": None if since is None else stored(since)}
        return (*self._values(CallCost, answers, narrow), *self._values(CallCost, others, narrow))

    def unanswered(self, key: DecisionKey | None = None, run: str | None = None) -> tuple[UnansweredEntry, ...]:
        """The calls of models that no agent got an answer from: those for one opinion, or of a run."""
        return self._values(UnansweredEntry, "unanswered", {"run": run} if key is None else row_of(key))

    def request_hashes(self, run: str | None = None, *, besides: str | None = None) -> frozenset[str]:
        """The hashes of the recorded answers that a run has, or all runs besides one."""
        narrow, values = where({"run": run, "run <>": besides}, "request_hash <> ''")
        rows = self._rows(f"SELECT DISTINCT request_hash FROM answers{narrow}", *values)
        return frozenset(row["request_hash"] for row in rows)

    def recalled(self, key: DecisionKey) -> tuple[Recalled, ...]:
        """The memories that were recalled for one opinion, layer by layer, best first."""
        together, values = where(row_of(key))
        for row in self._rows(f"SELECT * FROM recalls{together}", *values):
            with reading(row):
                found = json.loads(row["memories"])
            return tuple(value_of(Recalled, row | one | self._memory(one["memory"])) for one in found)
        return ()

    def inputs(self, run: str, cycle: int = 1) -> dict[str, tuple[bytes, ...]]:
        """The data that a run could read in a cycle, by name, in parts; empty where it kept none. Raises MalformedData
        where a part is gone."""
        found: dict[str, tuple[bytes, ...]] = {}
        for row in self._rows("SELECT * FROM inputs WHERE run = ? AND cycle = ? ORDER BY rowid", run, cycle):
            for name, chunks in _chunks_in(row).items():
                found[name] = tuple(self._part(chunk, name) for chunk in chunks)
        return found

    def outcomes(
        self, run: str | None = None, symbol: str | None = None, owner: str | None = None
    ) -> tuple[Outcome, ...]:
        """Outcomes of decisions."""
        return self._values(Outcome, "outcomes", {"run": run, "symbol": symbol, "owner": owner})

    def lost_prompts(self) -> list[str]:
        """The numbers of answers whose system prompt is not there; reads every answer."""
        known = {row["hash"] for row in self._rows("SELECT hash FROM prompts")}
        return [str(row["seq"]) for row in self._rows("SELECT * FROM answers") if row["system"] not in known]

    def lost_inputs(self) -> list[str]:
        """The names of inputs that have a part that is not there."""
        known = {row["hash"] for row in self._rows("SELECT hash FROM chunks")}
        lost = []
        for row in self._rows("SELECT * FROM inputs"):
            lost += [name for name, chunks in _chunks_in(row).items() if not known.issuperset(chunks)]
        return lost

    def _part(self, chunk: str, name: str) -> bytes:
        found = self._rows("SELECT * FROM chunks WHERE hash = ?", chunk)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks a part of {name}: restore a backup")
        with reading(found[0]):
            part: bytes = found[0]["text"].encode()
            return part

    def _prompt(self, name: str) -> str:
        found = self._rows("SELECT text FROM prompts WHERE hash = ?", name)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the prompt {name}: restore a backup")
        text: str = found[0]["text"]
        return text

    def _memory(self, name: str) -> dict[str, Any]:
        found = self._rows("SELECT * FROM memories WHERE id = ?", name)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the memory {name}: restore a backup")
        return found[0]

    def _chart(self, name: str) -> ChartSpec:
        found = self._rows("SELECT * FROM charts WHERE fingerprint = ?", name)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the chart {name}: restore a backup")
        return chart_of(found[0])


def _chunks_in(row: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """The hashes of the parts of inputs, by name, in the order they had."""
    with reading(row):
        return dict(json.loads(row["chunks"]))
