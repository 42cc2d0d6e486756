"""The questions behind a symbol's latest opinions as values: what each agent read, and the recalled memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine.agents.registry import registered
from engine.domain.chart import ChartSpec
from engine.domain.decision import Decision, DecisionKey
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord
from engine.domain.recollection import Recollection
from engine.journal.entries import AgentCall, Recalled
from engine.messages.answer_text import answer_text
from engine.reports.documents import row_json
from engine.reports.documents.debate import debate_row
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call of a model.

    step: the question's name in events.
    attempt: from 1; a bad answer is sent back once.
    outcome: `answered`, `sent back` or `abstained`; `reason` why it was not taken.
    system: the role that the agent was given.
    messages: role and text of each, in order.
    charts: titles of those that it was shown; `seen` is False where it read their figures instead.
    tokens: in and out.
    cost: USD; None where the price is not known.
    seconds: of the call.
    """

    owner: str
    step: str
    agent: str
    attempt: int
    outcome: str
    reason: str
    system: str
    messages: Sequence[tuple[str, str]]
    charts: Sequence[str]
    seen: bool
    model: str
    tokens: int
    cost: Decimal | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Everything that was asked about a symbol in its last cycle.

    session: whose close was decided on; None before the first cycle.
    recalled: memory, owner, and whether the opinion cites it.
    opinions, debate, decisions: of all owners, as in a decision's trail; None without a debate.
    """

    session: date | None = None
    questions: Sequence[Question] = ()
    recalled: Sequence[tuple[Recollection, str, bool]] = ()
    opinions: Sequence[Row] = ()
    debate: Row | None = None
    decisions: Sequence[Row] = ()


def questions_of(records: Records, symbol: Symbol) -> Questions:
    """Read what was asked in the last cycle that has opinions about a symbol. Raises what JournalReader raises."""
    reader = records.reader
    opinions = () if reader is None else reader.opinions(records.run, symbol)
    if reader is None or not opinions:
        return Questions()
    last = opinions[-1].key
    formed = [one for one in opinions if _cycle(one.key) == _cycle(last)]
    keys = [one.key for one in formed]
    asked = [question for key in keys for question in _asked(reader.answers(key), key)]
    recalled: Iterable[Recalled] = (one for key in keys for one in reader.recalled(key))
    of_session = (last.run, symbol, last.session, last.session)
    debates = [one for one in reader.debates(*of_session) if _cycle(one.key) == _cycle(last)]
    made = [one for one in reader.decisions(*of_session) if _cycle(one.key) == _cycle(last)]
    return Questions(
        session=last.session,
        questions=asked,
        recalled=[(one.memory, one.owner, one.cited) for one in recalled],
        opinions=[row_json.opinion(one) for one in formed],
        debate=debate_row(debates[0], ()) if debates else None,
        decisions=row_json.decisions(made, formed),
    )


def _cycle(key: DecisionKey) -> tuple[str, date, int]:
    return key.run, key.session, key.cycle


def charts_read(records: Records, decision: Decision) -> list[tuple[ChartSpec, str]]:
    """The charts that were shown for a decision, each once, with the first answer about it as text."""
    read: dict[ChartSpec, str] = {}
    for entry in records.required.answers(decision.key):
        for chart in entry.charts:
            read.setdefault(chart, "" if entry.answer is None else answer_text(entry.answer))
    return list(read.items())


def step_names(calls: Iterable[AnswerRecord | AgentCall]) -> Iterator[str]:
    """The name of the question of every call: an agent that is asked several is asked them in the order of its
    registration."""
    counted: Counter[tuple[DecisionKey, str]] = Counter()
    for one in calls:
        asker = one.key, one.agent
        counted[asker] += one.attempt == 1
        agent = registered().get(one.agent)
        questions = (one.agent,) if agent is None else agent.questions
        yield questions[min(counted[asker], len(questions)) - 1]


def _asked(answers: Sequence[AnswerRecord], key: DecisionKey) -> Iterator[Question]:
    for step, entry in zip(step_names(answers), answers, strict=True):
        result = entry.result
        yield Question(
            owner=key.owner,
            step=step,
            agent=entry.agent,
            attempt=entry.attempt,
            outcome=entry.outcome,
            reason=entry.reason,
            system=entry.system,
            messages=[(message.role, message.text) for message in entry.messages],
            charts=[chart.title for chart in entry.charts],
            seen=entry.seen,
            model=result.model,
            tokens=result.usage.input_tokens + result.usage.output_tokens,
            cost=result.cost,
            seconds=result.latency,
        )
