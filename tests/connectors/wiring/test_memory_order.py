"""Memory in the papers' order and in time: what became known is stored, recalled and decided on, of its own day; a
handle names one memory over a whole debate."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from math import exp
from pathlib import Path

import pytest

from connectors.files.texts import filing_line, news_line
from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.memory import memory_of_desk
from engine.app.research.backtest import run_backtest
from engine.domain.decision import INSIGHT
from engine.domain.market import Filing, NewsItem
from engine.domain.run import DataSpec, RunSpec
from engine.journal.entries import Trail
from engine.settings.config import Config
from memory.record import MemoryRecord
from tests.connectors.wiring.clocks import NOON, evening
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.connectors.wiring.past_runs import memories, trails
from tests.data_folders import write_folder

DECIDING = {
    "finmem": "immediate-reflection",
    "finmem-code": "immediate-reflection",
    "investorbench-code": "immediate-reflection",
    "tradinggpt-single": "immediate-reflection",
    "tradinggpt": "debate-decision",
    "desk-debate": "immediate-reflection",
    "finagent": "whole-decision",
    "desk": "evidence-decision",
}
DAY, NEXT = date(2024, 2, 14), date(2024, 2, 15)
BEAT = "TMBK earnings beat all forecasts by 31 percent"
GOSSIP = "TMBK is said to have moved its garden chairs"


def news(name: str, day: int, text: str) -> NewsItem:
    known = datetime(2024, 2, day, 15, tzinfo=UTC)
    return NewsItem(
        id=name, symbol="TMBK", date=known.date(), available_at=known, published=known, headline=text, summary=text
    )


def filing(form: str, day: date) -> Filing:
    known = datetime(day.year, day.month, day.day, 22, tzinfo=UTC)
    text = f"Revenue of the period to {day:%B} grew, and the margin held."
    return Filing(id=f"{form} {day}", symbol="TMBK", form=form, date=day, available_at=known, summary=text)


FILED = (
    filing("10-K", date(2023, 2, 24)),
    filing("10-Q", date(2023, 5, 5)),
    filing("10-Q", date(2023, 8, 4)),
    filing("10-Q", date(2023, 11, 3)),
)
KNOWN = {"10-K 2023-02-24": date(2023, 2, 27), "10-Q 2023-05-05": date(2023, 5, 8)}
KNOWN |= {"10-Q 2023-08-04": date(2023, 8, 7), "10-Q 2023-11-03": date(2023, 11, 6)}
"""The sessions at whose close filings of the evening before, all of them Fridays, were first known."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo market as a data folder with texts of ours alone: gossip every day, and the news of one."""
    made = tmp_path_factory.mktemp("order")
    asyncio.run(write_folder(FewSymbols(("TMBK",), date(2024, 4, 30)), made))
    for name in ("news", "filings"):
        for file in (made / name).iterdir():
            file.unlink()
    items = [news(f"gossip {day}", day, f"{GOSSIP}, again on the {day}th") for day in range(5, 17)]
    items.append(news("beat", DAY.day, BEAT))
    (made / "news" / "TMBK.jsonl").write_text("".join(map(news_line, sorted(items, key=lambda one: one.available_at))))
    (made / "filings" / "TMBK.jsonl").write_text("".join(map(filing_line, FILED)))
    return made


@dataclass(frozen=True)
class Ran:
    """The trails of a backtest by session, and its memory."""

    trails: Sequence[Trail]
    records: Sequence[MemoryRecord]

    def asked(self, agent: str, session: date) -> list[str]:
        """The questions of an agent in a session."""
        return [
            answer.messages[0].text
            for one in self.trails
            for answer in one.answers
            if answer.agent == agent and answer.key.session == session
        ]


@cache
def ran(folder: Path, preset: str) -> Ran:
    """A backtest of three sessions from the day on, made once for all tests."""
    name = f"order-{preset}"
    spec = RunSpec(
        symbols=("TMBK",),
        first=DAY,
        last=date(2024, 2, 16),
        preset=preset,
        data=DataSpec(str(folder), 7),
        run=name,
        model="offline",
    )
    run_backtest(services(Config(), NOON), spec, baselines=())
    return Ran(trails(name), memories(name))


@pytest.mark.parametrize("preset", DECIDING)
def test_the_deciding_question_names_the_news_of_its_day(folder: Path, preset: str) -> None:
    run = ran(folder, preset)
    questions = run.asked(DECIDING[preset], DAY)
    assert questions
    for question in questions:
        assert BEAT in question, "what moved the price stands in the question of that evening"
        shown = re.findall(r"^- \[S[\w-]+\] (\S+) news: (.*)$", question, re.MULTILINE)
        if DECIDING[preset] not in ("evidence-decision", "whole-decision"):
            assert any(day == str(DAY) and BEAT in text for day, text in shown), "as a memory of the day"
    reflections = [one for one in run.records if one.kind in ("reflection", "debate") or "reflection" in one.kind]
    documents = {one.written_step for one in run.records} - {one.written_step for one in reflections}
    assert {int(step) for step in documents} == {int(one.written_step) for one in reflections}
    for step in documents:
        assert all(one.written_step > step for one in reflections if int(one.written_step) == int(step))


@pytest.mark.parametrize("preset", ["finmem", "tradinggpt-single", "desk-debate"])
def test_intelligence_that_is_paid_for_is_read(folder: Path, preset: str) -> None:
    run = ran(folder, preset)
    summaries = [
        answer.answer["summary"].splitlines()[0]
        for one in run.trails
        for answer in one.answers
        if answer.agent == "market-intelligence" and answer.key.session == DAY and answer.answer is not None
    ]
    questions = run.asked("immediate-reflection", DAY)
    assert summaries and questions
    assert all(summary in question for summary, question in zip(summaries, questions, strict=True))


@pytest.mark.parametrize("preset", ["finmem", "tradinggpt", "desk"])
def test_a_filing_is_a_memory_of_the_day_on_which_it_became_known(folder: Path, preset: str) -> None:
    run = ran(folder, preset)
    owned = [one for one in run.records if one.source in KNOWN and not one.kind.endswith(INSIGHT)]
    assert {one.source for one in owned} == set(KNOWN)
    calendar = services(Config(), NOON).desk_calendar(("TMBK",))
    assert {one.source: calendar.session_at(int(one.born_step)) for one in owned} == KNOWN
    assert all(int(one.available_at) == calendar.number(date(2024, 2, 13)) for one in owned), "but known to it later"
    told = "\n".join(text for agent in set(DECIDING.values()) for text in run.asked(agent, DAY))
    for source, day in KNOWN.items():
        if "10-Q 2023-11" in source or (preset == "tradinggpt" and "10-K" in source):
            assert re.search(
                rf"\] {day} {source.split()[0]}: Revenue of the period to {date.fromisoformat(source[5:]):%B}", told
            )


def test_a_desk_that_begins_today_knows_how_old_a_filing_is(folder: Path) -> None:
    desk = {"name": "mine", "symbols": ["TMBK"], "preset": "finmem"}
    live = services(Config.model_validate({"desk": desk, "data": {"folder": str(folder)}}), evening(DAY))
    asyncio.run(run_daily(live, DAY, lambda event: None))
    calendar = live.desk_calendar(("TMBK",))
    with memory_of_desk(live).opened() as memory:
        now = memory.latest
        alive = {one.record.source: one for one in memory.scored_records(now) if one.record.source in KNOWN}
    assert {"10-Q 2023-11-03"} <= set(alive) < set(KNOWN), "what would have faded since has faded"
    for name, one in alive.items():
        age = calendar.number(DAY) - calendar.number(KNOWN[name])
        assert one.recency == pytest.approx(exp(-age / {"10-Q": 90, "10-K": 365}[name[:4]]), rel=1e-3)
        assert one.importance < 0.2 * one.record.importance


def test_a_handle_names_one_memory_over_a_whole_debate(folder: Path) -> None:
    run = ran(folder, "tradinggpt")
    debated = 0
    for one in run.trails:
        ids: dict[str, set[str]] = {}
        for recalled in one.recalled:
            ids.setdefault(recalled.memory.handle, set()).add(recalled.memory.id)
        assert ids and all(len(found) == 1 for found in ids.values())
        assert all(handle.endswith(f"-{one.decision.key.owner}") for handle in ids)
    for session in {one.decision.key.session for one in run.trails}:
        lines: dict[str, set[str]] = {}
        for agent in ("immediate-reflection", "debate-comment", "debate-decision"):
            for question in run.asked(agent, session):
                for handle, text in re.findall(r"^- \[([A-Z]\d+[^\]]*)\] (?!as \[)(.*)$", question, re.MULTILINE):
                    lines.setdefault(handle, set()).add(text)
        debated += len(lines)
        for texts in lines.values():  # whole, by its first words, or as another's
            assert all(text.startswith(min(texts, key=len).removesuffix("…")) for text in texts), texts
        owners = {handle.partition("-")[2] for handle in lines}
        assert owners == {"seeking", "neutral", "averse"}
    assert debated > 20


def test_insights_lie_beside_their_documents_and_signals_come_before_the_reflection(folder: Path) -> None:
    run = ran(folder, "tradinggpt-single")
    documents = {(one.source, one.kind): one for one in run.records}
    insights = [one for one in run.records if one.kind.endswith(INSIGHT)]
    assert {one.kind for one in insights} == {"news-insight", "10-Q-insight", "10-K-insight"}
    for one in insights:
        document = documents[one.source, one.kind.removesuffix(INSIGHT)]
        assert (one.birth_layer, one.born_step) == (document.birth_layer, document.born_step)
        assert one.text.split(": ", 1)[1].rstrip(".") != document.text
    answers = [answer for one in run.trails for answer in one.answers if answer.agent == "immediate-reflection"]
    for answer in answers:
        assert answer.answer is not None
        assert next(iter(answer.answer)) == "signals" and set(answer.answer["signals"]) == {
            "shallow",
            "intermediate",
            "deep",
            "reflection",
        }
    assert any(text != "none" for answer in answers for text in (answer.answer or {})["signals"].values())


def test_the_last_question_of_a_debate_reads_prices_and_figures(folder: Path) -> None:
    run = ran(folder, "tradinggpt")
    questions = run.asked("debate-decision", DAY)
    assert len(questions) == 3
    for question in questions:
        for figure in (r"close: \d+\.\d\d", r"adjusted closes, .*: 20", r"RSI, 14 sessions: \d", r"momentum, .*%"):
            assert re.search(figure, question), figure
