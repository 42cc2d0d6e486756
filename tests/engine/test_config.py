"""The configuration: the example equals the models, and a mistake is one clear line."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel

from engine.errors import ConfigError
from engine.settings.config import BUILT_IN, CalendarConfig, Config, EndpointConfig, PriceConfig, load_config
from engine.settings.values import AgentSettings
from tests.attribute_docs import attribute_docs

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


def sections_of_example() -> dict[str, dict[str, tuple[str, str, bool]]]:
    """Per section: key to (comment above it, value text, whether it is commented out)."""
    sections: dict[str, dict[str, tuple[str, str, bool]]] = {}
    section, comment = "", ""
    for line in EXAMPLE.read_text().splitlines():
        if found := re.fullmatch(r'(?:# )?\[([a-z0-9.:"_-]+)\]', line):
            section, comment = found[1], ""
            sections[section] = {}
        elif found := re.fullmatch(r"(# )?([a-z_]+) = (.+)", line):
            sections[section][found[2]] = (comment, found[3], bool(found[1]))
            comment = ""
        elif line.startswith("# "):
            comment = line[2:]
    return sections


def test_example_loads_as_the_defaults() -> None:
    assert load_config(EXAMPLE, environ={}).config == Config()


def test_example_explains_every_key_with_the_words_of_the_models() -> None:
    shown = sections_of_example()
    for name, field in Config.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            described = {k: v for k, v in attribute_docs(kind).items() if k not in ("agents", "arena", "prices")}
            assert {k: comment for k, (comment, _, _) in shown[name].items()} == described
    assert {k: c for k, (c, _, _) in shown["endpoints.local"].items()} == attribute_docs(EndpointConfig)
    assert {k: c for k, (c, _, _) in shown['models.prices."local:qwen3:8b"'].items()} == attribute_docs(PriceConfig)
    assert {k: c for k, (c, _, _) in shown["calendars.tl"].items()} == attribute_docs(CalendarConfig)
    assert set(shown["models.agents.decision"]) == set(attribute_docs(AgentSettings))
    assert set(shown["models.arena"]) == {"timeout"}


def test_commented_keys_of_the_example_are_valid_when_switched_on(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^# (?=(\[|[a-z_]+ = ))", "", EXAMPLE.read_text())
    file = tmp_path / "config.toml"
    file.write_text(text)
    config = load_config(file, environ={}).config
    assert config.models.agents["decision"].model == "openai:gpt-5"
    assert set(config.endpoints) == {"local", *BUILT_IN}
    assert tomllib.loads(text)["execution"]["volume_cap"] == 0.1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[desk]\ncahs = 5", "desk.cahs cash"),
        ("[dekc]\ncash = 5", "dekc desk"),
        ("[desk]\ncash = -5", "desk.cash"),
        ("[desk]\ncash = 1e26", "desk.cash"),
        ('[desk]\nname = "Über desk"', "desk.name"),
        ('[desk]\nsymbols = ["AAPL", "<X>"]', "desk.symbols <X>"),
        ('[desk]\nsymbols = ["brk.b", "B", "BRK.B"]', "desk.symbols BRK.B"),
        ("[models.agents.decision]\ntemprature = 1", "models.agents.decision.temprature temperature"),
        ("[endpoints.x]\nbase_url = 'http://h'\nvison = true", "endpoints.x.vison vision"),
        ("[desk\n", "TOML"),
    ],
)
def test_a_mistake_names_file_key_and_the_nearest(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file, environ={})
    assert all(part in str(caught.value) for part in (str(file), *said.split()))
    assert "\n" not in str(caught.value)


def test_environment_beats_file_and_origins_say_so(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[desk]\ncash = 500\nseed = 3\n")
    loaded = load_config(file, environ={"PAPERDESK_DESK__CASH": "700", "PAPERDESK_DESK__SYMBOLS": "B, A"})
    assert loaded.config.desk.cash == Decimal(700)
    assert loaded.config.desk.seed == 3
    assert loaded.config.desk.symbols == ("B", "A")
    assert loaded.origins["desk.cash"] == "environment PAPERDESK_DESK__CASH"
    assert loaded.origins["desk.seed"] == str(file)


def test_a_symbol_that_the_environment_names_twice_is_refused_with_the_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PAPERDESK_DESK__SYMBOLS"):
        load_config(None, environ={"PAPERDESK_DESK__SYMBOLS": "B, A, B"})


@pytest.mark.parametrize(("name", "required"), [("", False), ("", True), ("nowhere.toml", True)])
def test_a_folder_is_no_file_and_a_config_that_was_named_must_exist(tmp_path: Path, name: str, required: bool) -> None:
    with pytest.raises(ConfigError):
        load_config(tmp_path / name, environ={}, required=required)
