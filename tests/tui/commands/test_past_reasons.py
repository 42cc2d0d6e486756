"""Past decisions reach the high-level reflection with their whole reasons (A5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engine.domain.model_call import ModelRequest, ModelResult
from engine.offline.model import OfflineModel
from tests.tui.commands.conftest import Run


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
