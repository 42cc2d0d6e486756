"""Days in an account, replayed: the same decisions and orders, whatever happened to the desk and to its data since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.demo.market import DemoMarket
from connectors.sandbox import SandboxServer, SandboxSettings
from connectors.sandbox.account_api import AccountApi
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.account.disagreement import BooksDisagree
from engine.app.desk.context import Finished
from engine.app.desk.reconciliation import adopt_account
from engine.app.desk.run import run_daily
from engine.app.redecision.redecision import check_parity, redecide
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import OrderState
from engine.domain.run import DataSpec, RunKind
from engine.execution import controls
from engine.journal.reader import JournalReader
from engine.lab.recorded_turn import Parity
from engine.ports import LanguageModel
from engine.session.context import DeskRunResult
from engine.session.recorder import TurnInputs, read_inputs
from engine.settings import places
from engine.settings.config import Config
from tests.data_folders import write_folder

SYMBOLS = ["ORVL", "PLWY", "TMBK", "WRNN-USD"]
WHOLE, COIN = "PLWY", "WRNN-USD"
"""One that is traded in whole shares alone, and one whose orders stay open until they fill."""
START = datetime(2021, 3, 16, 20, 5, tzinfo=UTC)
WISHES = {
    "ORVL": ("BUY", "BUY", "SELL", "BUY", "HOLD", "SELL", "BUY"),
    "PLWY": ("BUY", "SELL", "BUY", "BUY", "SELL", "BUY", "SELL"),
    "TMBK": ("BUY", "HOLD", "BUY", "SELL", "BUY", "SELL", "BUY"),
    COIN: ("HOLD", "BUY", "HOLD", "SELL", "BUY", "HOLD", "BUY"),
}


class Service:
    """A model behind an address, by its name: the rules, except for what is bought and sold."""

    spec = "local:m1"
    label = "m1 (local)"
    sees = True

    def __init__(self, inner: LanguageModel, day: int, then: Callable[[], None] = lambda: None) -> None:
        self._inner, self._day, self._then = inner, day, then

    async def answer(self, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        result = await self._inner.answer(request, on_delta)
        if request.purpose == "evidence-decision":
            action = WISHES[request.symbol][self._day]
            rule = {"BUY": "strong uptrend", "SELL": "reversal"}.get(action, "uncertainty")
            wish = {"recommendation": action, "position_size": 0 if action == "HOLD" else 9, "rule": rule}
            result = replace(result, answer={**(result.answer or {}), **wish})
            if request.symbol == SYMBOLS[-1]:
                self._then()
        return replace(result, model=self.spec)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "demo"
    asyncio.run(write_folder(DemoMarket(7, calendars(), date(2021, 4, 30)), target))
    return target


@pytest.fixture
def sandbox(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    listed = AccountApi._asset
    monkeypatch.setattr(
        AccountApi,
        "_asset",
        lambda self, listing: listed(self, listing) | {"fractionable": listing.symbol != WHOLE},
    )
    with build_sandbox(DataSpec(str(folder)), SandboxSettings(start=START, pay_dividends=True)) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def desk(folder: Path, **more: Any) -> Config:
    plain: dict[str, Any] = {
        "desk": {"name": "paper", "symbols": SYMBOLS, "preset": "desk"},
        "data": {"folder": str(folder), "refresh": False},
        "broker": {"kind": "alpaca", "clock": "broker"},
    }
    return Config.model_validate(plain | more)


def later(folder: Path) -> Config:
    """The same desk with a model that cannot be reached and has no key."""
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "vision": True, "key_env": "A_KEY_THAT_NOBODY_HAS"}
    return desk(folder, models={"default": "local:m1"}, endpoints={"local": endpoint})


def run(config: Config, day: int, then: Callable[[], None] = lambda: None) -> DeskRunResult:
    done = asyncio.run(run_daily(services(config), through=lambda inner: Service(inner, day, then)))
    assert not isinstance(done, Finished)
    return done


def to_next_session(sandbox: SandboxServer) -> None:
    """A minute after the UTC day of the next session is over."""
    sandbox.advance("close")
    day = sandbox.exchange.now.date() + timedelta(days=1)
    sandbox.advance(datetime(day.year, day.month, day.day, 0, 1, tzinfo=UTC))


def by_hand(sandbox: SandboxServer, symbol: str, quantity: int) -> None:
    """Somebody sells at the broker, past the desk."""
    body = {"symbol": symbol, "side": "sell", "type": "market", "time_in_force": "day", "qty": str(quantity)}
    environ = sandbox.environment
    keys = {"apca-api-key-id": environ["APCA_API_KEY_ID"], "apca-api-secret-key": environ["APCA_API_SECRET_KEY"]}
    assert httpx.post(f"{sandbox.url}/v2/orders", json=body, headers=keys).status_code == 200


def lived(sandbox: SandboxServer, config: Config) -> list[date]:
    """Seven sessions with all that may happen to a desk in an account."""
    journal, sessions = places.desk_journal("paper"), list[date]()

    def now() -> datetime:
        return sandbox.exchange.now

    for day in range(7):
        if day == 4:
            sandbox.advance("open")
            by_hand(sandbox, "TMBK", 3)
        to_next_session(sandbox)
        if day == 1:  # the coin's order stays open, and keeps its cash
            sandbox.fault("halted", symbol=COIN.replace("-", "/"))
            sandbox.fault("partial_fill", symbol="TMBK", fraction="0.4", then="expire", count=0)
            sandbox.fault("partial_fill", symbol="ORVL", fraction="0.3", then="cancel", count=0)
        if day == 2:
            sandbox.control_request("POST", "/sandbox/transfers", {"amount": "4321.09"})
            assert run(config, day, lambda: controls.halt(journal, now(), "in the middle") and None).outcome == "halted"
            assert controls.resume(journal, now()) is not None
        if day == 3:
            controls.halt(journal, now(), "before anything")
            stopped = run(config, day)
            assert (stopped.outcome, stopped.decisions) == ("halted", ())
            controls.resume(journal, now())
        if day == 4:
            with pytest.raises(BooksDisagree):
                run(config, day)
            assert asyncio.run(adopt_account(services(config), "sold by hand")).adopted
        if day == 5:
            sandbox.clear_faults()
        done = run(config, day)
        assert done.outcome == "done"
        sessions.append(done.session)
    return sessions


def parity(config: Config, session: date) -> Parity:
    with JournalReader(places.desk_journal("paper")) as reader:
        return check_parity(services(config), reader, session)


def seen(session: date) -> TurnInputs:
    with JournalReader(places.desk_journal("paper")) as reader:
        (entry,) = [one for one in reader.runs(RunKind.DAILY) if one.session == session]
        return read_inputs(reader.inputs(entry.id), calendars())


@pytest.mark.slow
def test_days_in_an_account_replay_to_the_same_whatever_happened(sandbox: SandboxServer, folder: Path) -> None:
    sessions = lived(sandbox, desk(folder))
    assert_everything_happened(sessions)
    config = later(folder)
    assert not any(assert_the_same(config, sessions, one_by_one=sessions[1:6]))

    prices = folder / "prices" / "TMBK.csv"
    header, *rows = prices.read_text().splitlines()
    place = next(n for n, row in enumerate(rows) if row.startswith(str(sessions[2])))
    fields = rows[place].split(",")
    closed = header.split(",").index("close")
    was, fields[closed] = fields[closed], fields[header.split(",").index("low")]
    rows[place] = ",".join(fields)
    prices.write_text("\n".join([header, *rows]) + "\n")
    for number, told in enumerate(assert_the_same(config, sessions, one_by_one=sessions[2:4])):
        if number < 2:
            assert told == ()
        else:
            (line,) = told
            assert line.startswith(f"TMBK: restated, close of {sessions[2]} was {float(was):g} and is ")


def assert_the_same(config: Config, sessions: list[date], *, one_by_one: list[date]) -> list[tuple[str, ...]]:
    """Decisions and orders of every day as a whole, those of some one by one; no key is asked for. The changes in the
    data of each day."""
    changes = []
    for session in sessions:
        found = parity(config, session)
        assert found.same and all(one.same_throughout for one in found.comparisons), (session, found.order_changes)
        assert len(found.comparisons) == len(SYMBOLS)
        changes.append(tuple(found.data))
    with JournalReader(places.desk_journal("paper")) as reader:
        for made in [made for made in reader.decisions() if made.key.session in one_by_one]:
            (one,) = redecide(services(config), reader, [made]).comparisons
            assert one.same_throughout, (made.key, one.decision)
    return changes


def assert_everything_happened(sessions: list[date]) -> None:
    with JournalReader(places.desk_journal("paper")) as reader:
        orders, adoptions = [entry.order for entry in reader.orders()], reader.adoptions()
        fills, flows = reader.fills(), reader.cash_flows()
    assert {one.symbol for one in adoptions} >= {"TMBK"}
    assert [flow.amount for flow in flows if flow.kind == "transfer"] == [Decimal("4321.09")]
    partly = {order.id for order in orders if order.state in (OrderState.CANCELED, OrderState.EXPIRED)}
    assert partly & {fill.order_id for fill in fills}
    assert any(seen(session).reserved > 0 for session in sessions)
    assert all(WHOLE in seen(session).whole_shares for session in sessions)
    whole = [order for order in orders if order.symbol == WHOLE]
    assert whole and all(o.quantity is not None and o.quantity == int(o.quantity) for o in whole if o.side == "BUY")
