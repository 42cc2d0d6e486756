"""`paperdesk init` (set-up): write a first configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from engine.domain.market import has_crypto_among_shares
from engine.errors import ConfigError, DataError, PaperdeskError
from engine.settings import places
from engine.settings.config_sources import read_sources
from engine.settings.keys import write_private
from tui.set_up.first_configuration import (
    CRYPTO_AMONG_SHARES,
    desk_question,
    example,
    known_symbols,
    model_question,
    proposed_model,
    symbols_of,
    with_answers,
)
from tui.set_up.set_up import Question
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document

SCHEMA = 1


@command("init")
@click.option("--yes", is_flag=True, help="Take the defaults without asking.")
def init_command(invocation: Invocation, yes: bool) -> None:
    """Writes a first configuration, to the standard location or to --config.

    It asks for the desk's name, data, symbols, preset, cash and model; Enter takes the default in brackets. API keys
    are never asked for: they come from the environment. --desk gives the name.

    \b
    Examples:
      paperdesk init
      paperdesk init --yes --config ./desk.toml
    """
    file = places.config_file() if invocation.config_file is None else Path(invocation.config_file).expanduser()
    chosen = _chosen_in_app(file)
    answers = {"desk.name": invocation.desk} if invocation.desk else {}
    if not yes:
        try:
            answers = _ask(invocation.desk)
        except click.Abort:
            if os.isatty(0):
                raise
            click.echo(err=True)  # ends the line of the question
            raise click.UsageError(
                "init asks questions, which needs a terminal: pass --yes to take the defaults"
            ) from None
    text = with_answers(example(), chosen | {key: value for key, value in answers.items() if value})
    try:
        write_private(file, text)
    except ConfigError as error:
        raise ConfigError(f"{error}: name another with --config") from None
    mixed = has_crypto_among_shares(symbols_of(answers.get("desk.symbols", "")))
    document = {"schema": SCHEMA, "file": str(file), "notes": [CRYPTO_AMONG_SHARES] if mixed else []}
    show_document(document, lambda: _written(document))


def _chosen_in_app(file: Path) -> dict[str, str]:
    """The colours, keys and the like of a file that holds nothing else, as the app makes it: they are kept. Raises
    ConfigError for any other file."""
    from tui.set_up.settings_in_force import value_text

    values = read_sources(file, {}).values if file.exists() else {}
    if not values.keys() <= {"app", "bindings"} or (values and "#" in file.read_text(encoding="utf-8")):
        raise ConfigError(f"{file} already exists: edit it, or remove it to write a new one")
    return {f"{section}.{name}": value_text(one) for section, own in values.items() for name, one in own.items()}


def _written(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"wrote {document['file']}"
    yield from (f"note: {note}" for note in document["notes"])
    yield "next: `paperdesk doctor` looks it over, `paperdesk --daily` runs the desk once, `paperdesk` opens the app"


def _ask(desk: str | None) -> dict[str, str]:
    """The answers; a bad one is asked for again."""
    from engine.preset import preset_names
    from engine.settings.config import Config

    defaults = Config().desk
    answers: dict[str, str] = {}

    def ask(question: Question) -> None:
        def checked(text: str) -> str:
            try:
                return question.checked(text.strip())
            except PaperdeskError as error:
                raise click.UsageError(str(error)) from None

        text, proposed = question.text.rstrip("."), question.proposed
        answers[question.key] = click.prompt(
            text, default=proposed, value_proc=checked, show_default=bool(proposed), err=True
        )

    ask(desk_question(desk or defaults.name))
    text = "Data folder (empty: the generated demo market)"
    ask(Question(key="data.folder", text=text, check=_data_folder))
    folder = answers["data.folder"]
    text = "Symbols, with commas" + ("" if folder else " (empty: the demo's)")
    ask(Question(key="desk.symbols", text=text, check=partial(_symbols, folder=folder)))
    text = f"Preset ({', '.join(preset_names())})"
    ask(Question(key="desk.preset", text=text, proposed=defaults.preset, check=_preset))
    ask(Question(key="desk.cash", text="Paper money to begin with", proposed=str(defaults.cash)))
    ask(model_question(proposed_model(None)))
    return answers


def _data_folder(text: str) -> str:
    if text and not (Path(text).expanduser() / "prices").is_dir():
        raise DataError(f"{text} has no prices folder; name a data folder, or nothing")
    return text and str(Path(text).expanduser().absolute())


def _symbols(text: str, folder: str) -> str:
    return known_symbols(text, folder) if text or folder else ""


def _preset(text: str) -> str:
    from engine.preset import load_preset

    load_preset(text)
    return text
