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
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.chart import Candles, ChartSpec, Line, Marker, Panel
from engine.domain.decision import Action, Cut, Decision, DecisionKey, Outcome, Proposal, SizingRule
from engine.domain.market import Dropped
from engine.domain.model_call import FailureKind, Message, ModelFailure, ModelResult, Usage
from engine.domain.order import Fill, Order, Side
from engine.domain.portfolio import CENT, Portfolio, Position
from engine.domain.run import CashFlow, DataSpec, EquityPoint, ModelUse, Result, RunSpec, Stretch
from engine.errors import InvariantBroken, MissingData
from engine.journal.entries import AnswerEntry, Note, OrderEntry, RunEntry
from engine.journal.migrations import LIVE, TEST, WARM_UP
from engine.journal.reader import JournalReader
from engine.journal.results import model_use, result, trail
from engine.journal.writer import JournalWriter
from engine.messages import commands
from engine.messages.events import AgentSaid, Noticed

NOW = datetime(2024, 3, 4, 21, 0, 1, tzinfo=UTC)
SPEC = RunSpec(
    ("AAA", "BTC-USD"),
    date(2024, 1, 2),
    date(2024, 6, 28),
    warm_up_from=date(2023, 11, 1),
    strategy="sma-cross",
    params=(("fast", "5"), ("slow", "20")),
    data=DataSpec("prices", 3),
    without=("news",),
    cash=Decimal("100000.00"),
    slippage_bp=Decimal("2.5"),
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
    keys,
    st.sampled_from(Action),
    decimals,
    proposals,
    st.lists(cuts, max_size=3).map(tuple),
    st.lists(words, max_size=3).map(tuple),
)
fills = st.builds(Fill, words, symbols, st.sampled_from(Side), days, decimals, decimals, decimals, words)
flows = st.builds(CashFlow, days, symbols, words, decimals)
positions = st.builds(Position, decimals.filter(bool), decimals)
points = st.builds(
    EquityPoint,
    days,
    decimals,
    st.builds(Portfolio, decimals, st.dictionaries(symbols, positions), st.sampled_from([CENT, Decimal("1E-9")])),
    st.dictionaries(symbols, decimals),
)
stretches = st.builds(
    Stretch,
    decimals,
    st.lists(points, max_size=3, unique_by=lambda p: p.session).map(tuple),
    st.lists(fills, max_size=3).map(tuple),
    st.lists(flows, max_size=3).map(tuple),
    st.lists(decisions, max_size=3, unique_by=lambda d: d.key).map(tuple),
)


def _two_stretches(parts: tuple[Stretch, Stretch]) -> bool:
    first, second = parts
    apart = {p.session for p in first.equity}.isdisjoint(p.session for p in second.equity)
    return apart and {d.key for d in first.decisions}.isdisjoint(d.key for d in second.decisions)


@given(
    st.tuples(stretches, stretches).filter(_two_stretches),
    st.booleans(),
    st.lists(st.builds(Dropped, words, words, st.integers(0, 99)), max_size=3).map(tuple),
    st.lists(words, max_size=3, unique=True).map(tuple),
    st.none() | st.builds(ModelUse, words, st.integers(0, 9), cost=st.none() | decimals),
    st.booleans(),
)
@settings(max_examples=30)
def test_a_result_comes_back_equal(
    parts: tuple[Stretch, Stretch],
    warmed_up: bool,
    dropped: tuple[Dropped, ...],
    notes: tuple[str, ...],
    model: ModelUse | None,
    interrupted: bool,
) -> None:
    was = Result(
        SPEC, parts[1], parts[0] if warmed_up else None, model, dropped, notes, interrupted, {"seed": [1, None]}
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        with JournalWriter(path, batched=True) as journal:
            journal.run_started(RunEntry("r", "backtest", "x", NOW, spec=SPEC))
            journal.backtest_result("r", was, NOW)
        with JournalReader(path) as reader:
            assert result(reader, "r") == was
            assert reader.run("r").outcome == ("interrupted" if interrupted else "done")


def test_what_was_written_on_the_way_is_not_written_again(path: Path) -> None:
    book = EquityPoint(date(2024, 1, 2), Decimal("100.10"), Portfolio(Decimal("100.10")), {"AAA": Decimal(7)})
    trade = Fill("r-1", "AAA", Side.BUY, date(2024, 1, 2), Decimal(1), Decimal(7))
    early = EquityPoint(date(2023, 12, 1), Decimal(90), Portfolio(Decimal(90)), {})
    was = Result(SPEC, Stretch(Decimal(100), (book,), (trade,)), Stretch(Decimal(90), (early,)))
    with JournalWriter(path, batched=True) as journal:
        journal.run_started(RunEntry("r", "backtest", "x", NOW, spec=SPEC))
        journal.stretch_started("r", WARM_UP, Decimal(90))
        journal.session_settled("r", early)
        journal.stretch_started("r", TEST, Decimal(100))
        journal.fill("r", trade)
        journal.session_settled("r", book)
        journal.backtest_result("r", was, NOW)
    with JournalReader(path) as reader:
        assert result(reader, "r") == was
        assert reader.run("r").value == Decimal("100.10")
        assert [h.price for h in reader.holdings("r", "AAA")] == [Decimal(7)]
        assert reader.positions("r") == ()


numbers = st.floats(allow_nan=False, width=64)
charts = st.builds(
    ChartSpec,
    words,
    words,
    symbols,
    st.lists(days.map(str), max_size=3).map(tuple),
    st.none() | st.builds(Candles, *([st.lists(numbers, max_size=3).map(tuple)] * 4)),
    st.lists(st.builds(Line, words, st.lists(st.none() | numbers, max_size=3).map(tuple)), max_size=2).map(tuple),
    st.lists(
        st.builds(Panel, words, st.just((Line("k", (None, 1.5)),)), st.just((1.0, None)), st.just((30.0, 70.0))),
        max_size=2,
    ).map(tuple),
    st.lists(st.builds(Marker, st.integers(0, 9), words, numbers), max_size=2).map(tuple),
)
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.none() | st.dictionaries(words, json_values, max_size=4)
results = st.builds(
    ModelResult,
    words,
    objects,
    st.none() | st.builds(ModelFailure, st.sampled_from(FailureKind), words),
    words,
    words,
    st.builds(Usage, st.integers(0, 9999), st.integers(0, 99), st.integers(0, 99)),
    st.none() | decimals,
    st.floats(0, 500),
    words,
    st.booleans(),
    st.lists(words, max_size=2).map(tuple),
)
shown = st.lists(charts, max_size=2).map(tuple)
entries = st.builds(
    AnswerEntry,
    st.just(DecisionKey("r", date(2024, 3, 4), 1, "AAA", "default")),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5))])),
    words,
    st.integers(1, 2),
    words,
    words,
    st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), words, shown), max_size=3).map(tuple),
    results,
    st.sampled_from(["answered", "sent back", "abstained"]),
    words,
    objects,
    shown,
    st.booleans(),
    st.integers(0, 3),
    words,
)


def asked(entry: AnswerEntry) -> tuple[Any, ...]:
    return entry.agent, entry.attempt, entry.sample, entry.result.request_hash


@given(st.lists(entries, max_size=3, unique_by=asked))
@settings(max_examples=40)
def test_answers_come_back_equal_with_prompts_and_charts(given_entries: list[AnswerEntry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        with JournalWriter(path) as journal:
            for entry in given_entries:
                journal.answer(entry)
        with JournalReader(path) as reader:
            key = DecisionKey("r", date(2024, 3, 4), 1, "AAA", "default")
            assert reader.answers(key) == tuple(given_entries)


def test_an_answer_that_a_killed_run_is_given_again_is_the_one_that_it_had(path: Path) -> None:
    key = DecisionKey("r", date(2024, 3, 4), 1, "AAA", "default")
    paid = AnswerEntry(key, NOW, "news", 1, "h", "s", (), ModelResult("m", request_hash="q"), "answered")
    again = replace(paid, time=NOW + timedelta(minutes=1), result=replace(paid.result, cached=True))
    of_another_run = replace(again, key=replace(key, run="later"))
    with JournalWriter(path) as journal:
        assert journal.answer(paid) is True
    with JournalWriter(path) as journal:
        assert journal.answer(again) is False
        assert journal.answer(replace(again, agent="chart")) is True
        assert journal.answer(of_another_run) is True
        assert journal.answer(paid) is True  # paid for a second time
    with JournalReader(path) as reader:
        assert [(a.agent, a.result.cached) for a in reader.answers(key)] == [
            ("news", False), ("chart", True), ("news", False),
        ]  # fmt: skip


def test_a_chart_is_kept_once_under_its_own_fingerprint(path: Path) -> None:
    chart = ChartSpec("price", "t", "AAA", ("2024-03-04",), Candles((1.0,), (2.0,), (0.5,), (1.5,)))
    key = DecisionKey("r", date(2024, 3, 4), 1, "AAA", "default")
    entry = AnswerEntry(
        key, NOW, "chart", 1, "h", "s", (Message("user", "u", (chart,)),), ModelResult("m"), "answered", charts=(chart,)
    )
    for _ in range(2):
        with JournalWriter(path) as journal:
            journal.answer(entry)
            journal.answer(entry)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT fingerprint FROM charts").fetchall() == [(chart.fingerprint(),)]
        assert connection.execute("SELECT count(*) FROM prompts").fetchone() == (1,)


def test_text_that_no_encoding_takes_is_kept_readable(path: Path) -> None:
    half = "half a pair: \ud83d!"
    key = DecisionKey("r", date(2024, 3, 4), 1, "AAA", "default")
    proposal = Proposal(Action.HOLD, 0, None, half)
    with JournalWriter(path) as journal:
        decision = Decision(key, Action.HOLD, Decimal(0), proposal, (), (half,))
        assert journal.decision(decision)
        assert not journal.decision(decision)
        journal.answer(
            AnswerEntry(
                key, NOW, "decision", 1, "h", half, (Message("user", half),), ModelResult("m", text=half), "answered"
            )
        )
    with JournalReader(path) as reader:
        assert reader.decisions()[0].reason == "half a pair: \\ud83d!"
        answer = reader.answers(key)[0]
        assert answer.system == answer.result.text == "half a pair: \\ud83d!"


@given(
    st.lists(
        st.builds(
            Outcome, days, days, symbols, words, st.sampled_from(Action), decimals, decimals, decimals, decimals, words
        ),
        max_size=4,
        unique_by=lambda o: (o.decision_session, o.symbol, o.owner),
    )
)
@settings(max_examples=20)
def test_outcomes_come_back_equal(given_outcomes: list[Outcome]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.db"
        with JournalWriter(path) as journal:
            assert all(journal.outcome("r", outcome) for outcome in given_outcomes)
            assert not any(journal.outcome("r", outcome) for outcome in given_outcomes)
        with JournalReader(path) as reader:
            assert reader.outcomes("r") == tuple(given_outcomes)
            for last in (date(2000, 1, 1), date(2050, 1, 1)):
                known = tuple(outcome for outcome in given_outcomes if outcome.session <= last)
                assert reader.outcomes(last=last) == known


COMMANDS = (
    commands.RunCycle(),
    commands.PauseCycle(),
    commands.StartBacktest(SPEC),
    commands.StopBacktest("bt-1"),
    commands.Shutdown(),
)


def test_commands_wait_until_one_process_carries_them_out(path: Path) -> None:
    with JournalWriter(path) as journal, JournalWriter(path) as other:
        numbers = [journal.command(command, NOW) for command in COMMANDS]
        with JournalReader(path) as reader:
            assert reader.commands_waiting() == tuple((n, NOW, c) for n, c in zip(numbers, COMMANDS, strict=True))
            assert other.command_done(numbers[0], NOW)
            assert not journal.command_done(numbers[0], NOW)
            assert [n for n, _, _ in reader.commands_waiting()] == numbers[1:]


def test_runs_and_the_check_for_a_finished_one(path: Path) -> None:
    daily = RunEntry("d1", "daily", "demo", NOW, label="rules", symbols=("AAA",), session=date(2024, 3, 4), cycle=1)
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert journal.run_started(daily)
        assert reader.run("d1") == daily
        assert reader.finished_run(date(2024, 3, 4)) is None
        journal.run_finished("d1", "failed", NOW, detail="no network")
        assert reader.finished_run(date(2024, 3, 4)) is None
        assert not journal.run_started(daily)
        assert reader.run("d1") == daily
        journal.run_finished("d1", "done", NOW, value=Decimal("99.50"))
        assert reader.finished_run(date(2024, 3, 4)) == "d1"
        assert reader.finished_run(date(2024, 3, 5)) is None
        assert reader.finished_run(date(2024, 3, 4), kind="backtest") is None
        with pytest.raises(InvariantBroken, match="done"):
            journal.run_started(daily)
        journal.run_started(RunEntry("b1", "backtest", "x", NOW, spec=SPEC))
        assert [run.id for run in reader.runs()] == ["d1", "b1"]
        latest, latest_daily = reader.latest_run(), reader.latest_run("daily")
        assert latest is not None and latest.spec == SPEC
        assert latest_daily is not None and latest_daily.value == Decimal("99.50")
        with pytest.raises(MissingData, match="b1, d1"):
            reader.run("d2")
        with pytest.raises(InvariantBroken, match="no run d2"):
            journal.run_finished("d2", "done", NOW)
        with pytest.raises(MissingData, match="no result"):
            result(reader, "d1")


def test_the_trail_of_a_desk_decision_crosses_its_runs(path: Path) -> None:
    monday, tuesday = date(2024, 3, 4), date(2024, 3, 5)
    key = DecisionKey("d1", monday, 1, "AAA", "default")
    decision = Decision(key, Action.BUY, Decimal(5), Proposal(Action.BUY, 10, SizingRule.REVERSAL, "turns"))
    order = Order("demo-20240304-1-AAA-B-1", "AAA", Side.BUY, monday, notional=Decimal(500))
    fill = Fill(order.id, "AAA", Side.BUY, tuesday, Decimal("49.5"), Decimal("10.10"))
    earned = Outcome(
        monday, tuesday, "AAA", "default", Action.BUY, Decimal(5), Decimal(11), Decimal("0.1"), Decimal("0.1"), "k"
    )
    closes = {monday: Decimal(10), tuesday: Decimal(11)}
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for run, session in (("d1", monday), ("d2", tuesday)):
            journal.run_started(RunEntry(run, "daily", "demo", NOW, session=session))
            if run == "d2":
                journal.fill(run, fill)
                journal.outcome(run, earned)
            held = {} if run == "d1" else {"AAA": Position(fill.quantity, fill.price)}
            books = Portfolio(Decimal(1000), held)
            journal.session_settled(run, EquityPoint(session, Decimal(1000), books, {"AAA": closes[session]}))
            if run == "d1":
                calls = ModelResult("m", usage=Usage(10, 0, 2), cost=Decimal("0.5"))
                for at, cached in enumerate((False, True), 1):
                    again = ModelResult("m", cost=Decimal("0.5"), cached=cached) if cached else calls
                    journal.answer(AnswerEntry(key, NOW, "news", at, "h", "s", (), again, "answered"))
                journal.decision(decision)
                journal.order_intended(OrderEntry(order, run, "demo", 1, NOW))
        found = trail(reader, key)
        assert found.decision == decision
        assert [answer.attempt for answer in found.answers] == [1, 2]
        assert [entry.order for entry in found.orders] == [order]
        assert [move.order_id for move in found.moves] == [order.id]
        assert found.fills == (fill,)
        assert found.outcome == earned
        assert found.closes == tuple(closes.items())
        assert [(h.symbol, h.quantity) for h in reader.positions()] == [("AAA", Decimal("49.5"))]
        assert model_use(reader) == ModelUse("m", 1, 1, 0, 10, 2, Decimal("0.5"))
        assert model_use(reader, "d2") == ModelUse("", 0, 0, 0, 0, 0, Decimal(0))
        with pytest.raises(MissingData, match="no decision for BBB"):
            trail(reader, DecisionKey("d1", monday, 1, "BBB", "default"))


def test_an_unknown_price_makes_the_cost_unknown(path: Path) -> None:
    key = DecisionKey("r", date(2024, 3, 4), 1, "AAA", "default")
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for cost in (Decimal(1), None, Decimal(2)):
            journal.answer(AnswerEntry(key, NOW, "news", 1, "h", "s", (), ModelResult("m", cost=cost), "abstained"))
        assert model_use(reader) == ModelUse("m", 3, 0, 3, 0, 0, None)


def test_decisions_are_narrowed_by_symbol_and_sessions(path: Path) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        for day in (1, 2, 3):
            for symbol in ("AAA", "BBB"):
                key = DecisionKey("r", date(2024, 3, day), 1, symbol, "default")
                journal.decision(Decision(key, Action.HOLD, Decimal(0), Proposal(Action.HOLD, 0, None, "x")))
        found = reader.decisions("r", "BBB", date(2024, 3, 2), date(2024, 3, 3), LIVE)
        assert [(d.key.symbol, d.key.session.day) for d in found] == [("BBB", 2), ("BBB", 3)]
        assert reader.decisions("other") == ()
        assert reader.counts("r")["decisions"] == 6


def test_notes_and_events_that_may_be_lost(path: Path) -> None:
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        journal.noted("r", "warning", "no actions file", NOW)
        assert reader.notes("r") == (Note("r", "warning", "no actions file", NOW),)
        journal.event(AgentSaid("r", NOW, date(2024, 3, 4), "AAA", "default", "news", "hm"))
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
    hold = Proposal(Action.HOLD, 0, None, "x")
    taken = [
        Decision(DecisionKey("r", date(2024, 3, 4), cycle, "AAA", owner), Action.HOLD, Decimal(at), hold)
        for at, (cycle, owner) in enumerate(((1, "bold"), (1, "careful"), (2, "bold")))
    ]
    with JournalWriter(path) as journal, JournalReader(path) as reader:
        assert all(journal.decision(decision) for decision in taken)
        assert reader.decisions() == tuple(taken)


def test_a_time_without_a_zone_is_refused(path: Path) -> None:
    with JournalWriter(path) as journal, pytest.raises(InvariantBroken, match="no zone"):
        journal.noted("r", "info", "x", NOW.replace(tzinfo=None))
