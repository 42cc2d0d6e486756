"""A demo desk that has run for three sessions and a short backtest, made once and copied for every test."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.backtest import run_backtest
from engine.app.runs import run_daily
from engine.config import load_config
from engine.domain.run import DataSpec, RunSpec
from tui.cli import main

SESSIONS = (date(2025, 3, 11), date(2025, 3, 12), date(2025, 3, 14))
"""Sessions that the desk decides for; the one between them passes without a run."""
BACKTEST = "backtest-20250701-120000-ab12"
FEW_AGENTS = {"PAPERDESK_DESK__PRESET": "finvision"}


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Said]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `paperdesk` with arguments, in this process."""

    def called(*arguments: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        told = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, told.out, told.err)

    return called


@pytest.fixture(scope="session")
def kept_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Homes that were lived in: `desk` (three daily runs), `backtest` (one short run), `table` (sessions only)."""
    patch = pytest.MonkeyPatch()
    homes = {name: tmp_path_factory.mktemp(f"{name}-home") for name in ("desk", "backtest", "table")}
    config = load_config(None, environ=FEW_AGENTS).config
    patch.setenv("PAPERDESK_HOME", str(homes["desk"]))
    for session in SESSIONS:
        asyncio.run(run_daily(services(config), session))
    for name in ("backtest", "table"):
        shutil.copytree(homes["desk"] / "cache", homes[name] / "cache")
    patch.setenv("PAPERDESK_HOME", str(homes["backtest"]))
    spec = RunSpec(
        symbols=("ORVL", "HLXM"),
        first=date(2025, 3, 11),
        last=date(2025, 3, 24),
        warm_up_from=date(2025, 3, 4),
        preset="finvision",
        data=DataSpec(None, 7),
        run=BACKTEST,
    )
    run_backtest(services(config), spec)
    yield homes
    patch.undo()


@pytest.fixture
def desk(kept_homes: dict[str, Path], paperdesk_home: Path) -> Path:
    """The home of a desk that has run, with FinVision's few agents."""
    return _copied(kept_homes["desk"], paperdesk_home)


@pytest.fixture
def backtested(kept_homes: dict[str, Path], paperdesk_home: Path) -> Path:
    """A home with a backtest and no desk."""
    return _copied(kept_homes["backtest"], paperdesk_home)


@pytest.fixture
def fresh(kept_homes: dict[str, Path], paperdesk_home: Path) -> Path:
    """A home in which nothing has run; only the exchange's sessions are known, which take a second to make."""
    return _copied(kept_homes["table"], paperdesk_home)


def _copied(kept: Path, home: Path) -> Path:
    shutil.copytree(kept, home, dirs_exist_ok=True)
    return home


def contents(home: Path) -> dict[str, bytes]:
    """Every file of a home with what is in it, without what SQLite puts beside a database while it is read."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {str(path.relative_to(home)): path.read_bytes() for path in files}
