"""One registration per agent: what follows from it, and that it is true."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from engine.agents.agent import Reads
from engine.agents.registry import registered, waits_for
from engine.domain.decision import Outcome, Recollection
from engine.domain.order import PositionContext
from engine.errors import ConfigError
from engine.preset import load_preset

SHOWS = {Recollection: Reads.MEMORY, Outcome: Reads.HISTORY, PositionContext: Reads.HISTORY}


@pytest.mark.parametrize("name", registered())
def test_an_agent_reads_no_more_than_it_is_registered_for(name: str) -> None:
    agent = registered()[name]
    hints = " ".join(map(str, get_type_hints(agent.view).values()))
    seen = {source for kind, source in SHOWS.items() if f"{kind.__module__}.{kind.__qualname__}" in hints}
    assert seen <= agent.reads
    assert agent.prompt.is_file()


def test_who_waits_for_whom_is_read_off_the_views() -> None:
    graph = {name: set(waits_for(agent, registered())) for name, agent in registered().items()}
    assert [name for name, waited in graph.items() if not waited] == [
        "news",
        "filing-summary",
        "chart",
        "performance-reflection",
        "signal-reflection",
        "portfolio-reflection",
    ]
    portfolio = {name for name in graph if name.startswith("portfolio-")}
    assert graph["portfolio-decision"] == portfolio - {"portfolio-decision"}
    assert graph["past-intelligence"] == {"news", "market-intelligence"}
    assert graph["market-intelligence"] == {"filing-summary"}
    assert graph["decision"] == {"news", "chart", "performance-reflection", "signal-reflection"}
    debate = {"debate-comment", "debate-decision"}
    others = set(registered()) - portfolio - debate
    others -= {"filing-summary", "decision", "evidence-decision", "whole-decision"}
    assert graph["evidence-decision"] == graph["whole-decision"] == others
    assert graph["debate-comment"] == {"news", "market-intelligence", "immediate-reflection"}
    assert graph["debate-decision"] == graph["debate-comment"] | {"debate-comment"}


OWN = """
from pathlib import Path
from engine.agents.agent import MARKET_ALONE, Agent
from engine.agents.agent import Answer, View

WRONG = 1
def agent(name, step, see=lambda inputs: "nothing"):
    return Agent(name=name, step=step, view=View, see=see, answer=Answer, prompt=Path("x.md"), rule=dict,
                 reads=MARKET_ALONE)
TAKEN = agent("chart", "mine")
STEP = agent("mine", "tools")
BLIND = agent("mine", "mine", None)
MINE = agent("mine", "mine")
"""


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("own.py:TAKEN", "chart"),
        ("own.py:STEP", "tools"),
        ("own.py:BLIND", "`see`"),
        ("own.py:WRONG", "Agent"),
        ("own.py:ABSENT", "ABSENT"),
        ("none.py:MINE", "none.py"),
        ("own.py", "FILE.py:NAME"),
        ("broken.py:MINE", "ZeroDivisionError"),
    ],
)
def test_what_is_no_agent_is_a_configuration_error(reference: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    preset = tmp_path / "mine.toml"
    preset.write_text(f'extends = "finvision"\nload = ["{reference}"]\n')
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_preset(str(preset))
    assert str(preset) in str(caught.value) and "\n" not in str(caught.value)


def test_an_agent_of_ones_own_is_a_step_of_the_preset_that_loads_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    file = tmp_path / "mine.toml"
    file.write_text('extends = "finvision"\nsteps = ["news", "chart", "mine"]\nload = ["own.py:MINE"]\n')
    preset = load_preset(str(file))
    assert preset.questions == ("news", "chart", "mine", "decision")
    assert preset.without(("mine",)).questions == ("news", "chart", "decision")
    assert "mine" not in load_preset("finvision").registered
