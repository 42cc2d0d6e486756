"""A first configuration: the example with answers in their places, each answer checked."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

from engine.domain.market import has_crypto_among_shares, parse_symbol
from engine.domain.model_call import ModelKind, parse_model_spec
from engine.errors import ConfigError, DataError
from engine.program_files import program_text

CRYPTO_AMONG_SHARES = "crypto among shares moves the desk's close, and with it the daily run, to midnight UTC"
CENT, LARGEST = Decimal("0.01"), 1_000_000_000_000


def example() -> str:
    """The text of config.example.toml, as it ships with the program."""
    return program_text(Path(__file__).with_name("config.example.toml"))


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
    if key in ("desk.cash", "budget.usd_per_day"):
        return answer
    if key == "desk.symbols":
        return json.dumps(symbols_of(answer))
    return json.dumps(answer, ensure_ascii=False)


def close_note(symbols: Collection[str]) -> str:
    """A sentence on the close of a desk that trades crypto beside shares; empty for any other."""
    return CRYPTO_AMONG_SHARES if has_crypto_among_shares(symbols) else ""


def symbols_of(answer: str) -> list[str]:
    """Symbols from a list with commas or spaces, upper case, each once. Raises UsageError for what cannot be one."""
    return list(dict.fromkeys(map(parse_symbol, answer.replace(",", " ").split())))


def desk_name(text: str) -> str:
    """A name that a desk can have. Raises ConfigError."""
    from pydantic import ValidationError

    from engine.settings.config import DeskConfig

    try:
        return DeskConfig(name=text).name
    except ValidationError as error:
        raise ConfigError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def data_folder(text: str) -> str:
    """A data folder, absolute; empty for none. Raises DataError for one without prices."""
    if text and not (Path(text).expanduser() / "prices").is_dir():
        raise DataError(f"{text} has no folder prices in it; name a data folder, or nothing")
    return text and str(Path(text).expanduser().absolute())


def known_symbols(text: str, folder: str) -> str:
    """Symbols with commas; of a folder, where one is named, at least one. Raises DataError, and UsageError for
    what cannot be a symbol."""
    symbols = symbols_of(text)
    if folder:
        there = sorted(path.stem for path in (Path(folder) / "prices").glob("*.csv"))
        strange = [symbol for symbol in symbols if symbol not in there]
        if strange or not symbols:
            some = ", ".join(there[:12]) + (" ..." if len(there) > 12 else "")
            raise DataError(f"{strange[0]} has no prices there" if strange else f"name at least one of {some}")
    return ",".join(symbols)


def preset_name(text: str) -> str:
    """The name of a preset, or its file. Raises UsageError."""
    from engine.preset import load_preset

    load_preset(text)
    return text


def amount(text: str) -> str:
    """An amount above zero and up to LARGEST, in plain decimal notation. Raises ConfigError."""
    try:
        amount = Decimal(text.replace(",", "").replace("_", ""))
    except InvalidOperation:
        raise ConfigError(f"{text!r} is no amount") from None
    if amount.is_nan() or not CENT <= amount <= LARGEST:
        raise ConfigError(f"it has to be above zero, and at most {LARGEST:,}")
    return f"{amount:f}"


def model_spec(text: str) -> str:
    """A model that can answer. Raises UsageError and ConfigError."""
    if parse_model_spec(text).kind is ModelKind.REPLAY:
        raise ConfigError("replay is a way of running, not a model: name the model, and set models.replay later")
    return text


def check_configuration(text: str) -> None:
    """Raise ConfigError for a text that cannot be read back as a configuration."""
    from pydantic import ValidationError

    from engine.settings.config import Config
    from engine.settings.values import complaint

    try:
        Config.model_validate(tomllib.loads(text, parse_float=Decimal))
    except ValidationError as error:
        raise ConfigError(complaint(Config, error)) from None
