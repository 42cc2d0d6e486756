"""The first run of a paper account: what is asked for, one question after another, and the files that come of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ConfigError
from tui.first_configuration import (
    amount,
    check_configuration,
    desk_name,
    example,
    filled_in,
    known_symbols,
    model_spec,
    symbols_of,
)

KEY_ID, SECRET = "APCA_API_KEY_ID", "APCA_API_SECRET_KEY"
MODES = ("ask", "auto", "observe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    key: the setting (`section.key`), or the environment variable of a key.
    name: in the list of answers.
    text: the question, with what the answer is for.
    proposed: the answer that enter gives.
    check: returns the answer as it is kept, or raises a PaperdeskError.
    """

    key: str
    name: str
    text: str
    proposed: str = ""
    check: Callable[[str], str]

    @property
    def secret(self) -> bool:
        """True for a key, which is never shown."""
        return self.key.isupper()


def _given(text: str) -> str:
    if not text or not text.isprintable() or " " in text:
        raise ConfigError("a key has no spaces: copy it from the page of your account")
    return text


def _symbols(text: str) -> str:
    if not symbols_of(text):
        raise ConfigError("name at least one symbol, such as AAPL or BTC-USD")
    return known_symbols(text, "")


def _mode(text: str) -> str:
    if text not in MODES:
        raise ConfigError(f"{text or 'nothing'} is none of {', '.join(MODES)}")
    return text


def questions(answers: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> Sequence[Question]:
    """All questions, those of keys only where the environment has none; which key a model needs follows from the
    answers."""
    asked = [
        Question(
            key="desk.name",
            name="Desk",
            text="Name of the desk. Its journal and its orders carry it.",
            proposed="paper",
            check=desk_name,
        ),
        Question(
            key=KEY_ID,
            name="Alpaca key",
            text="Key of your Alpaca PAPER account, from its page under API Keys. A live account is refused.",
            check=_given,
        ),
        Question(key=SECRET, name="Alpaca secret", text="The secret that belongs to the key.", check=_given),
        Question(
            key="desk.symbols",
            name="Symbols",
            text="Symbols that the desk decides about, with commas. Stocks of US exchanges and coins such as BTC-USD.",
            proposed="AAPL,MSFT,NVDA",
            check=_symbols,
        ),
        Question(
            key="models.default",
            name="Model",
            text="Model that answers: openai:MODEL, anthropic:MODEL, or offline for rules that cost nothing and are no "
            "language model.",
            proposed="offline",
            check=model_spec,
        ),
    ]
    if variable := _variable(answers.get("models.default", "")):
        asked.append(
            Question(key=variable, name="Model key", text=f"Key of the model's service ({variable}).", check=_given)
        )
        asked.append(
            Question(
                key="budget.usd_per_day",
                name="Budget",
                text="Dollars that models may cost in a day. A run that reaches it ends, and goes on the next day.",
                proposed="5",
                check=amount,
            )
        )
    asked.append(
        Question(
            key="broker.mode",
            name="Orders",
            text="ask: every order waits for your approval. auto: orders are sent. observe: nothing is sent.",
            proposed="ask",
            check=_mode,
        )
    )
    return [one for one in asked if not (one.secret and environ.get(one.key))]


def _variable(model: str) -> str:
    """The environment variable of a model's key; empty where none is needed, or nothing is known of it."""
    from connectors.wiring.models import KEYS
    from engine.domain.model_spec import parse_model_spec

    return KEYS.get(parse_model_spec(model).kind, "") if model else ""


def configuration(answers: Mapping[str, str]) -> str:
    """The text of config.toml for the answers; keys are not in it. Raises ConfigError."""
    settings = {key: value for key, value in answers.items() if not key.isupper()}
    text = filled_in(example(), {**settings, "broker.kind": "alpaca"})
    check_configuration(text)
    return text


def keys_of(answers: Mapping[str, str]) -> dict[str, str]:
    """The keys among the answers, by environment variable."""
    return {key: value for key, value in answers.items() if key.isupper()}


def keep(answers: Mapping[str, str], file: Path) -> Iterator[Path]:
    """Write the keys, and then the configuration, both for their owner alone; gives each file once it is there. Raises
    ConfigError where there is a configuration already, or one of them cannot be written."""
    from engine import places
    from engine.keys import keep_keys, write_private

    if file.exists():
        raise ConfigError(f"{file} is there already: edit it, or move it away")
    text = configuration(answers)
    if keys := keys_of(answers):
        keep_keys(keys)
        yield places.keys_file()
    write_private(file, text)
    yield file
