"""What the Desk screen shows, event by event."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from engine.domain.decision import Cut
from engine.domain.model_call import Usage
from engine.domain.order import Fill, Side
from engine.domain.run import RunKind, RunOutcome
from engine.messages.events import (
    AgentAnswered,
    AgentSaid,
    DecisionMade,
    Event,
    Noticed,
    OpinionFormed,
    OrderFilled,
    RunFinished,
    RunStarted,
    SessionSettled,
    StepStarted,
)
from engine.preset import load_preset
from tests.decided import decided, settled
from tui.view.desk_changes import after
from tui.view.state import LOG_LINES, DeskState, Line, Progress, action_text, with_line

NOW = datetime(2024, 3, 1, 21, 0, 1, tzinfo=UTC)
DAY, LATER = date(2024, 3, 1), date(2024, 3, 4)

STEPS = load_preset("finvision").questions


def _started(*symbols: str) -> RunStarted:
    return RunStarted(
        run="r1",
        time=NOW,
        kind=RunKind.DAILY,
        name="demo",
        label="rules",
        symbols=symbols or ("ABC",),
        first=DAY,
        last=DAY,
        sessions=1,
        steps=STEPS,
    )


def _step(step: str, symbol: str = "ABC") -> StepStarted:
    return StepStarted(run="r1", time=NOW, session=DAY, symbol=symbol, owner="desk", step=step)


def _said(text: str, step: str = "news", symbol: str = "ABC") -> AgentSaid:
    return AgentSaid(run="r1", time=NOW, session=DAY, symbol=symbol, owner="desk", step=step, text=text)


def _answer(step: str, text: str = "fine", abstained: bool = False, cost: str | None = "0.02") -> AgentAnswered:
    price = None if cost is None else Decimal(cost)
    return AgentAnswered(
        run="r1",
        time=NOW,
        session=DAY,
        symbol="ABC",
        owner="desk",
        step=step,
        text=text,
        model="offline",
        abstained=abstained,
        cached=False,
        usage=Usage(300, 0, 12),
        cost=price,
        seconds=1.5,
    )


def _fold(*events: Event, state: DeskState | None = None) -> DeskState:
    state = state or DeskState()
    for event in events:
        state = after(state, event)
    return state


def test_a_step_streams_and_then_holds_the_finished_text() -> None:
    state = _fold(_started(), _step("news"), _said("up "), _said("and away"))
    pane = state.panes_of("ABC")[0]
    assert (pane.progress, pane.text) == (Progress.THINKING, "up and away")
    assert state.at == "ABC"
    pane = after(state, _answer("news", "The news is good.")).panes_of("ABC")[0]
    assert pane.answer is not None
    assert (pane.progress, pane.text, pane.answer.seconds) == (Progress.ANSWERED, "The news is good.", 1.5)


def test_steps_that_never_began_were_left_out() -> None:
    state = _fold(_started(), _step("chart"), _answer("chart"), _step("decision"))
    assert [pane.progress for pane in state.panes_of("ABC")] == [
        Progress.LEFT_OUT,
        Progress.ANSWERED,
        *[Progress.LEFT_OUT] * 3,
        Progress.THINKING,
    ]


def test_an_unknown_step_finds_a_place_before_the_decision() -> None:
    state = _fold(_started(), _step("debate"))
    assert [pane.step for pane in state.panes_of("ABC")] == [*STEPS[:-1], "debate", "decision"]


def test_the_steps_are_those_that_the_run_names() -> None:
    begun = replace(_started(), steps=("market-intelligence", "chart", "decision"))
    state = _fold(begun, _step("chart"))
    assert [pane.step for pane in state.panes_of("ABC")] == ["market-intelligence", "chart", "decision"]
    assert state.panes_of("ABC")[0].progress is Progress.LEFT_OUT
    assert _fold(begun, _answer("decision")).decided == 1


def test_an_abstention_keeps_the_answer_that_it_is_about() -> None:
    reply = '{"action": "BUY", "size": 77}'
    state = _fold(_started(), _step("decision"), _said(reply, "decision"))
    abstained = after(state, _answer("decision", f"abstained: malformed\n\n{reply}", True))
    pane = abstained.panes_of("ABC")[-1]
    assert pane.progress is Progress.ABSTAINED
    assert pane.text.splitlines() == ["abstained: malformed", "", "action: BUY", "size: 77"]
    assert [line.text for line in abstained.lines if line.level == "warning"] == ["ABC decision abstained: malformed"]
    # Of a model that failed in the middle the part that came.
    cut = after(state, _answer("decision", "abstained: timed out", True)).panes_of("ABC")[-1]
    assert cut.text.splitlines() == ["abstained: timed out", "", "action: BUY", "size: 77"]


def test_abstaining_is_shown_and_logged_and_costs_add_up() -> None:
    state = _fold(_started(), _answer("news", "rate limited", True), _answer("chart"), _answer("decision"))
    assert state.panes_of("ABC")[0].progress is Progress.ABSTAINED
    assert any(line.level == "warning" and "abstained: rate limited" in line.text for line in state.lines)
    assert state.cost == Decimal("0.06")
    assert state.decided == 1
    # One call whose cost is not known makes the sum unknown.
    assert _fold(_started(), _answer("chart", cost=None), _answer("decision")).cost is None


def test_what_a_model_writes_cannot_steer_the_terminal() -> None:
    state = _fold(_started(), _said("\x1b[31mred\x1b[0m \x07bell\u202ereversed\n[b]bold[/b]"))
    assert state.panes_of("ABC")[0].text == "red bellreversed\n[b]bold[/b]"


def test_a_run_that_goes_on_keeps_what_was_said_in_it_and_another_begins_anew() -> None:
    ended = RunFinished("r1", NOW, RunOutcome.WAITING, None, "")
    state = _fold(_started(), _step("decision"), _answer("decision", "Buy."), ended, _started())
    assert state.running and state.panes_of("ABC")[-1].text == "Buy." and state.cost == Decimal("0.02")
    other = RunStarted(
        run="r2",
        time=NOW,
        kind=RunKind.DAILY,
        name="demo",
        label="rules",
        symbols=("ABC",),
        first=DAY,
        last=DAY,
        sessions=1,
    )
    state = after(state, other)
    assert state.panes_of("ABC")[-1].text == "" and state.cost == 0


def test_a_decision_is_kept_and_a_line() -> None:
    cuts = (Cut("cash", Decimal(10), Decimal(5), "cash floor"),)
    made = decided("ABC", "BUY", Decimal("5.0"), DAY, reason="rising", cuts=cuts)
    state = _fold(_started(), DecisionMade("r1", NOW, made))
    assert state.decisions["ABC"]["desk"] == made
    assert state.lines[-1].text == "ABC BUY 5 % on the close of 2024-03-01 (cut: 10 to 5 %: cash floor)"
    assert state.lines[-1].level == "decision"


def _of(owner: str, *, symbol: str = "ABC") -> list[Event]:
    """An owner's last question and its answer."""
    return [replace(event, owner=owner, symbol=symbol) for event in (_step("decision"), _answer("decision"))]


def _decided(owner: str, action: str = "BUY", size: int = 5, session: date = DAY) -> DecisionMade:
    return DecisionMade("r1", NOW, decided("ABC", action, size, session, owner=owner, reason="rising"))


def _opinion(owner: str, action: str, size: int) -> OpinionFormed:
    return OpinionFormed("r1", NOW, decided("ABC", action, size, DAY, owner=owner, reason="so").opinion)


def test_the_log_goes_by_the_runs_own_clock() -> None:
    began, close = NOW + timedelta(hours=4), NOW - timedelta(hours=20)
    state = _fold(
        replace(_started(), time=began),
        replace(_decided("desk"), time=close),
        RunFinished("r1", began + timedelta(seconds=3), RunOutcome.DONE, None, ""),
    )
    assert [line.time for line in state.lines] == [began, began, began + timedelta(seconds=3)]
    assert str(DAY) in state.lines[1].text
    again = after(state, replace(_started(), time=NOW))
    assert again.lines[-1].time == NOW


def test_one_owner_is_not_named_whatever_it_is_called() -> None:
    state = _fold(_started(), *_of("bull"), _decided("bull"))
    assert [pane.name for pane in state.panes_of("ABC")] == list(STEPS)
    assert state.lines[-1].text == f"ABC BUY 5 % on the close of {DAY}"
    assert state.decided == 1


def test_every_owner_has_panes_and_an_opinion_beside_the_combined_decision() -> None:
    state = _fold(_started(), *_of("bull"), replace(_step("decision"), owner="bear"))
    assert state.decided == 0
    assert [pane.progress for pane in state.panes_of("ABC") if pane.step == "decision"] == [
        Progress.ANSWERED,
        Progress.THINKING,
    ]
    state = _fold(*_of("bear"), _opinion("bull", "BUY", 7), _opinion("bear", "HOLD", 0), state=state)
    combined = state.panes_of("ABC")[-1]
    assert (combined.name, combined.progress) == ("owners", Progress.WAITING)
    state = after(state, _decided("desk"))
    panes = state.panes_of("ABC")
    assert [pane.name for pane in panes] == [f"{o}: {s}" for o in ("bull", "bear") for s in STEPS] + ["owners"]
    assert panes[-1].text == "bull: BUY 7 %\nbear: HOLD\ndecision: BUY 5 %"
    assert [line.text for line in state.lines[-3:]] == [
        f"ABC bull: BUY 7 %, {DAY}",
        f"ABC bear: HOLD, {DAY}",
        f"ABC BUY 5 % on the close of {DAY}",
    ]
    assert state.decided == 1


def test_owners_with_books_of_their_own_decide_each_for_itself() -> None:
    state = _fold(_started(), *_of("bull"), *_of("bear"), _decided("bull"), _decided("bear", "HOLD", 0))
    assert {owner: action_text(made) for owner, made in state.decisions["ABC"].items()} == {
        "bull": "BUY 5 %",
        "bear": "HOLD",
    }
    assert state.panes_of("ABC")[-1].text == "bull: BUY 5 %\nbear: HOLD"
    assert state.lines[-1].text == f"ABC HOLD for bear on the close of {DAY}"
    later = after(state, _decided("desk", "SELL", session=LATER))
    assert set(later.decisions["ABC"]) == {"desk"}, "decisions of an earlier session are gone"


def test_settled_books_stand_beside_those_before() -> None:
    first, second = (settled(day, Decimal(value), Decimal(value)) for day, value in ((DAY, 1000), (LATER, 990)))
    state = _fold(SessionSettled("r1", NOW, first))
    assert state.books is not None and (state.books.point, state.books.before) == (first, None)
    state = _fold(SessionSettled("r1", NOW, second), state=state)
    assert state.books is not None and state.books.point == second
    assert (state.books.before, state.books.peak) == (Decimal(1000), Decimal(1000))


def test_errors_stay_until_the_next_start() -> None:
    state = _fold(Noticed("", NOW, "error", "no prices"))
    assert state.error == "no prices"
    assert after(state, _started()).error == ""
    failed = _fold(_started(), RunFinished("r1", NOW, RunOutcome.FAILED, None, "the disk is full"))
    assert (failed.running, failed.error) == (False, "the disk is full")


def test_steps_that_did_not_come_are_left_out_once_the_run_is_done() -> None:
    done = _fold(_started(), RunFinished("r1", NOW, RunOutcome.WAITING, None, ""))
    assert {pane.progress for pane in done.panes_of("ABC")} == {Progress.LEFT_OUT}
    assert {pane.progress for pane in done.panes_of("OTHER")} == {Progress.WAITING}, "no symbol of the run"
    failed = _fold(_started(), RunFinished("r1", NOW, RunOutcome.FAILED, None, "the disk is full"))
    assert {pane.progress for pane in failed.panes_of("ABC")} == {Progress.WAITING}, "it goes on"


def test_an_order_that_was_refused_elsewhere_is_no_failed_cycle() -> None:
    refused = RunFinished("order-demo-1", NOW, RunOutcome.FAILED, None, "BUY 5 ABC: it is halted")
    state = _fold(_started(), refused)
    assert state.running and state.error == ""
    assert (state.lines[-1].level, state.lines[-1].text) == ("warning", "order failed: BUY 5 ABC: it is halted")


def test_the_log_is_bounded_and_trades_stand_in_it() -> None:
    traded = Fill(
        order_id="o", symbol="ABC", side=Side.BUY, session=DAY, quantity=Decimal("40.0"), price=Decimal("180.1")
    )
    fill = OrderFilled("o1", NOW, traded)
    fed = with_line(_fold(fill), Line(NOW + timedelta(seconds=5), "info", "news", fed=True))
    assert [line.text for line in after(fed, fill).lines] == ["ABC BUY 40 at 180.10"] * 2 + ["news"], "by their times"
    state = _fold(*[fill] * (LOG_LINES + 5))
    assert len(state.lines) == LOG_LINES
    assert state.lines[-1].text == "ABC BUY 40 at 180.10"
