"""The desk's value at each close beside the broker's, from the command line: shown, named, and nothing that halts."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.sandbox import SandboxServer
from engine.account.time_weighted import CloseComparison, beside
from engine.domain.order import Portfolio, Position
from engine.domain.run import EquityPoint
from engine.settings import places
from engine.settings.config import load_config
from tests.long_cases import first_of
from tests.tui.commands.conftest import OpenBroker, Run, after_close, bought

START = datetime(2021, 3, 17, 20, 5, tzinfo=UTC)
"""PLWY pays a dividend on 2021-03-22."""


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    """A broker in whose account somebody has bought 50 shares."""
    server = open_broker(START, through=date(2021, 4, 9), symbols=("ORVL", "PLWY"), pay_dividends=True)
    bought(server, "PLWY", "50")
    return server


@pytest.mark.slow
def test_both_sides_of_every_close_and_cash_by_its_name(run: Run, sandbox: SandboxServer) -> None:
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes", "--json").code == 0
    for _ in range(3):
        assert run("--daily").code == 0
        after_close(sandbox)
    sandbox.control_request("POST", "/sandbox/transfers", {"amount": "250"})
    assert run("--daily").code == 0

    rows = run("equity", "--json").json["equity"]
    assert [row["session"] for row in rows] == ["2021-03-18", "2021-03-19", "2021-03-22", "2021-03-23"]
    for row in rows:
        assert abs(Decimal(row["broker_value"]) - Decimal(row["value"])) < Decimal("0.03")
        assert Decimal(row["broker_difference"]) == Decimal(row["broker_value"]) - Decimal(row["value"])
    named = [(row["session"], flow["kind"], flow["symbol"]) for row in rows for flow in row["cash_flows"]]
    assert ("2021-03-22", "dividend", "PLWY") in named
    assert "transfer" in {kind for _, kind, _ in named}
    said = run("equity")
    assert (said.code, said.err) == (0, "") and "BROKER" in said.out and "DIFFERS" not in said.out
    assert "2021-03-22  dividend PLWY +" in said.out and "transfer +250.00\n" in said.out
    assert ": dividend +" in run("report", "--session", "2021-03-22").out

    # Its prices are others from here on: told, and the desk goes on.
    day = date(2021, 3, 19)
    sandbox.exchange.book.closes[day] += Decimal("7.50")
    said = run("equity")
    assert "DIFFERS" in said.out and "+7.5" in said.out
    note = "at 1 of 4 closes the broker's prices make another value, the furthest off on 2021-03-19: +7.5"
    assert note in " ".join(said.out.split())
    looked = run("reconcile")
    assert looked.code == 0 and "they agree" in looked.out and "1 of 4 closes" in looked.out
    assert [one["session"] for one in run("reconcile", "--json").json["values"]] == ["2021-03-19"]
    after_close(sandbox)
    assert run("--daily", "--json").json["outcome"] == "done"


def test_closes_with_coins_are_not_compared_since_the_broker_values_them_at_another_moment(
    run: Run, open_broker: OpenBroker
) -> None:
    server = open_broker(START, through=date(2021, 4, 9), symbols=("ORVL", "WRNN-USD"), more='mode = "ask"\n')
    assert run("--daily").code == 0
    server.advance("open")
    assert run("order", "BUY", "WRNN-USD", "--amount", "5000", "--yes").code == 0
    server.advance(datetime(2021, 3, 19, 0, 5, tzinfo=UTC))
    assert run("--daily").code == 0
    before = run("equity", "--json").json["equity"][-1]
    server.advance("12h")
    now = run("equity", "--json").json["equity"][-1]
    assert now["session"] == "2021-03-18" and now["broker_value"] != before["broker_value"], "it goes with the coins"
    said = run("equity").out
    assert "DIFFERS" not in said and "another value" not in said
    assert "at 1 of 1 close crypto is held, which the broker values at" in " ".join(said.split())
    assert run("reconcile", "--json").json["values"] == []


def test_a_broker_that_is_silent_takes_nothing_of_the_desks_own_side(
    run: Run, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes", "--json").code == 0
    assert run("--daily").code == 0
    monkeypatch.setenv("APCA_API_SECRET_KEY", "wrong")
    said = run("equity")
    assert said.code == 0 and "2021-03-18" in said.out and "the broker's values are not shown" in said.out
    document = run("equity", "--json").json
    assert document["equity"][0]["broker_value"] is None and "refused" in document["broker_note"]


def test_a_simulated_desk_asks_nobody(run: Run, desk: Path) -> None:
    document = run("equity", "--json").json
    assert document["broker_note"] is None
    assert {row["broker_value"] for row in document["equity"]} == {None}
    assert "BROKER" not in run("equity").out


def test_rounding_is_half_a_cent_for_everything_that_is_rounded() -> None:
    held = {"AAA": Position(Decimal("1.5"), Decimal(10)), "BBB": Position(Decimal(2), Decimal(5))}
    point = EquityPoint(date(2021, 3, 18), Decimal("100.00"), Portfolio(Decimal(75), held), {})
    (one,) = beside([point], {date(2021, 3, 18): Decimal("100.02"), date(2021, 3, 19): Decimal(1)})
    assert (one.held, one.difference, one.differs) == (2, Decimal("0.02"), False)
    assert CloseComparison(point.session, point.value, Decimal("99.97"), 2).differs
    assert not CloseComparison(point.session, point.value, Decimal("100.01"), 0).differs
    assert CloseComparison(point.session, point.value, Decimal("100.02"), 0).differs


def own_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbol: str) -> Path:
    """The desk reads a data folder of its own from here on; the file of a symbol's prices there."""
    folder = tmp_path / "own"
    shutil.copytree(load_config(places.config_file()).config.data.folder or "", folder)
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(folder))
    return folder / "prices" / f"{symbol}.csv"


def scaled(file: Path, session: str, factor: str) -> str:
    """Other prices of a session; the text of the file before."""
    sound = file.read_text(encoding="utf-8")
    lines = sound.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(session))
    day, *prices, volume = lines[at].split(",")
    wrong = ",".join(price and str(round(Decimal(price) * Decimal(factor), 4)) for price in prices)
    file.write_text("\n".join([*lines[:at], f"{day},{wrong},{volume}", *lines[at + 1 :]]) + "\n", encoding="utf-8")
    return sound


@pytest.fixture
def coins(run: Run, open_broker: OpenBroker) -> SandboxServer:
    """A broker in whose account the desk has bought crypto, with a session to be decided."""
    server = open_broker(datetime(2024, 10, 20, 0, 5, tzinfo=UTC), through=date(2024, 11, 8), symbols=("WRNN-USD",))
    assert run("--daily", "--json").json["orders"]
    server.advance(datetime(2024, 10, 21, 0, 5, tzinfo=UTC))
    return server


@pytest.mark.parametrize(
    ("factor", "code"), [pytest.param("1.003", 0, marks=pytest.mark.slow), ("1.02", 0), ("0.84", 65)]
)
def test_other_closes_of_a_coin_warn_and_freeze_it(
    run: Run, coins: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str, code: int
) -> None:
    file = own_prices(tmp_path, monkeypatch, "WRNN-USD")
    sound = scaled(file, "2024-10-20", factor)
    said = run("--daily", "--json")
    assert said.code == code, said.err
    assert ("WRNN-USD: its close of 2024-10-20" in said.err) is (factor != "1.003"), said.err
    assert list(said.json["frozen"]) == (["WRNN-USD"] if code else [])
    assert run("reconcile").code == 0
    if code:
        file.write_text(sound, encoding="utf-8")
        coins.advance(datetime(2024, 10, 22, 0, 5, tzinfo=UTC))
        assert run("--daily").code == 0


def test_closes_that_cannot_be_asked_for_are_said_not_to_be_compared(run: Run, coins: SandboxServer) -> None:
    coins.fault("body", path="/v1beta3/crypto/us/snapshots", status=400, count=0, message='{"message": "not today"}')
    said = run("--daily")
    assert said.code == 0 and "closes of 2024-10-20 could not be compared with the broker's" in said.err


def test_an_account_that_may_not_read_the_snapshots_of_its_feed_is_compared_by_bars(
    run: Run, coins: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = '{"message": "subscription does not permit querying recent SIP data"}'
    coins.fault("body", path="/v1beta3/crypto/us/snapshots", status=403, count=0, message=refusal)
    scaled(own_prices(tmp_path, monkeypatch, "WRNN-USD"), "2024-10-20", "1.02")
    said = run("--daily")
    assert said.code == 0 and "WRNN-USD: its close of 2024-10-20" in said.err


@pytest.mark.parametrize(
    ("factors", "tolerance", "warned", "frozen"),
    first_of(
        3,
        [
            ({"PLWY": "1.003"}, "0.005", [], []),
            ({"PLWY": "1.12", "ORVL": "0.99"}, "0.005", ["ORVL"], ["PLWY"]),
            ({"PLWY": "1.03", "ORVL": "1.12"}, "0.04", [], ["ORVL"]),
            ({"PLWY": "1.007"}, "0.005", ["PLWY"], []),
            ({"PLWY": "0.93"}, "0.005", [], ["PLWY"]),
            ({"PLWY": "1.12", "ORVL": "0.88"}, "0.005", [], ["ORVL", "PLWY"]),
            ({"PLWY": "1.12", "ORVL": "0.88"}, "0.2", [], []),
        ],
    ),
)
def test_each_symbol_is_held_against_the_brokers_close_whether_it_is_held_or_not(
    run: Run,
    sandbox: SandboxServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    factors: dict[str, str],
    tolerance: str,
    warned: list[str],
    frozen: list[str],
) -> None:
    """PLWY is held, ORVL is not: a symbol that is frozen gets no order, the others are decided."""
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes", "--json").code == 0
    assert run("--daily").code == 0
    after_close(sandbox)
    monkeypatch.setenv("PAPERDESK_BROKER__PRICE_TOLERANCE", tolerance)
    files = {symbol: own_prices(tmp_path / symbol, monkeypatch, symbol) for symbol in list(factors)[:1]}
    folder = next(iter(files.values())).parent
    sound = {symbol: scaled(folder / f"{symbol}.csv", "2021-03-19", factor) for symbol, factor in factors.items()}
    said = run("--daily", "--session", "2021-03-19", "--json")
    assert (said.code, sorted(said.json["frozen"])) == (65 if frozen else 0, frozen), said.err
    told = [line for line in said.err.splitlines() if "its close of 2021-03-19" in line and "frozen" not in line]
    assert [symbol for symbol in sorted(factors) if any(symbol in line for line in told)] == warned, said.err
    assert all("feed iex" in line for line in told)
    decided = {made["symbol"] for made in said.json["decisions"]}
    assert decided == {"ORVL", "PLWY"} - set(frozen)
    assert {order["symbol"] for order in said.json["orders"]} <= decided
    for symbol, text in sound.items():
        (folder / f"{symbol}.csv").write_text(text, encoding="utf-8")
    after_close(sandbox)
    mended = run("--daily", "--json")
    assert (mended.code, mended.json["frozen"]) == (0, {}), mended.err
