"""A command whose library comes with an extra names the extra where it is not installed; the doctor does not mind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.test_packaging import PYPROJECT
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_study import RULES, written

WINDOW = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-14")


@pytest.mark.parametrize(
    ("extra", "modules", "arguments"),
    [
        ("tune", ("optuna",), ("tune", "macd", *WINDOW)),
        ("tune", ("optuna",), ("bench", "finagent", "--baselines", "--tune", "5", "--data", "nowhere")),
        ("ml", ("lightgbm",), ("backtest", "--strategy", "lgbm", "--warm-up-from", "2024-01-02", *WINDOW)),
        ("serve", ("textual_serve", "aiohttp"), ("serve", "--port", "0")),
        ("cluster", ("distributed",), ("study", "grid.toml", "--scheduler", "local")),
    ],
)
def test_a_missing_extra_is_named_in_one_line(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extra: str,
    modules: tuple[str, ...],
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, RULES)
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    ended = run(*arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (78, "", 1)
    assert f"'paperdesk[{extra}]'" in ended.err and extra in PYPROJECT["project"]["optional-dependencies"]
    assert run("doctor").code == 0


def test_a_learned_strategy_is_listed_where_its_extra_is_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lgbm" in run("backtest", "--strategy", "lgmb", *WINDOW).err.partition("available")[2]
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert "lgbm" not in run("backtest", "--strategy", "lgmb", *WINDOW).err.partition("available")[2]
