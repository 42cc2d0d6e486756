"""The questions behind a decision: the charts that were read for it, and the name of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from engine.agents.registry import registered
from engine.domain.chart import ChartSpec
from engine.domain.decision import Decision, DecisionKey
from engine.domain.model_call import AnswerRecord
from engine.journal.entries import AgentCall
from engine.messages.answer_text import answer_text
from engine.reports.documents.records import Records


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
