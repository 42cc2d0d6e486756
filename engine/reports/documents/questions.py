"""The questions behind a symbol's latest opinions as values: what each agent read, and the recalled memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from engine.agents.registry import registered
from engine.domain.chart import ChartSpec
from engine.domain.decision import Decision, DecisionKey
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord
from engine.journal.entries import AgentCall, Recalled
from engine.messages.answer_text import answer_text
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.reports.documents.trail import debate_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Everything that was asked about a symbol in its last cycle.

    session: whose close was decided on; None before the first cycle.
    questions: every call of a model, with the name of its step.
    recalled: the memories that the owners were given.
    opinions, debate, decisions: of all owners, as in a decision's trail; None without a debate.
    """

    session: date | None = None
    questions: Sequence[AnswerRecord] = ()
    recalled: Sequence[Recalled] = ()
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
    of_session = (last.run, symbol, last.session, last.session)
    debates = [one for one in reader.debates(*of_session) if _cycle(one.key) == _cycle(last)]
    made = [one for one in reader.decisions(*of_session) if _cycle(one.key) == _cycle(last)]
    return Questions(
        session=last.session,
        questions=[one for key in keys for one in _asked(reader.answers(key))],
        recalled=[one for key in keys for one in reader.recalled(key)],
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


def _asked(answers: Sequence[AnswerRecord]) -> Iterator[AnswerRecord]:
    return (replace(one, step=step) for step, one in zip(step_names(answers), answers, strict=True))
