"""`paperdesk init` (set-up): write a first configuration."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from importlib import resources
from pathlib import Path

import click

from engine.errors import ConfigError, DataError, PaperdeskError
from tui.commands.options import listed
from tui.console import show
from tui.invocation import Invocation, desk_options


@click.command("init")
@click.option("--yes", is_flag=True, help="Takes the defaults without asking.")
@click.option("--force", is_flag=True, help="Overwrites a configuration that is there.")
@desk_options
def init_command(invocation: Invocation, yes: bool, force: bool) -> None:
    """Writes a first configuration: the usual file, or the one that --config names.

    It asks for the desk's name, its data, symbols, preset, cash and model; Enter takes the default in brackets. Keys of
    services are never asked for: they come from the environment. --desk gives the name.

    \b
    Examples:
      paperdesk init
      paperdesk init --yes --config ./desk.toml
    """
    from engine import places

    file = places.config_file() if invocation.config_file is None else Path(invocation.config_file).expanduser()
    if file.exists() and not force:
        raise ConfigError(f"{file} is there already: edit it, or give --force to write it anew")
    answers = {"desk.name": invocation.desk} if invocation.desk else {}
    if not yes:
        try:
            answers = _ask(invocation.desk)
        except click.Abort:
            if os.isatty(0):
                raise
            raise click.UsageError("init asks, and nobody answers here: give --yes to take the defaults") from None
    text = filled_in(example(), {key: value for key, value in answers.items() if value})
    _check(text)
    _write(file, text)
    show(f"wrote {file}")
    show("next: `paperdesk doctor` looks it over, `paperdesk --daily` runs the desk once, `paperdesk` opens the app")


def example() -> str:
    """The text of config.example.toml, as it ships with the program."""
    return resources.files("tui").joinpath("config.example.toml").read_text(encoding="utf-8")


def filled_in(text: str, answers: Mapping[str, str]) -> str:
    """The example with answers (`section.key` to TOML's own notation or plain text) in their places."""
    section, lines = "", []
    for line in text.splitlines():
        if found := re.fullmatch(r"\[([a-z._-]+)\]", line):
            section = found[1]
        elif (found := re.fullmatch(r"(?:# )?([a-z_]+) = .*", line)) and f"{section}.{found[1]}" in answers:
            line = f"{found[1]} = {_toml(f'{section}.{found[1]}', answers[f'{section}.{found[1]}'])}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _toml(key: str, answer: str) -> str:
    if key == "desk.cash":
        return answer
    if key == "desk.symbols":
        return json.dumps(_symbols(answer))
    return json.dumps(answer, ensure_ascii=False)


def _symbols(answer: str) -> list[str]:
    return [symbol.upper() for symbol in listed(answer)]


def _ask(desk: str | None) -> dict[str, str]:
    """The answers; a bad one is asked for again."""
    from engine.config import Config
    from engine.preset import preset_names

    defaults = Config()
    presets = ", ".join(preset_names())
    answers = {"desk.name": _prompt("Name of the desk", desk or defaults.desk.name, _name)}
    answers["data.folder"] = _prompt("Data folder (empty: the generated demo market)", "", _folder)
    answers["desk.symbols"] = _prompt(
        "Symbols, with commas" + ("" if answers["data.folder"] else " (empty: the demo's)"),
        "",
        lambda text: _known_symbols(text, answers["data.folder"]),
    )
    answers["desk.preset"] = _prompt(f"Preset ({presets})", defaults.desk.preset, _preset)
    answers["desk.cash"] = _prompt("Paper money to begin with", str(defaults.desk.cash), _cash)
    answers["models.default"] = _prompt(
        "Model (offline, openai:MODEL, anthropic:MODEL)", defaults.models.default, _model
    )
    return answers


def _prompt(question: str, default: str, check: Callable[[str], str]) -> str:
    def checked(text: str) -> str:
        try:
            return check(text.strip())
        except PaperdeskError as error:
            raise click.UsageError(str(error)) from None

    answer: str = click.prompt(question, default=default, value_proc=checked, show_default=bool(default), err=True)
    return answer


def _name(text: str) -> str:
    from pydantic import ValidationError

    from engine.config import DeskConfig

    try:
        return DeskConfig(name=text).name
    except ValidationError as error:
        raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _folder(text: str) -> str:
    if text and not (Path(text).expanduser() / "prices").is_dir():
        raise DataError(f"{text} has no folder prices in it; name a data folder, or nothing")
    return text and str(Path(text).expanduser().absolute())


def _known_symbols(text: str, folder: str) -> str:
    symbols = _symbols(text)
    if folder:
        there = sorted(path.stem for path in (Path(folder) / "prices").glob("*.csv"))
        strange = [symbol for symbol in symbols if symbol not in there]
        if strange or not symbols:
            some = ", ".join(there[:12]) + (" ..." if len(there) > 12 else "")
            raise DataError(f"{strange[0]} has no prices there" if strange else f"name at least one of {some}")
    return ",".join(symbols)


def _preset(text: str) -> str:
    from engine.preset import load_preset

    load_preset(text)
    return text


def _cash(text: str) -> str:
    try:
        amount = Decimal(text.replace(",", "").replace("_", ""))
    except InvalidOperation:
        raise ConfigError(f"{text!r} is no amount") from None
    if not (amount.is_finite() and amount > 0):
        raise ConfigError("it has to be above zero")
    return f"{amount:f}"


def _model(text: str) -> str:
    from engine.domain.model_spec import ModelKind, parse_model_spec

    if parse_model_spec(text).kind is ModelKind.REPLAY:
        raise ConfigError("replay is a way of running, not a model: name the model, and set models.replay later")
    return text


def _check(text: str) -> None:
    """Raise ConfigError for a text that cannot be read back as a configuration."""
    from pydantic import ValidationError

    from engine.config import Config
    from engine.settings import complaint

    try:
        Config.model_validate(tomllib.loads(text, parse_float=Decimal))
    except ValidationError as error:
        raise ConfigError(complaint(Config, error)) from None


def _write(file: Path, text: str) -> None:
    """Write the file whole or not at all, readable by its owner alone."""
    fresh = file.with_name(f"{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            stream.write(text)
        fresh.replace(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written ({error.strerror}): name another with --config") from None
