"""Recorded answers: found again, never paid for twice, shared by processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.llm.paid_results import AnswerStore
from connectors.llm.replay import ReplayModel
from engine.domain.model_call import (
    FailureKind,
    ModelFailure,
    ModelRequest,
    ModelResult,
    RecordedAnswer,
    ReplayMode,
    Usage,
)
from engine.errors import ConfigError, MalformedData, MissingData
from tests.servers.llm_questions import question

MORNING = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
ANSWER = ModelResult(
    model="openai:m",
    answer={"action": "BUY", "size": 3, "why": "naïve — but so"},
    text='{"action": "BUY", ...}',
    stop_reason="stop",
    usage=Usage(100, 40, 20, 12),
    cost=Decimal("0.0031"),
    latency=1.5,
    notes=("temperature 0.7 not sent",),
)


def recorded(digest: str, answer: dict[str, Any] | None = None) -> RecordedAnswer:
    result = replace(ANSWER, request_hash=digest, answer=answer or ANSWER.answer)
    return RecordedAnswer(provider="openai", model="m", sees=False, result=result, recorded=MORNING)


@dataclass
class Counted:
    """A model that gives prepared results in turn, the last one for ever."""

    results: list[ModelResult] = field(default_factory=lambda: [ANSWER])
    asked: int = 0
    spec = "openai:m"
    label = "m (openai)"
    sees = False

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        self.asked += 1
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


@pytest.fixture
def store(tmp_path: Path):
    opened = AnswerStore(tmp_path / "answers.sqlite")
    yield opened
    opened.close()


def replaying(store: AnswerStore, inner: Counted | None, **options: Any) -> ReplayModel:
    parts = {"provider": "openai", "model": "m", "painter_version": None}
    return ReplayModel(store, inner, **(parts | options))


def failed(kind: FailureKind) -> ModelResult:
    return replace(ANSWER, answer=None, failure=ModelFailure(kind, "it went wrong"))


async def test_the_second_time_nothing_is_asked_and_nothing_is_paid(store: AnswerStore) -> None:
    inner = Counted()
    model = replaying(store, inner)
    first, second = await model.answer(question()), await model.answer(question())
    assert inner.asked == 1
    assert (first.cached, first.cost) == (False, Decimal("0.0031"))
    assert second == replace(first, cached=True, cost=Decimal(0), latency=0.0)
    assert (second.usage, second.notes) == (ANSWER.usage, ANSWER.notes)
    assert await model.answer(question(sample=1)) and inner.asked == 2


async def test_a_recorded_answer_streams_in_one_piece(store: AnswerStore) -> None:
    model = replaying(store, Counted())
    await model.answer(question())
    pieces: list[str] = []
    await model.answer(question(), pieces.append)
    assert pieces == [ANSWER.text]


@pytest.mark.parametrize("kind", [FailureKind.REFUSED, FailureKind.MALFORMED])
async def test_a_refusal_and_prose_are_a_models_own_word_and_recorded(store: AnswerStore, kind: FailureKind) -> None:
    inner = Counted([failed(kind)])
    model = replaying(store, inner)
    await model.answer(question())
    again = await model.answer(question())
    assert inner.asked == 1
    assert again.failure == ModelFailure(kind, "it went wrong")
    assert (again.text, again.cached) == (ANSWER.text, True)


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.REFUSED])
async def test_an_error_is_never_recorded(store: AnswerStore, kind: FailureKind) -> None:
    stop_reason = "length" if kind is FailureKind.CUT_OFF else ""
    inner = Counted([replace(failed(kind), stop_reason=stop_reason), ANSWER])
    model = replaying(store, inner)
    assert (await model.answer(question())).failure is not None
    assert (await model.answer(question())).answer == ANSWER.answer
    assert inner.asked == 2


async def test_without_a_model_only_what_is_recorded_is_answered(store: AnswerStore) -> None:
    await replaying(store, Counted()).answer(question())
    model = replaying(store, None, mode=ReplayMode.REPLAY_ONLY)
    assert (await model.answer(question())).answer == ANSWER.answer
    complaint = "no answer of openai:m is recorded for decision of NVDA on 2024-03-08; .* to record one"
    with pytest.raises(MissingData, match=complaint):
        await model.answer(question(sample=1))


async def test_replay_only_asks_nobody_even_where_there_is_somebody(store: AnswerStore) -> None:
    inner = Counted()
    with pytest.raises(MissingData):
        await replaying(store, inner, mode=ReplayMode.REPLAY_ONLY).answer(question())
    assert inner.asked == 0


async def test_live_asks_always_and_keeps_the_newest(store: AnswerStore) -> None:
    inner = Counted([ANSWER, replace(ANSWER, answer={"action": "SELL"})])
    live = replaying(store, inner, mode=ReplayMode.LIVE)
    await live.answer(question())
    await live.answer(question())
    assert inner.asked == 2
    read = replaying(store, None, mode=ReplayMode.REPLAY_ONLY)
    assert (await read.answer(question())).answer == {"action": "SELL"}


def test_a_mode_that_asks_needs_somebody_to_ask(store: AnswerStore) -> None:
    with pytest.raises(ConfigError, match="needs a model"):
        replaying(store, None)


async def test_the_file_tells_of_whom_answers_are_recorded(store: AnswerStore) -> None:
    assert store.models() == {}
    for sample in range(3):
        await replaying(store, Counted()).answer(question(sample=sample))
    await replaying(store, Counted(), provider="local", painter_version="1").answer(question())
    assert store.models() == {("openai", "m"): False, ("local", "m"): True}


async def test_an_answer_outlives_the_process_and_the_first_of_two_stays(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    one, two = AnswerStore(path), AnswerStore(path)
    assert one.record(recorded("h"))
    assert not two.record(recorded("h", {"action": "SELL"}))
    one.close()
    two.close()
    again = AnswerStore(path)
    assert again.answer("h") == recorded("h")
    assert again.answer("h") == recorded("h")
    assert again.answer("other") is None
    again.close()


def test_a_file_of_the_first_version_is_brought_up_to_date_and_keeps_its_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    db = sqlite3.connect(path)
    db.execute(AnswerStore.SCHEMA[0])
    values = (
        "h",
        "openai",
        "m",
        0,
        "openai:m",
        '{"action": "BUY"}',
        None,
        None,
        "",
        "stop",
        100,
        40,
        20,
        "0.1",
        1.5,
        "[]",
    )
    db.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(values))})", values)
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()
    for _ in range(2):
        store = AnswerStore(path)
        old = store.answer("h")
        store.close()
        assert old is not None and (old.result.usage, old.recorded) == (Usage(100, 40, 20, 0), None)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    program = (
        "import sys; from pathlib import Path\n"
        "from connectors.llm.paid_results import AnswerStore\n"
        "from tests.connectors.llm.test_replay import recorded\n"
        "store = AnswerStore(Path(sys.argv[1]))\n"
        "for n in range(200): store.record(recorded(f'{sys.argv[2]}-{n}'))\n"
        "for n in range(200): store.record(recorded(f'both-{n}'))\n"
        "store.close()"
    )
    runs = [subprocess.Popen([sys.executable, "-c", program, str(path), str(n)]) for n in range(2)]
    assert [run.wait(600) for run in runs] == [0, 0]
    store = AnswerStore(path)
    store.close()
    assert sqlite3.connect(path).execute("SELECT count(*) FROM answers").fetchone() == (600,)


def test_a_file_that_is_something_else_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_text("these are my notes, not a database\n" * 10)
    with pytest.raises(MalformedData, match="holds no recorded answers"):
        AnswerStore(path)
    assert path.read_text().startswith("these are my notes")


def test_a_file_of_a_newer_version_is_told(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(MalformedData, match="newer"):
        AnswerStore(path)
