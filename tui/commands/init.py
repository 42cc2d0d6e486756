"""`paperdesk init` (set-up): write a first configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from engine.errors import ConfigError, PaperdeskError
from engine.settings import places
from engine.settings.keys import write_private
from tui.set_up.first_configuration import (
    MODELS,
    amount,
    close_note,
    data_folder,
    desk_name,
    known_symbols,
    model_spec,
    preset_name,
    proposed_model,
    symbols_of,
    with_answers,
)
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
    if file.exists():
        raise ConfigError(f"{file} already exists: edit it, or remove it to write a new one")
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
    text = with_answers(file, {key: value for key, value in answers.items() if value})
    try:
        write_private(file, text)
    except ConfigError as error:
        raise ConfigError(f"{error}: name another with --config") from None
    note = close_note(symbols_of(answers.get("desk.symbols", "")))
    document = {"schema": SCHEMA, "file": str(file), "notes": [note] if note else []}
    show_document(document, lambda: _written(document))


def _written(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"wrote {document['file']}"
    yield from (f"note: {note}" for note in document["notes"])
    yield "next: `paperdesk doctor` looks it over, `paperdesk --daily` runs the desk once, `paperdesk` opens the app"


def _ask(desk: str | None) -> dict[str, str]:
    """The answers; a bad one is asked for again."""
    from engine.preset import preset_names
    from engine.settings.config import Config

    defaults = Config()
    presets = ", ".join(preset_names())
    answers = {"desk.name": _prompt("Name of the desk", desk or defaults.desk.name, desk_name)}
    answers["data.folder"] = _prompt("Data folder (empty: the generated demo market)", "", data_folder)
    answers["desk.symbols"] = _prompt(
        "Symbols, with commas" + ("" if answers["data.folder"] else " (empty: the demo's)"),
        "",
        lambda text: known_symbols(text, answers["data.folder"]),
    )
    answers["desk.preset"] = _prompt(f"Preset ({presets})", defaults.desk.preset, preset_name)
    answers["desk.cash"] = _prompt("Paper money to begin with", str(defaults.desk.cash), amount)
    answers["models.default"] = _prompt(f"Model (offline, {MODELS})", proposed_model(None), model_spec)
    return answers


def _prompt(question: str, default: str, check: Callable[[str], str]) -> str:
    def checked(text: str) -> str:
        try:
            return check(text.strip())
        except PaperdeskError as error:
            raise click.UsageError(str(error)) from None

    answer: str = click.prompt(question, default=default, value_proc=checked, show_default=bool(default), err=True)
    return answer
