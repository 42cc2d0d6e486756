"""Write answers of models, opinions, decisions and outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from engine.domain.debate import Debate
from engine.domain.decision import Decision, Opinion, Outcome
from engine.domain.json_text import to_json
from engine.domain.model_call import AnswerRecord
from engine.domain.recollection import Recollection
from engine.journal.answer_rows import answer_row, charts_in
from engine.journal.entries import UnansweredEntry
from engine.journal.rows import row_of, stored
from engine.journal.schema import DECISION_KEY
from engine.journal.store import RowStore


class DecisionWriter(RowStore):
    """The tables of answers, opinions, debates, decisions, recollections, inputs and outcomes."""

    def answer(self, entry: AnswerRecord) -> bool:
        """A model was called; its system prompt and charts are stored once, however often they are used. False where
        the answer is a recorded one that the journal has for the same question: its run was killed, and goes on."""
        if entry.result.cached and entry.result.request_hash and not self._batched:
            question = {"agent": entry.agent, "attempt": entry.attempt, "sample": entry.sample}
            question["request_hash"] = entry.result.request_hash
            if self._find("answers", row_of(entry.key) | question) is not None:
                return False
        system = hashlib.sha256(entry.system.encode("utf-8", "backslashreplace")).hexdigest()
        self._write_content("prompts", system, {"hash": system, "text": entry.system})
        for name, chart in charts_in(entry).items():
            if name not in self._contents:
                self._write_content("charts", name, {"fingerprint": name, "json": to_json(chart)})
        self._write(("answers", answer_row(entry, system)))
        return True

    def unanswered(self, entry: UnansweredEntry) -> None:
        """A model was called, and no agent got an answer."""
        self._write(("unanswered", row_of(entry)))

    def opinion(self, opinion: Opinion) -> bool:
        """An owner has an opinion, overruled or not; False where the journal has it already. Raises InvariantBroken
        for another opinion under the same key."""
        return self._write_once("opinions", row_of(opinion) | {"part": self._part(opinion.key.run)}, DECISION_KEY)

    def decision(self, decision: Decision) -> bool:
        """A decision was made and limited; False where the journal has it already. Raises InvariantBroken for another
        decision under the same key."""
        return self._write_once("decisions", row_of(decision) | {"part": self._part(decision.key.run)}, DECISION_KEY)

    def debate(self, debate: Debate) -> bool:
        """Owners debated a symbol; False where the journal has it already. Raises InvariantBroken for another debate
        under the same key."""
        return self._write_once("debates", row_of(debate), DECISION_KEY)

    def recalled(self, rests: Decision | Opinion, memories: Iterable[Recollection]) -> bool:
        """Memories were recalled for an opinion, or for the decision of a single owner; False where the journal has
        them already."""
        key = row_of(rests.key)
        if self._find("recalls", key) is not None:
            return False
        found = {memory.id: memory for memory in memories}.values()
        for memory in found:
            text = {"id": memory.id, "kind": memory.kind, "written": memory.session, "text": memory.text}
            self._write_content("memories", memory.id, text)
        rows = (row_of(one, "kind", "session", "text", "owner") | {"cited": one.id in rests.evidence} for one in found)
        if found:
            told = [{name: stored(value) for name, value in row.items()} for row in rows]
            self._write(("recalls", key | {"memories": told}))
        return True

    def inputs(self, run: str, cycle: int, seen: Mapping[str, Sequence[bytes]]) -> None:
        """A run read its inputs in a cycle, by name: parts that are stored once, whichever runs have read them too."""
        names: dict[str, list[str]] = {}
        for name, parts in seen.items():
            names[name] = [hashlib.sha256(part).hexdigest()[:32] for part in parts]
            for chunk, part in zip(names[name], parts, strict=True):
                self._write_content("chunks", chunk, {"hash": chunk, "text": part.decode()})
        self._write(("inputs", {"run": run, "cycle": cycle, "chunks": list(names.items())}))

    def outcome(self, run: str, outcome: Outcome) -> bool:
        """The outcome of a decision became known; `run` is the run that settled it. False where it is known
        already."""
        key = ("run", "decision_session", "symbol", "owner", "cycle", "horizon")
        return self._write_once("outcomes", row_of(outcome) | {"run": run}, key)
