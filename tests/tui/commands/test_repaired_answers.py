"""Answers in the manners of small models: repaired and counted where one thing alone can be meant, else sent back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.domain.model_call import REPAIRED
from tests.servers.fake_llm_server import Say, Turn
from tests.tui.commands import test_model_outages as outages
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_model_outages import DAY, Service, in_turn

service = outages.service
BACKTEST = (*outages.BACKTEST[:-2], "2025-03-11", "--yes", "--json")
Manner = Callable[[dict[str, Any]], Turn | str]


def written(**fields: Any) -> Manner:
    return lambda answer: json.dumps(answer | fields)


MANNERS: dict[str, tuple[Manner, tuple[str, ...]]] = {
    "trailing comma": (lambda answer: json.dumps(answer)[:-1] + ",}", ("trailing comma",)),
    "single quotes": (repr, ("single quotes",)),
    "comments": (lambda answer: "{ // as asked\n" + json.dumps(answer)[1:], ("comments",)),
    "a list of one": (lambda answer: json.dumps([answer]), ("a list of one",)),
    "a wrapper": (lambda answer: json.dumps({"decision": answer}), ("a wrapper of one key",)),
    "a wrapper and a list": (
        lambda answer: json.dumps({"decision": [answer]}),
        ("a wrapper of one key", "a list of one"),
    ),
    "capitals": (
        lambda answer: json.dumps(
            {("Position Size" if key == "position_size" else key): answer[key] for key in answer}
        ),
        ("position_size: its key in other letters",),
    ),
    "an action in small letters": (written(recommendation="buy"), ("recommendation: BUY in another form",)),
    "a rule as an identifier": (written(rule="STRONG_UPTREND"), ("rule: strong uptrend in another form",)),
    "a number as text": (written(position_size="5"), ("position_size: 5 in another form",)),
    "percent": (written(position_size="5%"), ("position_size: 5 in another form",)),
    "a whole fraction": (written(position_size=5.0), ("position_size: 5 in another form",)),
    "half a thought": (
        lambda answer: f"I might {json.dumps({'a': 1})}.\n</think>\n{json.dumps(answer)}",
        ("no opening tag of thinking",),
    ),
    "two thoughts": (
        lambda answer: f"<think>a</think>\n<think>b</think>\n{json.dumps(answer)}",
        ("a second thinking block",),
    ),
    "two objects": (
        lambda answer: f"{json.dumps(answer | {'recommendation': 'SELL'})}\n\n{json.dumps(answer)}",
        ("the last of several objects",),
    ),
    "a tool call": (lambda answer: Say(text=json.dumps(answer), called=True), ("an answer as a tool call",)),
    "a tool call as text": (
        lambda answer: json.dumps({"name": "TradeAnswer", "arguments": answer}),
        ("an answer as a tool call",),
    ),
}


def decide(service: Service, manner: Manner) -> None:
    """Make the service write its decisions, and these alone, in a manner."""
    usual = outages._answer

    def next_turn(body: dict[str, Any], headers: dict[str, str]) -> Turn:
        service.requests.append(body)
        answer = usual(body)
        said = manner(answer) if "recommendation" in answer else json.dumps(answer)
        return Say(text=said) if isinstance(said, str) else said

    service.next_turn = next_turn  # type: ignore[method-assign]


BY_COMMAND = {
    f"{name}-{command}": (manner, repairs, command)
    for command in ("backtest", "daily")
    for name, (manner, repairs) in MANNERS.items()
}
USUAL = list(BY_COMMAND)[: len(MANNERS) + 1]
"""Each manner in a backtest, and one in a daily run."""


@pytest.mark.parametrize(("service", "manner", "repairs", "command"), in_turn(BY_COMMAND, USUAL), indirect=["service"])
def test_a_manner_that_means_one_thing_is_an_answer(
    service: Service, run: Run, manner: Manner, repairs: tuple[str, ...], command: str
) -> None:
    decide(service, manner)
    done = run(*(BACKTEST if command == "backtest" else DAY))
    assert done.code == 0, done.err
    assert [(one["action"], one["abstained"]) for one in done.json["decisions"]] == [("BUY", False)] * 2
    assert not sent_back(service)
    if command == "backtest":
        model = done.json["model"]
        assert (model["repairs"], model["abstentions"], model["refusals"]) == (2 * len(repairs), 0, 0)
        assert model["agents"]["decision"]["repairs"] == 2 * len(repairs)
        again = run("report", "--run", done.json["run"], "--format", "json")
        assert again.json["model"]["repairs"] == model["repairs"], "as the journal has it"
    trail = run("why", "ORVL", "2025-03-10" if command == "backtest" else "2025-03-11", "--json", *run_of(done.json))
    (answer,) = [one for one in trail.json["decisions"][0]["answers"] if one["agent"] == "decision"]
    assert [note.removeprefix(REPAIRED) for note in answer["notes"] if note.startswith(REPAIRED)] == [*repairs]


def sent_back(service: Service) -> int:
    """The number of questions that were asked again."""
    return sum("This answer cannot be used" in json.dumps(body["messages"]) for body in service.requests)


def run_of(document: dict[str, Any]) -> tuple[str, ...]:
    return ("--run", document["run"]) if "model" in document else ()


AMBIGUOUS: dict[str, tuple[Manner, str]] = {
    "two actions": (written(recommendation="buy or sell"), "recommendation"),
    "a list of two": (lambda answer: json.dumps([answer, answer]), "array"),
    "two keys of one name": (written(Rule="uncertainty"), "Rule"),
    "a part of a percent": (written(position_size="5.5%"), "position_size"),
    "another currency of numbers": (written(position_size="5,0"), "position_size"),
    "alternatives": (lambda answer: f"{json.dumps(answer)} or {json.dumps(answer)}", "several JSON objects"),
    "an object and talk of it": (
        lambda answer: f"{json.dumps(answer)}, not {json.dumps(answer)} as before.",
        "several JSON objects",
    ),
    "a wrapper with more": (lambda answer: json.dumps({"decision": answer, "note": "x"}), "Field required"),
}


@pytest.mark.parametrize(("manner", "about"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_could_mean_two_things_goes_back(service: Service, run: Run, manner: Manner, about: str) -> None:
    decide(service, manner)
    done = run(*BACKTEST, "--abstain-limit", "0")
    assert done.code == 0, done.err
    assert [one["abstained"] for one in done.json["decisions"]] == [True] * 2
    assert about in done.json["decisions"][0]["reason"]
    assert sent_back(service) == 2
    assert (done.json["model"]["abstentions"], done.json["model"]["repairs"]) == (2, 0)


def test_a_percent_sign_belongs_to_percentages_alone(service: Service, run: Run) -> None:
    usual = dict(outages.ANSWERS["sentiment"])
    outages.ANSWERS["sentiment"]["unrelated"] = "5%"
    try:
        done = run(*BACKTEST)
    finally:
        outages.ANSWERS["sentiment"] = usual
    assert done.json["model"]["agents"]["news"]["abstentions"] == 2
    assert done.json["model"]["repairs"] == 0


def test_several_repairs_are_counted_and_said(service: Service, run: Run) -> None:
    decide(service, lambda answer: repr({"x": answer | {"recommendation": "Buy", "position_size": "5 %"}}))
    text = " ".join(run(*BACKTEST[:-1]).out.split())
    assert "8 repairs" in text
