"""Sessions in a row in which models were asked and nothing usable was decided: a model that never decides is no trader,
and its run would look like one that holds cash."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.model_call import AnswerRecord
from engine.domain.model_spec import ModelKind
from engine.errors import TryAgainLater

NO_DECISION = "no usable decision"
"""The beginning of the error, and of the note of a daily run."""


@dataclass(slots=True)
class AbstentionGuard:
    """The count of such sessions of one run; `limit` of them stop it, 0 never does.

    hashes: of the requests of these sessions that were sent back or ended in an abstention.
    """

    limit: int
    hashes: tuple[str, ...] = ()
    _sessions: int = 0
    _reason: str = ""
    _asked: tuple[str, ...] = ()
    _usable: bool = False

    def answered(self, record: AnswerRecord, decides: str = "") -> None:
        """Hear of a call of the session at work; an answer of the agent `decides` is a usable decision."""
        self._usable = self._usable or (record.outcome == "answered" and record.agent == decides)
        if record.outcome != "answered" and record.result.model != ModelKind.OFFLINE:
            self._asked += (record.result.request_hash,)
            self._reason = f"{record.agent}, {record.result.model}: {record.reason}"

    def decided(self, usable: bool = False) -> None:
        """End a session, with a usable decision or, as far as no answer was one, without. Raises TryAgainLater where it
        is one too many without."""
        if usable or self._usable or not self._reason:
            self._sessions, self.hashes = 0, ()
        else:
            self._sessions, self.hashes = self._sessions + 1, self.hashes + self._asked
        reason, self._reason, self._asked, self._usable = self._reason, "", (), False
        if self.limit and self._sessions >= self.limit:
            count = f"{self._sessions} sessions in a row" if self._sessions > 1 else "a session"
            raise TryAgainLater(
                f"{NO_DECISION} in {count} ({reason}): fix the model, or name another with --model; "
                "unanswered questions are asked again, and --abstain-limit 0 never stops a run"
            )
