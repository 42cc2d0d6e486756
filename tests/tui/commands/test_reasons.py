"""The reasons for and against a decision, and who said otherwise, come from what agents and owners stated."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.domain.decision import DIRECTIONS, Action
from engine.domain.model_call import ModelRequest, ModelResult
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from engine.settings.config import load_config
from tests.engine.desks import RulesExcept
from tests.tui.commands.conftest import FEW_AGENTS, SESSIONS, Run

RISE, FALL = "A big customer doubles its orders", "A plant in Norrland stands still"
BALANCE = "The plant weighs more than the customer."
WORDS = "The chart outweighs the news: the rise is on."


class Opinionated(RulesExcept):
    """The rules, except that the news of ORVL is bearish and its decision a BUY."""

    spec = "opinionated"

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        if request.symbol != "ORVL":
            return result
        answers = {
            "news": {
                "summary": ["Two pieces of news that point in different ways."],
                "positive": [RISE],
                "negative": [FALL, FALL],
                "unrelated": 0,
                "reason": BALANCE,
                "sentiment": "bearish",
            },
            "decision": {
                "symbol": "ORVL",
                "explanation": WORDS,
                "recommendation": "BUY",
                "position_size": 4,
                "rule": "strong uptrend",
            },
        }
        given = answers.get(request.purpose)
        return result if given is None else replace(result, answer=given, text="{}")


@pytest.fixture
def opinionated(fresh: Path) -> Path:
    """A desk after two sessions with such a model."""
    config = load_config(None, environ=FEW_AGENTS).config
    for session in SESSIONS[:2]:
        asyncio.run(run_daily(services(config), session, through=Opinionated))
    return fresh


def test_arguments_stand_for_and_against_with_their_source_and_one_text_once(run: Run, opinionated: Path) -> None:
    day = str(SESSIONS[1])
    (made,) = run("why", "ORVL", day, "--json").json["decisions"]
    stated = {(one["text"], one["side"], one["for"], one["source"]) for one in made["reasons"]}
    assert {
        (RISE, "rise", True, "news"),
        (FALL, "fall", False, "news"),
        (BALANCE, "fall", False, "news sentiment"),
    } <= stated
    assert len(stated) == len(made["reasons"])
    assert not any(WORDS in one["text"] for one in made["reasons"]), "the decision's own reason is no source of it"
    assert made["dissent"]["otherwise"] == [
        {"owner": "desk", "agent": "news", "stated": "bearish", "size": None, "confidence": None}
    ]
    text = run("why", "ORVL", day).out
    lines = {line[:13].strip(): line[13:] for line in reversed(text.splitlines())}
    assert lines["Why"].casefold().startswith(WORDS.removesuffix(".").casefold())
    assert (lines["For"], lines["Against"]) == (f"news: {RISE}.", f"news: {FALL}.")
    assert ["news", "bearish", "3", "of", "4"] in [line.split()[:5] for line in text.splitlines()]
    assert lines["Dissent"] == "1 of 2: news bearish"
    full = run("why", "ORVL", day, "--full").out
    assert len(text.splitlines()) <= 26 < len(full.splitlines())
    assert "\nAnswers: " in full and "Answers: " not in text


def test_reasons_are_sorted_by_the_weight_that_was_stated(run: Run, debating: Path) -> None:
    weights: set[float] = set()
    for symbol in ("ORVL", "HLXM"):
        for session in SESSIONS:
            (made,) = run("why", symbol, str(session), "--json").json["decisions"]
            opinions = {one["owner"]: one for one in made["opinions"]}
            voiced = [one for one in made["reasons"] if not one["source"]]
            assert {one["owner"] for one in voiced} == {o for o, one in opinions.items() if not one["abstained"]}
            assert made["reasons"][: len(voiced)] == voiced, "owners come first"
            for one in voiced:
                said = opinions[one["owner"]]
                assert one["text"] == said["reason"] and one["weight"] == pytest.approx(10 * said["confidence"])
                assert one["side"] == {"BUY": "rise", "SELL": "fall", "HOLD": "hold"}[said["action"]]
                assert one["for"] is (said["action"] == made["asked"]["action"])
            others = [one["weight"] for one in made["reasons"][len(voiced) :]]
            assert others == sorted(others, reverse=True)
            weights |= set(others)
            dissent = made["dissent"]
            assert dissent["of"] == "owners" and sum(dissent["votes"].values()) == len(voiced)
            assert {one["owner"] for one in dissent["otherwise"]} == {
                owner for owner, one in opinions.items() if one["action"] != made["asked"]["action"]
            }
    assert len(weights) > 1, "no item stated a weight of its own"


def test_reports_that_take_a_side_are_judged_by_what_followed(run: Run, opinionated: Path) -> None:
    document = run("decisions", "--owners", "--symbol", "ORVL", "--json").json
    by_agent = {one["agent"]: one for one in document["per_agent"]}
    assert set(by_agent) == {"chart", "news"}
    news = by_agent["news"]
    assert (news["owner"], news["agent"], news["reports"], news["sided"]) == ("desk", "news", 2, 2)
    falls = [
        later["change"] < 0
        for session in SESSIONS[:2]
        for later in run("why", "ORVL", str(session), "--json").json["decisions"][0]["closes_since"]
        if later["sessions"] == 1
    ]
    after = news["horizons"][0]
    assert falls and (after["sessions"], after["n"], after["hit_rate"]) == (1, len(falls), sum(falls) / len(falls))
    text = run("decisions", "--owners", "--symbol", "ORVL").out
    assert re.search(r"^news +\+1 ", text, re.MULTILINE) and "Stated confidence" not in text


def test_confidence_stands_against_what_happened(run: Run, debating: Path) -> None:
    document = run("decisions", "--owners", "--json").json
    judged: dict[str, list[tuple[float, bool]]] = {}
    with JournalReader(places.desk_journal("demo")) as reader:
        opinions = reader.opinions()
    for one in opinions:
        trail: Any = run("why", one.key.symbol, str(one.key.session), "--json").json["decisions"][0]
        later = [close for close in trail["closes_since"] if close["sessions"] == 1]
        if later and one.action in (Action.BUY, Action.SELL):
            right = DIRECTIONS[one.action] * later[0]["change"] > 0
            judged.setdefault(one.key.owner, []).append((float(one.confidence or 0), right))
    assert judged
    for owner, pairs in judged.items():
        found = document["per_owner"][owner]["horizons"][0]["calibration"]
        assert found["n"] == len(pairs) == sum(band["n"] for band in found["bands"])
        assert found["confidence"] == pytest.approx(sum(stated for stated, _ in pairs) / len(pairs))
        assert found["hit_rate"] == pytest.approx(sum(right for _, right in pairs) / len(pairs))
        assert found["brier"] == pytest.approx(sum((stated - right) ** 2 for stated, right in pairs) / len(pairs))
    assert document["per_owner"]["desk"]["horizons"][0]["calibration"] is None, "a combination states none"
    assert "Stated confidence against outcomes" in run("decisions", "--owners").out


def test_a_long_reason_is_read_to_its_end(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[date, str] = {}
    plain = OfflineModel.answer

    async def answer(self: OfflineModel, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> Any:
        given: ModelResult = await plain(self, request, on_delta)
        if request.purpose == "high-level-reflection":
            told[request.session] = "\n".join(message.text for message in request.messages)
        if request.purpose == "whole-decision":
            reason = f"{'Much hangs on it. ' * 1_000}So ends what was thought on {request.session}."
            return replace(given, answer={**(given.answer or {}), "explanation": reason})
        return given

    monkeypatch.setattr(OfflineModel, "answer", answer)
    window = ("--symbols", "ORVL", "--from", "2025-03-10", "--to", "2025-03-13")
    assert run("backtest", *window, "--preset", "finagent", "--json").code == 0
    assert told and all(f"{'Much hangs on it. ' * 1_000}So ends what was" in text for text in told.values())
