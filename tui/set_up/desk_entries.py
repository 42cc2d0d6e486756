"""Forms for what a configured desk lacks: its keys, tried and kept in the file that its owner alone can read, or its
symbols, written into its configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.market import is_crypto
from engine.errors import ConfigError
from engine.settings import places
from engine.settings.edit import change_value
from engine.settings.keys import keep_keys, stored_keys
from tui.set_up.first_configuration import ACCOUNT_KEYS, SYMBOLS, known_symbols, model_key, priced_symbols
from tui.set_up.set_up import Answers, SetUp, keys_of

if TYPE_CHECKING:
    from tui.settings.invocation import Invocation

PROPOSED = 4
"""Symbols of a data folder that are proposed."""


def key_entry(invocation: Invocation) -> SetUp:
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
    requested = tuple(account.get(name) or model_key(name) for name in needed if name in own)
    return SetUp(
        title="API keys of this desk",
        end="The account and the models are tested; then the keys are saved, readable only by you.",
        done="The keys are saved.",
        questions=lambda answers: requested,
        keep=_keep_keys,
        cycle=False,
        stored={name: kept[name] for name in own if name in kept},
        options=lambda answers, folder: invocation.options,
    )


def _keep_keys(answers: Answers) -> Iterator[Path]:
    """Write the keys, and use them from now on: this process had others from the file, which its own inherit."""
    keys = keys_of(answers)
    keep_keys(keys)
    os.environ.update(keys)
    yield places.keys_file()


def symbol_entry(invocation: Invocation) -> SetUp:
    """Ask for the symbols of a desk, from its data folder where it has one. Raises ConfigError."""
    folder, file, asked = invocation.load().config.data.folder, invocation.file, SYMBOLS
    if folder is not None:
        there = priced_symbols(folder)
        shares = [symbol for symbol in there if not is_crypto(symbol)]  # among which crypto would move the close
        proposed = ",".join((shares or there)[:PROPOSED])
        asked = replace(asked, proposed=proposed, check=partial(known_symbols, folder=folder))

    def keep(answers: Answers) -> Iterator[Path]:
        change_value(file, SYMBOLS.key, answers[SYMBOLS.key])
        yield file

    return SetUp(
        title="Symbols of this desk",
        end=f"The symbols are written to {file}; the rest of it stays.",
        done="The symbols are saved.",
        questions=lambda answers: (asked,),
        keep=keep,
        cycle=True,
    )
