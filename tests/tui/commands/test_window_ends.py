"""A window that is given to end on no session: the same run as to its calendar's last session before."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.market.trading_hours import calendar_for
from tests.long_cases import first_of
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_data_doctor import prices, write

FIRST, THURSDAY, FRIDAY = date(2025, 2, 3), date(2025, 4, 17), date(2025, 4, 25)
BEGINS = date(2024, 6, 3)
SHARE = calendar_for("AAA")


def folder_to(folder: Path, last: date, coin_last: date | None = None) -> Path:
    """Data of a share through a session, and of a coin through a day, where one is given."""
    write(folder, prices(days=SHARE.sessions(BEGINS, last)))
    if coin_last is not None:
        days = [BEGINS + timedelta(days=n) for n in range((coin_last - BEGINS).days + 1)]
        write(folder, prices(days=days), symbol="BTC-USD")
    return folder


def played(run: Run, folder: Path, symbols: str, last: date, *more: str) -> dict[str, Any]:
    at = ("--symbols", symbols, "--from", str(FIRST), "--to", str(last), "--data", str(folder), "--json")
    said = run("backtest", *at, *more)
    assert said.code == 0, said.err
    document: dict[str, Any] = said.json
    return {
        key: document[key]
        for key in ("fingerprint", "notes", "trades", "equity", "sessions", "last_session", "baselines", "metrics")
    }


RULE = ("--strategy", "buy-and-hold")


@pytest.mark.parametrize(
    ("session", "given"),
    [(FRIDAY, FRIDAY + timedelta(days=1)), (FRIDAY, FRIDAY + timedelta(days=2)), (THURSDAY, date(2025, 4, 18))],
    ids=["Saturday", "Sunday", "Good Friday"],
)
@pytest.mark.parametrize("data_ends", ["with the window", "later"])
def test_a_rule_run_to_a_day_without_a_session(
    run: Run, fresh: Path, tmp_path: Path, session: date, given: date, data_ends: str
) -> None:
    folder = folder_to(tmp_path / "data", session if data_ends == "with the window" else date(2025, 5, 9))
    found = played(run, folder, "AAA", given, *RULE)
    assert found == played(run, folder, "AAA", session, *RULE)
    assert [trade["side"] for trade in found["trades"]] == ["BUY"]
    assert not any("stop" in note for note in found["notes"])


@pytest.mark.parametrize("coin_last", [FRIDAY, FRIDAY + timedelta(days=2), FRIDAY + timedelta(days=20)])
@pytest.mark.parametrize("strategy", first_of(1, ["buy-and-hold", "equal-weight"]))
def test_a_coin_beside_shares(run: Run, fresh: Path, tmp_path: Path, coin_last: date, strategy: str) -> None:
    folder = folder_to(tmp_path / "data", FRIDAY, coin_last)
    rule = ("--strategy", strategy)
    found = played(run, folder, "AAA,BTC-USD", FRIDAY + timedelta(days=2), *rule)
    assert found == played(run, folder, "AAA,BTC-USD", FRIDAY, *rule)
    assert not any("stop" in note for note in found["notes"])
    assert set(found["equity"][-1]["positions"]) == {"AAA", "BTC-USD"}


def test_the_baselines_beside_a_preset_end_as_it_does(run: Run, fresh: Path, tmp_path: Path) -> None:
    folder = folder_to(tmp_path / "data", FRIDAY, FRIDAY + timedelta(days=2))
    agents = ("--preset", "finvision", "--model", "offline", "--from", "2025-04-07")
    found = played(run, folder, "AAA,BTC-USD", FRIDAY + timedelta(days=1), *agents)
    assert found == played(run, folder, "AAA,BTC-USD", FRIDAY, *agents)
    assert found["baselines"]


def test_what_stopped_trading_before_is_still_sold(run: Run, fresh: Path, tmp_path: Path) -> None:
    folder = folder_to(tmp_path / "data", THURSDAY)
    write(folder, prices(days=SHARE.sessions(BEGINS, FRIDAY)), symbol="BBB")
    found = played(run, folder, "AAA,BBB", FRIDAY + timedelta(days=1), *RULE)
    (sold,) = [trade for trade in found["trades"] if trade["side"] == "SELL"]
    assert (sold["symbol"], sold["session"]) == ("AAA", str(THURSDAY))
    assert any("AAA stop" in note for note in found["notes"])


@pytest.mark.parametrize("how", [RULE, ("--preset", "finvision", "--model", "offline")])
def test_an_order_that_waits_for_a_trade_ends_with_the_window(
    run: Run, fresh: Path, tmp_path: Path, how: tuple[str, ...]
) -> None:
    """Nothing is traded in the two sessions of the window."""
    last = FIRST + timedelta(days=1)
    folder = folder_to(tmp_path / "data", last)
    file = folder / "prices" / "AAA.csv"
    head, *rows = file.read_text().splitlines()
    traded = [row if row < str(FIRST) else row.rpartition(",")[0] + ",0" for row in rows]
    file.write_text("\n".join([head, *traded]) + "\n")
    found = played(run, folder, "AAA", last, *how)
    assert found["trades"] == []
    (waited,) = [note for note in found["notes"] if "its order waited" in note]
    assert f"AAA was not traded on {FIRST}" in waited and "expired (the window ended" in waited
    if "--preset" in how:
        (made,) = [one for one in run("decisions", "--json").json["decisions"] if one["action"] == "BUY"]
        (order,) = run("why", "AAA", made["session"], "--json").json["decisions"][0]["orders"]
        assert order["state"] == "expired"
