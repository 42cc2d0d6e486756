"""Unknown is never free: costs of models in every output, prices of one's own, and a price table that is old."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from connectors.llm.pricing import load_prices
from connectors.wiring.services import services
from engine.app.open_desk import OpenDesk
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.settings import places
from engine.settings.config import load_config
from tests.servers.fake_llm_server import Fail, Say, Turn, fake_llm_server
from tests.tui.commands.conftest import OpenBroker, Run
from tests.tui.commands.test_model_outages import SYMBOLS, Service
from tests.tui.conftest import opened, shown, until
from tui.screens.lab import RunProgress
from tui.widgets.screen_bars import Item, StatusBar, items
from tui.widgets.table import Table

BACKTEST = ("backtest", "--symbols", ",".join(SYMBOLS), "--from", "2025-03-11", "--to", "2025-03-13", "--run", "paid")
SESSION = date(2025, 3, 11)
DAY = ("--daily", "--session", "2025-03-11")
LOCAL_PRICE = '[models.prices."near:m1"]\ninput = 2\noutput = 10\ncached_input = 0.2\n'

Desk = Callable[..., None]


class Counting(Service):
    """A service that counts tokens as told; `counts` False leaves them out of its replies."""

    counts = True
    sent = False
    """Counts the input by what was sent."""
    tokens_out = 100

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        turn = super().next_turn(body, headers)
        assert isinstance(turn, Say)
        counts = {"tokens_in": 4000, "cached": 400, "tokens_out": self.tokens_out, "reasoned": 60}
        if self.sent:
            counts |= {"tokens_in": None, "cached": 0}
        return replace(turn, **counts, counted=self.counts)


@pytest.fixture
def service(fresh: Path) -> Iterator[Counting]:
    with fake_llm_server(Counting()) as running:
        assert isinstance(running, Counting)
        yield running


@pytest.fixture
def desk(service: Counting) -> Desk:
    """Writes the configuration of a desk whose model is behind a compatible endpoint."""

    def written(more: str = "") -> None:
        places.config_file().write_text(
            f'[desk]\npreset = "finvision-no-reflection"\nsymbols = {json.dumps(SYMBOLS)}\n'
            f'[models]\ndefault = "near:m1"\n{more}'
            f'[endpoints.near]\nbase_url = "{service.openai_url}"\nrequests_per_minute = 60000\n'
        )

    return written


def test_a_model_without_a_price_costs_an_unknown_amount_wherever_it_is_said(desk: Desk, run: Run) -> None:
    desk()
    assert "cost unknown" in run(*BACKTEST).out
    document = run("report", "--run", "paid", "--format", "json").json
    assert document["model"]["cost"] is None
    assert document["metrics"]["net_of_model_cost"] is None
    assert "cost unknown" in run("report", "--run", "paid").out
    with JournalReader(places.run_journal("paid")) as reader:
        assert {call.cost for call in reader.calls() if not call.cached} == {None}

    places.replay_cache().unlink()
    text = run(*DAY).out
    assert "cost unknown" in text and "free" not in text
    assert run("status", "--json").json["model"]["cost"] is None
    assert "cost unknown" in run("status").out


def test_tokens_that_were_not_told_are_unknown_and_their_cost_with_them(
    desk: Desk, service: Counting, run: Run
) -> None:
    desk(LOCAL_PRICE)
    service.counts = False
    done = run(*DAY, "--json").json["model"]
    assert (done["cost"], done["input_tokens"], done["output_tokens"]) == (None, None, None)
    assert done["uncounted_calls"] == done["calls"] > 0
    assert "tokens unknown" in " ".join(run("report", "--session", "2025-03-11").out.split())


def test_a_price_of_ones_own_counts_by_agent_and_tells_cached_tokens_apart(desk: Desk, run: Run) -> None:
    desk(LOCAL_PRICE)
    text = run(*BACKTEST).out
    use = run("report", "--run", "paid", "--format", "json").json["model"]
    paid = use["calls"] - use["cached_calls"]
    # 3,600 x 2 + 400 x 0.2 + 100 x 10, per million, and 10 x 2 + 2 x 10 of the preflight.
    assert Decimal(use["cost"]) == paid * Decimal("0.00828") + use["preflight_calls"] * Decimal("0.00004")
    assert use["cached_input_tokens"] == 400 * use["calls"]
    assert use["reasoning_tokens"] == 60 * use["calls"]
    assert set(use["agents"]) == {"preflight", "news", "chart", "decision"}
    for figure in ("calls", "input_tokens", "output_tokens", "reasoning_tokens"):
        assert sum(one[figure] for one in use["agents"].values()) == use[figure]
    assert sum(Decimal(one["cost"]) for one in use["agents"].values()) == Decimal(use["cost"])
    assert "of them reasoning" in text
    with JournalReader(places.run_journal("paid")) as reader:
        assert {call.usage.reasoning_tokens for call in reader.calls() if not call.kind} == {60}
    rows = [row.split(",") for row in run("report", "--run", "paid", "--format", "csv", "--table", "costs").out.split()]
    assert {name: cost for kind, name, cost in rows if kind == "agent"} == {
        name: own["cost"] for name, own in use["agents"].items()
    }
    assert "By agent" in text and "decision 6 calls" in " ".join(text.split())


def test_a_model_of_ones_own_machine_is_free_when_its_price_says_so(desk: Desk, service: Counting, run: Run) -> None:
    desk('[models.prices."near:m1"]\ninput = 0\noutput = 0\n')
    service.counts = False
    assert run(*DAY, "--json").json["model"]["cost"] == "0.00"


@pytest.mark.slow
def test_an_old_price_table_is_said_by_run_and_doctor(
    service: Counting, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.domain.model_call.STALE_DAYS", -100_000)  # the demo desk has a clock of its own
    monkeypatch.setenv("OPENAI_BASE_URL", service.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    places.config_file().write_text(
        f'[desk]\npreset = "finvision-no-reflection"\nsymbols = {json.dumps(SYMBOLS)}\n'
        '[models]\ndefault = "openai:gpt-5.4-mini"\n'
    )
    said = f"the price table is of {load_prices().as_of}"
    assert said in run(*DAY).err
    assert any(said in note for note in run(*BACKTEST, "--json").json["notes"])
    assert said in run("doctor").out.replace("\n", " ")


def test_a_day_s_budget_is_never_crossed_and_the_session_stays_due(
    desk: Desk, service: Counting, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = LOCAL_PRICE.replace("input = 2\n", "input = 20\n").replace("output = 10", "output = 1000")
    budget = "[budget]\nusd_per_day = {}\n"
    desk(price + budget.format("0.01"))
    refused = run(*DAY)
    assert refused.code == 75 and "budget.usd_per_day of $0.01 is reached" in refused.err
    assert (service.requests, refused.err.count("\n")) == ([], 1)

    # Room for three calls of $20, whose worst cases are reserved: the fourth could cross the limit and is not sent.
    worst = 75
    desk(price + budget.format(worst))
    monkeypatch.setattr(service, "tokens_out", 20_000)
    stopped = run(*DAY)
    assert stopped.code == 75 and "may cost up to" in stopped.err

    def spent() -> Decimal:
        with JournalReader(places.desk_journal("demo")) as reader:
            assert reader.decisions() == ()
            return sum((call.cost or Decimal(0) for call in reader.calls()), Decimal(0))

    first = spent()
    assert 0 < first <= worst and 1 <= len(service.requests) <= 3
    # Two symbols ask side by side: how many questions fit, now and in the rest, depends on what is reserved at once.
    assert run(*DAY).code == 75 and first <= spent() <= worst, "the day's calls before count"
    assert len(service.requests) <= 3

    desk(price + budget.format(100_000))
    done = run(*DAY, "--json")
    assert (done.code, done.json["outcome"]) == (0, "done")
    # What the run had paid before counts, and is not paid again.
    paid = done.json["model"]
    assert len(service.requests) == paid["calls"] == 5
    assert Decimal(paid["cost"]) == 5 * Decimal("20.07208") + paid["preflight_calls"] * Decimal("0.00220")


@pytest.mark.parametrize(
    ("price", "budget", "said"),
    [
        (
            LOCAL_PRICE.replace("output = 10", "output = 1000"),
            "usd_per_day = 100",
            r"budget\.usd_per_day of \$100\.00 is reached: \$[2468]\d\d\.\d\d are spent today",
        ),
        (
            "",
            "tokens_per_day = 100000",
            r"budget\.tokens_per_day of 100,000 is reached: [2468]\d\d,\d{3} are used today",
        ),
    ],
    ids=["dollars", "tokens"],
)
def test_an_answer_longer_than_was_reserved_counts_and_the_next_call_is_refused(
    price: str, budget: str, said: str, desk: Desk, service: Counting, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service does not keep to max_output_tokens: one answer alone takes twice the day's budget."""
    desk(f"{price}[budget]\n{budget}\n")
    monkeypatch.setattr(service, "tokens_out", 200_000)
    stopped = run(*DAY)
    assert stopped.code == 75 and re.search(said, stopped.err), stopped.err
    # Charts and news of the two symbols were in flight side by side when the first of them came back.
    assert 1 <= len(service.requests) <= 4
    assert max(body["max_tokens"] for body in service.requests) < 20_000
    with JournalReader(places.desk_journal("demo")) as reader:
        assert [call.usage.output_tokens for call in reader.calls() if not call.kind] == [200_000] * len(
            service.requests
        )
        assert reader.decisions() == ()
    asked = len(service.requests)
    assert run(*DAY).code == 75 and len(service.requests) == asked


LONG = ("backtest", "--symbols", ",".join(SYMBOLS), "--from", "2025-03-11", "--to", "2025-03-21", "--run", "paid")


def test_a_budget_is_nearly_used_up_never_crossed_and_gone_on_with(desk: Desk, service: Counting, run: Run) -> None:
    desk(LOCAL_PRICE)
    service.sent = True
    budget = Decimal("0.2")
    stopped = run(*LONG, "--budget", str(budget))
    assert stopped.code == 75 and "--budget of $0.20 is reached" in stopped.err and "--resume paid" in stopped.err
    with JournalReader(places.run_journal("paid")) as reader:
        costs = [call.cost or Decimal(0) for call in reader.calls()]
    assert max(costs) <= budget / 20 and budget * 9 / 10 <= sum(costs) <= budget
    asked = len(service.requests)
    assert run("backtest", "--resume", "paid", "--budget", "0.2001").code == 75 and len(service.requests) <= asked + 1
    done = run("backtest", "--resume", "paid", "--budget", "10", "--json").json["model"]
    assert len(service.requests) == done["calls"]
    assert next(iter(done["agents"])) == "preflight" and done["agents"]["preflight"]["preflight_calls"] == 2


def test_a_refused_picture_is_not_paid_and_every_token_is_known(
    desk: Desk, service: Counting, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk(LOCAL_PRICE)
    places.config_file().write_text(places.config_file().read_text() + "vision = true\n")
    service.plays_preflight = True
    proper = service.next_turn

    def blind(body: dict[str, Any], headers: dict[str, str]) -> Turn:
        said = proper(body, headers)
        return Fail(400, "image input is not supported") if "image_url" in json.dumps(body) else said

    monkeypatch.setattr(service, "next_turn", blind)
    stopped = run(*BACKTEST, "--budget", "0.3", "--json")
    assert stopped.code == 0, stopped.err
    use = stopped.json["model"]
    assert use["input_tokens"] is not None and use["uncounted_calls"] == 0
    # 0.00828 for every answered call, nothing for the refused ones.
    assert Decimal(use["cost"]) == (use["calls"] + use["preflight_calls"] - 1) * Decimal("0.00828")


def test_a_budget_below_one_call_is_refused_before_the_run(desk: Desk, service: Counting, run: Run) -> None:
    desk(LOCAL_PRICE)
    refused = run(*BACKTEST, "--budget", "0.001", "--yes")
    assert refused.code == 2 and "--budget of $0.001" in refused.err and "below one call" in refused.err
    assert (service.requests, service.preflights) == ([], [])
    assert not places.run_journal("paid").exists()
    arena = run("arena", "--days", "1", "--budget", "0.001", "--run", "small", "--yes")
    assert arena.code == 2 and "below one call" in arena.err and service.requests == []


def test_a_run_that_goes_on_with_another_model_names_and_counts_both(
    desk: Desk, run: Run, monkeypatch: pytest.MonkeyPatch, service: Counting
) -> None:
    price = LOCAL_PRICE.replace("output = 10", "output = 1000")
    desk(price + "[budget]\nusd_per_day = 75\n")
    monkeypatch.setattr(service, "tokens_out", 20_000)
    assert run(*DAY).code == 75
    (first,) = _desk_runs()
    asked = len(service.requests)
    assert first.label == "m1 (near)" and first.model is not None and first.model.calls == asked > 0
    desk(price.replace("near:m1", "near:m2") + "[budget]\nusd_per_day = 100000\n")
    places.config_file().write_text(
        places.config_file().read_text().replace('default = "near:m1"', 'default = "near:m2"')
    )
    done = run(*DAY, "--json").json
    (both,) = _desk_runs()
    assert both.label == "m1 (near), then m2 (near)" and both.model is not None
    assert both.model.spec == done["model"]["spec"] == "near:m1, near:m2"
    assert len(service.requests) == both.model.calls == done["model"]["calls"] > asked
    with JournalReader(places.desk_journal("demo")) as reader:
        costs = [call.cost or Decimal(0) for call in reader.calls()]
    assert both.model.cost == sum(costs) > (first.model.cost or 0) > 0
    assert run("report", "--session", "2025-03-11", "--format", "json").json["label"] == both.label
    day = " ".join(run("report", "--session", "2025-03-11").out.split())
    assert "m1 (near), then m2 (near)" in day and "By agent" in day


def _desk_runs() -> tuple[RunEntry, ...]:
    with JournalReader(places.desk_journal("demo")) as reader:
        return reader.runs()


def test_tokens_without_a_price_have_a_budget_of_their_own(desk: Desk, service: Counting, run: Run) -> None:
    desk("[budget]\ntokens_per_day = 1000\nusd_per_day = 0\n")
    refused = run(*DAY)
    assert refused.code == 75 and "budget.tokens_per_day of 1,000 is reached" in refused.err
    assert service.requests == []
    desk("[budget]\ntokens_per_day = 10000000\nusd_per_day = 0\n")
    assert run(*DAY).code == 0


def test_a_backtest_is_forecast_and_above_a_limit_it_needs_a_yes(desk: Desk, service: Counting, run: Run) -> None:
    desk(LOCAL_PRICE + "[budget]\nask_above = 0.01\n")
    refused = run(*BACKTEST)
    assert refused.code == 2 and service.requests == []
    assert "Forecast for 1 run" in refused.err and "near:m1: about" in refused.err
    assert "is above budget.ask_above ($0.01): pass --yes to run it" in refused.err
    assert not places.run_journal("paid").exists()
    assert "reasoning of near:m1 is not in it" in refused.err, "nothing is recorded of the model"
    assert run(*BACKTEST, "--yes").code == 0 and service.requests
    again = run(*LONG[:-1], "longer")
    assert again.code == 2 and "Forecast for 1 run" in again.err and "is not in it" not in again.err


def test_tokens_without_a_price_above_those_of_a_day_need_a_yes_too(desk: Desk, service: Counting, run: Run) -> None:
    desk("[budget]\ntokens_per_day = 1000\n")
    refused = run(*BACKTEST)
    assert refused.code == 2 and service.requests == []
    assert "price unknown" in refused.err and "free" not in refused.err
    said = "million tokens of models without a known price is above budget.tokens_per_day (1,000): pass --yes to run it"
    assert said in refused.err
    assert run(*BACKTEST, "--yes").code == 0 and service.requests


async def test_the_screen_shows_no_dollars_over_a_model_without_a_price(desk: Desk, service: Counting) -> None:
    for more, told in (("", "cost unknown"), (LOCAL_PRICE, "$0.00")):
        desk(more)
        async with opened() as pilot:
            view = pilot.app.bridge.snapshot()  # type: ignore[attr-defined]
            begun = replace(view, desk=replace(view.desk, run="r1"))
            assert Item("Models", told) in list(items(begun))
            await pilot.press("5")
            await until(pilot, lambda: pilot.app.current_mode == "ops")
            title = pilot.app.screen.query_one("#models", Table)
            await until(pilot, lambda: told in str(title.border_subtitle))  # noqa: B023


def status_of(pilot: Pilot[Any]) -> str:
    return pilot.app.screen.query_one(StatusBar).render_line(0).text


def text_of(pilot: Pilot[Any], kind: type[Static], name: str) -> str:
    return " ".join(str(pilot.app.screen.query_one(f"#{name}", kind).render()).split())


async def test_the_costs_of_the_configuration_are_shown(fresh: Path) -> None:
    places.config_file().write_text(
        '[desk]\npreset = "finvision-no-reflection"\ncash = "25000"\nsymbols = ["ORVL"]\n'
        '[execution]\nslippage_bp = "9"\ncommission = "0.002"\ncommission_per_order = "1.5"\n'
    )
    async with opened((160, 40)) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await shown(pilot)
        assert "Fills next open  9 bp slippage  0.2 % commission" in status_of(pilot)
        await pilot.press("4")
        await until(pilot, lambda: text_of(pilot, Static, "costs") == "next open 9 bp slippage 0.2 % commission")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: bool(bridge.snapshot().backtests))
        told = "fills at the next open, slippage 9 bp, commission 0.2 %, 1.5 an order, cash 25,000.00, cash floor 10 %"
        await until(pilot, lambda: told in text_of(pilot, RunProgress, "progress"))


def test_an_account_at_a_broker_has_costs_of_its_own(open_broker: OpenBroker) -> None:
    open_broker(datetime(2025, 3, 11, 21, tzinfo=UTC), through=date(2025, 3, 11), symbols=["ORVL"])
    desk = OpenDesk(services(load_config(places.config_file()).config))
    assert (desk.costs, desk.default_costs) == ("broker's", "next open, 5 bp slippage, 0 % commission")
