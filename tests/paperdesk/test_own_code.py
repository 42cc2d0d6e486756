"""Code of one's own in several files, and from an installed distribution, named by its entry points."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import paperdesk
from connectors.wiring.services import services
from engine.settings.config import BrokerConfig, Config
from tests.extending_page import write_files

WINDOW: dict[str, Any] = {"symbols": "ORVL", "start": "2025-01-02", "end": "2025-01-31"}
STRATEGY = """
from shares import SHARE
from rules.base import Base

class Own(Base):
    share = SHARE
"""
BASE = """
from __future__ import annotations
from dataclasses import dataclass, field
from typing import ClassVar

@dataclass
class Base:
    share: ClassVar[float] = 0.0
    asked: int = field(default=0, init=False)

    def weights(self, view):
        self.asked += 1
        return {symbol: self.share for symbol in view.symbols}

class Fails:
    def weights(self, view):
        return {"ORVL": 1 / 0}
"""


def strategy_in(folder: Path, share: float) -> Path:
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    (folder / "rules" / "__init__.py").touch()
    (folder / "rules" / "base.py").write_text(BASE)
    (folder / "shares.py").write_text(f"SHARE = {share}\n")
    os.utime(folder / "shares.py", (1e9, 1e9))  # as of an edit within the second
    (folder / "own.py").write_text(STRATEGY + "\nfrom rules.base import Fails\n")
    return folder / "own.py"


def exposed(strategy: str) -> float:
    run = paperdesk.backtest(strategy=strategy, **WINDOW)
    assert run.document["settings"]["code"] is not None
    return round(float(run.equity["exposure"].iloc[0]), 1)


def test_files_beside_a_strategy_are_imported_each_folder_its_own(tmp_path: Path) -> None:
    first, second = strategy_in(tmp_path / "a", 0.2), strategy_in(tmp_path / "b", 0.6)
    path = [*sys.path]
    assert (exposed(f"{first}:Own"), exposed(f"{second}:Own")) == (0.2, 0.6)
    assert sys.path == path
    assert not {"shares", "rules", "rules.base"} & sys.modules.keys()


def test_code_that_changes_the_path_of_imports_leaves_it_as_it_was(tmp_path: Path) -> None:
    strategy = strategy_in(tmp_path, 0.2)
    strategy.write_text(strategy.read_text() + "\nimport sys\nsys.path.pop(0)\n")
    path = [*sys.path]
    assert exposed(f"{strategy}:Own") == 0.2 and sys.path == path


def test_a_change_of_a_file_beside_it_is_seen_and_is_other_code(tmp_path: Path) -> None:
    strategy = f"{strategy_in(tmp_path, 0.2)}:Own"
    before = paperdesk.backtest(strategy=strategy, **WINDOW)
    assert paperdesk.audit(run=before.run, cuts=1)["same"] is True
    strategy_in(tmp_path, 0.6)
    assert exposed(strategy) == 0.6
    certificate = paperdesk.audit(run=before.run, cuts=1)
    assert certificate["differs"] == ["code", "fingerprint"]


def test_a_failure_in_a_file_beside_it_is_named_by_that_file(tmp_path: Path) -> None:
    with pytest.raises(paperdesk.MalformedData, match=r"base\.py:\d+: ZeroDivisionError"):
        paperdesk.backtest(strategy=f"{strategy_in(tmp_path, 0.2)}:Fails", **WINDOW)


ENTRY_POINTS = """
[paperdesk.strategies]
acme-hold = acme_desk:Hold
acme-broken = acme_desk:Missing
[paperdesk.agents]
acme-volume = volume:VOLUME
[paperdesk.brokers]
acme = acme_desk:BROKER
"""
ACME = """
from engine.broker_registration import BrokerRegistration

class Hold:
    def weights(self, view):
        return {symbol: 0.4 for symbol in view.symbols}

BROKER = BrokerRegistration(
    title="a shelf", settings=lambda config, environ: {}, open_broker=lambda settings, attempts: None, now=None,
    key_variables=("ACME_KEY",),
)
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed distribution that brings one of each, and of a preset that asks its agent."""
    (tmp_path / "acme_desk.py").write_text(ACME)
    info = tmp_path / "acme_desk-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-desk\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    write_files("An agent", tmp_path)
    preset = tmp_path / "with-volume.toml"
    preset.write_text(preset.read_text().replace('"volume.py:VOLUME"', '"acme-volume"'))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("acme_desk", "volume"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return preset


def test_a_distribution_brings_a_strategy_and_an_agent(acme: Path) -> None:
    run = paperdesk.backtest(strategy="acme-hold", **WINDOW)
    assert run.document["strategy"] == "acme-hold" and run.document["settings"]["code"] is not None
    assert 0.35 < run.equity["exposure"].mean() < 0.45
    assert paperdesk.audit(run=run.run, cuts=1)["same"] is True
    with pytest.raises(paperdesk.UsageError, match="did you mean acme-hold"):
        paperdesk.backtest(strategy="acme-holt", **WINDOW)
    with pytest.raises(paperdesk.MalformedData, match="acme_desk:Missing"):
        paperdesk.backtest(strategy="acme-broken", **WINDOW)
    agents = paperdesk.backtest(preset=str(acme), **{**WINDOW, "end": "2025-01-06"})
    assert "volume" in agents.document["model"]["agents"]


@pytest.mark.usefixtures("acme")
def test_a_distribution_brings_a_broker() -> None:
    found = services(Config(broker=BrokerConfig(kind="acme")))
    assert found.broker is not None and found.broker.registration.title == "a shelf"
    assert "ACME_KEY" in found.key_variables()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("acmee", "simulated, alpaca"),
        ("broker.py:BROKER", "whole path"),
        ("/none/broker.py:BROKER", "file not found"),
        ("Big", "broker.kind"),
    ],
)
def test_a_broker_that_there_is_not_is_a_line(kind: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_BROKER__KIND", kind)
    with pytest.raises(paperdesk.ConfigError, match=said):
        paperdesk.backtest(strategy="macd", **WINDOW)
