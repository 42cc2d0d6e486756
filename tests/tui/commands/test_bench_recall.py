"""`paperdesk bench recall`: hard questions with certain evidence, and what each ranking finds of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.app.bench import recall
from engine.domain.model_call import ModelRequest, ModelResult
from engine.offline.model import OfflineModel
from tests.tui.commands.conftest import Run

FEW = ("--symbols", "ORVL,HLXM")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench content with the questions on two symbols."""
    monkeypatch.setattr(recall, "LEAST", 150)


@pytest.mark.usefixtures("few")
def test_every_ranking_is_measured_on_the_same_questions(run: Run) -> None:
    said = run("bench", "recall", *FEW, "--json")
    assert said.code == 0, said.err
    document = said.json
    assert document["questions"] >= 150
    methods = {one["name"]: one for one in document["methods"]}
    assert {"hash-384", "bm25", "time", "all", document["default"]} == set(methods)
    for one in methods.values():
        assert 0 <= one["r5"] <= one["r20"] <= 1 and 0 <= one["mrr"] <= 1
        assert one["later"] == 0, "nothing from after the question"
    assert methods["hash-384"]["r20"] < 0.7, "the questions are in other words"
    assert methods["bm25"]["r20"] > methods["hash-384"]["r20"]
    assert methods[document["default"]]["superseded_first"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_same_questions_give_the_same_document(run: Run) -> None:
    first, again = (run("bench", "recall", *FEW, "--json").json for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--symbols", "ORVL"), 65),
        (("--repeats", "3"), 2),
        (("--models", "offline"), 2),
        (("--preset", "desk"), 2),
        (("--strategy", "macd"), 2),
    ],
)
def test_what_cannot_be_measured_is_one_line(run: Run, fresh: object, arguments: tuple[str, ...], code: int) -> None:
    said = run("bench", "recall", *arguments)
    assert said.code == code and said.err.count("\n") == 1, said.err
    assert code == 65 or f" takes no {arguments[0]};" in said.err, "the option as it was typed"


LAYERS = ("shallow", "intermediate", "deep", "reflection")
SHORT = ("--symbols", "BXWD", "--warm-up-from", "2025-02-18", "--from", "2025-03-03", "--to", "2025-03-28", "--json")
LONG = (
    "--symbols",
    "ORVL,BXWD",
    "--warm-up-from",
    "2025-01-02",
    "--from",
    "2025-03-03",
    "--to",
    "2025-05-30",
    "--json",
)


def assert_complete(study: dict[str, Any], analyses: int) -> None:
    """All arms are there, are what they are called, and are paired; nothing stems from the future or from nowhere."""
    arms = {arm["name"]: arm for arm in study["arms"]}
    layers = [layer for layer in LAYERS if f"without {layer}" in arms]
    switched = [f"without {layer}" for layer in layers]
    assert list(arms) == ["without memory", "recall", "oracle", *switched, "poisoned"] and len(layers) >= 3
    assert arms["without memory"]["memories"] == 0 < arms["oracle"]["memories"] < arms["recall"]["memories"]
    assert any(arms[name]["memories"] < arms["recall"]["memories"] for name in switched)
    for name, arm in arms.items():
        assert sum(arm["opinions"].values()) == analyses
        expected = {"without memory": "", "recall": "without memory", "oracle": "without memory"}.get(name, "recall")
        assert arm["against"] == expected
        if expected:
            apart = arm["total_return"] - arms[expected]["total_return"]
            assert arm["difference"] == pytest.approx(apart) and arm["low"] <= arm["high"]
    assert any(arm["changed"] for arm in arms.values()) and study["pivotal"] > 0
    poison = study["poison"]
    assert poison["share"] == 0.2 and poison["written"] > 0 and poison["recalled"] > 0
    assert 0 < poison["recalled_share"] < 1
    told, time = study["confabulation"], study["point_in_time"]
    assert told["cited"] > 0 == told["not_held"] == told["unresolved"]
    assert time["recalled"] > 0 == time["later"]


@pytest.mark.slow
def test_finmems_memory_arm_by_arm(run: Run, fresh: Path) -> None:
    document = run("bench", "memory", "--preset", "finmem", *SHORT).json
    (study,) = document["presets"]
    assert (study["preset"], study["sessions"], study["model"]) == ("finmem", 20, "offline")
    assert_complete(study, 20)


@pytest.mark.slow
def test_as_text_every_arm_has_its_row(run: Run, fresh: Path) -> None:
    said = run("bench", "memory", "--preset", "finmem", *SHORT[:-1])
    assert said.code == 0 and "without intermediate" in said.out and "Poisoned: " in said.out


@pytest.mark.slow
def test_the_memory_of_every_preset_that_has_one(run: Run, fresh: Path) -> None:
    studies = run("bench", "memory", *LONG).json["presets"]
    assert [study["preset"] for study in studies] == ["desk", "finmem", "tradinggpt-single"]
    for study in studies:
        assert_complete(study, 2 * study["sessions"])


@pytest.mark.slow
def test_memories_that_are_made_up_are_counted(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer: Callable[..., Any] = OfflineModel.answer

    async def confabulating(self: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        result: ModelResult = await answer(self, request, on_delta)
        if request.purpose != "immediate-reflection" or result.answer is None:
            return result
        evidence = {**result.answer["evidence"], "deep": ["D99"]}
        return replace(result, answer={**result.answer, "evidence": evidence})

    monkeypatch.setattr(OfflineModel, "answer", confabulating)
    (study,) = run("bench", "memory", "--preset", "finmem", *SHORT).json["presets"]
    told = study["confabulation"]
    assert told["not_held"] >= 20 and told["opinions"] == 0
    (recall,) = (arm for arm in study["arms"] if arm["name"] == "recall")
    assert recall["opinions"]["ABSTAIN"] == 20


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("memory", "--baselines", "--jobs", "2"), "bench memory takes no --"),
        (("memory", "--preset", "finvision", *SHORT), "preset finvision has no memory"),
        (("memory", "--preset", "finmen", *SHORT), "finmem"),
        (("finagent", "--from", "2025-03-03"), "bench finagent takes no --from"),
    ],
)
def test_what_does_not_belong_to_a_bench_is_refused(
    arguments: tuple[str, ...], complaint: str, run: Run, fresh: Path
) -> None:
    said = run("bench", *arguments)
    assert said.code == 2 and complaint in said.err
