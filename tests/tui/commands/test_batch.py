"""`--batch`: the questions of agents that read the market alone, as batches of both vendors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.llm import batches, gate
from connectors.llm.paid_results import AnswerStore, StoredBatch
from engine.domain.model_call import AHEAD
from engine.errors import TryAgainLater
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.long_cases import first_of
from tests.servers.fake_llm_server import Fail, FakeBatch, fake_llm_server, is_preflight
from tests.tui.commands import test_model_outages
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_model_outages import BACKTEST, SYMBOLS, Service

PRICES = '[models.prices]\n"openai:m1" = {input = 2, output = 10}\n"anthropic:m1" = {input = 2, output = 10}\n'


@pytest.fixture
def service(request: pytest.FixtureRequest, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A vendor's service on loopback (by default OpenAI's), whose batches are looked at again without waiting."""
    monkeypatch.setattr(batches, "FIRST_LOOK", 0.001)
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server(Service()) as running:
        assert isinstance(running, Service)
        running.vendor = getattr(request, "param", "openai")
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.anthropic_url)
        monkeypatch.setenv(f"{running.vendor.upper()}_API_KEY", "sk-secret-1")
        places.config_file().write_text(
            f'[desk]\npreset = "finvision-no-reflection"\nsymbols = {json.dumps(SYMBOLS)}\n'
            f'[models]\ndefault = "{running.vendor}:m1"\n{PRICES}'
        )
        yield running


def calls(run: str) -> list[tuple[Any, ...]]:
    """What was asked, paid and answered at which tier, in each analysis of a run."""
    with JournalReader(places.run_journal(run)) as reader:
        return sorted(
            (one.key.session, one.key.symbol, one.agent, one.result.tier, one.result.cached, one.result.usage.total)
            for one in reader.answers(run=run)
        )


BOTH = pytest.mark.parametrize("service", first_of(1, ["openai", "anthropic"]), indirect=True)
ANTHROPIC = pytest.mark.parametrize("service", ["anthropic"], indirect=True)


@BOTH
def test_one_run_by_four_roads(service: Service, run: Run) -> None:
    in_turn = run(*BACKTEST, "--run", "in-turn").json
    asked = len(service.requests)
    places.replay_cache().unlink()
    flex = run(*BACKTEST, "--run", "flex", "--tier", "flex").json
    places.replay_cache().unlink()
    service.requests.clear()
    said = run(*BACKTEST, "--run", "batched", "--batch")
    assert "24 hours" in said.err and "--resume batched" in said.err
    batched = said.json
    replayed = run(*BACKTEST, "--run", "replayed", "--model", f"{service.vendor}:m1").json
    assert len({one["fingerprint"] for one in (in_turn, flex, batched, replayed)}) == 1

    (batch,) = service.batches.values()
    assert len(batch.calls) + len(service.requests) == asked == batched["model"]["calls"]
    assert all(len(name) == 64 for name in batch.calls) and not any("stream" in body for body in batch.calls.values())
    decisions = [json.dumps(body) for body in service.requests]
    assert all("recommendation" in body for body in decisions)
    used, expected = batched["model"], in_turn["model"]
    assert (used["tier"], used["cached_calls"], Decimal(replayed["model"]["cost"])) == ("batch", 0, 0)
    assert used["input_tokens"] == expected["input_tokens"]
    cost = {agent: Decimal(one["cost"]) for agent, one in used["agents"].items()}
    list_price = {agent: Decimal(one["cost"]) for agent, one in expected["agents"].items()}
    assert cost["news"] * 2 == list_price["news"] and cost["chart"] * 2 == list_price["chart"]
    assert cost["decision"] == list_price["decision"]
    places.replay_cache().unlink()
    full, half = (
        Decimal(run(*BACKTEST, *more, "--budget", "0.0001").err.partition("about $")[2].split()[0])
        for more in ((), ("--batch",))
    )
    assert half < full


def test_a_batch_under_a_mask_is_of_masked_questions(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_model_outages, "SYMBOLS", [f"ASSET{number}" for number, _ in enumerate(SYMBOLS, 1)])
    done = run(*BACKTEST, "--batch", "--mask", "1")
    assert done.code == 0, done.err
    (batch,) = service.batches.values()
    sent = json.dumps([*batch.calls.values(), *service.requests])
    assert "ASSET1" in sent and not any(symbol in sent for symbol in SYMBOLS)
    assert len(batch.calls) + len(service.requests) == done.json["model"]["calls"]
    assert {one["symbol"] for one in done.json["decisions"]} == set(SYMBOLS)


@ANTHROPIC
def test_a_line_that_expired_is_asked_by_itself(service: Service, run: Run) -> None:
    service.expires = lambda body: "ORVL" in json.dumps(body) and "sentiment" in json.dumps(body)
    done = run(*BACKTEST, "--run", "expired", "--batch")
    assert done.code == 0, done.err
    (batch,) = service.batches.values()
    expired = [body for body in batch.calls.values() if service.expires(body)]
    assert expired and len(service.requests) == done.json["model"]["calls"] - len(batch.calls) + len(expired)
    tiers = {(symbol, agent): tier for _, symbol, agent, tier, _, _ in calls("expired")}
    assert tiers[("ORVL", "news")] == "" and tiers[("BXWD", "news")] == tiers[("ORVL", "chart")] == "batch"


CODE = f"from tui.cli import main; main({[*BACKTEST, '--run', 'killed', '--batch']!r})"


def decides(body: dict[str, Any]) -> bool:
    return "recommendation" in json.dumps(body) and not is_preflight(body)


def killed_run(at: str, service: Service, reached: threading.Event) -> None:
    """A run that is killed once that is reached, or once it has looked for its batch where it is `at` waiting."""
    with subprocess.Popen([sys.executable, "-c", CODE], env=os.environ.copy(), stderr=subprocess.PIPE) as other:
        while not (reached.is_set() or (at == "waiting" and any(one.looks for one in service.batches.values()))):
            assert other.poll() is None
            reached.wait(0.01)
        other.send_signal(signal.SIGKILL)


@pytest.mark.parametrize(
    ("service", "at"),
    first_of(
        1,
        [
            ("openai", "sending"),
            ("openai", "deciding"),
            ("anthropic", "sending beside others"),
            ("anthropic", "waiting"),
        ],
    ),
    indirect=["service"],
)
def test_a_killed_run_collects_its_batch_and_sends_nothing_twice(
    at: str, service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, goes_on = threading.Event(), threading.Event()

    def hold(number: int = 0) -> None:
        reached.set()
        goes_on.wait(600)

    if at.startswith("sending"):  # before its sender knows that it has arrived
        monkeypatch.setattr(service, "made_batch", hold)
    elif at == "deciding":
        service.trouble = lambda number: hold() if decides(service.requests[-1]) else None
    service.looks = 0 if at == "deciding" else 1_000_000
    killed_run(at, service, reached)
    goes_on.set()
    service.looks, service.trouble = 0, lambda number: None
    service.requests.clear()
    (batch,) = service.batches.values()
    if at == "sending beside others":  # somebody else's batch of as many calls, sent at the same time
        others = FakeBatch({f"other-{n}": body for n, body in enumerate(batch.calls.values())}, {})
        service.batches = {"batch_0": others, **service.batches}
    done = run("backtest", "--resume", "killed", "--json")
    assert done.code == 0, done.err
    assert len(service.batches) == (2 if at == "sending beside others" else 1)
    used = done.json["model"]
    assert used["calls"] == len(batch.calls) + len(service.requests) and used["cached_calls"] == 0
    whole = calls("killed")
    places.replay_cache().unlink()
    assert used["agents"]["news"] == run(*BACKTEST, "--run", "whole", "--batch").json["model"]["agents"]["news"]
    assert calls("whole") == whole


@pytest.mark.slow
@pytest.mark.parametrize(("service", "at"), [("anthropic", "sending"), ("openai", "waiting")], indirect=["service"])
def test_the_batch_of_a_killed_run_is_taken_over_and_booked_once(
    at: str, service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, goes_on = threading.Event(), threading.Event()
    if at == "sending":
        monkeypatch.setattr(service, "made_batch", lambda: (reached.set(), goes_on.wait(600)))
    service.looks = 1_000_000
    killed_run(at, service, reached)
    goes_on.set()
    service.looks = 0
    symbols = SYMBOLS if at == "sending" else SYMBOLS[:1]
    taken = run(*BACKTEST, "--symbols", ",".join(symbols), "--run", "taken", "--batch").json["model"]
    resumed = run("backtest", "--resume", "killed", "--json").json["model"]
    (batch,) = service.batches.values()
    assert paid(taken) + paid(resumed) == len(batch.calls)
    assert paid(taken) and (paid(resumed) > 0) is (at == "waiting")


def paid(used: dict[str, Any]) -> int:
    """Calls of agents that are asked in batches, but for those that were recorded before."""
    agents = (used["agents"][name] for name in ("news", "chart"))
    return sum(one["calls"] - one["cached_calls"] for one in agents)


def test_a_run_waits_for_the_batch_of_another_with_the_same_questions(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.looks = 1_000_000
    at_work = batches._at_work

    def seen(other: str) -> bool:
        service.looks = 0
        return at_work(other)

    monkeypatch.setattr(batches, "_at_work", seen)
    with subprocess.Popen([sys.executable, "-c", CODE], env=os.environ.copy(), stdout=subprocess.PIPE) as other:
        while not any(one.looks for one in service.batches.values()):
            assert other.poll() is None
            time.sleep(0.01)
        beside = run(*BACKTEST, "--run", "beside", "--batch")
        first = json.loads(other.communicate()[0])["model"]
    (batch,) = service.batches.values()
    assert (paid(first), paid(beside.json["model"])) == (len(batch.calls), 0)


@ANTHROPIC
def test_what_came_in_a_batch_is_booked_once_where_the_run_pauses(service: Service, run: Run) -> None:
    whole = run(*BACKTEST, "--run", "whole", "--batch").json["model"]
    places.replay_cache().unlink()
    service.requests.clear()
    service.batches.clear()
    service.trouble = lambda number: (
        Fail(529, "no") if decides(service.requests[-1]) and "2025-03-11" in json.dumps(service.requests[-1]) else None
    )
    paused = run(*BACKTEST, "--run", "paused", "--batch")
    assert paused.code == 75
    with JournalReader(places.run_journal("paused")) as reader:
        (entry,) = reader.runs()
        early = [call for call in reader.calls() if call.kind == AHEAD]
    assert entry.model is not None and early and {call.agent for call in early} == {"news", "chart"}
    service.trouble = lambda number: None
    done = run("backtest", "--resume", "paused", "--json").json["model"]
    assert len(service.batches) == 1
    assert Decimal(done["agents"]["decision"]["cost"]) == Decimal(whole["agents"]["decision"]["cost"])
    for agent in ("news", "chart"):
        assert Decimal(done["agents"][agent]["cost"]) == Decimal(whole["agents"][agent]["cost"])


@BOTH
def test_a_vendor_that_cannot_be_asked_ends_the_run_and_it_goes_on(service: Service, run: Run) -> None:
    service.batch_trouble = 404
    refused = run(*BACKTEST, "--run", "refused", "--batch")
    assert refused.code == 78 and "no batches today" in refused.err and "without --batch" in refused.err
    assert not service.batches and not service.requests

    service.batch_trouble = 503
    unknown = run(*BACKTEST, "--run", "out", "--batch")
    assert unknown.code == 75 and "--resume out" in unknown.err
    service.batch_trouble = 0
    done = run("backtest", "--resume", "out", "--json")
    assert done.code == 0, done.err
    (batch,) = service.batches.values()
    assert done.json["model"]["calls"] == len(batch.calls) + len(service.requests)


def test_what_was_recorded_of_a_batch_as_the_run_ended_stays_paid(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(*BACKTEST, "--run", "whole", "--batch").json["model"]
    places.replay_cache().unlink()
    service.batches.clear()
    keep = AnswerStore.keep_batch

    def ends(store: AnswerStore, batch: StoredBatch) -> None:
        if batch.collected:
            raise TryAgainLater("the disk is full")
        keep(store, batch)

    monkeypatch.setattr(AnswerStore, "keep_batch", ends)
    assert run(*BACKTEST, "--run", "ended", "--batch").code == 75
    monkeypatch.setattr(AnswerStore, "keep_batch", keep)
    done = run("backtest", "--resume", "ended", "--json").json["model"]
    assert len(service.batches) == 1
    assert (done["cost"], done["cached_calls"]) == (whole["cost"], 0)


def test_a_batch_that_the_vendor_does_not_begin_is_sent_anew_and_not_paid_in_full(service: Service, run: Run) -> None:
    service.refuses_batches = True
    refused = run(*BACKTEST, "--run", "out", "--batch")
    assert refused.code == 75 and "enqueued token limit" in refused.err and "--resume out" in refused.err
    assert not service.requests
    service.refuses_batches = False
    done = run("backtest", "--resume", "out", "--json")
    assert done.code == 0, done.err
    _, batch = service.batches.values()
    assert done.json["model"]["calls"] == len(batch.calls) + len(service.requests)


def test_a_stop_while_waiting_keeps_the_batch(service: Service, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    service.looks = 1_000_000
    interrupt = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    monkeypatch.setattr(service, "made_batch", interrupt.start)
    stopped = run(*BACKTEST, "--run", "stopped", "--batch")
    assert stopped.code == 130 and "--resume stopped" in stopped.err
    service.looks = 0
    done = run("backtest", "--resume", "stopped", "--json")
    (batch,) = service.batches.values()
    assert done.code == 0 and done.json["model"]["calls"] == len(batch.calls) + len(service.requests)


@ANTHROPIC
def test_a_budget_is_reserved_for_a_batch_and_not_crossed(service: Service, run: Run) -> None:
    stopped = run(*BACKTEST, "--run", "capped", "--batch", "--budget", "0.03")
    assert stopped.code == 75 and "--budget of $0.03 is reached" in stopped.err
    with JournalReader(places.run_journal("capped")) as reader:
        assert sum((call.cost or Decimal(0) for call in reader.calls()), Decimal(0)) <= Decimal("0.03")
    assert run("backtest", "--resume", "capped", "--budget", "10", "--json").code == 0
    lines = [name for batch in service.batches.values() for name in batch.calls]
    assert len(lines) == len(set(lines)) and lines


@pytest.mark.parametrize(
    ("model", "code"), [("offline", 78), ("near:m1", 78), ("replay", 65)], ids=["rules", "endpoint", "replay"]
)
def test_what_takes_no_batches_says_so(model: str, code: int, service: Service, run: Run) -> None:
    with places.config_file().open("a") as file:
        file.write(f'[endpoints.near]\nbase_url = "{service.openai_url}"\n')
    refused = run(*BACKTEST, "--batch", "--model", model)
    assert refused.code == code and refused.err.count("\n") == 1 and not service.requests
    assert ("--batch" in refused.err) is (code == 78)
    assert run("backtest", "--strategy", "macd", "--batch").code == 2
