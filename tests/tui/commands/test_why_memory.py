"""`paperdesk why --memory` tells of every memory why a decision recalled it, or did not, as the recall itself ranks."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.settings.config import load_config
from tests.conftest import MadeHome
from tests.long_cases import first_of
from tests.tui.commands.conftest import Run, contents, copied

DECIDED = "2024-02-20"
RUNS = {name: f"backtest-20240601-120000-{name}" for name in ("desk", "finmem", "tradinggpt")}


@pytest.fixture
def home(made_home: MadeHome, paperdesk_home: Path) -> Path:
    """A home with a short backtest of presets whose relevancy is by words, by vectors, and whose owners are several."""
    config = load_config(None, environ={}).config
    window = {"symbols": ("TMBK",), "first": date(2024, 2, 13), "last": date(2024, 2, 21), "data": DataSpec(None, 7)}

    def lives() -> None:
        for preset, run in RUNS.items():
            run_backtest(services(config), RunSpec(**window, preset=preset, run=run))

    return copied(made_home("recalled", lives), paperdesk_home)


@pytest.mark.parametrize(
    ("preset", "measure", "reasons"),
    first_of(
        1,
        [
            ("desk", "lexical", {"recalled", "outranked", "not known yet", "too new", "gone"}),
            ("finmem", "cosine", {"recalled", "outranked", "not known yet", "gone"}),
            ("tradinggpt", "cosine", {"recalled", "outranked", "not known yet", "gone", "too weak"}),
        ],
    ),
)
def test_every_memory_has_its_place_in_the_recall(
    run: Run, home: Path, tmp_path: Path, preset: str, measure: str, reasons: set[str]
) -> None:
    of_run = ("--run", RUNS[preset])
    decisions = run("why", "TMBK", DECIDED, *of_run, "--json").json["decisions"]
    recalled = {one["id"]: one for made in decisions for one in made["recollections"]}
    run("memory", "export", str(tmp_path / "all.jsonl"), *of_run)
    every = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    before, seen = contents(home), set[str]()
    for number, memory in enumerate(every):
        if memory["id"] not in recalled and number % 2:
            continue
        document = run("why", "TMBK", DECIDED, "--memory", memory["id"], *of_run, "--json").json
        assert document["memory"]["id"] == memory["id"]
        asked, *lessons = document["recalls"]
        seen.add(asked["reason"])
        assert (asked["question"], {one["question"] for one in lessons} <= {"lessons"}) == ("memories", True)
        assert (asked["reason"] == "recalled") is (memory["id"] in recalled), document
        if memory["id"] in recalled:
            then = recalled[memory["id"]]
            assert {name: asked[name] for name in ("layer", "recency", "importance")} == {
                name: then[name] for name in ("layer", "recency", "importance")
            }
            taken = [one for one in asked["types"] if one["query"] in then["types"]]
            assert max(taken, key=lambda one: one["score"])["score"] == then["score"]
            assert all(one["score"] >= one["least_taken"] for one in taken) and asked["measure"] == measure
        elif asked["reason"] == "outranked":
            assert all(one["rank"] > asked["k"] and one["score"] <= one["least_taken"] for one in asked["types"])
        elif asked["reason"] == "gone":
            assert asked["gone"]["session"] <= DECIDED and asked["gone"]["cause"] == "purged"
        elif asked["reason"] == "not known yet":
            assert memory["available"] >= DECIDED
    assert seen == reasons
    assert contents(home) == before, "telling why changes nothing"


def test_it_is_told_in_words_and_refuses_what_cannot_be_meant(run: Run, home: Path) -> None:
    of_run = ("--run", RUNS["finmem"])
    listed = run("memory", "list", *of_run, "--json").json["memories"]
    *_, memory = (one for one in listed if one["kind"] == "news")
    told = run("why", "TMBK", DECIDED, "--memory", memory["id"][:10], *of_run)
    assert told.code == 0 and f"owner {memory['owner']}, id {memory['id']}" in told.out and "LEAST TAKEN" in told.out
    for one in listed:
        if one["available"] == DECIDED and one["kind"].endswith("reflection"):
            assert "written after this decision" in run("why", "TMBK", DECIDED, "--memory", one["id"], *of_run).out
            break
    else:
        pytest.fail("no reflection was written in the session")
    for flags, code in (
        (("--memory", "zz"), 65),
        (("--memory", " "), 2),
        (("--memory", memory["id"], "--full"), 2),
        (("--memory", memory["id"], "--redecide"), 2),
        (("--memory", memory["id"], "--preset", "desk"), 2),
    ):
        refused = run("why", "TMBK", DECIDED, *flags, *of_run)
        assert (refused.code, refused.out, refused.err.count("\n")) == (code, "", 1), refused
