"""Cycles within the session, in an account at the sandbox's broker: live prices, one order each, and books that agree
however a cycle is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.alpaca.broker import AlpacaBroker
from connectors.sandbox import SandboxServer, SandboxSettings
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.agents.decision import DecisionView
from engine.app.desk.context import Finished
from engine.app.desk.run import interrupted_cycle, is_decided, run_daily, run_intraday
from engine.app.records.desk_journal import DeskJournal
from engine.app.redecision.redecision import check_parity
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import OrderState
from engine.domain.run import DataSpec, RunKind
from engine.errors import ConfigError, StaleData
from engine.execution.controls import give
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.market.trading_hours import decision_time, exchange_calendar
from engine.messages.commands import Approve
from engine.messages.events import Event, Noticed
from engine.ports import LanguageModel
from engine.session.context import DeskRunResult
from engine.session.loop import RESUMED_WITHIN
from engine.session.recorder import read_inputs
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.test_desk_at_broker import SYMBOLS, assert_equal_books, desk, written
from tests.engine.desks import hold, trade

XNYS = exchange_calendar()
T = date(2021, 3, 16)
START = datetime(2021, 3, 16, 20, 5, tzinfo=UTC)
OPEN = datetime(2021, 3, 17, 13, 30, tzinfo=UTC)

__all__ = ["written"]


class Buyer:
    """Buys a little of the first symbol whenever it is asked, and keeps what it was asked; what the other agents are
    asked the rules answer."""

    spec = label = "buyer"
    sees = True

    def __init__(self, dies_at: int = 0) -> None:
        self.requests: list[ModelRequest] = []
        self.dies_at = dies_at
        self.inner: LanguageModel | None = None

    def over(self, inner: LanguageModel) -> Buyer:
        """Itself, over the model that answers the others."""
        self.inner = inner
        return self

    async def answer(self, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        if request.purpose != "decision":
            assert self.inner is not None
            return await self.inner.answer(request, on_delta)
        self.requests.append(request)
        if len(self.requests) == self.dies_at:
            raise KeyboardInterrupt
        buys = request.symbol == SYMBOLS[0]
        return ModelResult(model="buyer", answer=trade(request, "BUY", 5, "strong uptrend") if buys else hold(request))

    def views(self) -> list[DecisionView]:
        return [request.view for request in self.requests if isinstance(request.view, DecisionView)]


@pytest.fixture
def sandbox(written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    with build_sandbox(DataSpec(str(written)), SandboxSettings(start=START)) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def config_of(folder: Path, **changes: Any) -> Config:
    return desk(folder, **changes)


def decided() -> bool:
    with DeskJournal("paper") as journal:
        return is_decided(journal.reader, "paper", T)


def interrupted() -> int | None:
    with DeskJournal("paper") as journal:
        return interrupted_cycle(journal.reader, T)


def day(config: Config, model: Buyer, heard: list[Event] | None = None) -> DeskRunResult | Finished:
    hear: Callable[[Event], None] = (lambda event: None) if heard is None else heard.append
    return asyncio.run(run_daily(services(config), publish=hear, through=model.over))


def cycle(
    config: Config, number: int, model: Buyer, heard: list[Event] | None = None, session: date = T
) -> DeskRunResult | Finished:
    hear: Callable[[Event], None] = (lambda event: None) if heard is None else heard.append
    return asyncio.run(run_intraday(services(config), session, number, hear, through=model.over))


def test_cycles_of_a_session_trade_at_the_prices_of_the_moment_and_one_reward_follows(
    sandbox: SandboxServer, written: Path
) -> None:
    config, model = config_of(written), Buyer()
    assert not decided()
    first = day(config, model)
    assert decided()
    assert isinstance(first, DeskRunResult)
    assert model.views()[0].moment is None
    ids = [order.id for order in first.orders]
    with pytest.raises(StaleData, match="is not open"):
        cycle(config, 2, model)
    for number, hours in ((2, 2), (3, 4)):
        sandbox.advance(OPEN + timedelta(hours=hours))
        asked = len(model.requests)
        result = cycle(config, number, model)
        assert isinstance(result, DeskRunResult)
        assert (result.outcome, result.session) == ("done", T)
        (order,) = result.orders
        assert f"-{number}-ORVL-B-" in order.id
        ids.append(order.id)
        view = next(v for v in model.views()[-3:] if v.symbol == "ORVL")
        assert view.moment is not None
        assert OPEN + timedelta(hours=hours) <= view.moment < OPEN + timedelta(hours=hours, minutes=5)
        filled = next(o for o in sandbox.state()["orders"] if o["client_order_id"] == order.id)
        assert filled["status"] == "filled"
        # Filled at once, at half a spread from the middle that was decided on.
        assert abs(Decimal(filled["filled_avg_price"]) / view.holding.price - 1) < Decimal("0.001")
        assert isinstance(cycle(config, number, model), Finished)
        assert len(model.requests) == asked + 3
        assert [fill.order_id for fill in result.fills] == [order.id] if number > 2 else ids
        assert_equal_books(sandbox)
    sandbox.advance("close")
    sandbox.advance("5m")
    with pytest.raises(StaleData, match="is over"):
        cycle(config, 4, model)
    last = day(config, model)
    assert isinstance(last, DeskRunResult)
    assert_equal_books(sandbox)
    assert quick_check(places.desk_journal("paper")) == ()
    posts = sandbox.state()["posts"]
    assert set(posts.values()) == {1}
    assert set(ids) <= set(posts)
    with JournalReader(places.desk_journal("paper")) as reader:
        assert {fill.order_id for fill in reader.fills()} == set(ids)
        outcomes = [row for row in reader.outcomes() if row.decision_session == T]
        assert sorted(row.symbol for row in outcomes) == sorted(SYMBOLS)
        assert {(row.cycle, row.horizon) for row in outcomes} == {(3, 1)}, "the last cycle's decisions count"
        made = reader.decisions(symbol="ORVL", first=T, last=T)
        assert [one.key.cycle for one in made] == [1, 2, 3]
        assert [trail(reader, one.key).outcome is not None for one in made] == [False, False, True]
        assert [(run.kind, run.cycle, run.outcome) for run in reader.runs()] == [
            ("daily", 1, "done"),
            ("session", 2, "done"),
            ("session", 3, "done"),
            ("daily", 1, "done"),
        ]
        # Every cycle reads the news since the one before it, each once.
        seen = [read_inputs(reader.inputs(run.id, run.cycle), calendars()) for run in reader.runs()]
        assert [one.news_after for one in seen[1:]] == [one.now for one in seen[:-1]]
        assert seen[0].now == decision_time(XNYS, T)
        replayed = check_parity(services(config), reader, T, "session-paper-20210316-3")
        # What the script said is said again, though no configured model is of its name.
        assert replayed.orders and not replayed.order_changes
        assert not [answer for one in replayed.differing for answer in one.answers]


def test_a_cycle_killed_while_it_decides_goes_on_with_what_it_saw_not_too_long_ago(
    sandbox: SandboxServer, written: Path
) -> None:
    config, model = config_of(written), Buyer()
    day(config, model)
    sandbox.advance(OPEN + timedelta(hours=2))
    dying = Buyer(dies_at=2)
    with pytest.raises(KeyboardInterrupt):
        cycle(config, 2, dying)
    assert interrupted() == 2
    sandbox.advance("5m")  # prices have moved on, and nobody asks for them
    going_on = Buyer()
    result = cycle(config, 2, going_on)
    assert isinstance(result, DeskRunResult)
    assert result.outcome == "done"
    again = {request.symbol: request.messages for request in going_on.requests}
    assert all(again[request.symbol] == request.messages for request in dying.requests)
    assert interrupted() is None
    with pytest.raises(KeyboardInterrupt):
        cycle(config, 3, Buyer(dies_at=1))
    sandbox.advance(OPEN + timedelta(hours=2) + RESUMED_WITHIN + timedelta(minutes=10))
    with pytest.raises(StaleData, match="cut short"):
        cycle(config, 3, Buyer())
    assert isinstance(cycle(config, 4, Buyer()), DeskRunResult)
    with JournalReader(places.desk_journal("paper")) as reader:
        cycles = [(run.cycle, run.outcome) for run in reader.runs(RunKind.INTRADAY)]
    assert cycles == [(2, "done"), (3, "failed"), (4, "done")]
    assert set(sandbox.state()["posts"].values()) == {1}


def test_a_cycle_killed_before_its_order_was_answered_sends_no_second_one(
    sandbox: SandboxServer, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(written)
    day(config, Buyer())
    sandbox.advance(OPEN + timedelta(hours=2))
    place = AlpacaBroker.place

    async def killed(self: AlpacaBroker, order: Any) -> Any:
        await place(self, order)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AlpacaBroker, "place", killed)
        with pytest.raises(KeyboardInterrupt):
            cycle(config, 2, Buyer())
    silent = Buyer()
    result = cycle(config, 2, silent)
    assert isinstance(result, DeskRunResult)
    assert silent.requests == []
    assert [order.state for order in result.orders] == [OrderState.FILLED]
    assert sandbox.state()["posts"][result.orders[0].id] == 1


def test_a_later_cycle_takes_the_place_of_what_nobody_approved(sandbox: SandboxServer, written: Path) -> None:
    config = config_of(written, broker={"mode": "ask"})
    first = day(config, Buyer())
    assert isinstance(first, DeskRunResult)
    assert first.outcome == "waiting"
    sandbox.advance(OPEN + timedelta(hours=2))
    second = cycle(config, 2, Buyer())
    assert isinstance(second, DeskRunResult)
    assert second.outcome == "waiting"
    with JournalReader(places.desk_journal("paper")) as reader:
        standing = {entry.order.id: entry.order.state for entry in reader.orders()}
    assert standing == {first.orders[0].id: OrderState.EXPIRED, second.orders[0].id: OrderState.INTENDED}
    give(places.desk_journal("paper"), [Approve(second.orders[0].id)], OPEN)
    from engine.app.desk.run import submit_approved

    assert asyncio.run(submit_approved(services(config)))
    assert sandbox.state()["posts"] == {second.orders[0].id: 1}


def test_owners_with_books_of_their_own_decide_after_a_close_alone(
    sandbox: SandboxServer, written: Path, tmp_path: Path
) -> None:
    preset = tmp_path / "books.toml"
    preset.write_text('extends = "finvision"\nname = "books"\ncombine = "books"\nowners = ["bull", "bear"]\n')
    config = config_of(written, desk={"preset": str(preset)})
    assert isinstance(day(config, Buyer()), DeskRunResult)
    sandbox.advance(OPEN + timedelta(hours=2))
    with pytest.raises(ConfigError, match="books of their own"):
        cycle(config, 2, Buyer())


def test_prices_that_cannot_be_asked_for_are_the_last_closes_and_that_is_said(
    sandbox: SandboxServer, written: Path
) -> None:
    config, model, heard = config_of(written), Buyer(), list[Event]()
    day(config, model)
    sandbox.advance(OPEN + timedelta(hours=2))
    sandbox.fault("html", path="/v2/stocks/*/latest", count=0)
    result = cycle(config, 2, model, heard)
    assert isinstance(result, DeskRunResult)
    said = [event.text for event in heard if isinstance(event, Noticed)]
    assert any("prices unavailable" in text for text in said)
    assert "ORVL has no price at this moment: its last close is taken" in said
    views = {view.symbol: view for view in model.views()}
    assert views["ORVL"].holding.price == model.views()[0].holding.price


def test_a_symbol_that_splits_in_the_session_is_left_alone_until_the_close(
    sandbox: SandboxServer, written: Path
) -> None:
    config, model, heard = config_of(written), Buyer(), list[Event]()
    sandbox.advance(datetime(2021, 4, 16, 20, 5, tzinfo=UTC))
    day(config, model)
    sandbox.advance(datetime(2021, 4, 19, 15, 30, tzinfo=UTC))
    result = cycle(config, 2, model, heard, session=date(2021, 4, 16))
    assert isinstance(result, DeskRunResult)
    assert {made.key.symbol for made in result.decisions} == {"PLWY", "TMBK"}
    assert any(isinstance(event, Noticed) and "ORVL splits in this session" in event.text for event in heard)
