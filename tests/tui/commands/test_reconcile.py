"""Journal and account side by side from the command line, against the sandbox; the broker's side is taken on record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.sandbox import SandboxServer
from connectors.wiring.services import services
from engine.app.research import backtest
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from engine.settings.config import load_config
from tests.engine.desks import bars, market_of, trade
from tests.tui.commands.conftest import FEW_AGENTS, OpenBroker, Run, after_close, bought

START = datetime(2021, 3, 16, 20, 5, tzinfo=UTC)


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    return open_broker(START, through=date(2021, 4, 9), symbols=("ORVL", "PLWY"))


def test_both_sides_agree_after_a_run(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    said = run("reconcile")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("they agree\n") and "cash" in said.out and "100,000" in said.out
    assert run("reconcile", "--json").json["agree"] is True


def test_before_the_first_run_there_is_nothing_to_compare(run: Run, sandbox: SandboxServer) -> None:
    said = run("reconcile")
    assert said.code == 0 and "agree" not in said.out
    assert "the journal has nothing of this account yet" in said.out
    assert not places.desk_journal("paper").exists()


def test_an_outside_trade_differs_and_is_adopted_on_the_record(run: Run, sandbox: SandboxServer) -> None:
    assert run("--daily").code == 0
    bought(sandbox, "ORVL", "5")
    said = run("reconcile")
    assert said.code == 79 and "<- differs" in said.out and "they differ in" in said.out
    document = run("reconcile", "--json").json
    assert document["agree"] is False and document["adopted"] == []
    points = {one["what"]: one for one in document["differences"]}
    assert points["ORVL"]["broker"] == "5" and Decimal(points["ORVL"]["journal"] or 0) == 0
    halted = run("--daily")
    assert halted.code == 79 and "paperdesk reconcile" in halted.err
    adopted = run("reconcile", "--adopt", "--reason", "bought  by hand", "--yes", "--json")
    assert adopted.code == 0 and adopted.json["agree"] is True
    assert {"cash", "ORVL"} <= {one["what"] for one in adopted.json["adopted"]}
    with JournalReader(places.desk_journal("paper")) as reader:
        assert {one.reason for one in reader.adoptions()} == {"bought by hand"}
    assert run("--daily").code == 0
    assert run("reconcile").code == 0


@pytest.mark.parametrize(
    "arguments",
    [("--adopt",), ("--adopt", "--yes"), ("--adopt", "--reason", "x"), ("--yes",), ("--reason", "x"), ("--run", "x")],
)
def test_adopting_needs_a_reason_and_somebody_who_says_yes(
    run: Run, sandbox: SandboxServer, arguments: tuple[str, ...]
) -> None:
    said = run("reconcile", *arguments)
    assert said.code == 2 and said.err.count("\n") == 1


def test_a_desk_on_the_simulated_market_has_nothing_to_reconcile(run: Run, desk: Path) -> None:
    said = run("reconcile")
    assert said.code == 78 and "simulated market" in said.err


@pytest.mark.parametrize("amount", [pytest.param("250", marks=pytest.mark.slow), "-40.25"])
def test_a_line_that_comes_after_its_cash_was_adopted_is_not_counted_twice(
    run: Run, sandbox: SandboxServer, amount: str
) -> None:
    assert run("--daily").code == 0
    after_close(sandbox)
    book = sandbox.exchange.book
    cash = book.portfolio.cash
    book.portfolio = book.portfolio.__class__(cash + Decimal(amount), book.portfolio.positions)
    halted = run("--daily")
    assert halted.code == 75 and "one is awaited until" in halted.err
    assert run("reconcile", "--adopt", "--reason", "no line came", "--yes").code == 0
    assert run("--daily").code == 0
    after_close(sandbox)
    book.portfolio = book.portfolio.__class__(book.portfolio.cash - Decimal(amount), book.portfolio.positions)
    sandbox.control_request("POST", "/sandbox/transfers", {"amount": amount})  # its line, and its cash of before
    after = run("--daily", "--json")
    assert (after.code, after.err) == (0, "")
    looked = run("reconcile", "--json")
    assert looked.code == 0 and looked.json["agree"] is True
    with JournalReader(places.desk_journal("paper")) as reader:
        assert [one.after - one.before for one in reader.adoptions()] == [Decimal(amount)]
        assert reader.cash_flows() == () or all(flow.kind != "transfer" for flow in reader.cash_flows())
    after_close(sandbox)
    assert run("--daily").code == 0, "it stays netted"
    assert run("journal", "check").code == 0


PRESET = """
extends = "finvision"
name = "shorting"
[sizing]
allow_short = {short}
cash_floor = 0
[sizing.sell]
"reversal" = {{ smallest = 100, largest = 100 }}
"""


async def sells(
    self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None
) -> ModelResult:
    said = trade(request, "SELL", 10, "reversal") if request.purpose == "decision" else None
    return ModelResult(model="offline", answer=said, text="")


@pytest.mark.parametrize("short", [True, False])
def test_a_forced_cover_is_on_the_trail_and_a_refused_short_on_the_decision(
    short: bool, run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OfflineModel, "answer", sells)
    own = tmp_path / "shorting.toml"
    own.write_text(PRESET.format(short=str(short).lower()))
    every = services(load_config(None, environ=FEW_AGENTS).config)
    calendar = every.calendar_for("ORVL")
    days = calendar.sessions(date(2025, 3, 3), date(2025, 3, 20))
    market = market_of({"ORVL": bars("ORVL", days, [100] * 6 + [130] * (len(days) - 6))})
    market = replace(market, calendars={"ORVL": calendar})
    spec = RunSpec(
        symbols=("ORVL",),
        first=days[4],
        last=days[9],
        preset=str(own),
        data=DataSpec(None, 7),
        run="short",
        model="offline",
    )
    report = backtest.run_backtest(every, spec, market=market, baselines=())
    assert min(point.value for point in report.result.test.equity) > 0
    document = run("why", "ORVL", str(days[6]), "--run", "short", "--json").json["decisions"][0]
    first = run("why", "ORVL", str(days[3]), "--run", "short").out
    if not short:
        assert not report.result.test.fills
        assert "nothing is held to be sold" in first
        return
    (cover,) = document["undecided_trades"]
    assert (cover["side"], cover["session"]) == ("BUY", str(days[7]))
    assert cover["reason"].startswith("forced cover")
    assert {flow.kind for flow in report.result.test.cash_flows} == {"borrow cost"}
    assert all(flow.amount < Decimal(0) for flow in report.result.test.cash_flows)
    assert "Not decided" in run("why", "ORVL", str(days[6]), "--run", "short").out
