"""The graph of an analysis: who waits for whom, how many calls stand in a row, and that no delay changes the record."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.wiring.services import services
from engine.agents.registry import registered, waits_for
from engine.app.research.backtest import run_backtest
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.errors import ConfigError
from engine.journal.reader import JournalReader
from engine.messages.events import AgentAnswered, Event, StepStarted
from engine.offline.model import OfflineModel
from engine.reports.documents.backtest import fingerprint
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON

BY_RULES = OfflineModel.answer
FIRST, LAST = date(2024, 2, 14), date(2024, 2, 16)


def run(preset: str, name: str, symbols: tuple[str, ...] = ("TMBK",)) -> tuple[str, list[tuple[Any, ...]], list[Event]]:
    """A run's fingerprint, its recorded calls in their order, and its events."""
    events: list[Event] = []
    spec = RunSpec(
        symbols=symbols,
        first=FIRST,
        last=LAST,
        warm_up_from=date(2024, 2, 8),
        preset=preset,
        data=DataSpec(None, 7),
        run=name,
    )
    report = run_backtest(services(Config(), NOON), spec, events.append, baselines=())
    with JournalReader(places.run_journal(name)) as reader:
        calls = [
            (one.key.session, one.key.symbol, one.key.owner, one.agent, one.prompt_hash) for one in reader.answers()
        ]
    return fingerprint(report.result.test), calls, events


class Rounds:
    """A model whose answers come in rounds: all that is asked meanwhile is answered together."""

    def __init__(self) -> None:
        self.round = 0
        self.asked: dict[tuple[date, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._waiting = 0
        self._next = asyncio.Event()

    async def answer(self, model: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        self.asked[request.session, request.symbol][request.purpose].append(self.round)
        self._waiting += 1
        mine, waiting = self._next, 0
        while not mine.is_set():
            # Everybody who can ask has asked when many turns of the loop bring nobody new.
            waiting = self._waiting
            for _ in range(60):
                await asyncio.sleep(0)
            if waiting == self._waiting and not mine.is_set():
                self.round, self._waiting, self._next = self.round + 1, 0, asyncio.Event()
                mine.set()
        return await BY_RULES(model, request, on_delta)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    def put(answer: Any) -> None:
        monkeypatch.setattr(OfflineModel, "answer", answer)

    yield put


@pytest.mark.parametrize(("preset", "in_a_row"), [("finvision", 2), ("desk", 4)])
def test_calls_in_a_row_are_those_of_the_floor(
    preset: str, in_a_row: int, answers: Callable[[Any], None], paperdesk_home: object
) -> None:
    rounds = Rounds()

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        return await rounds.answer(self, request, on_delta)

    answers(answer)
    run(preset, "rounds")

    assert len(rounds.asked) > 3
    agents = registered()
    deepest = 0
    for asked in rounds.asked.values():
        of_session = [number for numbers in asked.values() for number in numbers]
        deepest = max(deepest, max(of_session) - min(of_session) + 1)
        for name, numbers in asked.items():
            for other in waits_for(agents[name], {one: agents[one] for one in asked}):
                assert max(asked[other]) < min(numbers), f"{name} reads what {other} answers"
    assert deepest == in_a_row


def test_no_delay_changes_what_is_recorded(answers: Callable[[Any], None], paperdesk_home: object) -> None:
    undelayed = run("desk", "undelayed")
    names = iter(range(1000))

    @settings(max_examples=3)
    @given(seed=st.integers(0, 2**32))
    def delayed(seed: int) -> None:
        delays = random.Random(seed)

        async def answer(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
            for _ in range(delays.randrange(80)):
                await asyncio.sleep(0)
            return await BY_RULES(self, request, on_delta)

        answers(answer)
        made, calls, events = run("desk", f"delayed-{next(names)}")
        assert (made, calls) == undelayed[:2]
        steps = [(type(one), one.session, one.step) for one in events if isinstance(one, StepStarted | AgentAnswered)]
        assert steps == [
            (type(one), one.session, one.step) for one in undelayed[2] if isinstance(one, StepStarted | AgentAnswered)
        ]

    delayed()


def test_after_an_error_that_ends_the_run_nobody_asks_more(
    answers: Callable[[Any], None], paperdesk_home: object
) -> None:
    asked: list[tuple[str, str]] = []

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        asked.append((request.symbol, request.purpose))
        for _ in range(10 if request.symbol == "TMBK" else 80):
            await asyncio.sleep(0)
        if request.symbol == "TMBK":
            raise ConfigError("this model takes no such effort")
        return await BY_RULES(self, request, on_delta)

    answers(answer)
    with pytest.raises(ConfigError):
        run("finvision", "refused", ("TMBK", "ORVL"))
    assert {symbol for symbol, _ in asked} == {"TMBK", "ORVL"}
    assert not [one for one in asked if one[1] == "decision"]
