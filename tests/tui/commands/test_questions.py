"""What agents are asked: every figure once and as it counts, code's notes apart from what models wrote."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from connectors.llm.warm_prefixes import CACHED_FROM
from engine.agents.figures import Facts, unresolved_figures
from engine.arena import agents as arena_agents
from engine.domain.decision import Decision, Opinion
from engine.domain.model_call import AnswerRecord, ModelRequest
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from tests.tui.commands.conftest import Run

WINDOW = ("--from", "2025-02-20", "--to", "2025-03-04", "--run", "asked")
AGENTS: Mapping[str, Sequence[str]] = {
    "finvision": ("news", "chart", "performance-reflection", "signal-reflection", "decision"),
    "desk": (
        *("market-intelligence", "past-intelligence", "low-level-reflection", "high-level-reflection"),
        "evidence-decision",
    ),
    "desk-debate": ("immediate-reflection", "extended-reflection", "debate-comment", "debate-decision"),
    "finagent": ("whole-decision",),
    "finmem": ("immediate-reflection",),
    "arena": ("portfolio-reflection", "portfolio-analysis", "portfolio-decision"),
}
"""The agents whose questions a preset's snapshot shows."""
EXAMPLES = re.compile(r"<<<example\n.*?\nexample>>>\n?", re.DOTALL)
EXAMPLE = re.compile(r"^<<<example\n(.*?)\nAnswer:\n(.*?)\nexample>>>$", re.MULTILINE | re.DOTALL)
RATIO = re.compile(r"(\d+(?:\.\d+)?)\s?%")


class Asked:
    """The questions and decisions of a run."""

    def __init__(self, run: Run, preset: str, symbols: str) -> None:
        assert run("backtest", "--preset", preset, "--symbols", symbols, *WINDOW).code == 0
        with JournalReader(places.run_journal("asked")) as reader:
            self.answers: Sequence[AnswerRecord] = reader.answers(run="asked")
            self.decisions: Sequence[Decision] = reader.decisions("asked")
            self.opinions: Sequence[Opinion] = reader.opinions("asked")

    def of(self, *agents: str) -> list[AnswerRecord]:
        found = [one for one in self.answers if one.agent in agents]
        assert {one.agent for one in found} == set(agents)
        return found


def user(answer: AnswerRecord) -> str:
    return answer.messages[0].text


def own_lines(question: str) -> list[str]:
    """The lines that code wrote, without items and memories."""
    return Facts.of(re.sub(r"^- \[.*$", "", question, flags=re.MULTILINE)).observed.splitlines()


def shown(system: str, text: str) -> str:
    tokens = (len(system) + len(text)) // 4
    without = EXAMPLES.sub("(example) ", system)
    return f"about {tokens:,} tokens\n{without}\n{'-' * 40}\n{text}"


@pytest.mark.parametrize("preset", AGENTS)
def test_questions_tell_each_figure_once_and_what_limits_made_of_a_decision(
    preset: str, run: Run, fresh: Path, snapshot: SnapshotAssertion
) -> None:
    asked = Asked(run, preset, "ORVL,HLXM" if preset == "arena" else "ORVL,WRNN-USD")
    for one in asked.answers:
        question = user(one)
        assert " in USD" in question, one.agent
        ratios = {match[1] for line in own_lines(question) for match in RATIO.finditer(line)} - {"100.00"}
        assert all(len(ratio.replace(".", "").lstrip("0")) <= 4 for ratio in ratios), one.agent
        assert "HOLD 0" not in question
        last = re.search(r"^- (?:close|price, the last close): ([\d.]+)(?:, of [\d-]+)?$", question, re.MULTILINE)
        assert last is not None or not one.agent.endswith("decision") or preset == "arena"
        if last is not None:
            assert len(re.findall(rf"\b{re.escape(last[1])}\b", "\n".join(own_lines(question)))) == 1, one.agent
    for made in asked.decisions:
        later = [
            user(one)
            for one in asked.answers
            if one.key.owner == made.key.owner
            and one.key.session > made.key.session
            and (preset == "arena" or one.key.symbol == made.key.symbol)
        ]
        lines = [line for text in later for line in text.splitlines() if str(made.key.session) in line]
        if made.cuts and preset != "arena" and any(", close " in line for line in lines):
            changed = f"{made.proposal.action} {made.cuts[0].asked.normalize():f} asked, {made.cuts[0].reason}"
            assert any(changed in line.partition(", close ")[0] for line in lines)
    for agent in AGENTS[preset]:
        last_asked = asked.of(agent)[-1]
        assert shown(last_asked.system, user(last_asked)) == snapshot(name=f"{preset}, {agent}")


def test_a_trade_that_code_changed_stands_apart_from_the_words_of_the_model(run: Run, fresh: Path) -> None:
    asked = Asked(run, "desk-debate", "ORVL,WRNN-USD")
    sized = [one for one in asked.opinions if one.note]
    assert sized
    record = [
        line for one in asked.of("immediate-reflection") for line in user(one).splitlines() if ". Named: " in line
    ]
    told = [(one, line) for one in sized for line in record if line.startswith(f"- {one.key.session}: ")]
    assert any(f"({one.note})" in line.partition(", close ")[0] for one, line in told)
    assert not any(one.note in line.partition(". Named: ")[2] for one, line in told)
    comments = asked.of("debate-comment")
    assert all(user(one).count("a trader of this character") == user(one).count("The case of ") for one in comments)
    first = [one for one in asked.of("debate-decision") if "round 1 of the debate" in user(one)]
    assert first and all(user(one).count(_reason(user(one))) == 1 for one in first)


def _reason(question: str) -> str:
    """The reason of the own case."""
    return question.partition("<<<case\n- ")[2].partition("\n")[0]


def test_a_lesson_that_fits_several_horizons_stands_whole_once(run: Run, fresh: Path) -> None:
    fitting = []
    for one in Asked(run, "desk", "ORVL,WRNN-USD").of("low-level-reflection"):
        lists = re.findall(r"<<<lessons\n(.*?)\nlessons>>>", user(one), re.DOTALL)
        lines = [line.partition("] ")[2] for lessons in lists for line in lessons.splitlines()]
        whole = [line for line in lines if not line.endswith("…")]
        assert len(whole) == len(set(whole))
        fitting.append(len(lines) > len(whole))
    assert any(fitting)


def test_rules_have_the_numbers_of_the_setting(run: Run, fresh: Path, tmp_path: Path) -> None:
    preset = tmp_path / "own.toml"
    preset.write_text('extends = "finvision"\nname = "own"\n[sizing]\ngain_over_cost = 0.075\n')
    asked = Asked(run, str(preset), "ORVL").of("decision")[0].system
    assert re.search(r'"gain over 5 %": .*more than 7\.50% over.*not the one in the rule\'s name', asked)
    assert "not the one in the rule's name" not in re.sub(r'.*"gain over 5 %".*', "", asked)


def test_the_portfolio_agent_reads_what_each_stock_is_and_its_price_once(run: Run, fresh: Path) -> None:
    for one in Asked(run, "arena", "ORVL,HLXM").of("portfolio-reflection", "portfolio-analysis", "portfolio-decision"):
        assert len(re.findall(r"^- (?:ORVL|HLXM) \([^)]+, sector [^)]+\)$", user(one), re.MULTILINE)) == 2
        lines = re.findall(r"^- (?:ORVL|HLXM): price ([\d.]+) ", user(one), re.MULTILINE)
        assert len(lines) == 2
        prices = [re.findall(r"[\d.]*\d", line) for line in user(one).splitlines() if ": price " in line]
        assert all(found.count(price) == 1 for price, found in zip(lines, prices, strict=True))
        if one.agent == "portfolio-decision":
            assert re.search(r"whole percent of the portfolio's value, from 1 to 100;", one.system)


@pytest.fixture
def traders(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, list[ModelRequest]]:
    """The questions of the arena's traders."""
    asked: dict[str, list[ModelRequest]] = defaultdict(list)
    plain = OfflineModel.answer

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> Any:
        asked[request.purpose].append(request)
        return await plain(self, request, on_delta)

    monkeypatch.setattr(OfflineModel, "answer", answer)
    return asked


def test_traders_of_the_arena_read_the_rules_of_their_market_before_who_they_are(
    run: Run, fresh: Path, traders: Mapping[str, list[ModelRequest]], snapshot: SnapshotAssertion
) -> None:
    assert run("arena", "--days", "3", "--json").code == 0
    agents = {one.name: one for one in vars(arena_agents).values() if isinstance(one, arena_agents.Agent)}
    assert set(traders) == set(agents)
    for name, questions in traders.items():
        systems = {one.owner: one.system for one in questions}
        first, *others = systems.values()
        assert others
        for other in others:
            common = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, other, strict=False)))
            assert len(common) >= CACHED_FROM and "fee of 3% of your wealth" in common
        assert all(
            "high" not in line for one in questions for line in one.messages[0].text.splitlines() if "no shares" in line
        )
        examples = EXAMPLE.findall(first)
        assert len(examples) == 2
        for given, answer in examples:
            right, _ = json.JSONDecoder().raw_decode(answer)
            made = agents[name].answer.model_validate(right)
            assert unresolved_figures("\n".join(made.quoted()), [Facts(given)]) == ()
        assert shown(first, questions[-1].messages[0].text) == snapshot(name=name)
    orders = traders["arena-orders"][0].system
    assert "A limit is a multiple of 0.01, at least 0.5 and at most 2 times the price now" in orders
