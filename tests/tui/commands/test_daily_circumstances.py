"""`paperdesk --daily` at a broker on bad days: what ends it, with which exit code and line, and that it goes on after.

Every test has a sandbox with a socket and a desk of its own; what needs a process of its own gets one. The demo market
splits HLXM two for one on 2024-12-16; summer time began on 2025-03-09; 2025-07-03 was a half day before a holiday. What
a row of the drill holds already (test_drill) is not told again here.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.clock import LiveClock
from engine.journal.reader import JournalReader
from engine.reports.documents.operations import exit_code
from engine.settings import places
from tests.tui.commands.conftest import OpenBroker, Run, after_close, bought, ordered

FRIDAY = datetime(2025, 3, 7, 21, 5, tzinfo=UTC)
"""Five minutes after a close; the offline analysts buy on the Monday that follows."""
THROUGH = date(2025, 7, 11)
"""Last day of the desk's data."""
Open = Callable[..., SandboxServer]


@pytest.fixture
def own_data(demo_folder: Callable[[date], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The desk reads, and may write, a copy of the data that other tests read as well."""
    folder = shutil.copytree(demo_folder(THROUGH), tmp_path / "data")
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(folder))


@pytest.fixture
def opened(open_broker: OpenBroker) -> Open:
    """Opens the desk's broker at a moment; over a data folder, or over the demo market of any day."""

    def at(moment: datetime = FRIDAY, *, any_day: bool = False) -> SandboxServer:
        through = None if any_day else THROUGH
        return open_broker(moment, through=through, symbols=("ORVL", "HLXM"), more="timeout = 20\n")

    return at


def says(said: Any, code: int, *words: str) -> None:
    """How it ended, in one line with these words in it."""
    assert (said.code, said.result) == (code, ""), said
    assert said.err.startswith("paperdesk: ") and said.err.count("\n") == 1, said.err
    for word in words:
        assert word in said.err, said.err


def done(run: Run, session: str) -> Any:
    """A daily run that came to its end, with books that agree."""
    said = run("--daily", "--json")
    assert (said.code, said.err) == (0, ""), said.err
    assert (said.json["session"], said.json["outcome"]) == (session, "done")
    assert run("reconcile", "--json").json["agree"] is True
    return said.json


# The account


def test_keys_that_are_wrong_or_revoked(run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    server = opened()
    monkeypatch.setenv("APCA_API_SECRET_KEY", "sesame")
    said = run("--daily")
    says(said, 77, server.url, "APCA_API_KEY_ID")
    assert "sesame" not in said.err
    monkeypatch.setenv("APCA_API_SECRET_KEY", server.settings.secret)
    done(run, "2025-03-07")
    after_close(server)
    server.fault("wrong_key", count=0)
    says(run("--daily"), 77)


def test_no_keys_at_all(run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened()
    monkeypatch.delenv("APCA_API_KEY_ID")
    says(run("--daily"), 77, "APCA_API_KEY_ID")


def test_addresses_with_real_money_and_strangers_hosts_are_refused_before_anything_is_asked(
    run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = opened()
    with monkeypatch.context() as patch:
        patch.setenv("APCA_API_DATA_URL", "https://mirror.example.com")
        says(run("--daily"), 78, "mirror.example.com", "data.alpaca.markets")
    for url in ("https://api.alpaca.markets", "https://broker-api.alpaca.markets", "http://10.0.0.7"):
        monkeypatch.setenv("APCA_API_BASE_URL", url)
        says(run("--daily"), 78, url.rsplit("/", maxsplit=1)[-1], "paper-api.alpaca.markets")
    assert server.state()["requests"] == {}


def test_an_account_that_may_not_trade(run: Run, opened: Open) -> None:
    server = opened()
    for fault, word in (("account_blocked", "the account is blocked"), ("trading_blocked", "trading is blocked")):
        rule = server.fault(fault)
        says(run("--daily"), 77, word, "ask the broker")
        with JournalReader(places.desk_journal("paper")) as reader:
            assert (reader.decisions(), reader.runs()[-1].outcome) == ((), "failed")
            assert exit_code(reader.runs()[-1]) == 77
        server.clear_faults(rule)
    done(run, "2025-03-07")


# Time


def test_nothing_is_decided_on_a_holiday_or_a_weekend(run: Run, opened: Open) -> None:
    server = opened(datetime(2025, 7, 3, 17, 5, tzinfo=UTC))
    done(run, "2025-07-03")
    for day in (4, 5, 6):
        server.advance(datetime(2025, 7, day, 22, tzinfo=UTC))
        said = run("--daily", "--json")
        assert (said.code, said.json["outcome"], said.json["session"]) == (0, "nothing to do", "2025-07-03")
    says(run("--daily", "--session", "2025-07-04"), 2, "2025-07-04")
    server.advance(datetime(2025, 7, 7, 20, 5, tzinfo=UTC))
    assert done(run, "2025-07-07")["skipped"] == []


def test_over_the_weekend_on_which_summer_time_begins(run: Run, opened: Open) -> None:
    server = opened(FRIDAY)
    done(run, "2025-03-07")
    server.advance(datetime(2025, 3, 10, 20, 4, tzinfo=UTC))  # four minutes after the close, an hour earlier in UTC
    monday = done(run, "2025-03-10")
    assert monday["skipped"] == [] and monday["orders"]
    server.advance("open")
    assert server.state()["now"].startswith("2025-03-11T13:30")
    after_close(server)
    tuesday = done(run, "2025-03-11")
    assert {fill["session"] for fill in tuesday["fills"]} == {"2025-03-11"}
    assert len(tuesday["fills"]) == len(monday["orders"])


@contextmanager
def machine_in(zone: str) -> Iterator[None]:
    """The machine's clock shows the time of a zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


def test_the_zone_of_the_machine_changes_nothing(
    run: Run, opened: Open, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, hours = [], []
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        opened(datetime(2025, 3, 10, 20, 5, tzinfo=UTC))  # the same account again, as it was
        monkeypatch.setenv("PAPERDESK_HOME", str(shutil.copytree(fresh, tmp_path / zone.replace("/", "-"))))
        with machine_in(zone):
            hours.append(time.localtime(0).tm_hour)
            said = run("--daily", "--json")
        assert (said.code, said.err) == (0, "")
        document = said.json
        assert datetime.fromisoformat(document.pop("started")) <= datetime.fromisoformat(document.pop("ended"))
        documents.append(document)
    assert documents[0]["session"] == "2025-03-10"
    assert documents[1] == documents[0]
    assert len(set(hours)) == 2


@pytest.mark.parametrize("hours", [-1, pytest.param(1, marks=pytest.mark.slow)])
def test_a_clock_an_hour_off(run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    server = opened(LiveClock().now() + timedelta(hours=hours), any_day=True)
    monkeypatch.setenv("PAPERDESK_BROKER__CLOCK", "machine")
    says(run("--daily"), 78, "clock shows", "UTC", f"{server.exchange.now:%Y-%m-%d %H:}", "broker.clock")
    assert not places.desk_journal("paper").exists()


# Symbols


def test_a_symbol_that_is_halted_keeps_its_order_waiting_and_the_desk_running(run: Run, opened: Open) -> None:
    server = opened(datetime(2025, 3, 10, 20, 5, tzinfo=UTC))
    orders = done(run, "2025-03-10")["orders"]
    assert {"ORVL"} <= {order["symbol"] for order in orders}
    rule = server.fault("halted", symbol="ORVL")
    after_close(server)
    document = done(run, "2025-03-11")
    assert "ORVL" not in {fill["symbol"] for fill in document["fills"]}
    server.clear_faults(rule)
    after_close(server)
    done(run, "2025-03-12")
    with JournalReader(places.desk_journal("paper")) as reader:
        first = next(
            e.order for e in reader.orders() if str(e.order.session) == "2025-03-10" and e.order.symbol == "ORVL"
        )
    assert first.state.value == "expired"
    (order,) = run("why", "ORVL", "2025-03-10", "--json").json["decisions"][0]["orders"]
    assert order["moves"][-1]["detail"] == "expired at the broker without a trade in the session of 2025-03-11"


def test_a_symbol_that_is_halted_all_day_has_no_bar_and_is_told_on_the_trail(
    run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = opened(datetime(2025, 3, 10, 20, 5, tzinfo=UTC))
    monkeypatch.setattr("engine.app.desk.market.PAUSES", (0.0,))
    monkeypatch.setenv("PAPERDESK_DATA__REFRESH", "true")
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(places.market_folder()))
    assert "ORVL" in {one["symbol"] for one in run("--daily", "--json").json["orders"]}
    rule = server.fault("halted", symbol="ORVL")
    after_close(server)
    said = run("--daily", "--json")
    assert said.code == 0 and "ORVL did not trade in the session of 2025-03-11" in said.err, said.err
    assert "halted at its exchange, its orders wait" in said.err
    assert (said.json["outcome"], said.json["frozen"]) == ("done", {})
    assert {one["symbol"] for one in said.json["decisions"]} == {"HLXM"}
    (order,) = run("why", "ORVL", "2025-03-10", "--json").json["decisions"][0]["orders"]
    assert order["state"] == "expired"
    assert order["moves"][-1]["detail"].endswith("ORVL did not trade in the session of 2025-03-11, as when halted")
    assert "as when halted" in " ".join(run("why", "ORVL", "2025-03-10").out.split())
    server.clear_faults(rule)
    after_close(server)
    after = run("--daily", "--json")
    assert after.code == 0 and {one["symbol"] for one in after.json["decisions"]} == {"ORVL", "HLXM"}


def test_a_symbol_that_nobody_may_trade_is_not_ordered_and_the_report_says_why(run: Run, opened: Open) -> None:
    server = opened(datetime(2025, 3, 10, 20, 5, tzinfo=UTC))
    server.fault("untradable", symbol="ORVL")
    document = done(run, "2025-03-10")
    states = {order["symbol"]: (order["state"], order["detail"]) for order in document["orders"]}
    assert states["ORVL"][0] == "canceled" and "lets nobody trade ORVL" in states["ORVL"][1]
    assert "lets nobody trade ORVL" in " ".join(run("report", "--session").out.split())


def test_a_symbol_that_is_held_and_renamed_halts_the_desk_with_both_names(run: Run, opened: Open) -> None:
    server = opened(datetime(2025, 3, 5, 21, 5, tzinfo=UTC))
    bought(server, "ORVL", "5")
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes", "--json").code == 0
    done(run, "2025-03-06")
    server.fault("renamed", symbol="ORVL", then="ORVX")
    after_close(server)
    said = run("--daily")
    assert said.code == 79
    *table, line = said.err.strip().splitlines()
    assert [row.split()[0] for row in table[1:]] == ["ORVL", "ORVX"]
    assert "disagree (ORVL, ORVX)" in line and "paperdesk reconcile" in line
    report = run("report", "--session", "2025-03-07").out
    assert re.search("^Outcome +halted: ", report, re.MULTILINE) and "Differences" in report


@pytest.mark.slow
@pytest.mark.usefixtures("own_data")
def test_a_renamed_symbol_is_fetched_once_it_is_adopted(
    run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = opened(datetime(2025, 3, 5, 21, 5, tzinfo=UTC))
    monkeypatch.setenv("PAPERDESK_DATA__REFRESH", "true")
    bought(server, "ORVL", "5")
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes", "--json").code == 0
    assert run("--daily").code == 0
    server.fault("renamed", symbol="ORVL", then="ORVX")
    after_close(server)
    said = run("--daily")
    assert said.code == 79 and "(ORVL, ORVX)" in said.err, said.err
    assert run("reconcile", "--adopt", "--reason", "renamed", "--yes").code == 0
    after = run("--daily", "--json")
    assert after.code == 0, after.err
    held = after.json["positions"]
    assert "ORVL" not in held and held["ORVX"]["quantity"] == "5" and Decimal(held["ORVX"]["price"]) > 0
    after_close(server)
    assert run("--daily").code == 0


def test_a_symbol_without_a_bar_is_frozen_and_the_others_go_on(
    run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = opened()
    monkeypatch.setattr("engine.app.desk.market.PAUSES", (0.0,))
    monkeypatch.setenv("PAPERDESK_DATA__REFRESH", "true")
    monkeypatch.setenv("PAPERDESK_DATA__FOLDER", str(places.market_folder()))
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "ORVL,HLXM,NADA")
    alone = run("--daily", "--symbol", "NADA")
    assert alone.code == 65 and "NADA is frozen" in alone.err and run("status", "--json").json["last_run"] is None
    said = run("--daily", "--json")
    assert said.code == 65 and "NADA is frozen" in said.err and "no bar of 2025-03-07 for NADA" in said.err
    document = said.json
    assert document["outcome"] == "done" and set(document["frozen"]) == {"NADA"}
    assert (
        run("status", "--json").json["operation"]["runs"][0]["exit_code"] == 65 and "exit code 65" in run("status").out
    )
    assert {one["symbol"] for one in document["decisions"]} == {"ORVL", "HLXM"}
    assert len(server.state()["orders"]) == len(document["orders"]) > 0
    again = run("--daily", "--json")
    assert again.code == 65 and again.json["outcome"] == "nothing to do", "it says so until it is mended"
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", "ORVL,HLXM")
    after_close(server)
    assert run("--daily").code == 0


@pytest.mark.usefixtures("own_data")
def test_a_strangers_order_and_what_it_bought(run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    server = opened()
    monkeypatch.setenv("PAPERDESK_DATA__REFRESH", "true")
    assert run("--daily").code == 0
    ordered(server, "TMBK", "3")
    server.advance("10m")
    after_weekend = run("--daily", "--session", "2025-03-07")
    assert after_weekend.code == 0, "the session is done"
    after_close(server)
    ordered(server, "PLWY", "2")
    said = run("--daily")
    assert said.code == 79, said.err
    assert "not this desk's: BUY PLWY, 2 shares" in said.err and "TMBK" in said.err
    refused = run("reconcile", "--adopt", "--reason", "mine", "--yes")
    assert refused.code == 79 and "cancel what is not the desk's" in refused.err
    after_close(server)
    assert run("--daily").code == 79
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes").code == 0
    after = run("--daily", "--json")
    assert after.code == 0, after.err
    assert {name: after.json["positions"][name]["quantity"] for name in ("TMBK", "PLWY")} == {"TMBK": "3", "PLWY": "2"}
    after_close(server)
    assert run("--daily").code == 0


@pytest.mark.usefixtures("own_data")
def test_an_account_with_foreign_shares_is_opened_with_their_prices(
    run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = opened()
    monkeypatch.setenv("PAPERDESK_DATA__REFRESH", "true")
    bought(server, "TMBK", "3")
    assert run("--daily").code == 79
    adopted = run("reconcile", "--adopt", "--reason", "mine", "--yes")
    assert adopted.code == 0, adopted.err
    after_close(server)
    after = run("--daily", "--json")
    assert after.code == 0 and after.json["positions"]["TMBK"]["quantity"] == "3"


def test_a_split_overnight_is_booked_and_no_profit(run: Run, opened: Open) -> None:
    server = opened(datetime(2024, 12, 11, 21, 5, tzinfo=UTC))
    bought(server, "HLXM", "10")
    assert run("reconcile", "--adopt", "--reason", "mine", "--yes", "--json").code == 0
    assert done(run, "2024-12-12")["positions"]["HLXM"]["quantity"] == "10"
    after_close(server)
    before = done(run, "2024-12-13")
    after_close(server)
    document = done(run, "2024-12-16")
    assert ("split", "HLXM", "10") in {(f["kind"], f["symbol"], f["quantity"]) for f in document["cash_flows"]}
    held = [Decimal(each["positions"]["HLXM"]["quantity"]) for each in (before, document)]
    assert held[1] >= 2 * held[0] - Decimal("0.000000001")
    assert abs(Decimal(document["value"]) / Decimal(before["value"]) - 1) < Decimal("0.05")
    assert "split" in run("report", "--session", "2024-12-16").out


# This machine


@contextmanager
def write_locked(journal: Path) -> Iterator[None]:
    """Another program is writing into the journal, and does not end; whoever waits for it waits a moment only."""
    connect = sqlite3.connect
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", lambda *place, **how: connect(*place, **how | {"timeout": 0.1}))
            yield
        other.execute("ROLLBACK")


def test_a_journal_that_another_program_writes_into(run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    server = opened()
    done(run, "2025-03-07")
    after_close(server)
    with write_locked(places.desk_journal("paper")):
        says(run("--daily"), 75, str(places.desk_journal("paper")))
    done(run, "2025-03-10")


# The way to the broker


def test_a_home_in_which_nothing_may_be_written_is_the_configurations_fault(
    run: Run, opened: Open, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = opened()
    config, home = fresh / "config.toml", fresh / "home"
    home.mkdir(0o500)
    if os.geteuid() == 0:  # who may do everything is refused by the system's own folder alone
        home = Path("/proc/paperdesk")
    monkeypatch.setenv("PAPERDESK_HOME", str(home))
    backtest = ("backtest", "--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-07", "--strategy", "macd")
    for command in (("--daily",), backtest, ("halt",)):
        said = run(*command, "--config", str(config))
        says(said, 78, str(home), "writable", "PAPERDESK_HOME")
    assert not any(path.startswith("POST") for path in server.state()["requests"])


def test_a_broker_that_is_down(run: Run, opened: Open) -> None:
    server = opened()
    url = server.url
    server.__exit__(None, None, None)
    says(run("--daily"), 74, url, "try again")
    assert not places.desk_journal("paper").exists()


@pytest.mark.parametrize(
    "rules",
    [
        [("html", {"status": status}) for status in (200, 403, 502)],
        [
            *((kind, {"path": "/v2/account"}) for kind in ("server_error", "reset", "hang")),
            ("too_many_requests", {"path": "/v2/account", "seconds": 600}),
        ],
    ],
    ids=["pages of HTML", "failures"],
)
def test_a_broker_that_fails_for_a_while_is_asked_again_and_then_left(
    run: Run, opened: Open, monkeypatch: pytest.MonkeyPatch, rules: list[tuple[str, dict[str, Any]]]
) -> None:
    server = opened()
    for kind, options in rules:
        fault = server.fault(kind, count=0, **options)
        with monkeypatch.context() as patch:
            if kind == "hang":
                patch.setenv("PAPERDESK_BROKER__TIMEOUT", "0.5")
            said = run("--daily")
        assert said.code in (74, 75), (kind, said.err)
        says(said, said.code, server.url)
        assert "<" not in said.err
        server.clear_faults(fault)
    done(run, "2025-03-07")
