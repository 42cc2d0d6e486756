"""A desk with coins in an account at the broker, beside shares and alone: nights, a holiday, prices below a cent."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.demo.market import DemoMarket
from connectors.sandbox import SandboxServer, SandboxSettings
from connectors.wiring.sandbox import loader
from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.app.desk.context import Finished
from engine.app.desk.run import run_daily
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.order import OrderState
from engine.domain.run import DataSpec, ExecutionRules
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import Config
from tests.data_folders import write_folder
from tests.engine.desks import hold, trade
from tests.snapshots import snapshot

pytestmark = pytest.mark.slow

COIN, SMALL = "WRNN-USD", "MITE-USD"
"""The demo market's coin, and one at a millionth of its price."""
EVENING = datetime(2021, 3, 31, 20, 5, tzinfo=UTC)
"""Five minutes after the close of a Wednesday; the Friday after it is a holiday of the exchange's."""
HOLIDAY = date(2021, 4, 2)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo market, and a coin that costs less than a cent."""
    target = tmp_path_factory.mktemp("data") / "demo"
    asyncio.run(write_folder(DemoMarket(7, calendars(), date(2021, 4, 30)), target))
    with (target / "prices" / f"{COIN}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (target / "prices" / f"{SMALL}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for row in rows:
            small = {
                n: f"{Decimal(row[n]) / 1_000_000:.9f}" for n in ("open", "high", "low", "close", "adj_close") if row[n]
            }
            writer.writerow({**row, **small})
    return target


class Trader:
    """Buys and sells by the day of the month and the symbol's place, so that every session trades."""

    spec = label = "trader"
    sees = True

    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = list(symbols)

    async def answer(self, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        turn = (request.session.toordinal() + self.symbols.index(request.symbol)) % 3
        wishes = [("BUY", 8, "strong uptrend"), ("SELL", 3, "reversal")]
        said = trade(request, *wishes[turn]) if turn < 2 else hold(request)
        return ModelResult(model="trader", answer=said)


def desk(folder: Path, symbols: Sequence[str]) -> Config:
    plain: dict[str, Any] = {
        "desk": {"name": "paper", "symbols": list(symbols), "preset": "finvision"},
        "data": {"folder": str(folder), "refresh": False},
        "broker": {"kind": "alpaca", "clock": "broker"},
    }
    return Config.model_validate(plain)


@pytest.fixture(params=[Decimal(0), Decimal("0.0025")], ids=["free", "with fees"])
def rate(request: pytest.FixtureRequest) -> Decimal:
    """What a trade costs, as a part of its amount."""
    return Decimal(request.param)


@pytest.fixture
def sandbox(written: Path, rate: Decimal, monkeypatch: pytest.MonkeyPatch) -> Iterator[SandboxServer]:
    settings = SandboxSettings(start=EVENING, rules=ExecutionRules(commission_rate=rate))
    with SandboxServer(loader(DataSpec(str(written))), settings) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def to_midnight(sandbox: SandboxServer) -> None:
    """On to the next midnight (UTC), and a minute."""
    day = sandbox.exchange.now.date() + timedelta(days=1)
    sandbox.advance(datetime(day.year, day.month, day.day, 0, 1, tzinfo=UTC))


def run(config: Config, symbols: Sequence[str]) -> DeskRunResult | Finished:
    return asyncio.run(run_daily(services(config), through=lambda inner: Trader(symbols)))


def assert_equal_books(sandbox: SandboxServer, last: DeskRunResult) -> None:
    """Journal and broker, to the cent and the last decimal: all but what the last run's coins have come to since."""
    book, kept = sandbox.exchange.book, snapshot(places.desk_journal("paper"))
    ours = kept.portfolio()
    cash, held = ours.cash, {symbol: position.quantity for symbol, position in ours.positions.items()}
    mine = {order.id for order in last.orders}
    for line in book.activities:
        if line["id"] in kept.entries:
            continue
        if line["activity_type"] == "CFEE":
            cash += Decimal(line["net_amount"])
            continue
        order = book.by_id[line["order_id"]]
        assert order.client_order_id in mine and "-" in order.symbol, f"not booked: {line}"
        sign = 1 if order.side == "BUY" else -1
        held[order.symbol] = held.get(order.symbol, Decimal(0)) + sign * Decimal(line["qty"])
        cash -= sign * ours.money(Decimal(line["qty"]) * Decimal(line["price"]))
    assert cash == book.portfolio.cash
    theirs = {symbol: position.quantity for symbol, position in book.portfolio.positions.items()}
    assert {symbol: quantity for symbol, quantity in held.items() if quantity} == theirs


def test_shares_and_coins_keep_journal_and_broker_equal_over_nights_weekends_and_a_holiday(
    sandbox: SandboxServer, written: Path, rate: Decimal
) -> None:
    symbols = ("ORVL", COIN, SMALL)
    config, seen, last = desk(written, symbols), list[date](), None
    for _ in range(20):
        to_midnight(sandbox)
        done = run(config, symbols)
        if isinstance(done, Finished):  # a weekend or the holiday: no session of the desk's
            assert last is not None and done.session == seen[-1]
            assert_equal_books(sandbox, last)
            continue
        last = done
        assert done.outcome == "done"
        assert_equal_books(sandbox, last)
        # The night goes on: coins have filled, shares wait for the open.
        for order in done.orders:
            state = sandbox.state()["orders"]
            (there,) = [one for one in state if one["client_order_id"] == order.id]
            assert there["time_in_force"] == ("gtc" if "-" in order.symbol else "day")
            assert there["symbol"] == order.symbol.replace("-", "/")
            assert order.state is OrderState.ACKNOWLEDGED
            assert there["status"] == ("filled" if "-" in order.symbol else "accepted")
        seen.append(done.session)
        assert isinstance(run(config, symbols), Finished)
    assert len(seen) >= 12 and HOLIDAY not in seen
    assert seen == calendars()("ORVL").sessions(seen[0], seen[-1])
    assert_lived(symbols, rate, least=12)


def test_a_desk_of_coins_alone_runs_every_day(sandbox: SandboxServer, written: Path, rate: Decimal) -> None:
    symbols = (COIN, SMALL)
    config, seen = desk(written, symbols), list[date]()
    for _ in range(14):
        to_midnight(sandbox)
        done = run(config, symbols)
        assert isinstance(done, DeskRunResult) and done.outcome == "done"
        there = {one["client_order_id"]: one["status"] for one in sandbox.state()["orders"]}
        assert {there[order.id] for order in done.orders} <= {"filled"}
        assert_equal_books(sandbox, done)
        seen.append(done.session)
    assert seen == [date(2021, 3, 31) + timedelta(days=n) for n in range(14)]
    assert_lived(symbols, rate, least=8)


def assert_lived(symbols: Sequence[str], rate: Decimal, least: int) -> None:
    """Enough was traded at all prices, by the smallest part, and what the broker took stands as fees."""
    journal = places.desk_journal("paper")
    with JournalReader(journal) as reader:
        fills, flows = reader.fills(), reader.cash_flows()
    for symbol in symbols:
        assert {fill.side for fill in fills if fill.symbol == symbol} == {"BUY", "SELL"}
    assert len(fills) >= least
    assert any(fill.price < Decimal("0.01") for fill in fills)
    assert any(fill.quantity.as_tuple().exponent == -9 for fill in fills)
    kinds = {flow.kind for flow in flows}
    assert ("fee" in kinds) is (rate > 0)
    assert kinds <= {"fee", "split"}  # ORVL splits on a later day; nothing was left to rounding
    assert quick_check(journal) == ()
