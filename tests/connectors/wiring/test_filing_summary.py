"""A long filing is summarized by an agent before it is judged and remembered; a short one is taken as it is."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.files.texts import filing_line
from connectors.wiring.services import services
from engine.agents.agent import count_words, plain
from engine.app.memory import memory_of_run
from engine.app.research.backtest import run_backtest
from engine.domain.decision import INSIGHT
from engine.domain.market import Filing
from engine.domain.model_call import AnswerRecord
from engine.domain.run import DataSpec, RunSpec
from engine.journal.entries import Trail
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.settings import places
from engine.settings.config import Config
from memory.record import Layer, MemoryRecord
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.data_folders import write_folder
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server

AGENT = "filing-summary"
STRONG = "Net profit rose 38.25% to $4.71 billion after the recall of the old product ended"
QUIET = "The notes repeat what the notes of the year before said about the same matter in the same words"
SHORT = f"{STRONG}. {QUIET}."
TOLD = "Sales were weak, and the dividend stays."
MADE_UP = "Sales fell 87.65% and the dividend stays."
BULLS = ("bull", "bear", "calm")


def filing(name: str, form: str, day: int, text: str) -> Filing:
    known = datetime(2024, 2, day, 15, tzinfo=UTC)
    return Filing(id=name, symbol="TMBK", form=form, date=known.date(), available_at=known, summary=text)


def long_text(count: int) -> str:
    """Twelve hundred words or more with what matters at the end, beyond the length of any item."""
    quiet = " ".join(f"{QUIET}, as part {number} of {count} shows." for number in range(count))
    return f"{quiet} {STRONG}."


LONG = (
    filing("quarter", "10-Q", 14, long_text(90)),
    filing("year", "10-K", 15, long_text(120)),
)
FILINGS = (*LONG, filing("event", "8-K", 16, SHORT))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo market as a data folder, with filings of ours alone."""
    made = tmp_path_factory.mktemp("long-filings")
    asyncio.run(write_folder(FewSymbols(("TMBK",), date(2024, 4, 30)), made))
    for file in (made / "filings").iterdir():
        file.unlink()
    (made / "filings" / "TMBK.jsonl").write_text("".join(map(filing_line, FILINGS)))
    return made


@dataclass(frozen=True)
class Ran:
    """The trails of a backtest, and its memory with the layer that each record was born in."""

    trails: Sequence[Trail]
    records: Sequence[tuple[MemoryRecord, Layer | None]]

    def answers(self, agent: str) -> list[AnswerRecord]:
        """The calls of an agent, those of one owner after those of another."""
        return [answer for one in self.trails for answer in one.answers if answer.agent == agent]

    def kept(self, source: str) -> list[tuple[str, Layer | None]]:
        """The memories of a filing: text and first layer, one per owner."""
        return [
            (record.text, layer)
            for record, layer in self.records
            if record.source == source and not record.kind.endswith(INSIGHT)
        ]


def ran(folder: Path, preset: str, config: Config | None = None, name: str = "filings", **changes: Any) -> Ran:
    spec = RunSpec(
        symbols=("TMBK",),
        first=date(2024, 2, 13),
        last=date(2024, 2, 20),
        preset=preset,
        data=DataSpec(str(folder), 7),
        run=name,
    )
    spec = replace(spec, model=None if config else "offline", **changes)
    desk = services(config or Config(), NOON)
    run_backtest(desk, spec, baselines=())
    with JournalReader(places.run_journal(name)) as reader:
        trails = [trail(reader, decision.key) for decision in reader.decisions()]
        stored = memory_of_run(desk, reader.run(name))
    with stored.opened() as memory:
        records = [(record, memory.lifeline(record.id)[0].state.layer) for record in memory.records()]
    return Ran(trails, records)


def asked(answer: AnswerRecord) -> str:
    return answer.messages[0].text


@pytest.mark.parametrize("preset", ["finmem", "finmem-code", "investorbench-code", "tradinggpt-single", "desk"])
def test_a_long_filing_is_summarized_once_then_judged_and_remembered(folder: Path, preset: str) -> None:
    assert all(count_words(one.summary) > 1_000 and len(plain(one.summary)) > 8_000 for one in LONG)
    run = ran(folder, preset)

    made = run.answers(AGENT)
    assert [answer.key.session.day for answer in made] == [14, 15]
    judged = "\n".join(map(asked, run.answers("market-intelligence")))
    for answer, (one, layer) in zip(made, zip(LONG, (Layer.INTERMEDIATE, Layer.DEEP), strict=True), strict=True):
        assert plain(one.summary) in asked(answer) and answer.answer is not None
        summary = answer.answer["summary"]
        assert STRONG in summary and count_words(summary) <= 1_000 < count_words(one.summary)
        assert run.kept(one.id) == [(summary, layer)]
        assert f"[1] {one.date} {one.form}: {plain(summary)}\n" in judged
    assert [text for text, _ in run.kept("event")] == [SHORT] and f"8-K of {FILINGS[2].date}" not in judged


TRENDS = " ".join(
    f"Segment {number} sold more than in the year before, as note {number} shows." for number in range(60)
)
"""More than the 1,500 characters of a memory that agents were shown once, less than an item may have."""


def shown(run: Ran, agent: str) -> list[tuple[str, AnswerRecord]]:
    """What each answer of an agent was shown of the annual report that memory keeps."""
    found = [
        (re.search(r"^- \[[A-Z]\d+\] \S+ 10-K: (.*)$", asked(one), re.MULTILINE), one) for one in run.answers(agent)
    ]
    return [(match[1], one) for match, one in found if match]


@pytest.mark.parametrize("preset", [pytest.param("desk", marks=pytest.mark.slow), "finmem"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_recalled_summary_is_shown_whole_or_cut_after_a_sentence_and_that_is_said(
    folder: Path, server: FakeLLMServer, preset: str, times: int
) -> None:
    told = " ".join([TRENDS] * times)
    server.play(Say(text=json.dumps({"summary": told})))
    run = ran(folder, preset, near(server))
    seen = shown(run, {"desk": "past-intelligence", "finmem": "immediate-reflection"}[preset])
    assert seen and 1_500 < len(TRENDS) < 8_000 < 3 * len(TRENDS)
    for text, answer in seen:
        if times == 1:
            assert text == told and "cut to" not in answer.view
            continue
        kept, note = re.fullmatch(r"(.*) \((the first .* characters)\)", text).groups()  # type: ignore[union-attr]
        assert told.startswith(kept) and kept.endswith("shows.") and 7_800 < len(text) <= 8_000
        assert note == f"the first {len(kept):,} of {len(told):,} characters"
        assert ", 2 cut to 8,000 characters" in answer.view


def test_of_a_filing_too_long_for_a_prompt_it_is_said_how_much_was_read(folder: Path, tmp_path: Path) -> None:
    longest = filing("longest", "10-K", 15, long_text(700))
    data = tmp_path / "longest"
    shutil.copytree(folder, data)
    (data / "filings" / "TMBK.jsonl").write_text(filing_line(longest))
    run = ran(data, "finmem")
    (answer,) = run.answers(AGENT)
    read = re.search(r"the first ([\d,]+) of [\d,]+ characters", answer.view)
    assert read is not None and 59_000 < int(read[1].replace(",", "")) <= 60_000
    said = read[0]
    assert said.endswith(f" of {len(plain(longest.summary)):,} characters")
    assert f"10-K of {longest.date}, {said}; the rest is left out:" in asked(answer)
    assert answer.answer is not None
    assert run.kept("longest") == [(f"(Of {said} of the filing.) {answer.answer['summary']}", Layer.DEEP)]
    assert any(f"10-K: (Of {said} of the filing.) " in asked(one) for one in run.answers("market-intelligence"))


def test_without_the_step_filings_are_as_they_came(folder: Path) -> None:
    run = ran(folder, "finmem", without=(AGENT,))
    assert not run.answers(AGENT)
    assert [text for text, _ in run.kept("year")] == [LONG[1].summary]
    judged = [asked(one) for one in run.answers("market-intelligence") if one.key.session.day in (14, 15)]
    assert len(judged) == len(LONG) and not any(STRONG in text for text in judged)


@pytest.fixture
def server() -> Iterator[FakeLLMServer]:
    with fake_llm_server() as served:
        yield served


def near(server: FakeLLMServer, replay: str = "live", agents: Sequence[str] = (AGENT,)) -> Config:
    """A model for some agents; rules answer for the others."""
    return Config.model_validate(
        {
            "models": {"replay": replay, "agents": {name: {"model": "near:small"} for name in agents}},
            "endpoints": {"near": {"base_url": server.openai_url, "requests_per_minute": 60_000}},
        }
    )


@pytest.fixture
def owned(tmp_path: Path) -> Callable[[str], str]:
    """A preset of three owners that extends another."""

    def written(base: str) -> str:
        file = tmp_path / "three.toml"
        file.write_text(f'extends = "{base}"\nname = "three"\ncombine = "vote"\nowners = {list(BULLS)}\n')
        return str(file)

    return written


@pytest.mark.parametrize("replay", ["live", "read-through"])
def test_a_filing_is_asked_about_once_for_all_owners(
    folder: Path, server: FakeLLMServer, owned: Callable[[str], str], replay: str
) -> None:
    server.play(Say(text=json.dumps({"summary": TOLD})))
    run = ran(folder, owned("finmem"), near(server, replay))

    assert len(server.requests) == len(LONG)
    for one in LONG:
        assert [text for text, _ in run.kept(one.id)] == [TOLD] * len(BULLS)
    assert sorted(answer.key.owner for answer in run.answers(AGENT)) == sorted(BULLS * len(LONG))


def test_an_answer_that_is_stored_is_not_asked_for_by_a_later_run(folder: Path, server: FakeLLMServer) -> None:
    server.play(Say(text=json.dumps({"summary": TOLD})))
    ran(folder, "finmem", near(server, "read-through"))
    server.requests.clear()
    # A memory that begins reads the filings of a year.
    run = ran(folder, "finmem", near(server, "read-through"), first=date(2024, 2, 20), name="later")
    made = run.answers(AGENT)
    assert len(made) == len(LONG) and all(answer.result.cached for answer in made)
    assert not server.requests


def test_an_abstention_keeps_the_beginning_and_says_so(folder: Path, server: FakeLLMServer) -> None:
    server.play(Say(text='{"symbol": "TMBK"}'))
    run = ran(folder, "finmem", near(server))
    assert [answer.outcome for answer in run.answers(AGENT)] == ["sent back", "abstained"] * len(LONG)
    ((kept, layer),) = run.kept("year")
    told = "(The beginning of a filing of which there is no summary.) "
    assert kept.startswith(told + QUIET) and kept.endswith("…") and layer is Layer.DEEP
    assert 7_900 < len(kept) <= 8_000
    assert any(kept in asked(answer) for answer in run.answers("market-intelligence"))


class Believer(FakeLLMServer):
    """Summarizes with a figure that it made up, and quotes that figure as the intelligence of the day."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Say:
        super().next_turn(body, headers)
        text = body["messages"][-1]["content"]
        if "<<<filing" in text:
            return Say(text=json.dumps({"summary": MADE_UP}))
        judged = {"effect": "negative", "horizon": "long", "weight": 5, "concerns_company": True, "summary": "Bad."}
        queries = {f"{term}_term": f"sales over a {term} time" for term in ("short", "medium", "long")}
        items = [{"id": name, **judged} for name in re.findall(r"^- \[(\S+)\] ", text, re.MULTILINE)]
        answer = {"items": items, "summary": MADE_UP, "recent_market": "mixed", "queries": queries}
        return Say(text=json.dumps(answer))


def test_a_figure_that_the_summary_made_up_is_no_source(folder: Path) -> None:
    with fake_llm_server(Believer()) as server:
        run = ran(folder, "finmem", near(server, agents=(AGENT, "market-intelligence")))
    days = {answer.key.session for answer in run.answers(AGENT)}
    assert len(days) == len(LONG)
    for one in run.trails:
        if one.decision.key.session in days:
            named = one.decision.unresolved_figures
            assert {f"87.65% ({agent})" for agent in (AGENT, "market-intelligence")} <= set(named)
