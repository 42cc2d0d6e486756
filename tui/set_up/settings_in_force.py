"""The settings in force, and the values that each can have: read from files, beside the screen."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from textual.theme import BUILTIN_THEMES

from connectors.llm.local_models import local_models
from engine.agents.ask import agent_of
from engine.app.models.models import agent_models
from engine.domain.model_call import ModelSpec, PriceTable, parse_model_spec
from engine.preset import preset_names
from engine.services import Services
from engine.settings.config import Loaded
from engine.settings.edit import choices_of, values_of
from tui.set_up.first_configuration import example
from tui.settings.app_settings import DEFAULT_THEME, SHORT_NAMES
from tui.settings.invocation import Invocation
from tui.settings.keys import KEYS
from tui.text.model_text import charts_text, place_text, price_text

FIRST = ("models.default", "models.agents", "budget", "desk.symbols", "broker.mode", "watch", "app.theme", "desk")
"""Keys and sections that come first; the rest follows as the configuration has it, and the keys of the app."""
UNITS = {"Seconds": "s", "Minutes": "min", "Hours": "h", "Dollars": "USD", "Tokens": "tokens"}
"""The unit of a setting by the word with which the example's comment on it begins."""
DESK_MODEL, OFFLINE = "models.default", "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValue:
    """A value that is in force.

    key: its key in the configuration.
    text: as `config set` takes it.
    name: in the list.
    origin: where it is set; empty for the default.
    traits: of a model, its price, how it reads charts and where it runs; of no symbols, those that are traded then.
    meaning: what it is for.
    """

    key: str
    text: str
    name: str
    origin: str
    traits: str = ""
    meaning: str = ""

    @property
    def shown(self) -> str:
        """The value with its unit, or with what is known of it."""
        unit = UNITS.get(self.meaning.partition(" ")[0], "") if self.text else ""
        return ": ".join(filter(None, (f"{self.text} {unit}".strip(), self.traits))) or "none"

    @property
    def is_model(self) -> bool:
        """True for the model of the desk or of an agent."""
        return self.key == DESK_MODEL or (self.key.startswith("models.agents.") and self.key.endswith(".model"))


def settings_in_force(invocation: Invocation) -> list[ConfigValue]:
    """Every setting, those first that are changed most. Raises as loading the configuration does."""
    loaded = invocation.load()
    services = Invocation.services_of(loaded.config)
    prices = services.models.prices()
    default = parse_model_spec(loaded.config.models.default, loaded.config.endpoints)
    models = {DESK_MODEL: ("the desk", default)} | {
        f"models.agents.{one.agent}.model": (one.agent, one.spec)
        for one in agent_models(services, prices)
        if one.active and agent_of(one.agent) == one.agent  # an owner's model is that of all its agents
    }
    texts = {one.key: value_text(one.value) for one in values_of(loaded) if not isinstance(one.value, dict)}
    texts |= {f"bindings.{key.id}": loaded.config.bindings.get(key.id, key.shown) for key in KEYS}
    texts |= {key: str(spec) for key, (_, spec) in models.items()}
    names = {key: f"model of {name}" for key, (name, _) in models.items()}
    traits = {key: _in_a_line(*_traits(services, prices, spec)) for key, (_, spec) in models.items()}
    if not texts["desk.symbols"]:
        traits["desk.symbols"] = f"those of the data: {', '.join(services.symbols)}"
    meanings = {f"bindings.{key.id}": key.meaning for key in KEYS}
    return [
        ConfigValue(
            key=key,
            text=texts[key],
            name=names.get(key, key),
            origin=_origin(loaded, key),
            traits=traits.get(key, ""),
            meaning=meanings.get(key) or _meanings().get(_kind(key), ""),
        )
        for key in sorted(texts, key=_rank)
    ]


def offered_models(invocation: Invocation) -> list[tuple[str, str, str, str]]:
    """The models that may be named, with price, form of charts and place: those that answer on this machine, the rules,
    those of the configuration, and the priced ones, first those whose key is there. Raises as loading it does."""
    config = invocation.load().config
    services = Invocation.services_of(config)
    prices = services.models.prices()
    here = [*local_models(config.endpoints), OFFLINE, *(text for _, text in config.models.specs())]
    priced = [f"{provider}:{model}" for provider, model in prices.models()]
    first, others = ([parse_model_spec(text, config.endpoints) for text in texts] for texts in (here, priced))
    others.sort(key=lambda spec: _lacks_key(services, spec))
    return [(str(spec), *_traits(services, prices, spec)) for spec in dict.fromkeys((*first, *others))]


def _traits(services: Services, prices: PriceTable, spec: ModelSpec) -> tuple[str, str, str]:
    """Price, form of charts and place of a model."""
    place = place_text(spec, services.config) + (", no key" if _lacks_key(services, spec) else "")
    price = price_text(spec, prices.find(spec.provider, spec.model))
    return price, charts_text(spec, services.models.sees(spec)), place


def _in_a_line(price: str, charts: str, place: str) -> str:
    cost = {"free": price, "unknown": "price unknown"}.get(price, f"${price} per million tokens")
    return f"{cost}, {place}, reads charts {charts}"


def _lacks_key(services: Services, spec: ModelSpec) -> bool:
    variable = services.models.key_variable(spec)
    return bool(variable) and not os.environ.get(variable)


def choices(key: str) -> Sequence[str]:
    """The values that a key that names no model can have; none where it takes any text."""
    if key == "app.theme":
        return [*(name for name in SHORT_NAMES if name != DEFAULT_THEME), *BUILTIN_THEMES]
    return preset_names() if key == "desk.preset" else choices_of(key)


def _rank(key: str) -> int:
    if key.startswith("bindings."):
        return len(FIRST) + 1
    return next((place for place, first in enumerate(FIRST) if f"{key}.".startswith(f"{first}.")), len(FIRST))


def value_text(value: Any) -> str:
    """A value as `config set` takes it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _origin(loaded: Loaded, key: str) -> str:
    """The origin of a value, the file by its name alone; empty for the default."""
    origin = loaded.origins.get(key, "")
    return loaded.file.name if loaded.file is not None and origin == str(loaded.file) else origin


def _kind(key: str) -> str:
    """A key without the name of the table that it is in, as `models.agents.NAME.model`."""
    section, *_, name = key.split(".")
    return f"{section}.{name}"


@cache
def _meanings() -> dict[str, str]:
    """The example's comment above each key, which has one line."""
    section, said, found = "", "", dict[str, str]()
    for line in example().splitlines():
        if header := re.match(r"(?:# )?\[([^\]]+)\]", line):
            section = header[1]
        elif key := re.match(r"(?:# )?([a-z_]+) = ", line):
            found.setdefault(_kind(f"{section}.{key[1]}"), said)
        else:
            said = line.removeprefix("# ")
    return found
