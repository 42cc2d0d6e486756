"""The work of one daily run, counted: the configuration is loaded once, the session derived once, and the journal
opened once to read and once to write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import connectors.wiring.services
import engine.app.desk.context
import engine.market.trading_hours
import engine.settings.config
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from tests.tui.commands.conftest import FEW_AGENTS, Run

COUNTED = (
    (engine.settings.config, "load_config"),
    (connectors.wiring.services, "services"),
    (connectors.wiring.services, "desk_symbols"),
    (engine.market.trading_hours, "session_to_decide"),
    (JournalReader, "__init__"),
    (JournalWriter, "__init__"),
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of the loaders by name, from here on; a name that a module has imported counts as well."""
    counted: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return function(*args, **kwargs)

        return count

    for owner, attribute in COUNTED:
        name = owner.__name__.rpartition(".")[2] if attribute == "__init__" else attribute
        monkeypatch.setattr(owner, attribute, counting(name, getattr(owner, attribute)))
    derive = engine.market.trading_hours.session_to_decide
    for module in (engine.app.desk.context, engine.session.run):
        monkeypatch.setattr(module, "session_to_decide", derive)
    return counted


ONCE = {
    "load_config": 1,
    "services": 1,
    "desk_symbols": 1,
    "session_to_decide": 1,
    "JournalReader": 1,
    "JournalWriter": 1,
}


def test_a_daily_run_reads_and_derives_everything_once(
    run: Run, fresh: Path, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in FEW_AGENTS.items():
        monkeypatch.setenv(variable, value)
    assert run("--daily", "--session", "2025-03-11").code == 0
    assert calls == ONCE, "the first run of a desk"
    calls.clear()
    assert run("--daily", "--session", "2025-03-12").code == 0
    # A demo desk lives in its journal's time: what is due, whether it is done and both ends of the run ask for it.
    assert calls == {**ONCE, "JournalReader": 4}, "a run whose session is seen to be due before it begins"
    calls.clear()
    assert run("--daily", "--session", "2025-03-12").code == 0
    seen = {**ONCE, "JournalReader": 2}
    assert calls == {name: count for name, count in seen.items() if name != "JournalWriter"}, "a finished session"
