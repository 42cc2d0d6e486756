"""What an ablation leaves out is really left out: no picture reaches a model that sees, no agent is asked, nothing is
recalled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.bench.jobs import Job, play_job
from engine.app.redecision.redecision import Changes, redecide
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.lab.published_tables import agent_spec
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.past_runs import trails
from tests.connectors.wiring.short_bench import short_tables, write_folder
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server

SPEC = RunSpec(
    symbols=("TMBK",), first=date(2024, 2, 13), last=date(2024, 2, 15), preset="finvision", data=DataSpec(None, 7)
)
BLIND = ("vision",)


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    """Holds whatever it is shown; of all other questions it knows no answer."""
    with fake_llm_server() as served:

        def turn(body: dict[str, Any], headers: dict[str, str]) -> Say:
            served.requests.append(body)
            text = json.dumps(body["messages"])
            symbol = next(name for name in ("TMBK", "AMZN") if name in text)
            held = {"recommendation": "HOLD", "position_size": 0, "rule": "uncertainty", "explanation": "Wait."}
            return Say(text=json.dumps({"symbol": symbol, **held}))

        served.next_turn = turn  # type: ignore[method-assign]
        yield served


def seeing(server: FakeLLMServer) -> Config:
    return Config.model_validate(
        {
            "models": {"default": "near:seer", "replay": "live"},
            "endpoints": {"near": {"base_url": server.openai_url, "vision": True, "requests_per_minute": 60_000}},
        }
    )


def pictures(server: FakeLLMServer) -> int:
    """How many pictures the service was sent since it was asked last."""
    parts = [
        part
        for body in server.requests
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    asked = len(server.requests)
    server.requests.clear()
    assert asked
    return sum(part["type"] == "image_url" for part in parts)


def test_no_picture_reaches_a_model_that_sees_in_a_backtest(server: FakeLLMServer) -> None:
    config = seeing(server)
    brief = replace(SPEC, last=date(2024, 2, 14))
    run_backtest(services(config, NOON), replace(brief, run="seen"))
    assert pictures(server) >= 3
    run_backtest(services(config, NOON), replace(brief, run="unseen", without=BLIND))
    assert pictures(server) == 0
    for run, seen in (("seen", True), ("unseen", False)):
        charts = [answer for one in trails(run) for answer in one.answers if answer.charts]
        assert {answer.agent for answer in charts} == {"chart", "signal-reflection"}
        assert {answer.seen for answer in charts} == {seen}
        # In place of the picture stand its figures, fenced.
        assert {"<<<" in answer.messages[0].text for answer in charts} == {not seen}


def test_a_preset_may_ask_once_about_both_terms_and_show_tables(tmp_path: Path) -> None:
    thrifty = tmp_path / "thrifty.toml"
    thrifty.write_text('extends = "finvision"\nname = "t"\nperformance_questions = 1\nwithout = ["vision"]\n')
    first, last = SPEC.first, date(2024, 2, 23)
    found = {}
    for preset in ("finvision", str(thrifty)):
        spec = replace(SPEC, preset=preset, model="offline", first=first, last=last, run=Path(preset).stem)
        run_backtest(services(Config(), NOON), spec)
        found[preset] = trails(Path(preset).stem)
    twice, once = (Counter(a.agent for one in some for a in one.answers) for some in found.values())
    # None on the first session, which has no past.
    assert once["performance-reflection"] == len(found["finvision"]) - 1 > 5
    assert twice - once == {"performance-reflection": once["performance-reflection"]}
    shown = [{a.seen for one in some for a in one.answers if a.charts} for some in found.values()]
    assert shown[1] == {False}
    for one, other in zip(*found.values(), strict=True):
        # What the decision reads of each term is the same, whichever way it was asked: the rules answer both alike.
        read = [a.messages[0].text.partition("Past decisions, ")[2] for t in (one, other) for a in t.answers[-1:]]
        assert read[0] == read[1]
    asked = [a for one in found[str(thrifty)] for a in one.answers if a.agent == "performance-reflection"]
    assert "the last 5 of them are the short term" in asked[-1].messages[0].text


def test_nor_when_a_decision_is_redecided(server: FakeLLMServer) -> None:
    config = seeing(server)
    run_backtest(services(config, NOON), replace(SPEC, first=date(2024, 2, 14), run="first"))
    server.requests.clear()
    with JournalReader(places.run_journal("first")) as reader:
        made = [decision for decision in reader.decisions() if decision.key.session == date(2024, 2, 14)]
        # Another model: what this one answered is not asked again.
        redecide(services(config), reader, made, Changes(model="near:other"))
        assert pictures(server) >= 2
        redecide(services(config), reader, made, Changes(model="near:other", without=BLIND))
    assert pictures(server) == 0


def test_nor_on_a_bench(server: FakeLLMServer, tmp_path: Path) -> None:
    table, data = short_tables("finvision", last=date(2023, 7, 31))[0], DataSpec(str(write_folder(tmp_path / "data")))
    table = replace(table, first=date(2023, 7, 27), warm_up_from=None)
    spec = agent_spec(table, "AMZN", "finvision", data=data)
    for without, shown in (((), True), (BLIND, False)):
        played = play_job(services(seeing(server)), Job(replace(spec, without=without), table, "a row"), lambda: False)
        assert played.result is not None
        assert (pictures(server) > 0) == shown


@dataclass(frozen=True)
class Lived:
    """What a run came to: questions by agent, recollections by type, prompts of the decision."""

    asked: Counter[str]
    recalled: Counter[str]
    decisions: tuple[str, ...]
    kept: bool


def lived(preset: str, *without: str) -> Lived:
    """Two sessions after three of warm-up, on the last of which claims came out, by the rules."""
    name = f"{preset}-{'-'.join(without)}"
    spec = replace(
        SPEC,
        preset=preset,
        model="offline",
        first=date(2024, 2, 9),
        last=date(2024, 2, 12),
        warm_up_from=date(2024, 2, 6),
        without=without,
        run=name,
    )
    spec = replace(spec, data=DataSpec(None, 7, ("ICSA", "AWHMAN")))
    run_backtest(services(Config(), NOON), spec)
    found = trails(name)
    answers = [answer for one in found for answer in one.answers]
    return Lived(
        Counter(answer.agent for answer in answers),
        Counter(kind for one in found for memory in one.recalled for kind in memory.memory.types),
        tuple(a.messages[0].text for a in answers if a.agent == "evidence-decision"),
        places.run_memory(name).exists(),
    )


def asks(agent: str) -> Callable[[Lived], int]:
    return lambda run: run.asked[agent]


SWITCHES: list[tuple[str, str, Callable[[Lived], int]]] = [
    ("finvision", "news", asks("news")),
    ("desk", "intelligence", asks("market-intelligence")),
    ("desk", "macro", lambda run: sum("(ICSA)" in text for text in run.decisions)),
    ("desk", "memory", lambda run: run.recalled.total()),
    ("desk", "memory", asks("past-intelligence")),
    ("desk", "memory", lambda run: sum(" memory, best first:" in text for text in run.decisions)),
    ("desk", "memory", lambda run: run.kept),
    ("desk", "diversified", lambda run: run.recalled["short term"] + run.recalled["long term"]),
    ("desk", "past", asks("past-intelligence")),
    ("desk", "chart", asks("chart")),
    ("desk", "tools", lambda run: sum("\nTools and experts" in text for text in run.decisions)),
    ("desk", "low-level", asks("low-level-reflection")),
    ("desk", "high-level", asks("high-level-reflection")),
    ("desk", "performance-reflection", asks("performance-reflection")),
    ("desk", "signal-reflection", asks("signal-reflection")),
    ("desk", "reflections", lambda run: sum(n for name, n in run.asked.items() if name.endswith("-reflection"))),
    ("finmem", "extended", asks("extended-reflection")),
    ("finmem", "immediate", asks("immediate-reflection")),
]


@pytest.fixture(scope="module")
def lived_once() -> Callable[..., Lived]:
    """Runs of presets without some steps, each made once."""
    return cache(lived)


LONG = {"low-level", "high-level", "performance-reflection", "immediate", "reflections", "diversified", "tools"}
"""Steps that are left out in the long suite alone: of each kind another one is in the usual one."""


@pytest.mark.parametrize(
    ("preset", "step", "count"),
    [
        pytest.param(*switch, id=f"{switch[0]} {switch[1]} {n}", marks=pytest.mark.slow if switch[1] in LONG else ())
        for n, switch in enumerate(SWITCHES)
    ],
)
def test_a_step_that_is_left_out_is_not_taken(
    lived_once: Callable[..., Lived], preset: str, step: str, count: Callable[[Lived], int]
) -> None:
    assert count(lived_once(preset)) > 0
    assert count(lived_once(preset, step)) == 0


def test_without_diversification_memory_is_asked_once_for_all(lived_once: Callable[..., Lived]) -> None:
    assert set(lived_once("desk", "diversified").recalled) == {"all"}
