"""The keys of a configured desk: asked for in the app, tried, and kept in the file that its owner alone can read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ConfigError
from engine.settings import places
from engine.settings.keys import keep_keys, stored_keys
from tui.set_up.first_run import ACCOUNT_KEYS, model_key
from tui.set_up.set_up import Question, checked_key, keys_of

if TYPE_CHECKING:
    from tui.settings.invocation import Invocation


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """The set-up of a desk's keys: `requested` are its questions, `global_options` name its configuration."""

    requested: tuple[Question, ...]
    global_options: tuple[str, ...]
    title: str = "API keys of this desk"
    end: str = "The account and the models are asked for an answer; then the keys are written, for you alone."
    done: str = "The keys are kept."
    cycle: bool = False

    def questions(self, answers: Mapping[str, str]) -> Sequence[Question]:
        """All questions."""
        return self.requested

    def options(self, answers: Mapping[str, str], folder: Path) -> tuple[str, ...]:
        """The options that name the configuration."""
        return self.global_options

    def concerns(self, area: str) -> bool:
        """True for what keys are needed for."""
        return area in ("Keys", "Broker", "Models", "Services")

    def symbols(self, answers: Mapping[str, str]) -> Sequence[str]:
        """No symbol: the desk's next cycle fetches what it needs."""
        return ()

    def keep(self, answers: Mapping[str, str]) -> Iterator[Path]:
        """Write the keys, and use them from now on: this process had others from the file, which its own inherit."""
        keys = keys_of(answers)
        keep_keys(keys)
        os.environ.update(keys)
        yield places.keys_file()


def key_entry(invocation: Invocation) -> KeyEntry:
    """Ask for every key that the configuration needs and the environment does not give. Raises ConfigError where there
    is none."""
    from engine.app.models.models import agent_models
    from engine.app.upkeep.doctor import needed_keys

    services = invocation.services_of(invocation.load().config)
    needed, kept = needed_keys(services, agent_models(services, services.models.prices())), stored_keys()
    own = {name for name in needed if os.environ.get(name, kept.get(name)) == kept.get(name)}
    if not own:
        given = f"its keys are given by the environment: {', '.join(needed)}"
        raise ConfigError(given if needed else "this configuration needs no key")
    account = {one.key: one for one in ACCOUNT_KEYS}
    questions = (account.get(name) or model_key(name) for name in needed if name in own)
    return KeyEntry(tuple(_keeping(one, kept.get(one.key, "")) for one in questions), invocation.options)


def _keeping(question: Question, kept: str) -> Question:
    """Have enter alone keep the key that is there."""
    if not kept:
        return question
    return replace(
        question,
        text=f"{question.text} Enter alone keeps the one that is there.",
        check=lambda text: checked_key(text or kept),
    )
