"""The ticket of an order of one's own: it says PAPER and what the order would do, and the order can be taken back."""

from __future__ import annotations

import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, until
from fake_desk import NOW, SYMBOLS, FakeDesk
from test_live_prices_shown import FakeFeed
from textual.pilot import Pilot
from textual.widgets import Input, Static

from engine.domain.live import LastTrade
from engine.domain.order import YOU, OrderSize, OrderState, Side
from engine.errors import CredentialsRefused, NetworkError, PaperdeskError
from engine.journal.entries import OrderEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.commands import PlaceOrder
from engine.messages.events import Publish
from engine.reports.documents.order_effect import Ticket
from tui.screens.confirm import ConfirmScreen
from tui.screens.order_ticket import OrderTicket
from tui.settings.app_settings import AppSettings
from tui.widgets.navigation_bars import Hints
from tui.widgets.screen_bars import ErrorBar


def orders(desk: FakeDesk) -> list[OrderEntry]:
    if not desk.journal.exists():
        return []
    with JournalReader(desk.journal) as reader:
        return list(reader.orders())


def effect(pilot: Pilot[Any]) -> str:
    return " ".join(str(pilot.app.screen.query_one("#effect", Static).content).split())


@pytest.fixture
def desk(tmp_path: Path) -> FakeDesk:
    made = FakeDesk(tmp_path)
    JournalWriter(made.journal).close()
    return made


async def opened(pilot: Pilot[Any]) -> OrderTicket:
    await pilot.press("o")
    await until(pilot, lambda: isinstance(pilot.app.screen, OrderTicket))
    ticket = pilot.app.screen
    assert isinstance(ticket, OrderTicket)
    return ticket


async def test_a_ticket_says_what_the_order_would_do_and_enter_sends_it(running: Running, desk: FakeDesk) -> None:
    async with running(desk=desk) as pilot:
        ticket = await opened(pilot)
        assert "PAPER" in str(ticket.query_one("Vertical").border_title)
        assert ticket.query_one("#symbol", Input).value == SYMBOLS[0]
        await pilot.press(*"$2500")
        await until(pilot, lambda: "bought for 2,500.00" in effect(pilot) and "within the cash floor" in effect(pilot))
        said = effect(pilot)
        assert "50.00" in said and "Shares about 50" in said and "0.0% to 25.0%" in said and "7,500.00 after it" in said
        await pilot.press("enter")
        await until(pilot, lambda: bool(orders(desk)))
        (entry,) = orders(desk)
        assert (entry.owner, entry.order.notional, entry.order.id) == (
            YOU,
            Decimal(2500),
            "test-20240430-0-AAA-USD-you-B-1",
        )
        await until(pilot, lambda: orders(desk)[0].order.state is OrderState.ACKNOWLEDGED)
        assert pilot.app.last_command == "paperdesk order BUY AAA-USD --amount 2500 --yes"  # type: ignore[attr-defined]


async def test_a_ticket_reckons_with_the_live_price_and_says_of_when_it_is(running: Running, desk: FakeDesk) -> None:
    desk.feed = feed = FakeFeed()
    async with running(desk=desk) as pilot:
        await until(pilot, lambda: bool(feed.symbols))
        feed.says(LastTrade(SYMBOLS[0], Decimal("62.5"), NOW))
        board = pilot.app.bridge._follower.board  # type: ignore[attr-defined]
        await until(pilot, lambda: SYMBOLS[0] in board.view(SYMBOLS, NOW).prices)
        await opened(pilot)
        await pilot.press("8")
        await until(pilot, lambda: "Price 62.50, live at 2024-05-01 00:00 UTC" in effect(pilot))
        assert "bought for 500.00" in effect(pilot)
        pilot.app.screen.query_one("#symbol", Input).value = SYMBOLS[1]
        await until(pilot, lambda: "Price 50.00, the close of 2024-04-30" in effect(pilot))


async def test_the_limits_are_held_against_it_before_it_is_given(running: Running, desk: FakeDesk) -> None:
    async with running(desk=desk) as pilot:
        await opened(pilot)
        for typed, words in (
            ("$9500", "NOT TAKEN: it would leave 500.00 in cash, and 1,000.00 has to stay"),
            ("x", "is no size"),
            ("$0.5", "less than the smallest order"),
        ):
            pilot.app.screen.query_one("#size", Input).value = typed
            await until(pilot, lambda words=words: words in effect(pilot))  # type: ignore[misc]
            await pilot.press("enter")
            await pilot.pause()
            assert isinstance(pilot.app.screen, OrderTicket)
        pilot.app.screen.query_one("#symbol", Input).value = "bbb/usd"
        pilot.app.screen.query_one("#size", Input).value = "5"
        await until(pilot, lambda: "within the cash floor" in effect(pilot))
        pilot.app.screen.query_one("#symbol", Input).value = "<X>"
        await until(pilot, lambda: "'<X>' is not a symbol" in effect(pilot))
        pilot.app.screen.query_one("#symbol", Input).value = "zzz"
        await until(pilot, lambda: "ZZZ is none of the desk's symbols" in effect(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, OrderTicket))
        assert orders(desk) == []
        await pilot.press("3")
        await until(pilot, lambda: pilot.app.current_mode == "book")
        ticket = await opened(pilot)
        assert ticket.query_one("#symbol", Input).value == SYMBOLS[0]


async def test_no_order_is_given_whose_size_is_taken_away_while_it_is_checked(running: Running, desk: FakeDesk) -> None:
    asked, answered, ticket = threading.Event(), threading.Event(), desk.ticket

    def later(wanted: PlaceOrder, live: Decimal | None) -> Ticket:
        asked.set()
        assert answered.wait(300)
        return ticket(wanted, live)

    async with running(desk=desk) as pilot:
        await opened(pilot)
        desk.ticket = later  # type: ignore[method-assign]
        await pilot.press("5", "enter")
        await until(pilot, asked.is_set)
        await pilot.press("backspace")
        answered.set()
        await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))
        assert isinstance(pilot.app.screen, OrderTicket) and effect(pilot) == ""


async def test_the_side_turns_by_key_and_by_click(running: Running, desk: FakeDesk) -> None:
    async with running(desk=desk) as pilot:
        await opened(pilot)
        await pilot.press(*"3", "shift+tab", "space")
        await until(pilot, lambda: "would sell 3 shares, and 0 are free" in effect(pilot))
        await pilot.click("#side")
        await until(pilot, lambda: "within the cash floor" in effect(pilot))


async def test_space_turns_the_side_wherever_the_cursor_is(
    running: Running, desk: FakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[PlaceOrder] = []

    async def place(wanted: PlaceOrder, publish: Publish) -> Ticket:
        sent.append(wanted)
        return FakeDesk.ticket(desk, wanted, None)

    monkeypatch.setattr(desk, "place", place)
    monkeypatch.setattr(desk, "ticket", lambda wanted, live: replace(FakeDesk.ticket(desk, wanted, live), refused=""))
    async with running(desk=desk) as pilot:
        for number in range(2):  # in the size, in the symbol
            await opened(pilot)
            await pilot.press(*"10", *["shift+tab"] * number, "space", "enter")
            await until(pilot, lambda number=number: len(sent) == number + 1)  # type: ignore[misc]
    assert sent == [PlaceOrder(SYMBOLS[0], Side.SELL, OrderSize(Decimal(10), money=False))] * 2


async def test_an_order_is_taken_back_in_time_and_leaves_no_trace(running: Running, desk: FakeDesk) -> None:
    desk.undo_seconds = 600.0
    async with running(desk=desk) as pilot:
        await opened(pilot)
        await pilot.press(*"10", "enter")
        await until(pilot, lambda: len(pilot.app.bridge.snapshot().own_orders) == 1)  # type: ignore[attr-defined]
        await pilot.press("q")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        assert "BUY 10 AAA-USD is not sent yet, and is dropped" in str(
            pilot.app.screen.query_one("#text", Static).content
        )
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ConfirmScreen))
        await until(pilot, lambda: "u undo" in str(pilot.app.screen.query_one(Hints).render()))
        await pilot.press("u")
        view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await until(pilot, lambda: not view().own_orders)
        await until(pilot, lambda: any(line.text == "taken back: BUY 10 AAA-USD" for line in view().desk.lines))
        assert not any("u undoes it" in one.message for one in pilot.app._notifications)
    assert orders(desk) == []


@pytest.mark.parametrize("error", [CredentialsRefused("the broker refuses the key"), NetworkError("HTTP 500: boom")])
async def test_an_order_that_fails_is_named_with_the_error_which_no_cycle_repeats(
    running: Running, desk: FakeDesk, monkeypatch: pytest.MonkeyPatch, error: PaperdeskError
) -> None:
    async def fails(wanted: PlaceOrder, publish: Publish) -> Ticket:
        raise error

    monkeypatch.setattr(desk, "place", fails)
    async with running(desk=desk) as pilot:
        await opened(pilot)
        await pilot.press(*"$700", "enter")
        strip, said = pilot.app.screen_stack[0].query_one(ErrorBar), f"BUY AAA-USD for $700 failed: {error}"
        await until(pilot, lambda: strip.text == said)
        assert "try again" not in str(strip.render())
        assert any(line.text == said for line in pilot.app.bridge.snapshot().desk.lines)  # type: ignore[attr-defined]


async def test_an_order_that_was_not_sent_when_the_app_ends_is_dropped(running: Running, desk: FakeDesk) -> None:
    desk.undo_seconds = 600.0
    async with running(desk=desk) as pilot:
        await opened(pilot)
        await pilot.press(*"10", "enter")
        await until(pilot, lambda: len(pilot.app.bridge.snapshot().own_orders) == 1)  # type: ignore[attr-defined]
    assert orders(desk) == []


async def test_a_read_only_app_has_no_ticket(running: Running, desk: FakeDesk) -> None:
    async with running(desk=desk, settings=AppSettings(read_only=True)) as pilot:
        await pilot.press("o")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, OrderTicket)
