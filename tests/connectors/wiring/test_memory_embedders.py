"""The configured embedder drives memory over HTTP: its vectors are what is recalled by, its calls are counted, another
is refused, and a memory can be embedded anew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app import memory
from engine.app.desk.run import run_daily
from engine.app.memory import Reembedded, memory_of_desk, memory_of_run, part_of, reembed_memory
from engine.app.records.desk_journal import desk_lock
from engine.app.research.backtest import run_backtest
from engine.clock import BacktestClock
from engine.domain.run import DataSpec, RunSpec
from engine.errors import BudgetReached, ConfigError, PaperdeskError, TryAgainLater
from engine.journal.reader import JournalReader
from engine.session.context import DeskRunResult
from engine.session.cost_meter import VECTORS
from engine.settings import places
from engine.settings.config import BudgetConfig, Config
from memory.lancedb_store import store_embedder
from memory.record import MemoryRecord
from tests.connectors.wiring.clocks import NOON
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, fake_llm_server

DAYS = (date(2024, 2, 12), date(2024, 2, 13), date(2024, 2, 14))
SPEC = RunSpec(symbols=("TMBK",), first=DAYS[1], last=DAYS[2], preset="desk", data=DataSpec(None, 7), model="offline")


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    with fake_llm_server() as running:
        yield running


def config(server: FakeLLMServer | None = None, embedder: str = "local:vectors") -> Config:
    plain: dict[str, Any] = {
        "desk": {"name": "mine", "symbols": ["TMBK"], "preset": "desk"},
        "memory": {"embedder": embedder},
    }
    if server is not None:
        plain["endpoints"] = {"local": {"base_url": server.openai_url}}
    return Config.model_validate(plain)


def day(configured: Config, session: date) -> DeskRunResult:
    wall = BacktestClock(datetime(session.year, session.month, session.day, 21, 30, tzinfo=UTC))
    result = asyncio.run(run_daily(services(configured, wall), session))
    assert isinstance(result, DeskRunResult)
    return result


def records() -> dict[str, MemoryRecord]:
    with memory_of_desk(services(config(embedder="hash-384"))).opened() as memory:
        return {record.id: record for record in memory.records()}


def reembedded(configured: Config, spec: str | None = None) -> Reembedded:
    given = services(configured)
    return reembed_memory(given, memory_of_desk(given), spec, "mine")


def test_a_backtest_remembers_by_the_vectors_of_the_endpoint_and_counts_its_calls(server: FakeLLMServer) -> None:
    plain = run_backtest(services(config(embedder="hash-384"), NOON), replace(SPEC, run="plain")).result.model
    first = run_backtest(services(config(server), NOON), replace(SPEC, run="first")).result.model
    assert plain is not None and first is not None
    calls = len(server.requests)
    sent = {text for request in server.requests for text in request["input"]}
    with JournalReader(places.run_journal("first")) as reader:
        kept = memory_of_run(services(Config()), reader.run("first"))
    with kept.opened() as memory:
        texts = {record.query_text.strip() or record.text for record in memory.records()}
        assert {len(record.vector) for record in memory.records()} == {8}
    assert texts <= sent
    assert sent - texts - {"dimension"}, "what memory is asked is embedded as well"
    assert store_embedder(kept.place) == ("local:vectors", 8)
    assert (plain.cost, first.cost) == (0, None), "an endpoint without a price: unknown, not nothing"
    assert first.calls == plain.calls + calls
    assert first.usage.input_tokens == plain.usage.input_tokens + 5 * calls
    # What was paid for once is not paid for again.
    again = run_backtest(services(config(server), NOON), replace(SPEC, run="again")).result.model
    assert first.agents[VECTORS].calls == calls and VECTORS not in plain.agents
    free = {name: getattr(plain, name) for name in ("calls", "usage", "cost", "agents", "models", "months")}
    assert again == replace(first, **free)
    assert len(server.requests) == calls


def test_a_vendors_vectors_cost_what_the_table_says(server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    monkeypatch.setattr("connectors.llm.embeddings._DIMENSIONS", {"text-embedding-3-small": 8})
    paid = run_backtest(services(config(embedder="openai:text-embedding-3-small"), NOON), SPEC).result.model
    assert paid is not None and paid.cost is not None
    assert paid.cost * 1_000_000 == len(server.requests) * 5 * Decimal("0.02") > 0


def test_vectors_live_within_the_budget_of_the_day(server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.llm.embeddings._DIMENSIONS", {"text-embedding-3-small": 8})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    priced, local = config(embedder="openai:text-embedding-3-small"), config(server)
    for desk, budget, said in (
        (priced, {"usd_per_day": Decimal(0)}, "budget.usd_per_day of [$]0.00 is reached"),
        (local, {"tokens_per_day": 1}, "budget.tokens_per_day of 1 is reached"),
    ):
        other = desk.desk.model_copy(update={"name": "poor"})
        poor = desk.model_copy(update={"budget": BudgetConfig(**budget), "desk": other})
        asked = len(server.requests)
        with pytest.raises(BudgetReached, match=said):
            day(poor, DAYS[0])
        assert len(server.requests) == asked

    # Room for some calls and not for all: what they took counts in the day's next run as well.
    with pytest.raises(BudgetReached, match="tokens_per_day of 1,000"):
        day(local.model_copy(update={"budget": BudgetConfig(tokens_per_day=1_000)}), DAYS[0])
    first = len(server.requests)
    assert first > 0
    with JournalReader(places.desk_journal("mine")) as reader:
        (run,) = reader.runs()
        assert run.model is not None and run.model.agents[VECTORS].usage.input_tokens == 5 * first
    with pytest.raises(BudgetReached, match=f"{5 * first:,} are used today"):
        day(local.model_copy(update={"budget": BudgetConfig(tokens_per_day=5 * first)}), DAYS[0])
    assert day(local, DAYS[0]).model.agents[VECTORS].usage.input_tokens == 5 * len(server.requests)


def test_a_memory_is_embedded_anew_and_goes_on_under_the_other(server: FakeLLMServer) -> None:
    day(config(embedder="hash-384"), DAYS[0])
    before = records()
    with pytest.raises(ConfigError, match="paperdesk memory reembed"):
        day(config(server), DAYS[1])
    made = reembedded(config(server))
    assert (made.before, made.after, made.count, made.done) == ("hash-384", "local:vectors", len(before), True)
    # One call asked for the dimension when the day was refused.
    assert made.use.calls == len(server.requests) - 1 > 0
    after = records()
    assert {name: record.text for name, record in after.items()} == {n: record.text for n, record in before.items()}
    assert {len(record.vector) for record in after.values()} == {8}
    assert reembedded(config(server)).done is False
    asked = len(server.requests)
    done = day(config(server), DAYS[1])
    assert done.decisions and done.model.usage.input_tokens == 5 * (len(server.requests) - asked) > 0
    assert set(records()) > set(before)
    with pytest.raises(ConfigError, match="hash-384"):
        day(config(embedder="hash-384"), DAYS[2])
    assert reembedded(config(server), "hash-384").after == "hash-384"
    assert day(config(embedder="hash-384"), DAYS[2]).decisions


def test_a_failed_service_and_a_desk_at_work_leave_the_old_store_and_the_lock_is_held_meanwhile(
    server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    day(config(embedder="hash-384"), DAYS[0])
    before = records()
    learned = [Say()]  # the dimension, asked for once
    for status, code in ((400, 78), (503, 75), (429, 75)):
        server.play(*learned, *[Fail(status, "not now")] * 9)
        learned.clear()
        with pytest.raises(PaperdeskError, match="not now") as ended:
            reembedded(config(server))
        assert ended.value.exit_code == code
    server.play(Say())
    with desk_lock("mine"), pytest.raises(TryAgainLater):
        reembedded(config(server))
    assert records() == before and store_embedder(places.desk_memory("mine"))[0] == "hash-384"
    assert sorted(path.name for path in places.desk_memory("mine").parent.glob("*.memory*")) == ["mine.memory"]

    honest, seen = memory.replace_memory, list[bool]()

    def replacing(place: Path, new: Path) -> None:
        with pytest.raises(TryAgainLater), desk_lock("mine"):
            pass
        seen.append(new == part_of(place))
        honest(place, new)

    monkeypatch.setattr(memory, "replace_memory", replacing)
    assert reembedded(config(server)).done and seen == [True]


@pytest.mark.parametrize("at", [1, 2])
def test_a_replacement_that_was_cut_off_is_gone_on_with(
    server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    day(config(embedder="hash-384"), DAYS[0])
    before = records()
    honest, done = Path.rename, 0

    def cut_off(self: Path, target: Path) -> Path:
        nonlocal done
        if self.suffix in (".memory", ".part"):
            done += 1
            if done == at:
                raise KeyboardInterrupt
        return honest(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", cut_off)
        with pytest.raises(KeyboardInterrupt):
            reembedded(config(server))
    # Before the old store has left its place nothing has happened; after that the new one is whole.
    goes_on = config(embedder="hash-384") if at == 1 else config(server)
    assert day(goes_on, DAYS[1]).decisions
    assert set(records()) > set(before)
    assert reembedded(config(server)).done is (at == 1)
    left = sorted(path.name for path in places.desk_memory("mine").parent.glob("*.memory*"))
    assert left == ["mine.memory"]
