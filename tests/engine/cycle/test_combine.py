"""Several owners' opinions combined: the vote, the weighted mean, the quorum, and what a combined decision names."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cycle.combine import Level, combine, level_of
from engine.domain.decision import Action, DecisionKey, Opinion, SizingRule
from engine.preset import Preset, load_preset

FINVISION = load_preset("finvision")
RULES = {Action.BUY: SizingRule.STRONG_UPTREND, Action.SELL: SizingRule.REVERSAL, Action.HOLD: SizingRule.UNCERTAINTY}


def opinion(owner: str, said: str, symbol: str = "AAA", **more: Any) -> Opinion:
    """An opinion from `buy 8`, `sell 3`, `hold` or `abstain`."""
    word, _, size = said.partition(" ")
    action = Action(word.upper())
    key = DecisionKey("run", date(2024, 3, 1), 1, symbol, owner)
    values = {"rule": RULES.get(action), "reason": f"{owner} says {said}"} | more
    return Opinion(key=key, action=action, size=Decimal(size or 0), **values)


def preset(combined: str, weights: list[int], quorum: int = 1) -> Preset:
    owners = {name: {"weight": weight} for name, weight in zip("abcdefgh", weights, strict=False)}
    plain = FINVISION.model_dump() | {"owners": owners, "combine": combined, "quorum": quorum}
    return Preset.model_validate(plain)


def decided(combined: str, said: list[str], weights: list[int] | None = None, quorum: int = 1) -> Opinion:
    opinions = [opinion(name, one) for name, one in zip("abcdefgh", said, strict=False)]
    (result,) = combine(opinions, preset(combined, weights or [1] * len(said), quorum))
    return result


@pytest.mark.parametrize(
    ("said", "action", "size"),
    [
        (["buy 8", "buy 2", "sell 10"], Action.BUY, 5),
        (["buy 8", "sell 2"], Action.HOLD, 0),
        (["sell 3", "sell 4", "hold"], Action.SELL, 4),
        (["buy 8", "hold", "hold"], Action.HOLD, 0),
        (["buy 8", "hold", "sell 9"], Action.HOLD, 0),
        # Two middle votes on one side are no tie, on different sides they are.
        (["buy 8", "buy 2", "buy 2", "sell 9"], Action.BUY, 4),
        (["buy 8", "buy 2", "hold", "sell 9"], Action.HOLD, 0),
        # An abstention does not vote.
        (["buy 4", "abstain", "abstain"], Action.BUY, 4),
        (["buy 4", "sell 4", "abstain"], Action.HOLD, 0),
        (["abstain", "abstain"], Action.ABSTAIN, 0),
    ],
)
def test_a_vote(said: list[str], action: Action, size: int) -> None:
    result = decided("vote", said)

    assert (result.action, result.size) == (action, size)
    assert result.key.owner == "desk"


def test_a_vote_counts_heads_and_weighs_sizes() -> None:
    assert decided("vote", ["buy 2", "buy 10", "sell 9"], [3, 1, 100]).action is Action.BUY
    assert decided("vote", ["buy 2", "buy 10", "sell 9"], [3, 1, 100]).size == 4
    assert decided("vote", ["buy 2", "buy 10", "sell 9"], [1, 3, 100]).size == 8


@pytest.mark.parametrize(
    ("said", "weights", "action", "size"),
    [
        # (2 * 2 + 2 * 1 - 1) / 5 = 1: buy; (2 * 10 + 2 * 4) / 5 = 5.6.
        (["buy 10", "buy 4", "sell 4"], [2, 2, 1], Action.BUY, 6),
        # (2 - 1) / 2 is exactly between HOLD and buy.
        (["buy 10", "sell 4"], [1, 1], Action.HOLD, 0),
        (["buy 10", "sell 4"], [3, 1], Action.BUY, 8),
        (["buy 4", "sell 10"], [1, 3], Action.SELL, 8),
        (["buy 1", "hold", "hold"], [8, 1, 1], Action.BUY, 1),
        (["buy 4", "hold", "abstain"], [3, 1, 100], Action.BUY, 3),
        (["hold", "hold"], [1, 1], Action.HOLD, 0),
    ],
)
def test_a_weighted_mean(said: list[str], weights: list[int], action: Action, size: int) -> None:
    result = decided("weighted", said, weights)

    assert (result.action, result.size) == (action, size)


@pytest.mark.parametrize("combined", ["vote", "weighted"])
def test_a_quorum_that_is_missed_is_an_abstention_with_the_reasons(combined: str) -> None:
    result = decided(combined, ["buy 8", "abstain", "abstain"], quorum=2)

    assert result.action is Action.ABSTAIN and "b says abstain" in result.reason
    assert decided(combined, ["buy 8", "buy 8", "abstain"], quorum=2).action is Action.BUY


def test_a_combined_decision_names_the_winning_side() -> None:
    said = [
        opinion("a", "buy 4", rule=SizingRule.DIP_IN_UPTREND, evidence=("m1", "m2"), unresolved_figures=("1",)),
        opinion("b", "buy 8", rule=SizingRule.STRONG_UPTREND, evidence=("m2", "m3")),
        opinion("c", "sell 9", evidence=("m4",), unresolved_figures=("2",)),
    ]
    (result,) = combine(said, preset("vote", [2, 1, 5]))

    assert result.rule is SizingRule.DIP_IN_UPTREND
    assert result.evidence == ("m1", "m2", "m3")
    assert result.unresolved_figures == ("1",)
    assert result.reason.splitlines() == [
        "Vote of 3: buy (a buy 4 %, b strong buy 8 %, c strong sell 9 %).",
        "a: a says buy 4",
        "b: b says buy 8",
    ]


def test_symbols_are_combined_one_by_one_in_their_order() -> None:
    said = [opinion(name, word, symbol) for symbol, word in (("BBB", "buy 5"), ("AAA", "sell 5")) for name in "ab"]
    results = combine(said, preset("vote", [1, 1]))

    assert [(one.key.symbol, one.action) for one in results] == [("BBB", Action.BUY), ("AAA", Action.SELL)]


@pytest.mark.parametrize(("combined", "weights"), [("books", [1, 2, 3]), ("vote", [1]), ("weighted", [1])])
def test_who_decides_alone_keeps_the_opinion(combined: str, weights: list[int]) -> None:
    said = [opinion(name, "buy 5") for name, _ in zip("abc", weights, strict=False)]

    assert combine(said, preset(combined, weights)) == tuple(said)


def test_levels_follow_the_kind_of_the_decision() -> None:
    sized, advised, plain = FINVISION, load_preset("tradinggpt"), load_preset("finmem")

    assert level_of(opinion("a", "buy 5"), sized) is Level.STRONG_BUY
    assert level_of(opinion("a", "sell 4"), sized) is Level.SELL
    assert level_of(opinion("a", "buy 8"), advised) is Level.STRONG_BUY
    assert level_of(opinion("a", "sell 3"), advised) is Level.SELL
    assert level_of(opinion("a", "buy 0"), plain) is Level.BUY
    assert level_of(opinion("a", "hold"), sized) is Level.HOLD


SAID = st.one_of(
    st.sampled_from(["hold", "abstain"]),
    st.builds("{} {}".format, st.sampled_from(["buy", "sell"]), st.integers(1, 10)),
)


@given(st.lists(st.tuples(SAID, st.integers(1, 9)), min_size=2, max_size=8), st.sampled_from(["vote", "weighted"]))
def test_a_combined_size_is_within_the_winners_and_turning_all_round_turns_the_result_round(
    cast: list[tuple[str, int]], combined: str
) -> None:
    said, weights = [one for one, _ in cast], [weight for _, weight in cast]
    result = decided(combined, said, weights)
    swapped = {"buy": "sell", "sell": "buy"}
    turned = [" ".join(swapped.get(word, word) for word in one.split()) for one in said]
    mirror = decided(combined, turned, weights)

    assert (mirror.action.value.lower(), mirror.size) == (
        swapped.get(result.action.value.lower(), result.action.value.lower()),
        result.size,
    )
    sizes = [int(one.split()[1]) for one in said if one.startswith(result.action.value.lower() + " ")]
    if result.action in (Action.BUY, Action.SELL):
        assert 1 <= result.size <= max(sizes)
    else:
        assert result.size == 0
    assert (result.action is Action.ABSTAIN) == all(one == "abstain" for one in said)


@given(st.lists(SAID, min_size=2, max_size=8))
def test_a_side_wins_a_vote_with_more_than_half(said: list[str]) -> None:
    result, votes = decided("vote", said), [one.split()[0] for one in said if one != "abstain"]

    majority = [word for word in ("buy", "sell") if votes.count(word) * 2 > len(votes)]
    assert result.action.value.lower() == (majority[0] if majority else "hold" if votes else "abstain")
