"""`paperdesk bench recall`: hard questions with certain evidence, and what each ranking finds of it."""

from __future__ import annotations

import pytest

from tests.tui.commands.conftest import Run

FEW = ("--symbols", "ORVL,HLXM")


def test_every_ranking_is_measured_on_the_same_questions(run: Run) -> None:
    said = run("bench", "recall", *FEW, "--json")
    assert said.code == 0, said.err
    document = said.json
    assert document["questions"] >= 100
    methods = {one["name"]: one for one in document["methods"]}
    assert {"hash-384", "bm25", "time", "all", document["default"]} == set(methods)
    for one in methods.values():
        assert 0 <= one["r5"] <= one["r20"] <= 1 and 0 <= one["mrr"] <= 1
        assert one["later"] == 0, "nothing from after the question"
    assert methods["hash-384"]["r20"] < 0.7, "the questions are in other words"
    assert methods["bm25"]["r20"] > methods["hash-384"]["r20"]
    assert methods[document["default"]]["superseded_first"] == 0


@pytest.mark.slow
def test_the_same_questions_give_the_same_document(run: Run) -> None:
    first, again = (run("bench", "recall", *FEW, "--json").json for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--symbols", "ORVL"), 65),
        (("--repeats", "3"), 2),
        (("--models", "offline"), 2),
        (("--preset", "desk"), 2),
        (("--strategy", "macd"), 2),
        (("--param", "fast=6"), 2),
    ],
)
def test_what_cannot_be_measured_is_one_line(run: Run, fresh: object, arguments: tuple[str, ...], code: int) -> None:
    said = run("bench", "recall", *arguments)
    assert said.code == code and said.err.count("\n") == 1, said.err
    assert code == 65 or f" takes no {arguments[0]};" in said.err, "the option as it was typed"
