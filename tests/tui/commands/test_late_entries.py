"""Cash that moves at the broker before the account's history says why, and crypto fees that it enters a day later."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import ROUND_UP, Decimal

import pytest

from connectors.sandbox import SandboxServer
from connectors.wiring.services import services
from engine.app.desk import watch as desk_watch
from engine.app.desk.watch import DeskWatch
from engine.journal.reader import JournalReader
from engine.messages.events import CycleFailed, Event, Noticed, RunFinished
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import OpenBroker, Run, after_close, ordered

START = datetime(2021, 3, 16, 20, 5, tzinfo=UTC)
COIN = "WRNN-USD"


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2021, 4, 9), symbols=("ORVL", "PLWY"))


def moved(server: SandboxServer, amount: str) -> None:
    """Cash moves, and the account's history says nothing."""
    server.control_request("POST", "/sandbox/transfers", {"amount": amount, "part": "cash"})


def entered(server: SandboxServer, amount: str) -> None:
    """The entry of cash that has moved before."""
    server.control_request("POST", "/sandbox/transfers", {"amount": amount, "part": "entry"})


def test_cash_waits_for_its_entry_and_is_booked_when_it_comes(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    moved(sandbox, "250")
    for _ in range(2):
        said = run("--daily")
        assert said.code == 75 and "at the broker cash is +250.00 beside the journal of paper" in said.err
        assert "awaited until 2021-03-18 20:05 UTC" in said.err, "counted from the first run that saw it"
        sandbox.advance("2h")
    assert not [one for one in sandbox.state()["orders"] if one["created_at"] > "2021-03-17T20"]
    entered(sandbox, "250")
    document = run("--daily", "--json")
    assert document.code == 0 and document.json["session"] == "2021-03-17"
    assert [(one["kind"], one["amount"]) for one in document.json["cash_flows"]] == [("transfer", "250.00")]
    after_close(sandbox)
    moved(sandbox, "-40")
    again = run("--daily")
    assert again.code == 75 and "awaited until 2021-03-19 20:05 UTC" in again.err, "a difference of its own"


def test_cash_without_an_entry_halts_once_it_is_due(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    moved(sandbox, "-40.25")
    assert run("--daily").code == 75
    after_close(sandbox)
    sandbox.advance("1m")
    said = run("--daily")
    assert said.code == 79 and "no entry of the account's history explains it since 2021-03-17 20:05 UTC" in said.err
    assert "one that comes late still can" in said.err and "cash" in said.err.splitlines()[1]
    with JournalReader(places.desk_journal("paper")) as reader:
        assert [one.outcome for one in reader.runs()] == ["done", "skipped", "halted"]
    entered(sandbox, "-40.25")
    assert run("--daily").code == 0, "the entry has come after all"
    monkeypatch.setenv("PAPERDESK_BROKER__LATE_ENTRY_HOURS", "0")
    after_close(sandbox)
    moved(sandbox, "7")
    assert run("--daily").code == 79, "nothing is awaited"


def test_trades_wait_for_their_entries_too(run: Run, sandbox: SandboxServer) -> None:
    while not run("--daily", "--json").json["orders"]:
        after_close(sandbox)
    rule = sandbox.fault("body", path="/v2/account/activities", count=0, message="[]")
    after_close(sandbox)
    bought = next(iter(sandbox.state()["positions"]))
    for _ in range(2):
        said = run("--daily")
        assert said.code == 75 and f"{bought} is +" in said.err and "is awaited until" in said.err
    sandbox.clear_faults(rule)
    after = run("--daily", "--json")
    assert after.code == 0 and bought in {one["symbol"] for one in after.json["fills"]}
    assert run("reconcile").code == 0


def test_what_no_entry_explains_says_that_waiting_is_no_cure(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    book = sandbox.exchange.book
    book.portfolio = book.portfolio.__class__(book.portfolio.cash, {})
    held = run("--daily")
    if held.code == 0:  # nothing was bought yet
        after_close(sandbox)
        book.portfolio = book.portfolio.__class__(book.portfolio.cash, {})
        held = run("--daily")
    assert held.code == 79 and "waiting does not change it" in held.err


def test_a_watch_goes_on_while_an_entry_is_awaited(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    moved(sandbox, "250")
    monkeypatch.setattr(desk_watch, "LOCAL_CHECKS", 0.01)
    config = load_config(places.config_file()).config
    heard: list[Event] = []

    async def watch() -> None:
        ended = asyncio.Event()

        def publish(event: Event) -> None:
            heard.append(event)
            if isinstance(event, Noticed) and "(code 75)" in event.text:
                entered(sandbox, "250")
                sandbox.advance("6m")
            if isinstance(event, RunFinished) and event.outcome == "done":
                ended.set()

        watching = asyncio.create_task(DeskWatch(services(config), publish).run())
        await asyncio.wait({watching, asyncio.create_task(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    asyncio.run(watch())
    finished = [one.outcome for one in heard if isinstance(one, RunFinished)]
    assert finished == ["failed", "done"]
    assert any(isinstance(one, Noticed) and "awaited until" in one.text for one in heard)
    told = {type(one) for one in heard if isinstance(one, Noticed) and "(code 75)" in one.text}
    assert told == {CycleFailed}, "an app offers to try it again"


def test_a_watch_halts_the_desk_where_a_position_changes_behind_its_back(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    monkeypatch.setattr(desk_watch, "LOCAL_CHECKS", 0.01)
    monkeypatch.setattr(desk_watch, "_NAP", 0.01)
    config = load_config(places.config_file()).config
    heard: list[Event] = []

    async def watch() -> None:
        halts = asyncio.Event()

        def publish(event: Event) -> None:
            heard.append(event)
            if isinstance(event, Noticed) and event.text.startswith("next: "):
                ordered(sandbox, "ORVL", "3")
                sandbox.advance("open")
                sandbox.advance("20m")
            if isinstance(event, CycleFailed) and "(code 79)" in event.text:
                halts.set()

        watching = asyncio.create_task(DeskWatch(services(config), publish).run())
        await asyncio.wait({watching, asyncio.create_task(halts.wait())}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    asyncio.run(watch())
    status = run("status", "--json").json
    assert status["halted"] is not None and "ORVL" in status["halted"]["reason"]
    assert run("order", "buy", "TMBK", "--amount", "500", "--yes").code == 79


def test_a_watch_that_is_to_compare_nothing_leaves_the_account_alone_between_its_runs(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    sandbox.advance("20m")  # to the time at which the watch runs the desk
    monkeypatch.setattr(desk_watch, "LOCAL_CHECKS", 0.01)
    monkeypatch.setenv("PAPERDESK_WATCH__CHECK_EVERY", "0")

    def asked(path: str) -> int:
        return int(sandbox.state()["requests"].get(f"GET {path}", 0))

    async def watch() -> None:
        waits = asyncio.Event()

        def publish(event: Event) -> None:
            if isinstance(event, Noticed) and event.text.startswith("next: "):
                ordered(sandbox, "ORVL", "3")
                sandbox.advance("open")
                sandbox.advance("20m")
                waits.set()

        watching = asyncio.create_task(DeskWatch(services(load_config(places.config_file()).config), publish).run())
        await waits.wait()
        compared, clocks = asked("/v2/positions"), asked("/v2/clock")
        while asked("/v2/clock") < clocks + 20:  # it is at work
            await asyncio.sleep(0.01)
        assert asked("/v2/positions") == compared
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    asyncio.run(watch())
    assert run("status", "--json").json["halted"] is None


@pytest.mark.slow
def test_a_crypto_fee_that_is_entered_a_day_later_is_expected_until_then(run: Run, open_broker: OpenBroker) -> None:
    server = open_broker(
        datetime(2024, 10, 18, 20, 5, tzinfo=UTC),
        through=date(2024, 11, 8),
        symbols=(COIN,),
        crypto_fee=Decimal("0.0025"),
    )
    fees, expected, waited = list[Decimal](), list[Decimal](), 0
    for day in range(19, 26):
        server.advance(datetime(2024, 10, day, 0, 5, tzinfo=UTC))
        said = run("--daily", "--json")
        assert (said.code, said.err) == (0, ""), said.err
        fees += [Decimal(one["quantity"] or 0) for one in said.json["cash_flows"] if one["kind"] == "fee"]
        looked = run("reconcile", "--json")
        assert looked.code == 0 and looked.json["agree"] is True
        expected = [Decimal(one["difference"]) for one in looked.json["expected"]]
        waited += len(expected)
    trades = [Decimal(one["qty"]) for one in server.state()["activities"] if one["activity_type"] == "FILL"]
    charged = [(quantity * Decimal("0.0025")).quantize(Decimal("1e-9"), ROUND_UP) for quantity in trades]
    assert len(fees) > 1 and waited > 1
    assert -sum(fees) - sum(expected) == sum(charged), "each fee is booked once, or is still expected"
