"""A broker is found by its folder, and nothing but its registration says what it can do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import connectors
from connectors.wiring.broker import broker_keys, broker_of
from connectors.wiring.services import services
from engine.clock import LiveClock
from engine.errors import ConfigError
from engine.settings.config import BrokerConfig, Config
from tui.cli import main

REPO = Path(__file__).parents[3]

WITHOUT_FEED_AND_DATA = """
from engine.broker_registration import BrokerRegistration

BROKER = BrokerRegistration(
    title="a shelf", settings=dict, open_broker=lambda settings, attempts: None, now=None, key_variables=("SHELF_KEY",)
)
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A desk at a broker of a folder of its own."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "registration.py").write_text(WITHOUT_FEED_AND_DATA)
    monkeypatch.setattr(connectors, "__path__", [*connectors.__path__, str(tmp_path)])
    return Config(broker=BrokerConfig(kind="shelf", clock="broker"))


def test_a_folder_with_a_registration_is_a_broker(shelf: Config) -> None:
    found = broker_of(shelf)

    assert found is not None and found.registration.title == "a shelf"
    assert (found.registration.brings_data, found.registration.is_real_time) == (False, False)
    service = services(shelf).broker
    assert service is not None and service.open_feed(LiveClock()) is None
    assert broker_keys(shelf) == ("APCA_API_KEY_ID", "APCA_API_SECRET_KEY", "SHELF_KEY")


def test_the_simulated_market_is_no_broker() -> None:
    assert broker_of(Config()) is None
    assert not services(Config(broker=BrokerConfig(kind="simulated", clock="broker"))).goes_by_broker


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("alpca", "did you mean alpaca?"),
        ("llm", "available: simulated, alpaca"),
        ("zzz", "available: simulated, alpaca"),
    ],
)
def test_an_unknown_kind_names_the_nearest(kind: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown broker {kind}; .*{said.rstrip('?')}"):
        broker_of(Config(broker=BrokerConfig(kind=kind)))


def test_a_command_refuses_an_unknown_kind_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path))
    monkeypatch.setenv("PAPERDESK_BROKER__KIND", "alpca")

    with pytest.raises(SystemExit) as ended:
        main(["status"])

    assert ended.value.code == 78
    said = capsys.readouterr().err
    assert said == (
        "paperdesk: environment PAPERDESK_BROKER__KIND: broker.kind: unknown broker alpca; did you mean alpaca?\n"
    )


def test_no_module_but_the_factory_compares_a_kind() -> None:
    comparing = [
        f"{path.relative_to(REPO)}:{node.lineno}"
        for room in ("engine", "connectors", "tui")
        for path in (REPO / room).rglob("*.py")
        if ".kind" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare) and "broker.kind" in ast.unparse(node)
    ]

    assert comparing == []
