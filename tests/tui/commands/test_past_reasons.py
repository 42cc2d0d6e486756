"""Reasons of past decisions, as later decisions read them: shortened, and never with a part of a figure."""

from __future__ import annotations

from pathlib import Path

from engine import places
from engine.journal.reader import JournalReader
from tests.tui.commands.conftest import Run

BACKTEST = (
    *("backtest", "--preset", "finvision", "--symbols", "ORVL"),
    *("--from", "2025-03-03", "--to", "2025-03-14", "--json"),
)


def test_a_past_reason_is_cut_between_words(run: Run, fresh: Path) -> None:
    done = run(*BACKTEST)
    assert done.code == 0
    with JournalReader(places.run_journal(done.json["run"])) as reader:
        outcomes = reader.outcomes()
        reasons = {made.key.session: made.opinion.reason for made in reader.decisions()}
        prompts = [
            message.text
            for made in reader.decisions()
            for answer in reader.answers(made.key)
            for message in answer.messages
        ]
    shortened = [one for one in outcomes if one.key_factors.endswith("…")]
    assert len(shortened) > 3
    for outcome in shortened:
        words = outcome.key_factors.removesuffix("…").partition(": ")[2].split()
        assert reasons[outcome.decision_session].split()[: len(words) - 1] == words[:-1]
        assert reasons[outcome.decision_session].split()[len(words) - 1].rstrip(" ,;:-…") == words[-1]
    assert any(" ".join(outcome.key_factors.split()) in prompt for outcome in shortened for prompt in prompts)
