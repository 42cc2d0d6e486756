"""A journal with a row in every table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.chart import ChartSpec
from engine.domain.decision import (
    Action,
    Advice,
    Comment,
    Debate,
    DebateEnd,
    Decision,
    DecisionKey,
    Proposal,
    Recollection,
    RoundAdvice,
    Stance,
)
from engine.domain.market import Dropped
from engine.domain.model_call import AnswerRecord, Message, ModelResult, UnansweredCall
from engine.domain.order import Fill, Order, Portfolio, Position, Side
from engine.domain.run import Adoption, CashFlow, EquityPoint, RunKind
from engine.journal.entries import BoundAccount, OrderEntry, RunEntry, UnansweredEntry
from engine.journal.schema import TEST
from engine.journal.writer import JournalWriter
from engine.messages.commands import Shutdown
from engine.messages.events import Noticed
from tests.engine.desks import outcome

RUN = "r"
DAY = date(2024, 3, 4)
NOW = datetime(2024, 3, 4, 21, tzinfo=UTC)
ONE, TWO = Decimal(1), Decimal(2)
KEY = DecisionKey(RUN, DAY, 1, "AAA", "default")


def answer(**changes: Any) -> AnswerRecord:
    """The answer to a question, with some of its fields changed."""
    plain = AnswerRecord(
        key=KEY,
        time=NOW,
        agent="news",
        attempt=1,
        prompt_hash="h",
        system="s",
        messages=(),
        result=ModelResult(model="m"),
        outcome="answered",
    )
    return replace(plain, **changes)


def write_everything(path: Path) -> None:
    """Write one run, and all that it can leave in a journal: at least a row in every table but that of looks."""
    decision = Decision(
        key=KEY, action=Action.BUY, size=TWO, proposal=Proposal(Action.BUY, 2, None, "it rises"), evidence=("m",)
    )
    memory = Recollection(
        id="m",
        kind="news",
        layer="shallow",
        session=DAY,
        text="a plant",
        recency=0.5,
        relevancy=0.5,
        importance=50.0,
        score=1.5,
        rank=1,
    )
    chart = ChartSpec(kind="price", title="t", symbol="AAA", sessions=())
    order = Order(id="o", symbol="AAA", side=Side.BUY, session=DAY, notional=TWO)
    with JournalWriter(path) as journal:
        journal.run_started(RunEntry(id=RUN, kind=RunKind.DAILY, name="demo", started=NOW, session=DAY))
        journal.part_started(RUN, TEST, ONE)
        journal.event(Noticed(RUN, NOW, "info", "x"))
        journal.command_done(journal.command(Shutdown(), NOW), NOW)
        journal.noted(RUN, "info", "x")
        journal.dropped(RUN, Dropped("news", "no date", 1))
        journal.document(RUN, "day", "{}")
        journal.answer(answer(messages=(Message("user", "u", (chart,)),)))
        failed = UnansweredCall(model="m", kind="unavailable")
        stand = RoundAdvice(round=0, owner="bull", advice=Advice.HOLD, confidence=ONE)
        said = Comment(round=1, author="bear", receiver="bull", stance=Stance.WANTS_LESS, text="no", about=("m",))
        journal.debate(Debate(key=KEY, decides=True, ended=DebateEnd.ROUNDS, advice=(stand,), comments=(said,)))
        journal.unanswered(UnansweredEntry(key=KEY, time=NOW, agent="a", call=failed))
        journal.opinion(decision.opinion)
        journal.decision(decision)
        journal.recalled(decision, [memory])
        journal.inputs(RUN, 1, {"bars AAA": [b"part"]})
        journal.order_intended(OrderEntry(order=order, run=RUN, desk="demo", cycle=1, time=NOW, owner="default"))
        journal.fill(RUN, Fill(order_id="o", symbol="AAA", side=Side.BUY, session=DAY, quantity=ONE, price=TWO))
        journal.cash_flow(RUN, CashFlow(session=DAY, symbol="AAA", kind="dividend", amount=ONE))
        journal.session_settled(RUN, EquityPoint(DAY, TWO, Portfolio(ONE, {"AAA": Position(ONE, ONE)}), {"AAA": ONE}))
        journal.outcome(RUN, outcome(DAY, date(2024, 3, 5), "0.01", owner="default", cycle=1, horizon=1))
        journal.account_bound(BoundAccount("alpaca", "PA1", NOW))
        journal.broker_order("o", "b")
        activity = Activity(
            id="x",
            kind=ActivityKind.FILL,
            time=NOW,
            symbol="AAA",
            broker_id="b",
            side=Side.BUY,
            quantity=ONE,
            price=TWO,
            amount=-TWO,
        )
        journal.activity(RUN, activity, booked=False)
        journal.adopted(
            RUN, Adoption(session=DAY, symbol="", before=ONE, after=TWO, price=Decimal(0), reason="a test"), NOW
        )
