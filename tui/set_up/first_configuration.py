"""A first configuration: the example with answers in their places, each answer checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from connectors.loopback import is_loopback
from engine.domain.market import parse_symbol
from engine.domain.model_call import parse_model_spec
from engine.errors import DataError
from engine.program_files import program_text
from engine.settings import places
from engine.settings.edit import change_value
from engine.settings.keys import keep_keys, write_private
from tui.set_up.set_up import Answers, Question, SetUp, keys_of

if TYPE_CHECKING:
    from tui.settings.invocation import Invocation

CRYPTO_AMONG_SHARES = "crypto among shares moves the desk's close, and with it the daily run, to midnight UTC"
ADDRESS = "APCA_API_BASE_URL"
ACCOUNT_KEYS = (
    Question(
        key="APCA_API_KEY_ID",
        name="Alpaca key",
        text="Key of your Alpaca PAPER account, from its page under API Keys. A live account is refused.",
    ),
    Question(key="APCA_API_SECRET_KEY", name="Alpaca secret", text="The key's secret."),
)
OFFLINE = "offline"


def example() -> str:
    """The text of config.example.toml, as it ships with the program."""
    return program_text(Path(__file__).with_name("config.example.toml"))


def with_answers(text: str, answers: Answers) -> str:
    """The text of a configuration with answers by their keys. Raises UsageError and ConfigError for what cannot be."""
    with TemporaryDirectory(prefix="paperdesk-") as folder:
        draft = Path(folder) / "config.toml"
        draft.write_text(text, encoding="utf-8")
        for key, answer in answers.items():
            change_value(draft, key, answer)
        return draft.read_text(encoding="utf-8")


def symbols_of(answer: str) -> list[str]:
    """Symbols from a list with commas or spaces, upper case, each once. Raises UsageError for what cannot be one."""
    return list(dict.fromkeys(map(parse_symbol, answer.replace(",", " ").split())))


def priced_symbols(folder: str) -> list[str]:
    """The symbols of a data folder."""
    return sorted(path.stem for path in (Path(folder).expanduser() / "prices").glob("*.csv"))


def known_symbols(text: str, folder: str = "") -> str:
    """Symbols with commas, at least one; of a folder, where one is named. Raises DataError, and UsageError for what
    cannot be a symbol."""
    symbols, there = symbols_of(text), priced_symbols(folder) if folder else []
    strange = [symbol for symbol in symbols if folder and symbol not in there]
    if strange:
        raise DataError(f"{strange[0]} has no prices there")
    if not symbols:
        raise DataError(f"name at least one of {', '.join(there[:12]) or 'your symbols, such as AAPL or BTC-USD'}")
    return ",".join(symbols)


def proposed_model(file: Path | None) -> str:
    """The model of a configuration; where that is the rules, one of a server on this machine that answers, if any.
    Raises ConfigError for a configuration or an environment that is wrong."""
    from connectors.llm.local_models import local_models
    from engine.settings.config import load_config

    config = load_config(file).config
    rules = config.models.default == OFFLINE
    return next(local_models(config.endpoints), OFFLINE) if rules else config.models.default


def desk_question(proposed: str) -> Question:
    """The question for a desk's name."""
    text = "Name of the desk, used in its journal and order ids."
    return Question(key="desk.name", name="Desk", text=text, proposed=proposed)


def model_question(proposed: str) -> Question:
    """The question for the model of a desk."""
    text = (
        "Model that answers: openai:MODEL, anthropic:MODEL, ollama:MODEL (also lmstudio, vllm, openrouter, deepseek, "
        "google, xai), or offline for rules that cost nothing and are no language model."
    )
    return Question(key="models.default", name="Model", text=text, proposed=proposed)


SYMBOLS = Question(
    key="desk.symbols",
    name="Symbols",
    text=f"Symbols to trade, separated by commas: US stocks and crypto such as BTC-USD; {CRYPTO_AMONG_SHARES}.",
    proposed="AAPL,MSFT,NVDA",
    check=known_symbols,
)


def new_account(invocation: Invocation) -> SetUp:
    """The set-up of a paper account, which writes the configuration, or changes it with its comments kept."""
    file = invocation.file
    return SetUp(
        title="Set up a paper account",
        end=f"The account is checked and its prices are fetched; then {file} is written, and the keys beside it.",
        done="The desk is set up.",
        questions=partial(questions, model=proposed_model(file)),
        keep=partial(_keep, file),
        cycle=True,
        options=partial(_draft, file),
        symbols=lambda answers: symbols_of(answers[SYMBOLS.key]),
    )


def _draft(file: Path, answers: Answers, folder: Path) -> tuple[str, ...]:
    draft = folder / "config.toml"
    draft.write_text(configuration(file, answers), encoding="utf-8")
    return ("--config", str(draft))


def _keep(file: Path, answers: Answers) -> Iterator[Path]:
    """Write the keys, and then the configuration, both for their owner alone. Raises ConfigError where one of the two
    cannot be written."""
    text = configuration(file, answers)
    if keys := keys_of(answers):
        keep_keys(keys)
        yield places.keys_file()
    write_private(file.resolve(), text)
    yield file


def questions(answers: Answers, environ: Mapping[str, str] = os.environ, *, model: str = OFFLINE) -> Sequence[Question]:
    """All questions, those of keys only where the environment has none; which key a model needs follows from the
    answers. `model` is the one proposed."""
    asked = [desk_question("paper"), *ACCOUNT_KEYS, SYMBOLS, model_question(model)]
    if variable := _variable(answers.get("models.default", "")):
        text = "Daily model budget in US dollars. A run that reaches it stops, and resumes the next day."
        asked.append(model_key(variable))
        asked.append(Question(key="budget.usd_per_day", name="Budget", text=text, proposed="5"))
    text = "ask: every order waits for your approval. auto: orders are sent. observe: nothing is sent."
    asked.append(Question(key="broker.mode", name="Orders", text=text, proposed="ask"))
    return [one for one in asked if not (one.secret and environ.get(one.key))]


def model_key(variable: str) -> Question:
    """The question for the key of a model's service."""
    return Question(key=variable, name="Model key", text=f"Key of the model's service ({variable}).")


def _variable(model: str) -> str:
    """The environment variable of a model's key; empty where none is needed, or nothing is known of it."""
    from connectors.wiring.models import ConfiguredModels
    from engine.settings.config import Config

    config = Config()
    return ConfiguredModels(config).key_variable(parse_model_spec(model, config.endpoints)) if model else ""


def configuration(file: Path, answers: Answers) -> str:
    """The text of config.toml, or of the example where there is none yet, for the answers; keys are not in it. Raises
    as `with_answers` does."""
    from engine.settings.config import load_config

    settings = {key: value for key, value in answers.items() if not key.isupper()}
    # A broker on this machine is the sandbox, whose clock is moved by hand: the desk goes by it.
    local = is_loopback(os.environ.get(ADDRESS) or load_config(file).config.broker.trading_url)
    begun = file.read_text(encoding="utf-8") if file.is_file() else example()
    return with_answers(begun, settings | {"broker.kind": "alpaca", "broker.clock": "broker" if local else "machine"})
