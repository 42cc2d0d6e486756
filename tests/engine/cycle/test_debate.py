"""The debate of owners: when it begins and ends, who takes part, and what its advice comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from engine.cycle.turn import CycleResult
from engine.domain.decision import Action, Debate, DebateEnd, Stance
from engine.domain.model_call import ModelRequest
from engine.errors import ConfigError
from engine.preset import Preset, load_preset
from tests.engine.cycle.test_owners import decided, preset, turn
from tests.engine.desks import ScriptedModel

STEPS = ("immediate", "debate")
OWNERS = {"bull": {"character": {"nature": "Bold.", "text": "You dare.", "evidence": {"news": 2, "prices": -1}}}}
OWNERS |= {"bear": {"risk": "risk-averse"}, "calm": {}}
MORE, SLIGHT, HOLD = "significantly increase", "slightly increase", "hold"
NO_EVIDENCE = {"shallow": [], "intermediate": [], "deep": [], "reflection": []}


def debating(owners: int = 3, **settings: Any) -> Preset:
    """A preset of so many owners who do nothing but reflect and debate, before the decision."""
    base = load_preset("tradinggpt-single").model_copy(update={"expected": ()})
    names = dict(list(OWNERS.items())[:owners])
    changes = {"steps": STEPS, "combine": "weighted", "debate": {"when": "before", **settings}}
    return preset(base, owners=names, **changes)


def advice(action: str, confidence: float = 0.5) -> dict[str, Any]:
    return {"evidence": NO_EVIDENCE, "reason": "By the script.", "action": action, "confidence": confidence}


def comments(request: ModelRequest, stance: str = "agrees") -> dict[str, Any]:
    others = [case.owner for case in request.view.others]
    return {"comments": [{"to": to, "stance": stance, "text": "So I see it.", "about": []} for to in others]}


def script(first: dict[str, str], later: Callable[[ModelRequest], Any]) -> ScriptedModel:
    """Owners begin with `first`; what they come to in a round is `later`'s."""

    def answer(request: ModelRequest) -> Any:
        match request.purpose:
            case "immediate-reflection":
                return advice(first[request.owner]) | {"signals": dict.fromkeys(NO_EVIDENCE, "none")}
            case "debate-comment":
                return comments(request)
        said = later(request)
        return said if not isinstance(said, str) else advice(said) | {"reply": "I see."}

    return ScriptedModel(answer)


async def held(model: ScriptedModel, chosen: Preset, **more: Any) -> tuple[Debate, CycleResult]:
    result, _ = await decided(model, chosen, replace(turn(), symbols=("AAA",), **more))
    (debate,) = result.debates
    return debate, result


FIRST = {"bull": MORE, "bear": HOLD, "calm": HOLD}


async def test_it_ends_with_agreement_where_the_preset_says_so() -> None:
    model = script(FIRST, lambda request: SLIGHT)
    debate, result = await held(model, debating(rounds=3, stop="agreement"))
    assert (debate.rounds, debate.ended, debate.decides) == (1, DebateEnd.AGREEMENT, True)
    assert {one.action for one in result.opinions} == {Action.BUY} and {one.size for one in result.opinions} == {3}
    assert all(debate.changed(owner) for owner in OWNERS)
    agreed = script(dict.fromkeys(OWNERS, HOLD), lambda request: HOLD)
    debate, _ = await held(agreed, debating(rounds=3, stop="agreement"))
    assert (debate.rounds, debate.ended) == (0, DebateEnd.AGREEMENT)
    assert [request.purpose for request in agreed.requests] == ["immediate-reflection"] * 3


async def test_it_ends_where_a_round_changes_nobody_and_after_its_rounds() -> None:
    stubborn = script(FIRST, lambda request: FIRST[request.owner])
    debate, _ = await held(stubborn, debating(rounds=3, stop="no-change"))
    assert (debate.rounds, debate.ended) == (1, DebateEnd.NO_CHANGE)
    assert not any(debate.changed(owner) for owner in OWNERS)
    restless = script(FIRST, lambda request: SLIGHT if request.view.round % 2 else FIRST[request.owner])
    debate, _ = await held(restless, debating(rounds=2, stop="no-change"))
    assert (debate.rounds, debate.ended) == (2, DebateEnd.ROUNDS)
    second = [one for one in restless.requests if one.purpose == "debate-comment" and one.view.round == 2]
    assert all(len(request.view.received) == 2 for request in second), "comments of the first round are known"


async def test_a_round_that_does_not_fit_the_budget_does_not_begin() -> None:
    model = script(FIRST, lambda request: SLIGHT if request.owner == "bull" else FIRST[request.owner])
    debate, _ = await held(model, debating(rounds=5, stop="agreement", budget=11))
    assert (debate.rounds, debate.ended) == (1, DebateEnd.BUDGET)
    assert sum(request.purpose.startswith("debate") for request in model.requests) == 6
    debate, result = await held(model, debating(rounds=5, stop="agreement", budget=5))
    assert (debate.rounds, debate.ended) == (0, DebateEnd.BUDGET)
    assert [one.size for one in result.opinions] == [8, 0, 0], "the immediate reflections decide"


async def test_who_has_no_valid_answer_abstains_and_takes_no_further_part() -> None:
    broken = script(FIRST, lambda request: None if request.owner != "bull" else MORE)
    last, _ = await held(broken, debating(rounds=1))
    debate, result = await held(broken, debating(rounds=3, stop="agreement"))
    assert (debate.rounds, debate.ended) == (last.rounds, last.ended) == (1, DebateEnd.ALONE)
    actions = {one.key.owner: one.action for one in result.opinions}
    assert actions == {"bull": Action.BUY, "bear": Action.ABSTAIN, "calm": Action.ABSTAIN}
    assert debate.of("bear")[-1].advice is None and "nothing came" in debate.of("bear")[-1].reason
    silent = ScriptedModel(lambda r: advice(MORE) if r.purpose.startswith("immediate") and r.owner == "bull" else None)
    result, _ = await decided(silent, debating(), replace(turn(), symbols=("AAA",)))
    assert result.debates == (), "one owner alone has nobody to debate with"


async def test_comments_that_leave_an_owner_out_go_back_and_are_none() -> None:
    def answer(request: ModelRequest) -> Any:
        if request.purpose == "debate-comment" and request.owner == "bear":
            return {"comments": comments(request)["comments"][:1]}
        return good.script(request)

    good = script(FIRST, lambda request: HOLD)
    model = ScriptedModel(answer)
    debate, _ = await held(model, debating(rounds=1))
    asked = [request for request in model.requests if (request.purpose, request.owner) == ("debate-comment", "bear")]
    assert len(asked) == 2 and "comments: none for calm" in asked[1].messages[-1].text
    assert {one.author for one in debate.comments} == {"bull", "calm"}
    assert {one.stance for one in debate.comments} == {Stance.AGREES}


@pytest.mark.parametrize(("size", "expected"), [("advice", 8), ("agreement", 4), ("confidence", 2)])
async def test_the_preset_says_how_advice_becomes_a_size(size: str, expected: int) -> None:
    def later(request: ModelRequest) -> Any:
        return advice(FIRST[request.owner], 0.25 if request.owner == "bull" else 1) | {"reply": "I stay."}

    # The others hold, two of four steps away: the distance is one half of the scale.
    _, result = await held(script(FIRST, later), debating(size=size))
    bull = result.opinions[0]
    assert (bull.size, bull.confidence) == (expected, Decimal("0.25"))
    assert ("8 % becomes" in bull.reason) is (expected != 8)


async def test_after_the_trade_comments_change_nothing_and_each_sees_its_own_character() -> None:
    model = script(FIRST, lambda request: SLIGHT)
    debate, result = await held(model, debating(when="after", rounds=3))
    assert (debate.rounds, debate.ended, debate.decides) == (1, DebateEnd.AFTER_TRADE, False)
    assert [one.size for one in result.opinions] == [8, 0, 0]
    assert not [request for request in model.requests if request.purpose == "debate-decision"]
    asked = {request.owner: request for request in model.requests if request.purpose == "debate-comment"}
    assert "Bold. You dare." in asked["bull"].system and "The trades of the day are decided" in asked["bull"].system
    assert "Most weight has for you: news." in asked["bull"].system
    assert "You read the other way round: the trend of the price." in asked["bull"].system
    assert "risk-averse investor" in asked["bear"].system
    shown = asked["bear"].messages[0].text
    assert "The case of bull" in shown and "significantly increase, a trade of 8% of the portfolio" in shown


async def test_an_owner_with_a_focus_decides_on_its_sectors_alone() -> None:
    owners = {"chips": {"sector_focus": ["Semiconductors"]}, "banks": {"sector_focus": ["banks"]}, "all": {}}
    sectors = {"AAA": ["semiconductors"], "BBB": ["banks", "insurance"]}
    chosen = preset(debating(), owners=owners, symbol_sectors=sectors)
    model = script(dict.fromkeys(owners, HOLD), lambda request: HOLD)
    result, _ = await decided(model, chosen)
    assert [(one.key.symbol, one.key.owner) for one in result.opinions] == [
        ("AAA", "chips"),
        ("AAA", "all"),
        ("BBB", "banks"),
        ("BBB", "all"),
    ]
    nobody = preset(
        debating(), owners={name: owners[name] for name in ("chips", "banks")}, symbol_sectors={"AAA": ["banks"]}
    )
    with pytest.raises(ConfigError, match="BBB"):
        await decided(model, nobody)


def test_a_debate_needs_two_owners_and_advice_in_levels() -> None:
    with pytest.raises(ValidationError, match="two owners"):
        debating(1)
    with pytest.raises(ValidationError, match="five-level"):
        preset(debating(), decision="three-way")
