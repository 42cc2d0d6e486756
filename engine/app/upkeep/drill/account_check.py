"""The part of the drill that a real paper account can be asked: questions alone, nothing is ordered or changed.

What the published interface does not promise is told as it was found, such as the entries of a split.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import date, datetime, timedelta

from engine.app.desk.context import ANY_SHARE, agreed_clock, check_calendar
from engine.app.upkeep.drill.drill import OnResult
from engine.app.upkeep.drill.results import keep_result
from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.market import Symbol
from engine.domain.text import counted, money
from engine.errors import ConfigError, MalformedData, PaperdeskError
from engine.ports import Broker
from engine.reports.documents.drill import ACCOUNT, RowResult, drill_document
from engine.reports.documents.row_json import Row
from engine.services import Services

UNKNOWN_ORDER = "paperdesk-drill-never-sent"
UNKNOWN_SYMBOL: Symbol = "ZZPDZZ"
_HISTORY = timedelta(days=90)
_DATA = timedelta(days=10)

Question = Callable[[], Awaitable[str]]
"""Asks, and returns what was found in words. Raises PaperdeskError for what does not hold."""


async def drill_account(services: Services, on_result: OnResult) -> Row:
    """The document of a drill of the configured account, which is kept. Raises as `check_account` does."""
    document = drill_document(ACCOUNT, await check_account(services, on_result), services.clock.now())
    keep_result(document)
    return document


async def check_account(services: Services, on_result: OnResult) -> tuple[RowResult, ...]:
    """Ask the configured account everything that a run asks, and what the interface does not promise. Raises
    ConfigError for a desk without an account, ConfigError and CredentialsRefused for addresses and keys."""
    if services.broker is None:
        raise ConfigError("--account asks a paper account, and this desk trades on the simulated market (broker.kind)")
    results = list[RowResult]()
    async with aclosing(services.broker.open()) as broker:
        for name, (fault, ask) in _AccountQuestions(services, broker).all().items():
            results.append(await _asked(name, fault, ask))
            on_result(results[-1], len(results))
    return tuple(results)


async def _asked(name: str, fault: str, ask: Question) -> RowResult:
    begun, held = time.monotonic(), True
    try:
        found = await ask()
    except PaperdeskError as error:
        held, found = False, f"{error} (code {error.exit_code})"
    seconds = round(time.monotonic() - begun, 1)
    return RowResult(name=name, fault=fault, held=held, detail=found, seconds=seconds)


class _AccountQuestions:
    """The questions to one account."""

    def __init__(self, services: Services, broker: Broker) -> None:
        self._services = services
        self._broker = broker
        self._history: Sequence[Activity] = ()

    def all(self) -> dict[str, tuple[str, Question]]:
        """Every question in its order, by name, with what it is about."""
        return {
            "clock": ("the clock", self._clock),
            "account": ("account and positions", self._account),
            "orders": ("open orders", self._orders),
            "calendar": ("the calendar", self._calendar),
            "unknown-order": ("an unknown client order id", self._unknown_order),
            "asset": ("an instrument", self._asset),
            "unknown-asset": ("an unknown instrument", self._unknown_asset),
            "activities": ("the account's history", self._activities),
            "history-ids": ("the history's ids, asked twice", self._history_ids),
            "fills": ("trades in the history", self._fills),
            "splits": ("`qty` of split entries", lambda: self._entries(ActivityKind.SPLIT)),
            "fees": ("entries of fees", lambda: self._entries(ActivityKind.FEE)),
            "transfers": ("entries of transfers", lambda: self._entries(ActivityKind.TRANSFER)),
            "value-history": ("the value at each close", self._values),
            "data": ("daily bars", self._data),
        }

    async def _now(self) -> datetime:
        return (await self._broker.clock()).now

    async def _clock(self) -> str:
        clock = await agreed_clock(self._services, self._broker)
        return f"{clock.now():%Y-%m-%d %H:%M:%S} UTC"

    async def _account(self) -> str:
        account = await self._broker.account()
        held = counted(len(account.positions), "position")
        said = f"{account.status}, cash {money(account.cash)} {account.currency}, {held}"
        unpriced = [symbol for symbol in account.positions if symbol not in account.prices]
        return "; ".join(filter(None, (said, account.blocked, *account.remarks, _listed("without a price", unpriced))))

    async def _orders(self) -> str:
        return f"{len(await self._broker.open_orders())} open"

    async def _calendar(self) -> str:
        today, calendar = (await self._now()).date(), self._services.calendar_for(ANY_SHARE)
        await check_calendar(self._broker, calendar, today)
        return f"as {calendar.name} around {today}"

    async def _unknown_order(self) -> str:
        if await self._broker.lookup(UNKNOWN_ORDER) is not None:
            raise MalformedData(f"the broker has an order {UNKNOWN_ORDER}, which nobody has sent")
        return "it is not found"

    async def _asset(self) -> str:
        symbol = next(iter(self._services.symbols), ANY_SHARE)
        found = await self._broker.asset(symbol)
        if found is None:
            return f"{symbol} is not listed"
        parts = "in parts" if found.fractionable else "in whole shares"
        return f"{symbol} is {found.status}, {'tradable' if found.tradable else 'not tradable'}, {parts}"

    async def _unknown_asset(self) -> str:
        if await self._broker.asset(UNKNOWN_SYMBOL) is not None:
            raise MalformedData(f"the broker lists {UNKNOWN_SYMBOL}, which is no symbol")
        return "it is not listed"

    async def _activities(self) -> str:
        self._history = await self._broker.activities(await self._now() - _HISTORY)
        kinds = Counter(one.kind.value for one in self._history)
        others = sorted({one.description for one in self._history if one.kind is ActivityKind.OTHER})
        said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing yet"
        return said + (f"; booked as other: {'; '.join(others[:5])}" if others else "")

    async def _history_ids(self) -> str:
        again = {one.id: one for one in await self._broker.activities(await self._now() - _HISTORY)}
        changed = [one.id for one in self._history if again.get(one.id) != one]
        if changed:
            raise MalformedData(f"{len(changed)} entries came otherwise a second time, such as {changed[0]}")
        return f"{len(again)} entries, the same again"

    async def _fills(self) -> str:
        fills = [one for one in self._history if one.kind is ActivityKind.FILL]
        broken = [one.id for one in fills if not one.broker_id or one.price is None or one.side is None]
        if broken:
            raise MalformedData(f"{len(broken)} trades lack order, side or price, such as {broken[0]}")
        return f"{len(fills)} with order, side and price"

    async def _entries(self, kind: ActivityKind) -> str:
        found = [one for one in self._history if one.kind is kind]
        shown = [f"{one.time:%Y-%m-%d} {one.symbol or ''} {one.quantity:f} for {one.amount:f}" for one in found[-3:]]
        return f"{len(found)}, the latest: {'; '.join(shown)}" if found else "none in 90 days, so nothing is known"

    async def _values(self) -> str:
        today: date = (await self._now()).date()
        found = await self._broker.equity_history(today - _HISTORY, today)
        return f"{len(found)} closes" + (f", the last of {max(found)}" if found else "")

    async def _data(self) -> str:
        service = self._services.broker
        source = None if service is None else service.open_data()
        if source is None:
            return "the broker brings no data"
        symbol, today = next(iter(self._services.symbols), ANY_SHARE), (await self._now()).date()
        try:
            bars = [bar async for _, some in source.bars([symbol], today - _DATA, today) for bar in some]
        finally:
            await source.aclose()
        return f"{len(bars)} of {symbol}" + (f", the last of {bars[-1].session}" if bars else "")


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names)}" if names else ""
