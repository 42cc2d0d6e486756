"""A desk in an account at the sandbox's broker, without a socket: the Broker port over its protocol, and one daily run
after the other on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from connectors.alpaca.account import (
    activity,
    asset,
    broker_account,
    broker_clock,
    broker_order,
    equity_by_session,
    order_body,
    session_hours,
    update_of,
)
from connectors.sandbox.local_broker import LocalBroker, SandboxSettings
from connectors.sandbox.market import MarketData
from connectors.sandbox.protocol import Request, to_json
from engine.account.booking import Booking
from engine.account.broker_venue import BrokerVenue, claim_account
from engine.account.reconciliation import Reconciler
from engine.agents.ask import Asker
from engine.app.desk.booking_queue import NO_PRICES, book_ahead, session_to_close
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.domain.brokerage import Activity, Asset, BrokerAccount, BrokerClock, BrokerOrder, SessionHours
from engine.domain.market import CorporateAction, is_crypto
from engine.domain.model_call import ModelRequest
from engine.domain.order import Order, OrderState, OrderUpdate
from engine.domain.run import TradingMode
from engine.errors import CredentialsRefused, TryAgainLater
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, exchange_calendar, session_to_decide
from engine.messages.events import Event
from engine.preset import Preset
from engine.session.context import DeskRun, DeskRunResult, run_id
from engine.session.cost_meter import CostMeter
from engine.session.recorder import DeskRecorder
from engine.session.run import run_after_close
from tests.connectors.alpaca.sandbox_markets import FREE, START, loading, market_data
from tests.engine.desks import DECISION_ONLY, ScriptedModel, hold, trade
from tests.snapshots import snapshot

XNYS = exchange_calendar()
SYMBOLS = ("AAA", "BBB")
DAYS = XNYS.sessions(date(2024, 1, 31), date(2024, 2, 29))
"""BBB splits two for one on 2024-02-05 and pays a dividend on 2024-02-12."""


class LocalAccount:
    """The Broker port over a LocalBroker's protocol. What is not JSON, or an error of the server's, is an outcome that
    is not known."""

    def __init__(self, local: LocalBroker) -> None:
        self.local = local
        self.calls: list[str] = []

    async def aclose(self) -> None:
        """Nothing is open."""

    async def account(self) -> BrokerAccount:
        return broker_account(self._ask("account", "GET", "/v2/account"), self._ask("", "GET", "/v2/positions"))

    async def activities(self, after: datetime) -> Sequence[Activity]:
        query = {"after": (after - timedelta(days=7)).isoformat(), "direction": "asc"}
        return [activity(raw) for raw in self._ask("activities", "GET", "/v2/account/activities", query)]

    async def equity_history(self, first: date, last: date) -> dict[date, Decimal]:
        query = {"timeframe": "1D", "start": f"{first}T17:00:00Z"}
        every = equity_by_session(self._ask("history", "GET", "/v2/account/portfolio/history", query))
        return {day: value for day, value in every.items() if first <= day <= last}

    async def place(self, order: Order) -> OrderUpdate:
        answer = self._ask("place", "POST", "/v2/orders", body=order_body(order))
        if "message" not in answer:
            return update_of(broker_order(answer))
        if "unique" in answer["message"]:
            found = await self.lookup(order.id)
            assert found is not None
            return update_of(found)
        return OrderUpdate(order.id, OrderState.REJECTED, detail=answer["message"])

    async def lookup(self, order_id: str, broker_id: str = "") -> BrokerOrder | None:
        found = self._ask("lookup", "GET", "/v2/orders:by_client_order_id", {"client_order_id": order_id})
        return None if "message" in found else broker_order(found)

    async def open_orders(self) -> Sequence[BrokerOrder]:
        found = self._ask("open_orders", "GET", "/v2/orders", {"status": "open", "limit": "500", "direction": "asc"})
        return [broker_order(raw) for raw in found]

    async def orders_since(self, after: datetime) -> Sequence[BrokerOrder]:
        found = self._ask("orders_since", "GET", "/v2/orders", {"status": "all", "limit": "500", "direction": "asc"})
        return [broker_order(raw) for raw in found if raw["submitted_at"] > f"{after:%Y-%m-%dT%H:%M:%S}"]

    async def cancel(self, order_id: str) -> None:
        found = await self.lookup(order_id)
        assert found is not None
        self._ask("cancel", "DELETE", f"/v2/orders/{found.broker_id}")

    async def clock(self) -> BrokerClock:
        return broker_clock(self._ask("clock", "GET", "/v2/clock"))

    async def session_hours(self, first: date, last: date) -> Sequence[SessionHours]:
        found = self._ask("calendar", "GET", "/v2/calendar", {"start": str(first), "end": str(last)})
        return [session_hours(raw) for raw in found]

    async def asset(self, symbol: str) -> Asset | None:
        found = self._ask("asset", "GET", f"/v2/assets/{symbol}")
        return None if "message" in found else asset(found)

    def _ask(self, name: str, method: str, path: str, query: dict[str, str] | None = None, body: Any = None) -> Any:
        if name:
            self.calls.append(name)
        settings = self.local.settings
        headers = {"apca-api-key-id": settings.key, "apca-api-secret-key": settings.secret}
        request = Request(
            method=method, path=path, query=query or {}, headers=headers, body=b"" if body is None else to_json(body)
        )
        answer = self.local.answer(request)
        if answer.status == 401:
            raise CredentialsRefused("the keys are refused")
        if answer.broken or answer.status >= 500 or answer.status == 429:
            raise TryAgainLater(f"{path}: no answer ({answer.status})")
        return json.loads(answer.body) if answer.body else None


class BrokerClockOf:
    """The sandbox's own time."""

    def __init__(self, local: LocalBroker) -> None:
        self._local = local

    def now(self) -> datetime:
        return self._local.exchange.now


PLAN = {"AAA": "BSH", "BBB": "BHS"}


def by_plan(request: ModelRequest) -> Any:
    """Buys, sells and holds in turns; both symbols begin with a purchase."""
    wish = PLAN[request.symbol][DAYS.index(request.session) % 3]
    if wish == "H":
        return hold(request)
    return trade(request, "BUY", 8, "strong uptrend") if wish == "B" else trade(request, "SELL", 3, "reversal")


@dataclass(kw_only=True)
class Desk:
    """A desk's journal and its account, both in files, so that they can be copied."""

    folder: Path
    script: Callable[[ModelRequest], Any] = by_plan
    name: str = "desk"
    data: MarketData = field(default_factory=market_data)
    pay_dividends: bool = True
    mode: TradingMode = TradingMode.AUTO
    wrap: Callable[[LocalAccount], Any] = lambda account: account
    cash: Decimal = Decimal(100_000)
    start: datetime = START
    preset: Preset = DECISION_ONLY

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self.script)
        self.events: list[Event] = []
        self.waited: list[float] = []
        self.local = LocalBroker(
            loading(self.data),
            SandboxSettings(
                start=self.start,
                cash=self.cash,
                state=self.folder / "broker.db",
                rules=FREE,
                pay_dividends=self.pay_dividends,
            ),
        )
        asyncio.run(self.local.open())
        self.account = LocalAccount(self.local)

    @property
    def journal(self) -> Path:
        """The desk's journal."""
        return self.folder / f"{self.name}.db"

    @property
    def session(self) -> date:
        """The last completed one."""
        return session_to_decide(XNYS, SYMBOLS, None, self.local.exchange.now)

    @property
    def market(self) -> Market:
        """The sandbox's data as the desk's."""
        data = self.data
        held = {symbol: data.histories[symbol] for symbol in ("AAA", "BBB", "GONE")}
        known = {symbol: XNYS for symbol in held if not is_crypto(symbol)}
        return Market(histories=held, actions={s: data.actions[s] for s in held}, news={}, filings={}, calendars=known)

    def next_close(self) -> None:
        """Five minutes after the next close."""
        self.local.advance("close")
        self.local.advance("5m")

    async def pause(self, seconds: float) -> None:
        """Takes no time."""
        self.waited.append(seconds)

    def reconciler(self, reader: JournalReader) -> Reconciler:
        """Compares journal and account."""
        return Reconciler(
            self.wrap(self.account),
            reader,
            desk=self.name,
            calendar=XNYS,
            clock=BrokerClockOf(self.local),
            pause=self.pause,
            actions=self.actions,
        )

    async def actions(self, symbols: Sequence[str]) -> Mapping[str, Sequence[CorporateAction] | None]:
        """The data's."""
        return {symbol: self.data.actions[symbol] for symbol in symbols}

    def run(self, session: date | None = None) -> DeskRunResult:
        """One daily run."""
        session = session or self.session
        clock, identity = BrokerClockOf(self.local), run_id(self.name, session)
        with JournalWriter(self.journal) as journal, JournalReader(self.journal) as reader:
            meter = CostMeter("scripted")
            recorder = DeskRecorder(
                journal,
                identity,
                self.name,
                clock,
                reader=reader,
                market=self.market,
                bars=self.preset.windows.chart + INDICATOR_ROWS,
            )

            def tell(event: Event) -> None:
                journal.event(event)
                self.events.append(event)

            calendars = self.market.calendars
            asker = Asker({"default": self.model}, {}, recorder.answered, lambda asked, text: None)
            market, cycle = self.market, Cycle(self.preset, asker, calendars, tell)
            venue = BrokerVenue(
                self.wrap(self.account),
                self.reconciler(reader),
                Booking(journal, reader, run=identity, kind="alpaca", market=market, calendar=XNYS, clock=clock),
                journal=journal,
                reader=reader,
                prices=market.at(decision_time(XNYS, session)).close,
                claim=lambda account: claim_account(self.folder / f"{account}.account", self.name, account),
                desk=self.name,
                patience=timedelta(),
            )
            run = DeskRun(
                run=identity,
                desk=self.name,
                session=session,
                symbols=SYMBOLS,
                market=market,
                calendar=XNYS,
                cycle=cycle,
                name="finvision",
                label="a script",
                meter=meter,
                journal=journal,
                venue=venue,
                clock=clock,
                reader=reader,
                recorder=recorder,
                publish=tell,
                pause=self.pause,
                mode=self.mode,
                broker="alpaca",
            )
            return asyncio.run(run_after_close(run))

    def book(self) -> bool:
        """One booking ahead of the next run."""
        clock, session = BrokerClockOf(self.local), self.session
        with JournalWriter(self.journal) as journal, JournalReader(self.journal) as reader:
            booking = Booking(
                journal,
                reader,
                run=run_id(self.name, session_to_close(reader, XNYS, session)),
                kind="alpaca",
                market=NO_PRICES,
                calendar=XNYS,
                clock=clock,
                ahead=True,
            )
            booked = book_ahead(
                self.reconciler(reader), booking, session=session, patience=timedelta(), publish=self.events.append
            )
            return asyncio.run(booked)


def assert_equal(desk: Desk) -> None:
    """Journal (books and everything later) and broker: cash to the cent, positions exactly."""
    state, ours = desk.local.state(), snapshot(desk.journal).portfolio()
    assert ours.cash == Decimal(state["cash"])
    assert {s: p.quantity for s, p in ours.positions.items()} == {
        s: Decimal(quantity) for s, quantity in state["positions"].items()
    }
