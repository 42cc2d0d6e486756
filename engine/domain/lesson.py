"""What was remembered, as an agent sees it: one value per memory that was retrieved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

LAYERS = ("shallow", "intermediate", "deep", "reflection")
"""The layers under which evidence is cited, from the fastest to fade to the agents' own lessons.
Source: InvestorBench A.2 and its test prompt [I1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """One retrieved memory. Agents cite it by its `handle`, decisions and the journal by its `id`.

    `kind` says what it is (news, 10-Q, 10-K, macro, a reflection), `layer` where it was found (one
    of LAYERS), `session` when it was written down, `types` the retrieval types that brought it up. `recency` and
    `relevancy` are fractions of 1, `importance` is on the memory's scale (0 to 100), `score` their composite, `rank`
    counts from 1 within what was retrieved. Source: InvestorBench A.2 [I2]; FinAgent §4.2 [A2, A6].
    """

    id: str
    kind: str
    layer: str
    session: date
    text: str
    recency: float
    relevancy: float
    importance: float
    score: float
    rank: int
    types: tuple[str, ...] = ()

    @property
    def handle(self) -> str:
        """What it is called among what was retrieved for one decision: its layer's initial and its rank, as S3."""
        return f"{self.layer[:1].upper()}{self.rank}"
