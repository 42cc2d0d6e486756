"""What a vendor's cache, tier and bill were, as report, `status` and Ops show them: by agent, by model, by month."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.domain.run import RunSpec
from engine.reports import amounts
from engine.settings import places
from engine.settings.config import load_config
from tests.servers.billing_server import SPECS, BillingServer, billing_server, rules_answers
from tests.tui.commands.conftest import Run
from tests.tui.conftest import cells, opened, until

SYMBOLS = ("ORVL", "BXWD")
FIRST, LAST = date(2025, 3, 11), date(2025, 3, 14)
CHART = "anthropic"


@pytest.fixture
def served(fresh: Path) -> Iterator[BillingServer]:
    """A desk of whose agents one asks Anthropic and the others OpenAI."""
    places.config_file().write_text(
        f'[desk]\npreset = "finvision"\nsymbols = {json.dumps(SYMBOLS)}\n'
        f'[models]\ndefault = "{SPECS["openai"]}"\n[models.agents.chart]\nmodel = "{SPECS[CHART]}"\n'
    )
    config = load_config(None).config
    spec = RunSpec(symbols=SYMBOLS, first=FIRST, last=LAST, preset="finvision", data=services(config).data, run="r")
    _, answers = rules_answers(spec, config)
    with billing_server(answers) as server:
        yield server


def test_a_backtest_and_its_status(served: BillingServer, run: Run) -> None:
    flags = ("--symbols", ",".join(SYMBOLS), "--from", str(FIRST), "--to", str(LAST), "--run", "paid")
    text = " ".join(run("backtest", *flags, "--preset", "finvision", "--tier", "flex", "--yes").out.split())
    document = run("report", "--run", "paid", "--format", "json").json["model"]
    status = run("status", "--run", "paid", "--json").json["model"]
    for name in ("agents", "models", "months", "cached_input_tokens", "cached_share", "tier", "cost"):
        if name == "agents":
            told = {agent: own["unresolved_figures"] for agent, own in document["agents"].items()}
            assert document["agents"] == {
                key: {**own, "unresolved_figures": told[key]} for key, own in status["agents"].items()
            }
        else:
            assert status[name] == document[name], name
    billed = {
        model: sum((call.usd for call in served.ledger if call.model == model.partition(":")[2]), Decimal(0))
        for model in SPECS.values()
    }
    for model, dollars in billed.items():
        own = document["models"][model]
        assert 0 < Decimal(own["cost"]) - dollars < Decimal("0.0005"), "the preflight's beside"
        assert own["cached_share"] > 0.2
    assert {model: own["tier"] for model, own in document["models"].items()} == {
        SPECS["openai"]: "flex",
        SPECS["anthropic"]: "standard",
    }
    assert re.search(r"By model anthropic:\S+ 8 calls, [\d,]+ tokens in \([\d,]+ of them cached, \d\d%\)", text)
    assert re.search(r"openai:gpt-5\.4 \d+ calls, [^;]+ at tier flex", text)
    said = " ".join(run("status", "--run", "paid").out.split())
    assert "By agent" in said and "By model" in said and "of them cached, " in said


async def test_ops(served: BillingServer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 3, 10))
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: datetime(2025, 3, 10, 22, tzinfo=UTC))
    done = await asyncio.to_thread(run, "--daily", "--session", "2025-03-10")
    assert done.code == 0, done.err
    use = (await asyncio.to_thread(run, "status", "--json")).json["model"]
    async with opened((200, 50)) as pilot:
        await pilot.press("5")
        await until(pilot, lambda: bool(cells(pilot, "models")))
        models, rates = cells(pilot, "models"), cells(pilot, "rates")
    shown = {row[1]: row for row in models}
    for agent, own in use["agents"].items():
        assert f"{own['cached_share']:.0%}" in shown[agent], agent
    assert list(use["months"]) == ["2025-03"]
    paid = {model: amounts.cost(Decimal(own["cost"])) for model, own in use["models"].items()}
    assert {row[0]: row[-1] for row in rates} == paid and set(paid) == set(SPECS.values())
