"""What doctor says of the broker, and what the account there answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.clock import LiveClock
from tests.connectors.alpaca.sandbox_markets import sandbox
from tests.tui.commands.conftest import Run

Checks = Callable[..., dict[str, tuple[str, str]]]
SECRET = "a-secret-that-nobody-may-ever-see"


@pytest.fixture
def checks(run: Run) -> Checks:
    """Doctor's findings about the broker, state and detail by name."""

    def found(*options: str) -> dict[str, tuple[str, str]]:
        said = run("doctor", "--json", *options)
        assert SECRET not in said.out + said.err
        every: list[dict[str, Any]] = said.json["checks"]
        assert said.code == (1 if any(one["state"] == "fail" for one in every) else 0)
        return {one["name"]: (one["state"], one["detail"]) for one in every if one["area"] in ("Broker", "Keys")}

    return found


def configured(home: Path, *lines: str) -> None:
    text = "\n".join(['[broker]\nkind = "alpaca"', *lines])
    (home / "config.toml").write_text(f'[desk]\nsymbols = ["AAA", "BTC-USD"]\n{text}\n', encoding="utf-8")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Callable[[SandboxServer], None]:
    """Points the environment at a sandbox."""

    def point(server: SandboxServer) -> None:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)

    return point


def test_a_simulated_desk_needs_no_keys(fresh: Path, checks: Checks) -> None:
    found = checks("--connect")
    assert found["kind"] == ("ok", "the simulated market, with its books in the desk's journal")
    assert found["APCA_API_KEY_ID"] == ("ok", "not set, not needed") and "clock" not in found


def test_a_paper_account_needs_both_keys(fresh: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(fresh, 'mode = "ask"')
    monkeypatch.setenv("APCA_API_SECRET_KEY", SECRET)
    found = checks()
    assert found["kind"] == ("ok", "a paper account at Alpaca; mode ask: orders wait for approval")
    assert found["APCA_API_KEY_ID"] == ("fail", "missing, and the broker needs it")
    assert found["APCA_API_SECRET_KEY"] == ("ok", "present")
    assert found["account"][0] == "fail" and found["account"][1].startswith("APCA_API_KEY_ID is not set")
    monkeypatch.setenv("APCA_API_KEY_ID", "PK0123")
    found = checks()
    assert found["address"] == ("ok", "https://paper-api.alpaca.markets, given up after 15 s")
    assert found["data address"] == ("ok", "https://data.alpaca.markets, feed iex")
    assert "account" not in found, "no model calls"


def test_the_live_address_fails(fresh: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(fresh, 'trading_url = "https://api.alpaca.markets"')
    monkeypatch.setenv("APCA_API_KEY_ID", "PK0123")
    monkeypatch.setenv("APCA_API_SECRET_KEY", SECRET)
    assert "real money" in checks("--connect")["address"][1]


def test_an_account_that_answers(fresh: Path, checks: Checks, keys: Callable[[SandboxServer], None]) -> None:
    configured(fresh, 'clock = "broker"')
    with sandbox(secret=SECRET) as server:
        keys(server)
        found = checks("--connect")
        assert {state for state, _ in found.values()} == {"ok"}
        assert found["clock"][1].startswith("2024-01-31 21:05:00 UTC") and "behind this machine" in found["clock"][1]
        assert found["account"][1] == "ACTIVE, cash 100000.00 USD, worth 100000.00, 0 positions, 0 open orders"
        assert found["calendar"][1] == "the same 42 sessions from 2024-01-01 to 2024-03-01 as known here"
        assert found["data"][1] == "answers; the latest daily bar of AAA is of 2024-01-31"
        assert not server.state()["posts"], "looking places no order"


def test_a_clock_far_apart_a_block_and_no_prices_are_said(
    fresh: Path, checks: Checks, keys: Callable[[SandboxServer], None]
) -> None:
    configured(fresh)
    with sandbox(secret=SECRET) as server:
        keys(server)
        server.fault("trading_blocked")
        server.fault("server_error", path="/v2/calendar", count=0)
        server.fault("renamed", symbol="AAA", then="ZZZ")
        found = checks("--connect")
    assert found["clock"][0] == "fail" and 'broker.clock = "broker"' in found["clock"][1]
    assert found["account"][0] == "fail" and "trading is blocked" in found["account"][1]
    assert found["calendar"][0] == "fail" and "HTTP 500" in found["calendar"][1]
    assert found["data"][0] == "note" and "no bar of AAA" in found["data"][1]


def test_a_broker_on_this_machines_time(fresh: Path, checks: Checks, keys: Callable[[SandboxServer], None]) -> None:
    configured(fresh)
    now = LiveClock().now()
    with sandbox(secret=SECRET, start=now) as server:
        keys(server)
        assert checks("--connect")["clock"][0] in ("ok", "note"), "a slow machine takes a second to start"
    with sandbox(secret=SECRET, start=now + timedelta(hours=1)) as server:
        keys(server)
        state, said = checks("--connect")["clock"]
        assert state == "fail" and "ahead of this machine" in said


def test_refused_keys_fail_on_both_hosts(fresh: Path, checks: Checks, keys: Callable[[SandboxServer], None]) -> None:
    configured(fresh)
    with sandbox(secret=SECRET) as server:
        keys(server)
        server.fault("wrong_key", count=0)
        found = checks("--connect")
    assert [name for name, (state, _) in found.items() if state == "fail"] == ["clock", "data"]
    for name in ("clock", "data"):
        assert "APCA_API_KEY_ID" in found[name][1] and "APCA_API_SECRET_KEY" in found[name][1]
