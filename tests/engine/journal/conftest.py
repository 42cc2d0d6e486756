"""A journal of this test alone, and the few values that most tests of the journal write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engine.app.records.trial_index import add_trials
from engine.domain.chart import Candles, ChartSpec
from engine.domain.decision import Action, Decision, DecisionKey, Proposal
from engine.domain.model_call import AnswerRecord, FailureKind, Message, ModelFailure, ModelResult
from engine.domain.order import Order, Side, order_id
from engine.domain.run import RunKind, Trial, TrialKind
from engine.journal.entries import OrderEntry, RunEntry
from tests.engine.journal import full_journal

NOW = datetime(2024, 3, 4, 21, 0, 1, tzinfo=UTC)
SESSION = date(2024, 3, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "desks" / "demo.db"


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with a row in every table."""
    path, day = tmp_path_factory.mktemp("full") / "full.db", full_journal.DAY
    full_journal.write_everything(path)
    trial = Trial(time=NOW, kind=TrialKind.BACKTEST, name="x", symbols=("A",), first=day, last=day, spec_hash="h")
    add_trials(path, [trial])
    return path


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def a_run() -> Callable[..., RunEntry]:
    def build(run: str = "demo-20240304", kind: RunKind = RunKind.DAILY) -> RunEntry:
        return RunEntry(id=run, kind=kind, name="demo", started=NOW, symbols=("AAA",), session=SESSION, cycle=1)

    return build


@pytest.fixture
def an_answer() -> Callable[..., AnswerRecord]:
    def build(*, failed: bool = False) -> AnswerRecord:
        key = DecisionKey("demo-20240304", SESSION, 1, "AAA", "default")
        chart = ChartSpec(
            kind="price",
            title="AAA by day",
            symbol="AAA",
            sessions=("2024-03-04",),
            candles=Candles((1.0,), (2.0,), (0.5,), (1.5,)),
        )
        asked = Message("user", "What moved the price – and why?\n" * 40, (chart,))
        said = None if failed else {"summary": "it rises " * 30, "figures": [1.5, None]}
        failure = ModelFailure(FailureKind.REFUSED, "no") if failed else None
        result = ModelResult(model="m", answer=said, failure=failure, text="it rises " * 40)
        outcome = "abstained" if failed else "answered"
        more = {"messages": (asked,), "result": result, "outcome": outcome, "answer": said, "charts": (chart,)}
        return full_journal.answer(key=key, time=NOW, **more)

    return build


@pytest.fixture
def an_order() -> Callable[..., OrderEntry]:
    def build(symbol: str = "AAA", notional: str = "100.00", attempt: int = 1) -> OrderEntry:
        ours = order_id("demo", SESSION, 1, symbol, Side.BUY, attempt=attempt)
        order = Order(id=ours, symbol=symbol, side=Side.BUY, session=SESSION, notional=Decimal(notional), reason="dip")
        return OrderEntry(order=order, run="demo-20240304", desk="demo", cycle=1, time=NOW)

    return build


@pytest.fixture
def a_decision() -> Callable[..., Decision]:
    def build(symbol: str = "AAA", size: int = 5, session: date = SESSION) -> Decision:
        key = DecisionKey("demo-20240304", session, 1, symbol, "default")
        return Decision(
            key=key, action=Action.BUY, size=Decimal(size), proposal=Proposal(Action.BUY, size, None, "it rises")
        )

    return build
