"""What makes two questions the same question."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from typing import Any

import pytest

from connectors.llm.paid_results import request_hash
from engine.domain.model_call import Message
from tests.servers.llm_questions import SCHEMA, question, small_chart

WITH_CHART = {"messages": (Message("user", "Read it.", (small_chart(),)),)}


def digest(**overrides: Any) -> str:
    return request_hash("openai", "m", question(**overrides), "painter-1")


@pytest.mark.parametrize(
    "change",
    [
        {"system": "You run another desk."},
        {"messages": (Message("user", "Decide!"),)},
        {"messages": (Message("assistant", "Decide."),)},
        {"messages": (Message("user", "Decide."), Message("user", ""))},
        WITH_CHART,
        {"schema": {**SCHEMA, "title": "Other"}},
        {"settings": {"temperature": 0.0}},
        {"settings": {"max_output_tokens": 10}},
        {"sample": 1},
        {"options": {"effort": "high"}},
        {"options": {"verbosity": "high"}},
        {"options": {"tier": "flex"}},
        {"options": {"mask": 2}},
    ],
)
def test_what_can_change_an_answer_changes_the_hash(change: dict[str, Any]) -> None:
    assert digest(**change) != digest()


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"timeout": 1.0, "insist": True}},
        {"view": object(), "purpose": "debate", "owner": "other", "symbol": "AAPL", "session": date(2020, 1, 2)},
        {"schema": dict(reversed(SCHEMA.items()))},
    ],
)
def test_what_cannot_change_an_answer_does_not(change: dict[str, Any]) -> None:
    assert digest(**change) == digest()


def test_an_answer_that_version_0_1_recorded_to_the_same_question_still_matches() -> None:
    assert digest() == "66fa3b04c3b2f3e35a5d8c90f7909a3588537bf5f313e83058c6385d168e4124"


def test_zero_is_zero_however_it_is_written() -> None:
    assert digest(settings={"temperature": 0}) == digest(settings={"temperature": 0.0})


def test_provider_and_model_are_part_of_it_and_cannot_run_into_each_other() -> None:
    hashes = {request_hash(p, m, question(), None) for p, m in [("a", "bc"), ("ab", "c"), ("a", "b"), ("b", "a")]}
    assert len(hashes) == 4


def test_a_chart_counts_by_its_data_and_its_painter_and_only_for_a_model_that_sees() -> None:
    request, other = (question(messages=(Message("user", "Read it.", (small_chart(last),)),)) for last in (11.0, 10.0))
    assert request_hash("p", "m", request, "painter-1") != request_hash("p", "m", other, "painter-1")
    assert request_hash("p", "m", request, "painter-1") != request_hash("p", "m", request, "painter-2")
    assert request_hash("p", "m", request, None) == request_hash("p", "m", other, None)


def test_it_is_the_same_in_another_process() -> None:
    program = (
        "from connectors.llm.paid_results import request_hash\n"
        "from tests.servers.llm_questions import question\n"
        "print(request_hash('openai', 'm', question(), 'painter-1'))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest()
