"""An order that waits: announced once, weighed in a dialog, edited, answered with a reason, and taken back in time."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from conftest import Running, shown, until
from fake_desk import BOUGHT, NOW, SESSION, SOLD, FakeDesk
from test_live_prices_shown import FakeFeed
from textual.app import App
from textual.drivers.headless_driver import HeadlessDriver
from textual.notifications import Notification
from textual.pilot import Pilot
from textual.widgets import Input, Static
from textual.widgets._toast import Toast

from engine.domain.live import LastTrade
from engine.domain.order import Order, OrderState, Portfolio, Position
from engine.domain.run import EquityPoint
from engine.execution.controls import Approval, approvals
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.reports.documents.control_state import ControlState
from tui.screens.ask import AskScreen
from tui.screens.confirm import ConfirmScreen
from tui.widgets.navigation_bars import Hints
from tui.widgets.screen_bars import ErrorBar
from tui.widgets.table import Table


class MovedClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.later = timedelta()

    def now(self) -> datetime:
        return NOW + self.later


def answer(desk: FakeDesk, order: Order) -> Approval | None:
    with JournalReader(desk.journal) as reader:
        return approvals(reader, [order.id]).get(order.id)


def order_of(desk: FakeDesk, wanted: Order) -> Order:
    with JournalReader(desk.journal) as reader:
        return next(entry.order for entry in reader.orders() if entry.order.id == wanted.id)


def stands(pilot: Pilot[Any]) -> list[str]:
    table = pilot.app.screen_stack[0].query_one("#orders", Table)
    return [f"{row.cells[0].text} {row.cells[-1].text}" for row in table.rows]


def controls(pilot: Pilot[Any]) -> ControlState:
    """The state of the desk's controls that the screen shows."""
    found: ControlState = pilot.app.screen_stack[0]._view.controls  # type: ignore[attr-defined]
    return found


def toasts(pilot: Pilot[Any]) -> list[Notification]:
    """What is said beside the screen at present."""
    return list(pilot.app._notifications)


def question(pilot: Pilot[Any]) -> str:
    """The text of the dialog that is open, without line breaks; empty without one."""
    if not isinstance(pilot.app.screen, ConfirmScreen):
        return ""
    return " ".join(str(pilot.app.screen.query_one("#text", Static).content).split())


def note(pilot: Pilot[Any]) -> str:
    """The text below the line that is being typed, without line breaks."""
    return " ".join(str(pilot.app.screen.query_one("#complaint", Static).content).split())


async def typed(pilot: Pilot[Any], text: str) -> None:
    """Type a text into the line that asks for it, in the place of the one that is there."""
    await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")


async def test_the_book_answers_orders_as_the_desk_does(running: Running, asking: FakeDesk) -> None:
    asking.undo_seconds = 600.0
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(stands(pilot)) == 3)
        await pilot.press("3")
        await until(pilot, lambda: "a approve  x veto  e edit" in str(pilot.app.screen.query_one(Hints).render()))
        listed = pilot.app.screen.query_one("#blotter", Table)
        await until(pilot, lambda: any("waits" in row.cells[5].text for row in listed.rows))
        await pilot.press("x")
        await until(pilot, lambda: "A vetoed order is never sent" in question(pilot))
        await pilot.press("y")
        await until(pilot, lambda: answer(asking, BOUGHT) is not None)
        await until(pilot, lambda: any(row.cells[5].text == "vetoed" for row in listed.rows))
        assert pilot.app.last_command == f"paperdesk veto {BOUGHT.id}"  # type: ignore[attr-defined]


async def test_what_was_said_before_neither_covers_a_question_nor_stays_beside_what_followed(
    running: Running, asking: FakeDesk
) -> None:
    async with running((80, 24), desk=asking, notifications=True) as pilot:
        await until(pilot, lambda: len(stands(pilot)) == 3)
        for said in ("the desk is paused", "the desk is resumed"):
            await pilot.press("p")
            await until(pilot, lambda said=said: [one.message.split("\n")[0] for one in toasts(pilot)] == [said])  # type: ignore[misc]
            paused = said == "the desk is paused"
            await until(pilot, lambda paused=paused: (controls(pilot).paused is not None) is paused)  # type: ignore[misc]
        await until(pilot, lambda: bool(pilot.app.screen.query(Toast)))
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await until(pilot, lambda: not toasts(pilot) and not pilot.app.screen.query(Toast))


async def test_an_order_is_weighed_edited_taken_back_and_vetoed_with_a_reason(
    running: Running, asking: FakeDesk
) -> None:
    clock = MovedClock()
    asking.clock, asking.undo_seconds = clock, 60.0  # type: ignore[assignment]
    held = {BOUGHT.symbol: Position(Decimal(100), Decimal(40))}
    with JournalWriter(asking.journal) as writer:
        prices = {BOUGHT.symbol: Decimal(40)}
        writer.session_settled("r", EquityPoint(SESSION, Decimal(94_000), Portfolio(Decimal(90_000), held), prices))
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(stands(pilot)) == 3)
        await pilot.press("a")
        await until(pilot, lambda: "24h00m00s left, until 2024-05-02 00:00 UTC; then it expires" in question(pilot))
        price = Decimal(question(pilot).split("Price ")[1].split(",")[0])
        shares, after = 7000 / price, (100 * price + 7000) / 94_000
        for fact in (
            f"BUY {BOUGHT.symbol} for 7,000.00 [b]it rises[/b] on volume",
            f"Price {price:.2f}, the close of 2024-04-30",
            f"Shares about {shares:.2f}, bought for 7,000.00",
            f"Part {100 * price / 94_000:.1%} to {after:.1%} of the portfolio",
            "Cash 76,000.00 after it and what 2 open orders may take",
        ):
            assert fact in question(pilot)
        clock.later = timedelta(seconds=61)
        await until(pilot, lambda: "23h58m59s left" in question(pilot))
        # Another size: first one that the desk refuses, then one that it takes, which is undone in the dialog.
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        pilot.app.screen.query_one(Input).value = "$20000"
        await until(pilot, lambda: "bought for 20,000.00" in note(pilot) and "NOT TAKEN: too much" in note(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "too much" in pilot.app.screen_stack[0].query_one(ErrorBar).text)
        assert order_of(asking, BOUGHT) == BOUGHT
        await until(pilot, lambda: bool(question(pilot)))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        pilot.app.screen.query_one(Input).value = "$3000"
        for fact in (
            f"Price {price:.2f}",
            f"Shares about {3000 / price:.2f}, bought for 3,000.00",
            "Cash 80,000.00 after it",
        ):
            await until(pilot, lambda fact=fact: fact in note(pilot))  # type: ignore[misc]
        assert "NOT TAKEN" not in note(pilot)
        pilot.app.screen.query_one(Input).value = "x"
        await until(pilot, lambda: note(pilot) == "25 for shares, $5000 for an amount enter confirms esc cancels")
        await typed(pilot, "60")
        await until(pilot, lambda: "for 3,000.00 (edited from 7,000.00 by the operator)" in question(pilot))
        assert "Cash 80,000.00 after it" in question(pilot)
        view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await until(pilot, lambda: view().desk.lines[-1].text == f"edited: BUY {BOUGHT.symbol} to $3,000.00")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        assert pilot.app.screen.query_one(Input).value == "$3000.00"
        await pilot.press("escape")
        await until(pilot, lambda: bool(question(pilot)))
        await pilot.press("u")
        await until(pilot, lambda: order_of(asking, BOUGHT) == BOUGHT)
        # An answer can be taken back before it is carried out.
        await pilot.press("a", "y")
        await until(pilot, lambda: f"{BOUGHT.symbol} approved" in stands(pilot))
        await pilot.press("u")
        assert pilot.app.last_command == f"paperdesk undo {BOUGHT.id}"  # type: ignore[attr-defined]
        await until(
            pilot, lambda: answer(asking, BOUGHT) is None and stands(pilot)[0].startswith(f"{BOUGHT.symbol} waits")
        )
        await pilot.press("e")
        await typed(pilot, "none")
        assert isinstance(pilot.app.screen, AskScreen), "it says how a size is written"
        await pilot.press("escape", "right_square_bracket", "x", "r")
        await typed(pilot, "too much  of it")
        await until(pilot, lambda: answer(asking, SOLD) is not None)
        assert answer(asking, SOLD) == Approval(False, clock.now(), "too much of it")
        assert order_of(asking, SOLD).state is OrderState.INTENDED and asking.submissions == 0
    assert order_of(asking, SOLD).state is OrderState.CANCELED, "who leaves within the time has it carried out"
    assert order_of(asking, BOUGHT).state is OrderState.INTENDED


async def test_a_live_price_is_no_close_also_where_nothing_is_held(running: Running, asking: FakeDesk) -> None:
    asking.feed = feed = FakeFeed()
    with JournalWriter(asking.journal) as writer:
        writer.session_settled("r", EquityPoint(SESSION, Decimal(90_000), Portfolio(Decimal(90_000)), {}))
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: bool(feed.symbols) and len(stands(pilot)) == 3)
        feed.says(LastTrade(BOUGHT.symbol, Decimal("62.5"), NOW))
        await pilot.press("a")
        await until(pilot, lambda: "Price 62.50, live at 2024-05-01 00:00 UTC" in question(pilot))


@pytest.mark.parametrize("wanted", [True, False])
async def test_an_order_that_begins_to_wait_is_announced_once(
    running: Running, asking: FakeDesk, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    written: list[str] = []

    class Written(HeadlessDriver):
        def write(self, data: str) -> None:
            written.append(data)

    monkeypatch.setattr(App, "get_driver_class", lambda app: Written)
    asking.notify = wanted
    new = Order(
        id="new", symbol="CCC-USD", side=BOUGHT.side, session=SESSION, notional=Decimal(900), reason="\x1b]0;x\x07"
    )
    async with running(desk=asking) as pilot:
        pilot.app.driver_class(pilot.app)  # a pilot has a driver without a terminal
        await until(pilot, lambda: len(stands(pilot)) == 3)
        assert not any("\x1b]9" in text for text in written), "those that wait already are on the screen"
        with JournalWriter(asking.journal) as writer:
            writer.order_intended(OrderEntry(order=new, run="r", desk="test", cycle=1, time=NOW))
        await until(pilot, lambda: len(stands(pilot)) == 4)
        await pilot.pause()
    said = "1 order to approve: BUY CCC-USD for 900.00"
    notified = [text for text in written if "\x1b]9" in text]
    assert notified == ([f"\a\x1b]9;{said}\a\x1b]777;notify;Paperdesk;{said}\a"] if wanted else [])


@pytest.mark.parametrize(("key", "choice"), [("K", "y halt"), ("a", "y approve")])
async def test_on_a_terminal_of_30_by_8_a_dialog_shows_its_answers(
    running: Running, asking: FakeDesk, key: str, choice: str
) -> None:
    async with running((30, 8), desk=asking) as pilot:
        await until(pilot, lambda: bool(pilot.app.bridge.snapshot().controls.waiting))  # type: ignore[attr-defined]
        await pilot.press(key)
        await until(pilot, lambda: bool(question(pilot)))
        await shown(pilot)
        choices = pilot.app.screen.query_one("#choices", Static)
        lines = [choices.render_line(n).text for n in range(choices.region.height)]
        assert choice in lines[0] and "esc cancel" in " ".join(lines)
        assert choices.region.bottom < 8 and pilot.app.screen.query_one("#text", Static).region.y < choices.region.y


async def test_all_are_those_that_the_dialog_counts(running: Running, asking: FakeDesk) -> None:
    new = Order(id="new", symbol="CCC-USD", side=BOUGHT.side, session=SESSION, notional=Decimal(900))
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(stands(pilot)) == 3)
        await pilot.press("x")
        await until(pilot, lambda: bool(question(pilot)))
        choices = pilot.app.screen.query_one("#choices", Static)
        assert "A veto all 2" in str(choices.content)
        with JournalWriter(asking.journal) as writer:
            writer.order_intended(OrderEntry(order=new, run="r", desk="test", cycle=1, time=NOW))
        await until(pilot, lambda: "A veto all 3" in str(choices.content))
        await pilot.press("A")
        await until(pilot, lambda: all(answer(asking, one) is not None for one in (BOUGHT, SOLD, new)))
