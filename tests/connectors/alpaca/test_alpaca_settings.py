"""Whom the desk may ask with which keys: paper or this machine, and no key ever seen."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.alpaca.registration import BROKER
from connectors.alpaca.settings import AlpacaSettings
from connectors.sandbox import SandboxServer
from connectors.wiring.broker import broker_of
from engine.broker_registration import BrokerService
from engine.errors import ConfigError, CredentialsRefused
from engine.settings.config import Config
from tests.connectors.alpaca.alpaca_accounts import KEY, SECRET
from tests.connectors.alpaca.sandbox_markets import START

REPO = Path(__file__).parents[3]
KEYS = {"APCA_API_KEY_ID": KEY, "APCA_API_SECRET_KEY": SECRET}
ALPACA = Config.model_validate({"broker": {"kind": "alpaca"}})


@pytest.mark.parametrize(
    ("url", "tidied"),
    [
        ("https://paper-api.alpaca.markets", "https://paper-api.alpaca.markets"),
        ("https://paper-api.alpaca.markets/", "https://paper-api.alpaca.markets"),
        ("https://paper-api.alpaca.markets/v2", "https://paper-api.alpaca.markets"),
        ("https://paper-api.alpaca.markets:443/v2/", "https://paper-api.alpaca.markets"),
        (" https://PAPER-API.alpaca.markets ", "https://paper-api.alpaca.markets"),
        ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
        ("http://127.0.0.1:8787/v2/", "http://127.0.0.1:8787"),
        ("http://localhost:8787//", "http://localhost:8787"),
        ("http://[::1]:8787/v2", "http://[::1]:8787"),
        ("http://127.9.8.7", "http://127.9.8.7"),
    ],
)
def test_paper_and_this_machine_are_traded_on(url: str, tidied: str) -> None:
    assert AlpacaSettings(key=KEY, secret=SECRET, trading_url=url).trading_url == tidied


@pytest.mark.parametrize(
    "url",
    [
        "http://paper-api.alpaca.markets",
        "https://paper-api.alpaca.markets:8443",
        "https://paper-api.alpaca.markets.example.com",
        "https://paper-api.alpaca.markets@example.com",
        "https://example.com/paper-api.alpaca.markets",
        "https://broker-api.alpaca.markets",
        "https://127.0.0.1.example.com",
        "http://10.0.0.1:8787",
        "http://0.0.0.0:8787",
        "http://127.0.0.1:8787?x=1",
        "http://user:word@127.0.0.1:8787",
        "http://127.0.0.1:notaport",
        "ftp://127.0.0.1",
        "paper-api.alpaca.markets",
        "",
    ],
)
def test_any_other_trading_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"broker\.trading_url") as refused:
        AlpacaSettings(key=KEY, secret=SECRET, trading_url=url)
    assert "APCA_API_BASE_URL" in str(refused.value) and "word" not in str(refused.value)
    assert refused.value.exit_code == 78


@pytest.mark.parametrize(
    "url", ["https://api.alpaca.markets", "http://API.alpaca.markets/v2", "https://api.alpaca.markets:444"]
)
def test_the_live_host_is_refused_by_name(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^api\.alpaca\.markets trades real money"):
        AlpacaSettings(key=KEY, secret=SECRET, trading_url=url)


def test_keys_travel_over_https_only() -> None:
    settings = AlpacaSettings(key=KEY, secret=SECRET, data_url="https://data.alpaca.markets/v2/")
    assert settings.data_url == "https://data.alpaca.markets"
    assert AlpacaSettings(key=KEY, secret=SECRET, data_url="http://127.0.0.1:1/").data_url == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "url",
    [
        "http://data.alpaca.markets",
        "https://data.alpaca.markets:8443",
        "https://data.alpaca.markets.example.com",
        "https://data.alpaca.markets.",
        "https://mirror.example.com",
        "http://10.0.0.1",
    ],
)
def test_keys_go_to_the_brokers_own_hosts_alone(url: str) -> None:
    with pytest.raises(ConfigError, match=r"broker's own hosts .*correct broker\.data_url"):
        AlpacaSettings(key=KEY, secret=SECRET, data_url=url)


def service_of(config: Config) -> BrokerService:
    service = broker_of(config)
    assert service is not None
    return service


@pytest.mark.parametrize("missing", sorted(KEYS))
@pytest.mark.parametrize("value", ["", "   "])
def test_a_missing_key_is_named(missing: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (KEYS | {missing: value}).items():
        monkeypatch.setenv(name, text)
    with pytest.raises(CredentialsRefused, match=f"^{missing} is not set") as refused:
        service_of(ALPACA).open()
    assert refused.value.exit_code == 77


@pytest.mark.parametrize("wrong", ["new\nline", "with space", "schlüssel", "tab\there"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(wrong: str) -> None:
    with pytest.raises(CredentialsRefused, match="APCA_API_SECRET_KEY") as refused:
        AlpacaSettings(key=KEY, secret=wrong)
    assert wrong not in str(refused.value)


def test_the_environment_overrides_the_configuration() -> None:
    plain = {
        "broker": {"kind": "alpaca", "data_url": "https://data.sandbox.alpaca.markets", "timeout": 7, "feed": "sip"}
    }
    config = Config.model_validate(plain)
    configured = BROKER.settings(config.broker, KEYS)
    assert configured == AlpacaSettings(
        key=KEY,
        secret=SECRET,
        trading_url="https://paper-api.alpaca.markets",
        data_url="https://data.sandbox.alpaca.markets",
        timeout=7.0,
        feed="sip",
    )
    local = {"APCA_API_BASE_URL": "http://127.0.0.1:5/", "APCA_API_DATA_URL": "http://127.0.0.1:6/v2"}
    moved = BROKER.settings(config.broker, KEYS | local)
    assert (moved.trading_url, moved.data_url) == ("http://127.0.0.1:5", "http://127.0.0.1:6")
    assert BROKER.settings(config.broker, KEYS | dict.fromkeys(local, " ")) == configured, "empty is not set"
    with pytest.raises(ConfigError, match="real money"):
        BROKER.settings(config.broker, KEYS | {"APCA_API_BASE_URL": "https://api.alpaca.markets"})


def test_settings_are_shown_without_keys() -> None:
    settings = AlpacaSettings(key=f" {KEY}\n", secret=SECRET)
    assert settings.headers == {"APCA-API-KEY-ID": KEY, "APCA-API-SECRET-KEY": SECRET}, "space around a key is no part"
    for text in (repr(settings), str(settings), f"{settings}", repr(BROKER.settings(Config().broker, KEYS))):
        assert KEY not in text and SECRET not in text
    assert settings.without_keys(f"no such key {KEY}/{SECRET}!") == "no such key (a key)/(a key)!"
    assert pickle.loads(pickle.dumps(settings)) == settings


HYGIENE = """
import sys
import connectors.alpaca.registration, connectors.wiring.broker
heavy = {"alpaca", "requests", "pandas", "httpx", "websockets", "numpy"} & set(sys.modules)
assert not heavy, heavy
broker = connectors.wiring.broker.broker_of(
    __import__("engine.settings.config").settings.config.Config(broker={"kind": "alpaca"})
).open()
print(connectors.alpaca.registration.BROKER.now(broker.settings).isoformat())
assert not {"alpaca", "requests", "pandas"} & set(sys.modules)
"""


def test_the_brokers_time_is_asked_without_alpaca_py(broker: SandboxServer) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HYGIENE],
        cwd=REPO,
        env={"PATH": "", "PYTHONPATH": str(REPO), **broker.environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("2024-01-31T21:05:00+00:00\n", "")


def test_the_time_of_a_broker_that_does_not_say_is_none(broker: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_of(ALPACA)
    for name, value in broker.environment.items():
        monkeypatch.setenv(name, value)
    assert service.time() == START
    broker.fault("server_error")
    assert service.time() is None
    with monkeypatch.context() as patch, pytest.raises(ConfigError):
        patch.setenv("APCA_API_BASE_URL", "https://api.alpaca.markets")
        service.time()
    for name in broker.environment:
        monkeypatch.delenv(name)
    with pytest.raises(CredentialsRefused):
        service.time()
