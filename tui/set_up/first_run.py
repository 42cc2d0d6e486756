"""The first run of a paper account: what is asked for, one question after another, and the files that come of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.loopback import is_loopback
from engine.domain.model_call import parse_model_spec
from engine.errors import ConfigError
from engine.settings import places
from engine.settings.keys import keep_keys, write_private
from tui.set_up.first_configuration import (
    CRYPTO_AMONG_SHARES,
    amount,
    check_configuration,
    desk_name,
    example,
    filled_in,
    known_symbols,
    model_spec,
    symbols_of,
)
from tui.set_up.set_up import Question, checked_key, keys_of

KEY_ID, SECRET, ADDRESS = "APCA_API_KEY_ID", "APCA_API_SECRET_KEY", "APCA_API_BASE_URL"
ACCOUNT_KEYS = (
    Question(
        key=KEY_ID,
        name="Alpaca key",
        text="Key of your Alpaca PAPER account, from its page under API Keys. A live account is refused.",
        check=checked_key,
    ),
    Question(key=SECRET, name="Alpaca secret", text="The secret that belongs to the key.", check=checked_key),
)
MODES = ("ask", "auto", "observe")


@dataclass(frozen=True, slots=True)
class NewAccount:
    """The set-up of a paper account where nothing is configured; `file` is the configuration that it writes."""

    file: Path
    title: str = "Set up a paper account"
    done: str = "The desk is set up."
    cycle: bool = True

    @property
    def end(self) -> str:
        """Its last sentence before it begins."""
        return (
            f"The account is checked and its prices are fetched; then {self.file} is written, and the keys beside it."
        )

    def questions(self, answers: Mapping[str, str]) -> Sequence[Question]:
        """All questions."""
        return questions(answers)

    def options(self, answers: Mapping[str, str], folder: Path) -> tuple[str, ...]:
        """Write a draft of the configuration, and name it."""
        draft = folder / "config.toml"
        draft.write_text(configuration(answers), encoding="utf-8")
        return ("--config", str(draft))

    def concerns(self, area: str) -> bool:
        """True for all that does not follow from the prices that are fetched afterwards."""
        return area != "Data"

    def symbols(self, answers: Mapping[str, str]) -> Sequence[str]:
        """All symbols of the desk."""
        return symbols_of(answers["desk.symbols"])

    def keep(self, answers: Mapping[str, str]) -> Iterator[Path]:
        """Write the keys, and then the configuration, both for their owner alone; gives each file once it is there.
        Raises ConfigError where there is a configuration already, or one of them cannot be written."""
        if self.file.exists():
            raise ConfigError(f"{self.file} is there already: edit it, or move it away")
        text = configuration(answers)
        if keys := keys_of(answers):
            keep_keys(keys)
            yield places.keys_file()
        write_private(self.file, text)
        yield self.file


def _symbols(text: str) -> str:
    if not symbols_of(text):
        raise ConfigError("name at least one symbol, such as AAPL or BTC-USD")
    return known_symbols(text, "")


def _mode(text: str) -> str:
    if text not in MODES:
        raise ConfigError(f"{text or 'nothing'} is none of {', '.join(MODES)}")
    return text


SYMBOLS = Question(
    key="desk.symbols",
    name="Symbols",
    text="Symbols that the desk decides about, with commas. Stocks of US exchanges and coins such as BTC-USD; "
    f"{CRYPTO_AMONG_SHARES}.",
    proposed="AAPL,MSFT,NVDA",
    check=_symbols,
)


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
        *ACCOUNT_KEYS,
        SYMBOLS,
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
        asked.append(model_key(variable))
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


def model_key(variable: str) -> Question:
    """The question for the key of a model's service."""
    return Question(key=variable, name="Model key", text=f"Key of the model's service ({variable}).", check=checked_key)


def _variable(model: str) -> str:
    """The environment variable of a model's key; empty where none is needed, or nothing is known of it."""
    from connectors.wiring.models import KEYS

    return KEYS.get(parse_model_spec(model).kind, "") if model else ""


def configuration(answers: Mapping[str, str]) -> str:
    """The text of config.toml for the answers; keys are not in it. Raises ConfigError."""
    settings = {key: value for key, value in answers.items() if not key.isupper()}
    # A broker on this machine is the sandbox, whose clock is moved by hand: the desk goes by it.
    local = is_loopback(os.environ.get(ADDRESS, ""))
    text = filled_in(example(), {**settings, "broker.kind": "alpaca", "broker.clock": "broker" if local else "machine"})
    check_configuration(text)
    return text
