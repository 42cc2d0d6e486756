"""Texts of a warm-up that rest on what followed: written or asked otherwise as soon as the future is another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from engine.agents.ask import AnswerRecord
from engine.cycle.recall import TradingMemory

MARKS = ("hindsight", "unknown on the day")
"""Words by which a line of a prompt says that it shows what followed."""


@dataclass(frozen=True, slots=True)
class TrainedTexts:
    """The memory of a warm-up, None without one, and its questions."""

    memory: TradingMemory | None
    records: Sequence[AnswerRecord]

    def unmarked(self, other: TrainedTexts, session: date, step: float) -> Iterator[str]:
        """The memories and prompts of a session (of a step) that differ from those of another warm-up, in which only
        the session's future is another, and that do not say that they rest on it; each in words."""
        if self.memory is not None and other.memory is not None:
            written, again = self.memory.written_at(step), other.memory.written_at(step)
            for key in sorted(written.keys() | again.keys()):
                both = [memories[key] for memories in (written, again) if key in memories]
                same = len(both) == 2 and both[0].text == both[1].text
                if not same and not all(one.hindsight for one in both):
                    kind, symbol, *_ = key
                    yield f"{session} {symbol}: a memory ({kind}) rests on what followed and is not marked"
        asked, again_asked = self._prompts(session), other._prompts(session)
        for key in sorted(asked.keys() & again_asked.keys()):
            changed = set(again_asked[key]).difference(asked[key])
            if not all(any(mark in line for mark in MARKS) for line in changed):
                agent, symbol, *_ = key
                yield f"{session} {symbol}: a question ({agent}) shows what followed and does not say so"

    def _prompts(self, session: date) -> Mapping[tuple[str, ...], Sequence[str]]:
        # A second attempt shows the answer to the first, which may tell of what followed in any words.
        of_session = (one for one in self.records if one.key.session == session and one.attempt == 1)
        return {
            (one.key.agent, one.key.symbol, one.key.owner, one.key.step): [
                line for text in (one.system, *(message.text for message in one.messages)) for line in text.splitlines()
            ]
            for one in of_session
        }
