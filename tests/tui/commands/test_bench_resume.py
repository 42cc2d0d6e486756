"""A bench of a published table that is stopped, by its budget or by an outage, and goes on to the end of an unbroken
one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from connectors.llm import gate
from engine.app.bench import bench as bench_module
from engine.domain.decision import Decision
from engine.journal.entries import CallCost
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.connectors.wiring.short_bench import short_tables, write_folder
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn, fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run, Said
from tests.tui.commands.test_model_outages import ANSWERS

CALL = Decimal("0.0041")
"""Dollars of one call: a thousand tokens in at 2 a million, a hundred out at 1."""
TABLES = partial(short_tables, last=date(2023, 7, 13), warm_up_from=date(2023, 6, 27))
REFLECTIONS = {
    "return_trend": {"effectiveness": "Mixed.", "key_factors": "The trend.", "return_trend": "Flat."},
    "missed": {"trend_against_signals": "Flat.", "effectiveness": "Mixed.", "missed": []},
}
ACTIONS = (("BUY", 6, "strong uptrend"), ("BUY", 9, "strong uptrend"), ("HOLD", 0, "uncertainty"))


class Trader(FakeLLMServer):
    """Answers every agent of finvision, each question in its own way; `last` is the number of the last question that is
    answered, the others find the service gone; `refused` are numbers of questions that it will not answer."""

    last = 10**6
    refused = frozenset[int]()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.answered: Counter[str] = Counter()

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        with self._lock:
            self.requests.append(body)
            if len(self.requests) > self.last:
                return Fail(402, "no credit is left")
            self.answered[json.dumps(body["messages"])] += 1
            if len(self.requests) in self.refused:
                return Say(text="I will not.", ending="refused", tokens_in=2000, tokens_out=100)
        return Say(text=json.dumps(_answer(body)), tokens_in=2000, tokens_out=100)


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    if is_preflight(body):
        return {"word": "ready"}
    schema, asked = json.dumps(body["response_format"]), json.dumps(body["messages"])
    known = ANSWERS | REFLECTIONS
    answer = next(answer for field, answer in known.items() if f'"{field}"' in schema)
    if "recommendation" not in answer:
        return answer
    action, size, rule = ACTIONS[blake2b(asked.encode(), digest_size=2).digest()[0] % len(ACTIONS)]
    return answer | {"symbol": "AMZN", "recommendation": action, "position_size": size, "rule": rule}


@pytest.fixture
def service(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trader]:
    monkeypatch.setattr(gate, "PACE", 0.001)
    monkeypatch.setattr(bench_module, "published", TABLES)
    with fake_llm_server(Trader()) as running:
        assert isinstance(running, Trader)
        write_folder(tmp_path / "data")
        configure(running)
        yield running


def configure(service: Trader, model: str = "near:m1", replay: str = "read-through") -> None:
    places.config_file().parent.mkdir(parents=True, exist_ok=True)
    places.config_file().write_text(
        f'[models]\ndefault = "{model}"\nreplay = "{replay}"\n'
        '[models.prices."near:m1"]\ninput = 2\noutput = 1\n'
        f'[endpoints.near]\nbase_url = "{service.openai_url}"\nrequests_per_minute = 60000\n'
    )


@pytest.fixture
def bench(run: Run, tmp_path: Path) -> Callable[..., Said]:
    def called(*more: str) -> Said:
        folder = ("--symbols", "AMZN", "--ablations", "--data", str(tmp_path / "data"))
        return run("bench", "finvision", *(() if "--resume" in more else folder), "--yes", "--json", *more)

    return called


def figures(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what no two benches have in common."""
    assert not any("never traded" in (cell["note"] or "") for cell in document["cells"])
    return {name: part for name, part in document.items() if name != "runs"}


def unbroken(
    bench: Callable[..., Said], service: Trader, tmp_path: Path, *more: str, replay: str = "read-through"
) -> tuple[dict[str, Any], int]:
    """The document of the bench in a home of its own, and the number of questions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(places.HOME, str(tmp_path / "other-home"))
        configure(service, replay=replay)
        done = bench(*more)
    assert done.code == 0, done.err
    asked = len(service.requests)
    service.requests.clear()
    service.answered.clear()
    return figures(done.json), asked


def to_go_on(stopped: Said) -> str:
    """The id of a bench that was stopped, as its error names it."""
    assert stopped.code == 75 and stopped.err.strip().count("\n") <= 4, stopped.err
    found = re.search(r"`paperdesk bench finvision --resume (\S+)` continues", stopped.err)
    assert found is not None and "finished work is kept" in stopped.err
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("replay", ["read-through", "live"])
def test_a_budget_is_never_crossed_and_the_bench_goes_on_to_the_unbroken_result(
    bench: Callable[..., Said], service: Trader, tmp_path: Path, replay: str
) -> None:
    whole, asked = unbroken(bench, service, tmp_path, replay=replay)
    cost = sum(Decimal(one["cost"]) for one in whole["models"])
    assert cost == pytest.approx(asked * CALL, abs=CALL) and cost > Decimal("0.1")
    configure(service, replay=replay)
    run, spent = to_go_on(bench("--budget", "0.12")), list[int]()
    for most in ("0.12", "0.18"):
        stopped = bench("--resume", run, "--budget", most)
        assert to_go_on(stopped) == run and f"--budget of ${most} is reached" in stopped.err
        spent.append(len(service.requests))
        assert 0 < spent[-1] * CALL <= Decimal(most)
    assert spent[0] < spent[1] < asked  # what was there of the budget was used, then more of it
    done = bench("--resume", run)
    assert done.code == 0 and len(service.requests) == asked
    assert figures(done.json) == whole
    assert not places.bench_folder(run).exists()
    gone = bench("--resume", run)
    assert gone.code == 65 and "no such bench" in gone.err


@pytest.mark.slow
def test_an_outage_pauses_a_bench_of_two_processes_and_nothing_is_asked_twice(
    bench: Callable[..., Said], service: Trader, tmp_path: Path
) -> None:
    whole, asked = unbroken(bench, service, tmp_path)
    service.last = 40
    run = to_go_on(bench("--jobs", "2"))
    service.last = 10**6
    done = bench("--resume", run, "--jobs", "2")
    assert done.code == 0 and done.json["cells"] == whole["cells"]
    # Both rows ask some questions alike, and their processes may ask them at one time.
    assert len(service.answered) == asked and max(service.answered.values()) <= 2


@pytest.mark.slow
def test_a_run_that_keeps_its_journal_goes_on_in_it(
    bench: Callable[..., Said], service: Trader, tmp_path: Path, run: Run
) -> None:
    whole, _ = unbroken(bench, service, tmp_path, "--keep")
    service.last = 30
    name = to_go_on(bench("--keep"))
    service.last = 10**6
    done = bench("--resume", name)
    assert done.code == 0 and done.json["cells"] == whole["cells"]
    assert done.json["runs"] == [f"{name}-1", f"{name}-2"]
    assert all(run("report", "--run", one).code == 0 for one in done.json["runs"])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("finvision", "--resume", "nothing"), 65, "--resume nothing: no such bench to resume"),
        (("finvision", "--resume", "x", "--repeats", "2"), 2, "leave out --repeats"),
        (("memory", "--budget", "1"), 2, "bench memory takes no --budget"),
        (("arena", "--resume", "x"), 2, "bench arena takes no --resume"),
        (("arena", "--data", ".", "--budget", "1"), 2, "bench arena takes no --budget"),
        (("finvision", "--budget", "-1"), 2, "--budget"),
    ],
)
def test_what_cannot_be_gone_on_with_is_one_line(
    run: Run, service: Trader, arguments: tuple[str, ...], code: int, said: str
) -> None:
    refused = run("bench", *arguments)
    assert refused.code == code and said in refused.err


def test_a_bench_is_not_gone_on_with_by_another_model(bench: Callable[..., Said], service: Trader) -> None:
    name = to_go_on(bench("--budget", "0.12"))
    configure(service, model="near:m2")
    refused = bench("--resume", name)
    assert refused.code == 2 and "near:m1 answered, and near:m2 would by now" in refused.err


def test_what_a_model_refused_and_made_up_is_counted_beside_its_calls_and_cost(
    bench: Callable[..., Said], service: Trader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.refused = frozenset({5, 9})
    told = {**ANSWERS["position_size"], "explanation": "Earnings came to 31,415.9 million, so buy."}
    monkeypatch.setitem(ANSWERS, "position_size", told)
    done = bench("--keep")
    (model,) = done.json["models"]
    assert model["spec"] == "near:m1" and Decimal(model["cost"]) == pytest.approx(
        len(service.requests) * CALL, abs=CALL
    )
    calls, decisions = list[CallCost](), list[Decision]()
    for run in done.json["runs"]:
        with JournalReader(places.run_journal(run)) as journal:
            calls += journal.calls(run)
            decisions += journal.decisions(run)
    assert model["refusals"] == model["abstentions"] == sum(call.refused for call in calls)
    assert model["refusals"] >= 2, "two, and the rows to which those answers were given again"
    figures = sum(len(made.unresolved_figures) for made in decisions)
    assert model["unresolved_figures"] == figures > 5
    assert sum(agent["unresolved_figures"] for agent in model["agents"].values()) == figures
