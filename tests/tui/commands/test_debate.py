"""Characters that debate: what a backtest, its journal, its trail and the audit show of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.app.audit.audit import run_audit
from engine.cycle.recall import MemoryScope, TradingMemory
from engine.domain.decision import DIRECTIONS, Debate, DebateEnd, Opinion, Recollection, trade_of
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.preset import load_preset
from engine.session.recorder import JournalRecorder
from engine.settings import places
from engine.settings.config import Config
from tests.conftest import MadeHome
from tests.data_folders import DrawnOnce
from tests.tui.commands.conftest import Run, copied

THREE = ("seeking", "neutral", "averse")
DEMO = ("--symbols", "TMBK", "--warm-up-from", "2025-03-03", "--from", "2025-03-06", "--to", "2025-03-12")
REAL = ("--symbols", "MSFT", "--warm-up-from", "2020-07-01", "--from", "2020-10-01", "--to", "2021-05-06")


def backtest(run: Run, preset: str, *flags: str) -> Any:
    done = run("backtest", "--preset", preset, "--model", "offline", "--json", *flags)
    assert done.code == 0, done.err
    return done.json


@pytest.fixture
def journal(made_home: MadeHome, paperdesk_home: Path, run: Run) -> Iterator[JournalReader]:
    """The journal of one backtest of the paper's three characters."""
    copied(made_home("characters", lambda: backtest(run, "tradinggpt", "--run", "paper", *DEMO)), paperdesk_home)
    with JournalReader(places.run_journal("paper")) as reader:
        yield reader


def last_advice(debate: Debate, opinion: Opinion) -> Any:
    return debate.of(opinion.key.owner)[-1]


def test_in_training_comments_follow_the_trade_and_in_the_test_they_feed_it(journal: JournalReader, run: Run) -> None:
    decided = {made.key.session for made in journal.decisions(part="test")}
    debates = journal.debates()
    assert {one.key.session for one in debates if one.decides} == decided
    warm = [one for one in debates if not one.decides]
    assert warm and {one.ended for one in warm} == {DebateEnd.AFTER_TRADE}
    values = load_preset("tradinggpt").advice
    for debate in debates:
        rounds = {advice.round for advice in debate.advice}
        assert rounds == {0, 1} if debate.decides else rounds == {0}
        assert {(c.author, c.receiver) for c in debate.comments} == {(a, b) for a in THREE for b in THREE if a != b}
        for opinion in journal.opinions(first=debate.key.session, last=debate.key.session):
            advice = last_advice(debate, opinion)
            assert (opinion.action, opinion.size) == trade_of(advice.advice, values)
            assert opinion.confidence == advice.confidence is not None
    asked = {(answer.agent, answer.key.session in decided) for answer in journal.answers()}
    assert {("debate-comment", True), ("debate-comment", False), ("debate-decision", True)} <= asked
    assert ("debate-decision", False) not in asked
    assert run("journal", "check", "--verify", "--run", "paper").code == 0


def test_characters_disagree_and_comments_change_minds_by_evidence(journal: JournalReader) -> None:
    debates = [one for one in journal.debates() if one.decides]
    first = [{advice.advice for advice in one.advice if advice.round == 0} for one in debates]
    assert sum(len(one) > 1 for one in first) >= len(debates) / 10
    assert any(one.changed(owner) for one in debates for owner in THREE)
    recalled = {
        (row.key.session, row.key.owner): {memory.memory.id for memory in journal.recalled(row.key)}
        for row in journal.opinions()
    }
    named = [comment for one in debates for comment in one.comments if comment.about]
    assert named
    for debate in debates:
        for comment in debate.comments:
            assert set(comment.about) <= recalled[debate.key.session, comment.receiver]


def test_comments_are_remembered_by_their_receiver_and_recalled_on_later_days(journal: JournalReader, run: Run) -> None:
    said = {(c.receiver, c.text) for one in journal.debates() for c in one.comments}
    listed = run("memory", "list", "--run", "paper", "--limit", "0", "--json").json["memories"]
    kept = [row for row in listed if row["kind"] == "debate"]
    assert {row["owner"] for row in kept} == set(THREE)
    assert all(any(o == row["owner"] and text in row["text"] for o, text in said) for row in kept)
    later = [answer for answer in journal.answers() if answer.agent == "debate-decision"]
    assert any("about my advice to" in answer.messages[0].text for answer in later), "a week of debates is shown"


def test_a_week_of_earlier_reflections_and_comments_is_for_reference(journal: JournalReader) -> None:
    sessions = sorted({made.key.session for made in journal.decisions()})
    shown = 0
    for answer in journal.answers():
        if answer.agent == "debate-decision":
            _, _, block = answer.messages[0].text.partition("<<<earlier\n")
            lines = re.findall(r"^- (\S+) (reflection|debate): ", block.partition("\nearlier>>>")[0], re.MULTILINE)
            days = [date.fromisoformat(day) for day, _ in lines]
            before = [day for day in sessions if day < answer.key.session][-5:]
            assert days == sorted(days) and {*days} <= {*before}
            assert {kind for _, kind in lines} == {"reflection", "debate"}
            shown += answer.key.session > sessions[5] and min(days) > sessions[0]
    assert shown, "what is older than a week is not among them"


def test_the_trail_shows_who_said_what_and_who_was_right(journal: JournalReader, run: Run) -> None:
    debate = next(one for one in journal.debates() if one.decides and any(one.changed(o) for o in THREE))
    day = str(debate.key.session)
    decisions = run("why", "TMBK", day, "--run", "paper", "--json").json["decisions"]
    assert {made["owner"] for made in decisions} == set(THREE), "a portfolio each"
    shown = decisions[0]["debate"]
    assert (shown["decides"], shown["ended"], shown["rounds"]) == (True, debate.ended.value, 1)
    assert {one["owner"]: one["changed"] for one in shown["owners"]} == {o: debate.changed(o) for o in THREE}
    assert len(shown["comments"]) == 6
    for one in shown["owners"]:
        for result, close in zip(one["results"], decisions[0]["closes_since"], strict=True):
            level = debate.of(one["owner"])[-1].advice
            assert level is not None
            side = (level.level > 0) - (level.level < 0)
            assert result["result"] == (side * close["change"] if side else None)
    text = run("why", "TMBK", day, "--run", "paper", "--full").out
    assert "changed its mind" in text and "1. seeking to neutral, " in text
    again = run("why", "TMBK", day, "--run", "paper", "--redecide", "--json").json
    assert again["same_throughout"]
    without = run("why", "TMBK", day, "--run", "paper", "--redecide", "--without", "debate", "--json").json
    assert not without["same_throughout"]


def test_a_table_says_of_every_owner_how_often_it_was_right(journal: JournalReader, run: Run) -> None:
    rows = run("decisions", "--owners", "--run", "paper", "--json").json["per_owner"]
    assert list(rows) == list(THREE)
    history = asyncio.run(DrawnOnce(7, calendars(), date(2025, 4, 30)).history("TMBK"))
    closes = [close / 1e9 for close in history.close]
    last = history.index(date(2025, 3, 12))
    assert last is not None
    for owner, row in rows.items():
        opinions = [one for one in journal.opinions(part="test") if one.key.owner == owner]
        assert (row["opinions"], row["abstentions"]) == (len(opinions), 0)
        assert row["changed"] == sum(one.changed(owner) for one in journal.debates() if one.decides)
        results = []
        for one in opinions:
            seen = history.index(one.key.session)
            assert seen is not None
            if seen + 1 <= last and one.action in DIRECTIONS:
                results.append(DIRECTIONS[one.action] * (closes[seen + 1] / closes[seen] - 1))
        shown = row["horizons"][0]
        assert (shown["sessions"], shown["n"]) == (1, len(results))
        right, wrong = [x for x in results if x > 0], [-x for x in results if x < 0]
        assert shown["hit_rate"] == (pytest.approx(len(right) / len(results)) if results else None)
        if right and wrong:
            ratio = (sum(right) / len(right)) / (sum(wrong) / len(wrong))
            assert shown["slugging"] == pytest.approx(ratio, rel=1e-6)
        assert row["horizons"][2]["n"] == 0 and row["horizons"][2]["hit_rate"] is None
    text = run("decisions", "--owners", "--run", "paper").out
    assert "CHANGED ITS MIND" in text and "BEFORE%" in text
    refused = run("decisions", "--owners", "--action", "buy")
    assert refused.code == 2 and "leave out --action" in refused.err


@pytest.mark.slow
def test_an_interrupted_debate_run_goes_on_to_the_same_end(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = backtest(run, "tradinggpt", *DEMO)
    calls = 0
    decided = JournalRecorder.decided

    def interrupted(recorder: JournalRecorder, *given: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        decided(recorder, *given)

    with monkeypatch.context() as patch:
        patch.setattr(JournalRecorder, "decided", interrupted)
        assert run("backtest", "--preset", "tradinggpt", "--model", "offline", "--run", "cut", *DEMO).code == 130
    resumed = run("backtest", "--resume", "cut", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["fingerprint"] == whole["fingerprint"]
    assert resumed.json["decisions"] == whole["decisions"]
    with JournalReader(places.run_journal("cut")) as one, JournalReader(places.run_journal(whole["run"])) as other:
        pairs = zip(one.debates(), other.debates(), strict=True)
        assert all(replace(a, key=b.key) == b for a, b in pairs)


SPEC = RunSpec(
    symbols=("ORVL",),
    first=date(2025, 3, 6),
    last=date(2025, 3, 10),
    warm_up_from=date(2025, 3, 3),
    preset="tradinggpt",
    data=DataSpec(None, 7),
    model="offline",
)


@pytest.mark.slow
def test_the_audit_is_green_with_debate_memory_and_red_where_it_looks_ahead(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = run_audit(services(Config()), SPEC, 2)
    assert clean.outcome == "clean", clean.findings
    earlier = TradingMemory.earlier

    def later(memory: TradingMemory, scope: MemoryScope, kinds: Any, sessions: int) -> tuple[Recollection, ...]:
        return earlier(memory, replace(scope, step=scope.step + 1), kinds, sessions + 1)

    monkeypatch.setattr(TradingMemory, "earlier", later)
    leaking = run_audit(services(Config()), SPEC, 2)
    assert leaking.outcome == "leak"
    assert [one.source for one in leaking.planted if one.surfaced] == ["memory"]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["tradinggpt", "desk-debate"])
def test_three_characters_on_real_prices_disagree_and_change_decisions(
    run: Run, fresh: Path, real_data: Path, preset: str
) -> None:
    first, second = (backtest(run, preset, "--data", str(real_data), *REAL) for _ in range(2))
    assert first["fingerprint"] == second["fingerprint"]
    with JournalReader(places.run_journal(first["run"])) as reader:
        debates = [one for one in reader.debates(first=date(2020, 9, 30)) if one.decides]
    disagreed = sum(len({a.advice for a in one.advice if a.round == 0}) > 1 for one in debates)
    assert disagreed >= len(debates) / 10
    assert sum(any(one.changed(a.owner) for a in one.advice) for one in debates) >= 5
    without = backtest(run, preset, "--data", str(real_data), "--without", "debate", *REAL)
    pairs = zip(first["decisions"], without["decisions"], strict=True)
    assert sum((a["action"], a["size"]) != (b["action"], b["size"]) for a, b in pairs) >= 5
