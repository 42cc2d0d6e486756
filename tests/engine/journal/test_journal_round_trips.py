"""Every domain value that goes into the journal comes out equal."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.chart import Candles, ChartSpec, Line, Marker, Panel
from engine.domain.decision import (
    Action,
    Advice,
    Comment,
    Cut,
    Debate,
    DebateEnd,
    Decision,
    DecisionKey,
    Outcome,
    Proposal,
    RoundAdvice,
    SizingRule,
    Stance,
)
from engine.domain.market import Dropped
from engine.domain.model_call import AnswerOptions, AnswerRecord, FailureKind, Message, ModelFailure, ModelResult, Usage
from engine.domain.order import CENT, Fill, Order, OrderSize, Portfolio, Position, Side
from engine.domain.run import CashFlow, DataSpec, EquityPoint, ModelUse, Result, RunKind, RunOutcome, RunPart, RunSpec
from engine.errors import InvariantBroken, MissingData
from engine.journal.entries import Note, OrderEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.journal.results import result, trail
from engine.journal.schema import LIVE, TEST, WARM_UP
from engine.journal.writer import JournalWriter
from engine.messages import commands
from engine.messages.events import AgentSaid, Noticed
from tests.engine.command_reader import waiting_commands
from tests.engine.desks import fill, outcome
from tests.engine.journal.full_journal import KEY, answer
from tests.examples import examples

NOW = datetime(2024, 3, 4, 21, 0, 1, tzinfo=UTC)
SPEC = RunSpec(
    symbols=("AAA", "BTC-USD"),
    first=date(2024, 1, 2),
    last=date(2024, 6, 28),
    warm_up_from=date(2023, 11, 1),
    strategy="sma-cross",
    params=(("fast", "5"), ("slow", "20")),
    data=DataSpec("prices", 3),
    without=("news",),
    cash=Decimal("100000.00"),
    slippage_bp=Decimal("2.5"),
    options=AnswerOptions(effort="high", verbosity="low", tier="flex", mask=2),
)

decimals = st.decimals(allow_nan=False, allow_infinity=False)
days = st.dates(date(1990, 1, 1), date(2100, 1, 1))
words = st.text(max_size=30)
symbols = st.sampled_from(["AAA", "BRK.B", "BTC/USD", "BTC-USD"])
keys = st.builds(DecisionKey, st.just("r"), days, st.integers(0, 9), symbols, words)
cuts = st.builds(Cut, words, decimals, decimals, words)
proposals = st.builds(
    Proposal, st.sampled_from(Action), st.integers(0, 100), st.none() | st.sampled_from(SizingRule), words, words
)
decisions = st.builds(
    Decision,
    key=keys,
    action=st.sampled_from(Action),
    size=decimals,
    proposal=proposals,
    cuts=st.lists(cuts, max_size=3).map(tuple),
    unresolved_figures=st.lists(words, max_size=3).map(tuple),
)
fills = st.builds(
    Fill,
    order_id=words,
    symbol=symbols,
    side=st.sampled_from(Side),
    session=days,
    quantity=decimals,
    price=decimals,
    fee=decimals,
    reason=words,
)
flows = st.builds(CashFlow, session=days, symbol=symbols, kind=words, amount=decimals)
positions = st.builds(Position, decimals.filter(bool), decimals)
points = st.builds(
    EquityPoint,
    days,
    decimals,
    st.builds(Portfolio, decimals, st.dictionaries(symbols, positions), st.sampled_from([CENT, Decimal("1E-9")])),
    st.dictionaries(symbols, decimals),
)
initial_values = st.builds(
    RunPart,
    initial_value=decimals,
    equity=st.lists(points, max_size=3, unique_by=lambda p: p.session).map(tuple),
    fills=st.lists(fills, max_size=3).map(tuple),
    cash_flows=st.lists(flows, max_size=3).map(tuple),
    decisions=st.lists(decisions, max_size=3, unique_by=lambda d: d.key).map(tuple),
)


def _two_stretches(parts: tuple[RunPart, RunPart]) -> bool:
    first, second = parts
    apart = {p.session for p in first.equity}.isdisjoint(p.session for p in second.equity)
    return apart and {d.key for d in first.decisions}.isdisjoint(d.key for d in second.decisions)


@given(
    st.tuples(initial_values, initial_values).filter(_two_stretches),
    st.booleans(),
    st.lists(st.builds(Dropped, words, words, st.integers(0, 99)), max_size=3).map(tuple),
    st.lists(words, max_size=3, unique=True).map(tuple),
    st.none() | st.builds(ModelUse, spec=words, calls=st.integers(0, 9), cost=st.none() | decimals),
    st.booleans(),
)
@examples(30)
def test_a_result_comes_back_equal(
    parts: tuple[RunPart, RunPart],
    warmed_up: bool,
    dropped: tuple[Dropped, ...],
    notes: tuple[str, ...],
    model: ModelUse | None,
    interrupted: bool,
) -> None:
    was = Result(
        spec=SPEC,
        test=parts[1],
        warm_up=parts[0] if warmed_up else None,
        model=model,
        dropped=dropped,
        notes=notes,
        interrupted=interrupted,
        extra={"seed": [1, None]},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        with JournalWriter(path, batched=True) as journal:
            journal.run_started(RunEntry(id="r", kind=RunKind.BACKTEST, name="x", started=NOW, spec=SPEC))
            journal.backtest_result("r", was, NOW)
        with JournalReader(path) as reader:
            assert result(reader, "r") == was
            assert reader.run("r").outcome == ("interrupted" if interrupted else "done")


def test_what_was_written_on_the_way_is_not_written_again(path: Path) -> None:
    book = EquityPoint(date(2024, 1, 2), Decimal("100.10"), Portfolio(Decimal("100.10")), {"AAA": Decimal(7)})
    trade = fill("AAA", Side.BUY, date(2024, 1, 2), "1", "7")
    early = EquityPoint(date(2023, 12, 1), Decimal(90), Portfolio(Decimal(90)), {})
    was = Result(
        spec=SPEC,
        test=RunPart(initial_value=Decimal(100), equity=(book,), fills=(trade,)),
        warm_up=RunPart(initial_value=Decimal(90), equity=(early,)),
    )
    with JournalWriter(path, batched=True) as journal:
        journal.run_started(RunEntry(id="r", kind=RunKind.BACKTEST, name="x", started=NOW, spec=SPEC))
        journal.part_started("r", WARM_UP, Decimal(90))
        journal.session_settled("r", early)
        journal.part_started("r", TEST, Decimal(100))
        journal.fill("r", trade)
        journal.session_settled("r", book)
        journal.backtest_result("r", was, NOW)
    with JournalReader(path) as reader:
        assert result(reader, "r") == was
        assert reader.run("r").value == Decimal("100.10")
        assert [h.price for h in reader.holdings("r", "AAA")] == [Decimal(7)]
        assert reader.positions() == ()


debates = st.builds(
    Debate,
    key=keys,
    decides=st.booleans(),
    ended=st.sampled_from(DebateEnd),
    advice=st.lists(
        st.builds(
            RoundAdvice,
            round=st.integers(0, 5),
            owner=words,
            advice=st.none() | st.sampled_from(Advice),
            trade=st.integers(0, 100),
            confidence=st.none() | decimals,
            reason=words,
        ),
        max_size=3,
    ).map(tuple),
    comments=st.lists(
        st.builds(
            Comment,
            round=st.integers(1, 5),
            author=words,
            receiver=words,
            stance=st.sampled_from(Stance),
            text=words,
            about=st.lists(words, max_size=2).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@given(debates, debates)
@examples(30)
def test_a_debate_comes_back_equal_and_is_never_another(was: Debate, other: Debate) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d.db"
        with JournalWriter(path) as journal:
            journal.run_started(RunEntry(id="r", kind=RunKind.DAILY, name="x", started=NOW, session=was.key.session))
            assert journal.debate(was)
            assert not journal.debate(was)
            if replace(other, key=was.key) != was:
                with pytest.raises(InvariantBroken):
                    journal.debate(replace(other, key=was.key))
        with JournalReader(path) as reader:
            assert reader.debates("r", was.key.symbol, was.key.session, was.key.session) == (was,)
            assert reader.debates("s") == ()


numbers = st.floats(allow_nan=False, width=64)
charts = st.builds(
    ChartSpec,
    kind=words,
    title=words,
    symbol=symbols,
    sessions=st.lists(days.map(str), max_size=3).map(tuple),
    candles=st.none() | st.builds(Candles, *([st.lists(numbers, max_size=3).map(tuple)] * 4)),
    lines=st.lists(st.builds(Line, words, st.lists(st.none() | numbers, max_size=3).map(tuple)), max_size=2).map(tuple),
    panels=st.lists(
        st.builds(Panel, words, st.just((Line("k", (None, 1.5)),)), st.just((1.0, None)), st.just((30.0, 70.0))),
        max_size=2,
    ).map(tuple),
    markers=st.lists(st.builds(Marker, st.integers(0, 9), words, numbers), max_size=2).map(tuple),
)
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.none() | st.dictionaries(words, json_values, max_size=4)
results = st.builds(
    ModelResult,
    model=words,
    answer=objects,
    failure=st.none() | st.builds(ModelFailure, st.sampled_from(FailureKind), words),
    text=words,
    stop_reason=words,
    usage=st.builds(Usage, st.integers(0, 9999), st.integers(0, 99), st.integers(0, 99)),
    cost=st.none() | decimals,
    latency=st.floats(0, 500),
    request_hash=words,
    cached=st.booleans(),
    notes=st.lists(words, max_size=2).map(tuple),
)
shown = st.lists(charts, max_size=2).map(tuple)
entries = st.builds(
    AnswerRecord,
    key=st.just(KEY),
    time=st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5))])),
    agent=words,
    attempt=st.integers(1, 2),
    prompt_hash=st.text("0123456789abcdef", max_size=4),
    system=words,
    messages=st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), words, shown), max_size=3).map(tuple),
    result=results,
    outcome=st.sampled_from(["answered", "sent back", "abstained"]),
    reason=words,
    answer=objects,
    charts=shown,
    seen=st.booleans(),
    sample=st.integers(0, 3),
    view=words,
)


def asked(entry: AnswerRecord) -> tuple[Any, ...]:
    return entry.agent, entry.attempt, entry.sample, entry.result.request_hash


@given(st.lists(entries, max_size=3, unique_by=asked))
@examples(40)
def test_answers_come_back_equal_with_prompts_and_charts(given_entries: list[AnswerRecord]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        with JournalWriter(path) as journal:
            for entry in given_entries:
                journal.answer(entry)
        with JournalReader(path) as reader:
            assert reader.answers(KEY) == tuple(given_entries)


def test_an_answer_that_a_killed_run_is_given_again_is_the_one_that_it_had(path: Path) -> None:
    paid = answer(result=ModelResult(model="m", request_hash="q"))
    again = replace(paid, time=NOW + timedelta(minutes=1), result=replace(paid.result, cached=True))
    of_another_run = replace(again, key=replace(KEY, run="later"))
    with JournalWriter(path) as journal:
        assert journal.answer(paid) is True
    with JournalWriter(path) as journal:
        assert journal.answer(again) is False
        assert journal.answer(replace(again, agent="chart")) is True
        assert journal.answer(of_another_run) is True
        assert journal.answer(paid) is True  # paid for a second time
    with JournalReader(path) as reader:
        assert [(a.agent, a.result.cached) for a in reader.answers(KEY)] == [
            ("news", False),
            ("chart", True),
            ("news", False),
        ]


def test_a_chart_is_kept_once_under_its_own_fingerprint(path: Path) -> None:
    chart = ChartSpec(
        kind="price", title="t", symbol="AAA", sessions=("2024-03-04",), candles=Candles((1.0,), (2.0,), (0.5,), (1.5,))
    )
    entry = answer(messages=(Message("user", "u", (chart,)),), charts=(chart,))
    for _ in range(2):
        with JournalWriter(path) as journal:
            journal.answer(entry)
            journal.answer(entry)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT fingerprint FROM charts").fetchall() == [(chart.fingerprint()[:32],)]
        assert connection.execute("SELECT count(*) FROM prompts").fetchone() == (1,)


def test_text_that_no_encoding_takes_is_kept_readable(path: Path) -> None:
    half = "half a pair: \ud83d!"
    decision = hold(KEY, reason=half, unresolved_figures=(half,))
    with JournalWriter(path) as journal:
        assert journal.decision(decision)
        assert not journal.decision(decision)
        journal.answer(answer(system=half, messages=(Message("user", half),), result=ModelResult(model="m", text=half)))
    with JournalReader(path) as reader:
        assert reader.decisions()[0].reason == "half a pair: \\ud83d!"
        (kept,) = reader.answers(KEY)
        assert kept.system == kept.result.text == "half a pair: \\ud83d!"


def hold(key: DecisionKey, *, reason: str = "x", **more: Any) -> Decision:
    """A decision that trades nothing."""
    proposal = Proposal(Action.HOLD, 0, None, reason)
    return Decision(key=key, action=Action.HOLD, size=Decimal(0), proposal=proposal, **more)


@given(
    st.lists(
        st.builds(
            Outcome,
            decision_session=days,
            session=days,
            symbol=symbols,
            owner=words,
            action=st.sampled_from(Action),
            size=decimals,
            close=decimals,
            reward=decimals,
            cumulative=decimals,
            key_factors=words,
        ),
        max_size=4,
        unique_by=lambda o: (o.decision_session, o.symbol, o.owner),
    )
)
@examples(20)
def test_outcomes_come_back_equal(given_outcomes: list[Outcome]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        with JournalWriter(path) as journal:
            assert all(journal.outcome("r", outcome) for outcome in given_outcomes)
            assert not any(journal.outcome("r", outcome) for outcome in given_outcomes)
        with JournalReader(path) as reader:
            assert reader.outcomes("r") == tuple(given_outcomes)


COMMANDS = (
    commands.RunCycle(),
    commands.Pause("on holiday"),
    commands.PlaceOrder("ABC", Side.BUY, OrderSize(Decimal("12.5"), money=True)),
    commands.ResizeOrder("o-1", OrderSize(Decimal(3), money=False)),
    commands.ChangeMemory("m-1", commands.MemoryChange.PIN, "a lasting rule"),
    commands.Edit("o-1", quantity=Decimal(2)),
    commands.Shutdown(),
)


def test_commands_wait_until_one_process_carries_them_out(path: Path) -> None:
    with JournalWriter(path) as journal, JournalWriter(path) as other:
        numbers = [journal.command(command, NOW) for command in COMMANDS]
        assert waiting_commands(path) == tuple((n, NOW, c) for n, c in zip(numbers, COMMANDS, strict=True))
        assert other.command_done(numbers[0], NOW)
        assert not journal.command_done(numbers[0], NOW)
        assert [n for n, _, _ in waiting_commands(path)] == numbers[1:]


def test_runs_and_the_check_for_a_finished_one(path: Path) -> None:
    daily = RunEntry(
        id="d1",
        kind=RunKind.DAILY,
        name="demo",
        started=NOW,
        label="rules",
        symbols=("AAA",),
        session=date(2024, 3, 4),
        cycle=1,
    )
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert journal.run_started(daily)
        assert reader.run("d1") == daily
        assert reader.finished_run(date(2024, 3, 4)) is None
        journal.run_finished("d1", RunOutcome.FAILED, NOW, detail="no network")
        assert reader.finished_run(date(2024, 3, 4)) is None
        assert not journal.run_started(daily)
        assert reader.run("d1") == daily
        journal.run_finished("d1", RunOutcome.DONE, NOW, value=Decimal("99.50"))
        assert reader.finished_run(date(2024, 3, 4)) == "d1"
        assert reader.finished_run(date(2024, 3, 5)) is None
        with pytest.raises(InvariantBroken, match="done"):
            journal.run_started(daily)
        journal.run_started(RunEntry(id="b1", kind=RunKind.BACKTEST, name="x", started=NOW, spec=SPEC))
        assert [run.id for run in reader.runs()] == ["d1", "b1"]
        latest, latest_daily = reader.latest_run(), reader.latest_run(RunKind.DAILY)
        assert latest is not None and latest.spec == SPEC
        assert latest_daily is not None and latest_daily.value == Decimal("99.50")
        with pytest.raises(MissingData, match="b1, d1"):
            reader.run("d2")
        with pytest.raises(InvariantBroken, match="d2"):
            journal.run_finished("d2", RunOutcome.DONE, NOW)
        with pytest.raises(MissingData):
            result(reader, "d1")


def test_the_last_session_of_runs_of_some_kinds_and_outcomes(path: Path) -> None:
    def run(kind: RunKind, day: int, outcome: RunOutcome | None) -> None:
        name = f"{kind}-{day}"
        session = date(2024, 3, day)
        assert journal.run_started(RunEntry(id=name, kind=kind, name="demo", started=NOW, session=session, cycle=1))
        if outcome is not None:
            journal.run_finished(name, outcome, NOW)

    both = [RunKind.DAILY, RunKind.SYMBOL]
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert reader.last_session(both) is None
        run(RunKind.DAILY, 7, RunOutcome.DONE)
        run(RunKind.DAILY, 5, RunOutcome.HALTED)
        run(RunKind.DAILY, 8, RunOutcome.FAILED)
        run(RunKind.SYMBOL, 11, None)
        run(RunKind.INTRADAY, 12, RunOutcome.DONE)
        assert reader.last_session(both) == date(2024, 3, 11)
        assert reader.last_session([RunKind.DAILY]) == date(2024, 3, 8)
        assert reader.last_session(both, [RunOutcome.DONE, RunOutcome.HALTED]) == date(2024, 3, 7)
        assert reader.last_session(both, [RunOutcome.PAUSED]) is None


def test_the_trail_of_a_desk_decision_crosses_its_runs(path: Path) -> None:
    monday, tuesday = date(2024, 3, 4), date(2024, 3, 5)
    key = DecisionKey("d1", monday, 1, "AAA", "default")
    decision = Decision(
        key=key, action=Action.BUY, size=Decimal(5), proposal=Proposal(Action.BUY, 10, SizingRule.REVERSAL, "turns")
    )
    order = Order(id="demo-20240304-1-AAA-B-1", symbol="AAA", side=Side.BUY, session=monday, notional=Decimal(500))
    bought = fill("AAA", Side.BUY, tuesday, "49.5", "10.10", order_id=order.id)
    earned = outcome(monday, tuesday, "0.1", owner="default")
    closes = {monday: Decimal(10), tuesday: Decimal(11)}
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for run, session in (("d1", monday), ("d2", tuesday)):
            journal.run_started(RunEntry(id=run, kind=RunKind.DAILY, name="demo", started=NOW, session=session))
            if run == "d2":
                journal.fill(run, bought)
                journal.outcome(run, earned)
            held = {} if run == "d1" else {"AAA": Position(bought.quantity, bought.price)}
            books = Portfolio(Decimal(1000), held)
            journal.session_settled(run, EquityPoint(session, Decimal(1000), books, {"AAA": closes[session]}))
            if run == "d1":
                asked = ModelResult(model="m", usage=Usage(10, 0, 2), cost=Decimal("0.5"))
                journal.answer(answer(key=key, result=asked))
                journal.answer(answer(key=key, attempt=2, result=replace(asked, cached=True)))
                journal.decision(decision)
                journal.order_intended(OrderEntry(order=order, run=run, desk="demo", cycle=1, time=NOW))
        found = trail(reader, key)
        assert found.decision == decision
        assert [answer.attempt for answer in found.answers] == [1, 2]
        assert [entry.order for entry in found.orders] == [order]
        assert [move.order_id for move in found.moves] == [order.id]
        assert found.fills == (bought,)
        assert found.outcome == earned
        assert found.closes == tuple(closes.items())
        assert [(h.symbol, h.quantity) for h in reader.positions()] == [("AAA", Decimal("49.5"))]
        calls = reader.calls()
        assert {call.model for call in calls} == {"m"}
        assert [call.cached for call in calls] == [False, True]
        assert (calls[0].usage.input_tokens, calls[0].usage.output_tokens, calls[0].cost) == (10, 2, Decimal("0.5"))
        assert reader.calls("d2") == ()
        with pytest.raises(MissingData, match="BBB"):
            trail(reader, DecisionKey("d1", monday, 1, "BBB", "default"))


def test_calls_are_read_with_their_costs(path: Path) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for cost in (Decimal(1), None, Decimal(2)):
            journal.answer(answer(result=ModelResult(model="m", cost=cost), outcome="abstained"))
        calls = reader.calls()
        assert [call.cost for call in calls] == [Decimal(1), None, Decimal(2)]
        assert all(call.abstained and not call.cached for call in calls)


def test_decisions_are_narrowed_by_symbol_and_sessions(path: Path) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for day in (1, 2, 3):
            for symbol in ("AAA", "BBB"):
                journal.decision(hold(DecisionKey("r", date(2024, 3, day), 1, symbol, "default")))
        found = reader.decisions("r", "BBB", date(2024, 3, 2), date(2024, 3, 3), LIVE)
        assert [(d.key.symbol, d.key.session.day) for d in found] == [("BBB", 2), ("BBB", 3)]
        assert reader.decisions("other") == ()
        assert reader.counts("r")["decisions"] == 6


def test_notes_and_events_that_may_be_lost(path: Path) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        journal.noted("r", "warning", "no actions file", NOW)
        assert reader.notes("r") == (Note("r", "warning", "no actions file", NOW),)
        journal.event(
            AgentSaid(
                run="r", time=NOW, session=date(2024, 3, 4), symbol="AAA", owner="default", step="news", text="hm"
            )
        )
        journal.event(Noticed("r", NOW, "info", "hello"))
        assert reader.events_after() == ((1, Noticed("r", NOW, "info", "hello")),)


def test_times_are_kept_in_utc_so_that_they_sort(path: Path) -> None:
    local = NOW.astimezone(timezone(timedelta(hours=-5)))
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        journal.noted("r", "info", "x", local)
        assert reader.notes()[0].time == NOW
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT time FROM notes").fetchone() == ("2024-03-04T21:00:01.000000+00:00",)


def test_each_owner_and_each_cycle_decides_for_itself(path: Path) -> None:
    taken = [
        hold(DecisionKey("r", date(2024, 3, 4), cycle, "AAA", owner), reason=f"{owner} {cycle}")
        for cycle, owner in ((1, "bold"), (1, "careful"), (2, "bold"))
    ]
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert all(journal.decision(decision) for decision in taken)
        assert reader.decisions() == tuple(taken)


def test_a_time_without_a_zone_is_refused(path: Path) -> None:
    with JournalWriter(path) as journal, pytest.raises(InvariantBroken):
        journal.noted("r", "info", "x", NOW.replace(tzinfo=None))
