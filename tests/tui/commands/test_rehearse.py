"""The rehearsal gate: a desk at a broker trades only by a preset that has passed what it names."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.tui.commands.conftest import OpenBroker, Run, after_close
from tests.tui.commands.test_costs import LOCAL_PRICE, Counting, Desk, desk, service
from tests.tui.conftest import Running, until
from tui.commands.app import open_desk
from tui.settings.invocation import Invocation
from tui.widgets.screen_bars import StatusBar

__all__ = ["desk", "service"]

START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)
BUYS = datetime(2024, 3, 7, 21, 5, tzinfo=UTC)
"""After a session whose close the preset buys at."""
GATED = """
extends = "finvision"
name = "gated"
[rehearsal.backtest]
first = 2024-02-20
last = 2024-02-28
min_return = -0.5
max_drawdown = {drawdown}
max_abstentions = 0
[rehearsal.arena]
market = "constant"
agents = "controls"
days = 2
seed = 4
min_return = -0.9
"""


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))


@pytest.fixture
def preset(sandbox: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The desk's preset, which asks for a rehearsal that it passes."""
    file = tmp_path / "gated.toml"
    file.write_text(GATED.format(drawdown="0.5"))
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(file))
    return file


def rewrite(file: Path, drawdown: str) -> None:
    """Changes the preset, as a new process would read it."""
    file.write_text(GATED.format(drawdown=drawdown))


def finding(run: Run) -> Any:
    checks = run("doctor", "--json").json["checks"]
    return next((one["state"], one["detail"]) for one in checks if one["area"] == "Rehearsal")


def refused(run: Run, sandbox: SandboxServer, *told: str) -> None:
    """A daily run ends with 78 and one line, and nothing is sent."""
    said = run("--daily")
    assert (said.code, said.result, said.err.count("\n")) == (78, "", 1)
    assert all(text in said.err for text in ("the desk paper sends no order", *told))
    assert sandbox.state()["orders"] == []


def test_a_desk_trades_only_after_it_has_passed(run: Run, sandbox: SandboxServer, preset: Path) -> None:
    refused(run, sandbox, "before it trades an account: run `paperdesk rehearse`")
    assert finding(run)[0] == "fail"

    done = run("rehearse", "--json")
    assert (done.code, done.err) == (0, "")
    certificate = done.json
    assert json.loads(places.desk_rehearsal("paper").read_text()) == certificate
    backtest, arena = certificate["parts"]
    assert certificate["passed"] and certificate["missed"] == [] and certificate["preset"] == "gated"
    assert set(certificate["models"].values()) == {"offline"} and set(certificate["prompts"]) == {
        *("news", "chart", "performance-reflection", "signal-reflection", "decision")
    }
    # The figures are those of the runs that it kept.
    kept = run("report", "--run", backtest["run"], "--format", "json").json
    assert backtest["return"] == kept["metrics"]["total_return"]
    assert backtest["drawdown"] == kept["metrics"]["max_drawdown"]
    assert backtest["data_fingerprint"] == kept["settings"]["data_fingerprint"]
    assert backtest["symbols"] == kept["symbols"] == ["ORVL", "TMBK"]
    played = run("report", "--run", arena["run"], "--json").json
    # The desk itself sits at the table: its preset, and not a persona that asks its model.
    own = next(one for one in played["agents"] if one["name"] == "This desk")
    assert own["kind"].startswith("preset gated, ") and len(played["agents"]) == 13
    assert (arena["return"], arena["seed"]) == (own["metrics"]["total_return"], 4)
    decided = [one["action"] for one in played["decisions"] if one["agent"] == "This desk"]
    assert decided and arena["abstentions"] == decided.count("ABSTAIN") / len(decided)

    assert run("--daily").code == 0
    assert finding(run) == ("ok", f"gated on {certificate['time'][:10]}: passed")
    assert run("status", "--json").json["rehearsal"]["passed"] is True
    assert "Rehearsal   gated on " in run("status").out


def test_a_missed_bound_is_named_by_every_refusal(run: Run, sandbox: SandboxServer, preset: Path) -> None:
    rewrite(preset, "0")
    done = run("rehearse")
    assert done.code == 1 and "not passed" in done.out
    text = "backtest max_drawdown: the drawdown is "
    assert text in " ".join(done.out.split()) and "at least 0.00% is wanted" in " ".join(done.out.split())
    refused(run, sandbox, text, "at least 0.00% is wanted", "`paperdesk rehearse`")
    assert finding(run)[0] == "fail" and text in finding(run)[1]
    summary = json.loads(places.desk_rehearsal("paper").read_text())
    assert summary["missed"] and not summary["passed"]


def test_a_certificate_holds_for_one_preset_text_and_its_models(
    run: Run, sandbox: SandboxServer, preset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("rehearse").code == 0
    assert run("--daily").code == 0
    after_close(sandbox)
    sent = len(sandbox.state()["orders"])
    rewrite(preset, "0.4")
    later = run("--daily")
    assert later.code == 78 and "was of another preset text: run `paperdesk rehearse` again" in later.err
    rewrite(preset, "0.5")
    monkeypatch.setenv("PAPERDESK_DESK__RISK", "risk-averse")
    told = run("--daily")
    assert told.code == 78 and "another preset text" in told.err
    monkeypatch.delenv("PAPERDESK_DESK__RISK")
    monkeypatch.setenv("PAPERDESK_MODELS__DEFAULT", "openai:gpt-4o")
    told = run("--daily")
    assert told.code == 78 and "another model of news, chart, " in told.err
    monkeypatch.delenv("PAPERDESK_MODELS__DEFAULT")
    assert len(sandbox.state()["orders"]) == sent
    assert run("--daily").code == 0
    with JournalReader(places.desk_journal("paper")) as reader:
        assert len(reader.runs()) == 2  # a refused run has left none


@pytest.mark.slow
def test_an_approval_is_held_against_the_certificate_again(
    run: Run, open_broker: OpenBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = open_broker(BUYS, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))
    file = tmp_path / "gated.toml"
    rewrite(file, "0.5")
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(file))
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "ask")
    assert run("rehearse").code == 0 and run("--daily").code == 0
    (waiting,) = run("approve", "--json").json["waiting"]

    rewrite(file, "0.4")
    said = run("approve", waiting["symbol"])
    assert said.code == 78 and "was of another preset text: run `paperdesk rehearse` again" in said.err
    assert said.out.endswith(": approved, not sent yet\n") and account.state()["orders"] == []
    rewrite(file, "0")
    assert run("rehearse").code == 1
    said = run("approve", waiting["symbol"])
    assert said.code == 78 and "at least 0.00% is wanted" in said.err and account.state()["orders"] == []

    rewrite(file, "0.5")
    assert run("rehearse").code == 0 and run("approve", waiting["symbol"]).code == 0
    assert [one["symbol"] for one in account.state()["orders"]] == [waiting["symbol"]]


async def test_the_header_says_so_until_it_has_passed(
    running: Running, run: Run, sandbox: SandboxServer, preset: Path
) -> None:
    assert (await asyncio.to_thread(run, "rehearse")).code == 0
    certificate = places.desk_rehearsal("paper")
    certificate.rename(certificate.with_suffix(".aside"))
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        bar = pilot.app.screen_stack[0].query_one(StatusBar)
        await until(pilot, lambda: "not rehearsed: paperdesk rehearse" in bar.render_line(0).text)
        certificate.with_suffix(".aside").rename(certificate)
        await until(pilot, lambda: "not rehearsed" not in bar.render_line(0).text)


def test_a_damaged_certificate_is_one_line(run: Run, sandbox: SandboxServer, preset: Path) -> None:
    places.desk_rehearsal("paper").parent.mkdir(parents=True, exist_ok=True)
    places.desk_rehearsal("paper").write_text("{")
    said = run("--daily")
    assert (said.code, said.err.count("\n")) == (65, 1) and "delete it, and run `paperdesk rehearse` again" in said.err


def test_who_only_observes_and_the_simulated_market_need_none(
    run: Run, sandbox: SandboxServer, preset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__MODE", "observe")
    assert run("--daily").code == 0
    monkeypatch.setenv("PAPERDESK_BROKER__KIND", "simulated")
    monkeypatch.setenv("PAPERDESK_DESK__NAME", "other")
    assert run("--daily", "--session", "2024-03-01").code == 0


def test_a_watch_of_a_refused_desk_ends_with_78(run: Run, sandbox: SandboxServer, preset: Path) -> None:
    said = run("--watch")
    assert said.code == 78 and "before it trades an account: run `paperdesk rehearse`" in said.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[rehearsal]", "it has no part"),
        ("[rehearsal.backtest]\nfirst = 2024-02-20\nlast = 2024-02-28", "it has no bound"),
        ("[rehearsal.arena]\nmax_drawdown = 2", "max_drawdown"),
    ],
)
def test_a_rehearsal_without_a_bound_is_no_configuration(
    text: str, told: str, run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'extends = "finvision"\nname = "mine"\n{text}\n')
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(file))
    said = run("rehearse")
    assert (said.code, said.err.count("\n")) == (78, 1) and told in said.err


def test_an_arena_of_models_lives_within_the_budget_of_the_day(
    desk: Desk, service: Counting, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "finvision"\nname = "mine"\n[rehearsal.arena]\ndays = 1\nmin_return = -0.5\n')
    desk(LOCAL_PRICE + "[budget]\nask_above = 0.00001\nusd_per_day = 0.0001\n")
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(file))
    asked = run("rehearse")
    assert asked.code == 2 and "Forecast for the rehearsal:" in asked.err and "pass --yes to run it" in asked.err
    reached = run("rehearse", "--yes")
    assert reached.code == 75 and "budget.usd_per_day of $0.00 is reached" in reached.err
    assert service.requests == [] and not places.desk_rehearsal("demo").exists()


def test_a_table_that_has_the_desks_seat_already_is_refused(
    run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, file = tmp_path / "table.toml", tmp_path / "mine.toml"
    seats = (("This desk", "value"), ("Maker", "market-maker"))
    table.write_text("".join(f'[[agents]]\nname = "{name}"\nrule = "{rule}"\n' for name, rule in seats))
    arena = f'[rehearsal.arena]\nagents = "{table}"\ndays = 1\nmin_return = -0.5\n'
    file.write_text(f'extends = "finvision"\nname = "mine"\n{arena}')
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", str(file))
    said = run("rehearse")
    assert (said.code, said.err.count("\n")) == (2, 1) and "rename that agent" in said.err


def test_a_preset_without_one_says_so(run: Run, fresh: Path) -> None:
    said = run("rehearse")
    assert said.code == 2 and "has no [rehearsal]" in said.err
