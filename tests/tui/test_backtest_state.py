"""What the Backtest screen shows, event by event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import click
import pytest
from click.testing import CliRunner

from engine.domain.run import DataSpec, RunKind, RunOutcome, RunSpec
from engine.messages.events import DecisionMade, Event, RunFinished, RunStarted, SessionOpened, SessionSettled
from tests.decided import decided, settled
from tui.commands.options import RunFlags, run_options
from tui.screens.lab import progress_text
from tui.view import recorded_run
from tui.view.backtest_form import arguments_of, filled, values_of
from tui.view.backtest_run import DONE, FAILED, STOPPED, BacktestState, after_event, after_message

NOW = datetime(2024, 3, 1, tzinfo=UTC)
DAY = date(2024, 3, 1)
SPEC = RunSpec(symbols=("ABC",), first=DAY, last=DAY + timedelta(days=3))


def _opened(index: int, part: str = "test") -> SessionOpened:
    return SessionOpened(run="r", time=NOW, session=DAY + timedelta(days=index), index=index, total=4, part=part)


def _settled(index: int, value: int) -> SessionSettled:
    return SessionSettled("r", NOW, settled(DAY + timedelta(days=index), Decimal(value), Decimal(0)))


def _fold(*events: Event) -> BacktestState:
    state = BacktestState(name="first", spec=SPEC)
    for event in events:
        state = after_event(state, event)
    return state


def test_progress_counts_sessions_that_are_done() -> None:
    state = _fold(
        RunStarted(
            run="r",
            time=NOW,
            kind=RunKind.BACKTEST,
            name="x",
            label="rules",
            symbols=("ABC",),
            first=DAY,
            last=DAY,
            sessions=4,
        ),
        _opened(1),
    )
    assert (state.done, state.total, state.fraction) == (0, 4, 0.0)
    state = after_event(after_event(state, _settled(1, 100)), _opened(2))
    assert (state.done, state.fraction) == (1, 0.25)


def test_time_left_follows_the_pace() -> None:
    state = _fold(_opened(1), _settled(1, 100))
    assert state.seconds_left is None
    assert replace(state, seconds=2.0).seconds_left == 6.0


def test_the_curve_starts_afresh_when_the_test_begins() -> None:
    state = _fold(_opened(1, "warm-up"), _settled(1, 100), _opened(2), _settled(2, 200), _settled(3, 300))
    assert [value for _, value in state.curve] == [200.0, 300.0]


def test_decisions_are_counted_by_action() -> None:
    made = [DecisionMade("r", NOW, decided("ABC", action, 0, DAY)) for action in ("BUY", "HOLD", "BUY")]
    assert _fold(_opened(1), *made).actions == {"BUY": 2, "HOLD": 1}


def test_a_run_ends_done_stopped_or_failed() -> None:
    assert _fold(_opened(1), RunFinished("r", NOW, RunOutcome.DONE, Decimal(1), "")).fraction == 1.0
    assert _fold(RunFinished("r", NOW, RunOutcome.DONE, None, "")).status == DONE
    assert _fold(RunFinished("r", NOW, RunOutcome.INTERRUPTED, None, "")).status == STOPPED
    failed = _fold(RunFinished("r", NOW, RunOutcome.FAILED, None, "no\nprices"))
    assert (failed.status, failed.error) == (FAILED, "no prices")


def test_baseline_and_result_stand_beside_the_curve() -> None:
    baseline = {"type": "baseline", "name": "buy-and-hold", "equity": [["2024-03-01", "100.5"]]}
    state = after_message(_fold(_opened(1), _settled(1, 100)), baseline)
    assert state.baseline == {DAY: 100.5}
    document = {"equity": [{"session": "2024-03-01", "value": "101"}], "metrics": {}}
    state = after_message(state, {"type": "result", "document": document})
    assert (state.status, state.curve) == (DONE, ((DAY, 101.0),))


def test_progress_shows_whole_figures_or_none() -> None:
    state = _fold(_opened(0), _settled(0, 100_500))
    lines = {width: progress_text(state, width).plain.split("\n")[1] for width in range(60)}
    assert all(len(line) <= width for width, line in lines.items())
    long = replace(state, name="desk 11-27 02:04 bf05", status=DONE)
    assert all(len(progress_text(long, width).plain.split("\n")[0]) <= width for width in range(44, 120))
    assert lines[20] == "equity 100,500" and lines[59] == "equity 100,500   trades 0   test 2024-03-01"


def test_a_fall_is_computed_once_for_a_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    values, computed = (100.0, 80.0, 120.0, 90.0), []
    compute = recorded_run._falls
    monkeypatch.setattr(recorded_run, "_falls", lambda curve, of: computed.append(len(curve)) or compute(curve, of))
    curve = tuple((DAY + timedelta(days=day), value) for day, value in enumerate(values))
    state = BacktestState(name="first", spec=SPEC, curve=curve)
    assert recorded_run.curves(state, (), falls=True).series["first"] == pytest.approx([0.0, -20.0, 0.0, -25.0])
    assert computed[0] == len(values) and len(computed) <= 2  # the run's and its baseline's
    began = replace(state, spec=replace(SPEC, cash=Decimal(125)), baseline_name="held", baseline=dict(curve))
    falls = recorded_run.curves(began, (), falls=True).series
    assert falls["first"] == falls["held"] == pytest.approx([-20.0, -36.0, -4.0, -28.0])


def test_a_baseline_is_drawn_no_further_than_the_run_has_come() -> None:
    days = [DAY + timedelta(days=day) for day in range(4)]
    baseline = {day: 100.0 + number for number, day in enumerate(days)}
    state = BacktestState(
        name="first", spec=SPEC, curve=((days[0], 100.0), (days[1], 90.0)), baseline_name="held", baseline=baseline
    )
    assert recorded_run.curves(state, ()).series == {"first": [100.0, 90.0], "held": [100.0, 101.0]}
    done = replace(state, status=DONE)
    assert recorded_run.curves(done, ()).series["held"] == [100.0, 101.0, 102.0, 103.0]
    assert recorded_run.curves(done, (), until=days[0]).series == {"first": [100.0], "held": [100.0]}


def test_a_stopped_run_is_counted_and_drawn_as_far_as_it_came() -> None:
    days = [DAY + timedelta(days=day) for day in range(4)]
    curve, baseline = tuple((day, 100.0) for day in days[:3]), dict.fromkeys(days, 100.0)
    stopped = BacktestState(
        name="first", spec=SPEC, status=STOPPED, curve=curve, done=13, total=20, baseline_name="held", baseline=baseline
    )
    assert recorded_run.curves(stopped, ()).labels == [str(day) for day in days[:3]]
    assert recorded_run.up_to(stopped, days[1]).done == 12  # ten of them are of the warm-up


def test_a_run_that_was_killed_does_not_start() -> None:
    killed = BacktestState(name="first", spec=SPEC, status=STOPPED)
    assert "starting" not in progress_text(killed, 80).plain
    read = replace(killed, curve=((DAY, 101.0), (DAY + timedelta(days=1), 102.0)))
    assert "2 sessions  stopped" in progress_text(read, 80).plain
    assert "starting" in progress_text(BacktestState(name="first", spec=SPEC), 80).plain


TODAY = date(2025, 7, 1)
PROPOSAL = RunSpec(
    symbols=("AAA", "BBB"),
    first=date(2025, 1, 2),
    last=date(2025, 6, 30),
    warm_up_from=date(2024, 11, 1),
    preset="finvision",
    data=DataSpec(None, 7),
    seed=3,
)


def _read(**changes: str) -> tuple[RunSpec | None, Mapping[str, str]]:
    values = {**values_of(PROPOSAL), **changes}
    return filled(values, PROPOSAL, TODAY, ("finvision",), ("sma-cross", "macd"))


def test_what_is_proposed_reads_back_the_same() -> None:
    assert _read() == (PROPOSAL, {})


@pytest.mark.parametrize(
    "changes", [{}, {"decides": "macd"}, {"model": "openai:m", "cash": "50,000", "warm_up_from": ""}]
)
def test_the_command_of_a_form_means_the_same_run(changes: dict[str, str]) -> None:
    read: list[RunFlags] = []

    @click.command("backtest")
    @run_options
    def probe(flags: RunFlags) -> None:
        read.append(flags)

    spec, _ = _read(**changes)
    assert spec is not None
    command, *arguments = arguments_of(spec)
    assert command == probe.name and CliRunner().invoke(probe, arguments).exit_code == 0
    (flags,) = read
    assert flags.symbols == ",".join(spec.symbols) and (flags.first, flags.last) == (spec.first, spec.last)
    for name in ("warm_up_from", "preset", "strategy", "model", "cash"):
        assert getattr(flags, name) == getattr(spec, name), name


def test_a_strategy_takes_no_warm_up_and_no_preset() -> None:
    spec, _ = _read(decides="macd")
    assert spec == replace(PROPOSAL, preset=None, strategy="macd", warm_up_from=None)


def test_symbols_days_and_cash_are_read_as_people_write_them() -> None:
    spec, _ = _read(symbols=" aaa , ccc ", cash="50,000", warm_up_from="")
    assert spec is not None
    assert (spec.symbols, spec.cash, spec.warm_up_from) == (("AAA", "CCC"), Decimal(50_000), None)


@pytest.mark.parametrize(
    ("field", "text", "complaint"),
    [
        ("symbols", " , ", "at least one"),
        ("symbols", "AAA,aaa", "AAA appears twice"),
        ("first", "2025-02-30", "write a day"),
        ("first", "2025-07-01", "after the last day"),
        ("last", "2026-01-01", "is in the future; today is 2025-07-01"),
        ("warm_up_from", "2025-01-02", "before the first day"),
        ("decides", "finvison", "did you mean finvision?"),
        ("decides", "zzz", "there are finvision, sma-cross, macd"),
        ("decides", "", "name a preset or a strategy"),
        ("cash", "-1", "above zero"),
        ("cash", "NaN", "above zero"),
        ("cash", "much", "above zero"),
    ],
)
def test_every_field_says_what_is_wrong_with_it(field: str, text: str, complaint: str) -> None:
    spec, complaints = _read(**{field: text})
    assert spec is None
    assert list(complaints) == [field] and complaint in complaints[field]


def test_a_strategy_asks_no_model() -> None:
    assert "uses no model" in _read(decides="macd", model="openai:x")[1]["model"]
