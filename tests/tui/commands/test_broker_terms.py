"""What a broker says of itself, its instruments and the account: orders keep to it, and what cannot be is not sent."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.settings import places
from tests.long_cases import first_of
from tests.tui.commands.conftest import OpenBroker, Run, Said, after_close

SHARES_AT = datetime(2025, 3, 7, 21, 5, tzinfo=UTC)
"""The offline analysts buy three of four shares of the demo market at this session's close."""
SHARES, BOUGHT = ("ORVL", "HLXM", "TMBK", "PLWY"), 3
COIN_AT = datetime(2024, 10, 20, 0, 5, tzinfo=UTC)
COIN = "WRNN-USD"
SHORT_AT = datetime(2025, 2, 24, 21, 5, tzinfo=UTC)
"""They sell TMBK at this one's, which a desk that begins does not hold."""


@pytest.fixture
def shares(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(SHARES_AT, through=date(2025, 7, 11), symbols=SHARES)


@pytest.fixture
def coin(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(COIN_AT, through=date(2024, 11, 8), symbols=(COIN,))


@pytest.fixture
def short(open_broker: OpenBroker, tmp_path: Path) -> SandboxServer:
    """The account of a desk that may sell short."""
    preset = tmp_path / "short.toml"
    preset.write_text('extends = "finvision"\nname = "short"\n[sizing]\nallow_short = true\n')
    server = open_broker(SHORT_AT, through=date(2025, 7, 11), symbols=("TMBK",))
    file = places.config_file()
    file.write_text(file.read_text().replace('preset = "finvision"', f'preset = "{preset.as_posix()}"'))
    return server


def placed(server: SandboxServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.state()["orders"]
    return found


def cuts(said: Said) -> dict[str, str]:
    return {made["symbol"]: made["cut"] or "" for made in said.json["decisions"]}


def test_no_order_goes_beyond_the_buying_power_and_the_decision_says_so(run: Run, shares: SandboxServer) -> None:
    shares.fault("account", change={"buying_power": "3000.00", "non_marginable_buying_power": "3000.00"})
    said = run("--daily", "--json")
    assert said.code == 0, said.err
    (order,) = placed(shares)
    assert Decimal(order["notional"]) <= 3000
    told = [cut for cut in cuts(said).values() if "buying power" in cut]
    assert len(told) == BOUGHT and all("3000.00" in cut for cut in told), told
    assert "buying power" in run("why", order["symbol"], "2025-03-07").out


def test_nothing_is_sent_where_the_buying_power_is_less_than_any_purchase(run: Run, shares: SandboxServer) -> None:
    shares.fault("account", change={"buying_power": "300.00", "non_marginable_buying_power": "300.00"})
    said = run("--daily", "--json")
    assert (said.code, placed(shares)) == (0, [])
    assert sum("buying power is 300.00" in cut for cut in cuts(said).values()) == BOUGHT, cuts(said)
    after_close(shares)
    own = run("order", "BUY", "ORVL", "--amount", "5000", "--yes")
    assert (own.code, placed(shares)) == (1, []) and "buying power" in own.out + own.err


@pytest.mark.parametrize(
    ("account", "kind", "change"),
    first_of(
        2,
        [
            ("shares", "account", {"buying_power": "3000.00", "non_marginable_buying_power": "3000.00"}),
            ("short", "account", {"shorting_enabled": False}),
            ("coin", "asset", {"min_order_size": "1000000"}),
            ("short", "asset", {"shortable": False}),
        ],
    ),
)
def test_a_decision_is_taken_again_within_what_the_broker_said_then(
    run: Run, request: pytest.FixtureRequest, account: str, kind: str, change: dict[str, Any]
) -> None:
    server: SandboxServer = request.getfixturevalue(account)
    symbol = {"coin": COIN, "short": "TMBK"}[account] if kind == "asset" else "*"
    server.fault(kind, symbol=symbol, change=change)
    decided = run("--daily", "--json")
    assert decided.code == 0, decided.err
    server.clear_faults()
    for made in decided.json["decisions"]:
        again = run("why", made["symbol"], decided.json["session"], "--redecide", "--json").json
        assert again["same_throughout"], again["decisions"][0]["differs"]
    assert run("parity", "--json").json["same"]


@pytest.mark.parametrize("step", first_of(1, ["0.25", "0.0001"]))
def test_a_coin_is_sold_in_its_increments(run: Run, coin: SandboxServer, step: str) -> None:
    coin.fault("asset", symbol=COIN, change={"min_trade_increment": step, "min_order_size": step})
    assert run("--daily").code == 0
    coin.advance("1d")
    assert run("--daily").code == 0
    held = Decimal(run("positions", "--json").json["positions"][COIN]["quantity"])
    assert held % Decimal(step), "it was bought by amount"
    refused = run("order", "SELL", COIN, "--quantity", str(held), "--yes")
    assert refused.code == 2 and step in refused.err
    sold = run("order", "SELL", COIN, "--quantity", str(held // Decimal(step) * Decimal(step)), "--yes", "--json")
    assert sold.code == 0, sold.err
    assert placed(coin)[-1]["status"] == "filled"


@pytest.mark.parametrize("least", first_of(1, ["min_order_size", "min_trade_increment"]))
def test_an_order_below_the_least_size_is_not_sent(run: Run, coin: SandboxServer, least: str) -> None:
    coin.fault("asset", symbol=COIN, change={least: "1000000"})
    said = run("--daily", "--json")
    assert (said.code, placed(coin)) == (0, [])
    assert "smallest order" in cuts(said)[COIN]


def test_the_least_amount_of_a_coin_is_ten_dollars(run: Run, coin: SandboxServer) -> None:
    assert run("--daily").code == 0
    coin.advance("1d")
    assert run("--daily").code == 0
    before = len(placed(coin))
    said = run("order", "BUY", COIN, "--amount", "9.50", "--yes")
    assert (said.code, len(placed(coin))) == (1, before) and "smallest order" in said.out + said.err
    assert run("order", "BUY", COIN, "--amount", "10.50", "--yes").code == 0


def test_shares_are_sold_short_whole(run: Run, short: SandboxServer) -> None:
    said = run("--daily", "--json")
    assert said.code == 0, said.err
    (order,) = placed(short)
    quantity = Decimal(order["qty"])
    assert (order["side"], quantity % 1) == ("sell", 0) and quantity > 0
    after_close(short)
    assert run("--daily").code == 0
    assert Decimal(run("positions", "--json").json["positions"]["TMBK"]["quantity"]) == -quantity


@pytest.mark.parametrize(
    ("kind", "change"),
    [("asset", {"shortable": False}), ("asset", {"easy_to_borrow": False}), ("account", {"shorting_enabled": False})],
)
def test_what_cannot_be_sold_short_is_not_sent(
    run: Run, short: SandboxServer, kind: str, change: dict[str, bool]
) -> None:
    short.fault(kind, symbol="TMBK" if kind == "asset" else "*", change=change)
    said = run("--daily", "--json")
    assert (said.code, placed(short)) == (0, [])
    assert "short" in cuts(said)["TMBK"]


def test_coins_are_never_sold_short(run: Run, short: SandboxServer) -> None:
    file = places.config_file()
    file.write_text(file.read_text().replace('["TMBK"]', f'["TMBK", "{COIN}"]'))
    said = run("--daily")
    assert (said.code, placed(short)) == (78, []) and COIN in said.err


def test_a_size_beyond_any_account_is_a_slip(run: Run, desk: Path) -> None:
    for side, unit, size in (
        ("BUY", "--quantity", "1e30"),
        ("SELL", "--amount", "1e400"),
        ("BUY", "--amount", "9" * 40),
    ):
        said = run("order", side, "ORVL", unit, size, "--yes")
        assert (said.code, said.out) == (2, "") and "exceeds what any account" in said.err


def test_a_symbol_that_takes_no_orders_is_named_without_a_contradiction(run: Run, shares: SandboxServer) -> None:
    shares.fault("untradable", symbol="ORVL")
    said = run("--daily", "--json")
    (order,) = [one for one in said.json["orders"] if one["symbol"] == "ORVL"]
    assert (said.code, order["state"]) == (0, "canceled")
    detail = next(one["detail"] for one in run("orders", "--json").json["orders"] if one["id"] == order["id"])
    assert "ORVL" in detail and "active" not in detail


def test_a_run_whose_orders_are_all_rejected_ends_with_1(run: Run, shares: SandboxServer) -> None:
    shares.fault("refuse", message="refused by the user", count=0)
    said = run("--daily", "--json")
    assert (said.code, said.json["outcome"]) == (1, "done")
    assert {order["state"] for order in said.json["orders"]} == {"rejected"}
    assert "every order was rejected" in said.err
    assert run("status", "--json").json["operation"]["runs"][0]["exit_code"] == 1
    shares.clear_faults()
    assert run("--daily").code == 0


def test_one_of_several_that_is_rejected_is_no_failure(run: Run, shares: SandboxServer) -> None:
    shares.fault("refuse", message="refused by the user")
    said = run("--daily", "--json")
    assert (said.code, len(placed(shares))) == (0, BOUGHT - 1)
