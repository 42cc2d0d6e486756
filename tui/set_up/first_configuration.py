"""A first configuration: the example with answers in their places, each answer checked."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from connectors.loopback import is_loopback
from engine.domain.market import has_crypto_among_shares, parse_symbol
from engine.domain.model_call import ModelKind, parse_model_spec
from engine.errors import ConfigError, DataError
from engine.program_files import program_text
from engine.settings import places
from engine.settings.edit import change_value
from engine.settings.keys import keep_keys, write_private
from tui.set_up.set_up import Answers, Question, SetUp, checked_key, keys_of

CRYPTO_AMONG_SHARES = "crypto among shares moves the desk's close, and with it the daily run, to midnight UTC"
CENT = Decimal("0.01")
KEY_ID, SECRET, ADDRESS = "APCA_API_KEY_ID", "APCA_API_SECRET_KEY", "APCA_API_BASE_URL"
ACCOUNT_KEYS = (
    Question(
        key=KEY_ID,
        name="Alpaca key",
        text="Key of your Alpaca PAPER account, from its page under API Keys. A live account is refused.",
        check=checked_key,
    ),
    Question(key=SECRET, name="Alpaca secret", text="The key's secret.", check=checked_key),
)
OFFLINE = "offline"
MODES = ("ask", "auto", "observe")
MODELS = "openai:MODEL, anthropic:MODEL, ollama:MODEL (also lmstudio, vllm, openrouter, deepseek, google, xai)"
"""The models that a set-up names."""


def example() -> str:
    """The text of config.example.toml, as it ships with the program."""
    return program_text(Path(__file__).with_name("config.example.toml"))


def with_answers(file: Path, answers: Mapping[str, str]) -> str:
    """The text of a configuration, or of the example where there is none yet, with answers by their keys. Raises
    UsageError and ConfigError for what cannot be."""
    with TemporaryDirectory(prefix="paperdesk-") as folder:
        draft = Path(folder) / "config.toml"
        draft.write_text(file.read_text(encoding="utf-8") if file.is_file() else example(), encoding="utf-8")
        for key, answer in answers.items():
            change_value(draft, key, answer)
        return draft.read_text(encoding="utf-8")


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
        raise DataError(f"{text} has no prices folder; name a data folder, or nothing")
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
    """An amount above zero and up to LARGEST_CASH, in plain decimal notation. Raises ConfigError."""
    from engine.settings.config import LARGEST_CASH

    try:
        amount = Decimal(text.replace(",", "").replace("_", ""))
    except InvalidOperation:
        raise ConfigError(f"{text!r} is not an amount") from None
    if amount.is_nan() or not CENT <= amount <= LARGEST_CASH:
        raise ConfigError(f"it must be above zero and at most {LARGEST_CASH:,}")
    return f"{amount:f}"


def model_spec(text: str) -> str:
    """A model that can answer. Raises UsageError and ConfigError."""
    from engine.settings.config import Config

    if parse_model_spec(text, Config().endpoints).kind is ModelKind.REPLAY:
        raise ConfigError("replay is a mode, not a model: name the model, and set models.replay later")
    return text


def proposed_model(file: Path | None) -> str:
    """The model of a configuration; where that is the rules, one of a server on this machine that answers, if any.
    Raises ConfigError for a configuration or an environment that is wrong."""
    from connectors.llm.local_models import local_models
    from engine.settings.config import load_config

    config = load_config(file).config
    rules = config.models.default == OFFLINE
    return next(local_models(config.endpoints), OFFLINE) if rules else config.models.default


def new_account(file: Path) -> SetUp:
    """The set-up of a paper account; `file` is the configuration that it writes, or changes with its comments kept."""
    return SetUp(
        title="Set up a paper account",
        end=f"The account is checked and its prices are fetched; then {file} is written, and the keys beside it.",
        done="The desk is set up.",
        questions=partial(questions, model=proposed_model(file)),
        keep=partial(_keep, file),
        cycle=True,
        options=partial(_draft, file),
        # All but what follows from the prices that are fetched afterwards.
        refused_by=lambda area: area != "Data",
        symbols=lambda answers: symbols_of(answers["desk.symbols"]),
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
    text=f"Symbols to trade, separated by commas: US stocks and crypto such as BTC-USD; {CRYPTO_AMONG_SHARES}.",
    proposed="AAPL,MSFT,NVDA",
    check=_symbols,
)


def questions(answers: Answers, environ: Mapping[str, str] = os.environ, *, model: str = OFFLINE) -> Sequence[Question]:
    """All questions, those of keys only where the environment has none; which key a model needs follows from the
    answers. `model` is the one proposed."""
    asked = [
        Question(
            key="desk.name",
            name="Desk",
            text="Name of the desk, used in its journal and order ids.",
            proposed="paper",
            check=desk_name,
        ),
        *ACCOUNT_KEYS,
        SYMBOLS,
        Question(
            key="models.default",
            name="Model",
            text=f"Model that answers: {MODELS}, or offline for rules that cost nothing and are no language model.",
            proposed=model,
            check=model_spec,
        ),
    ]
    if variable := _variable(answers.get("models.default", "")):
        asked.append(model_key(variable))
        asked.append(
            Question(
                key="budget.usd_per_day",
                name="Budget",
                text="Daily model budget in US dollars. A run that reaches it stops, and resumes the next day.",
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
    from connectors.wiring.models import ConfiguredModels
    from engine.settings.config import Config

    config = Config()
    return ConfiguredModels(config).key_variable(parse_model_spec(model, config.endpoints)) if model else ""


def configuration(file: Path, answers: Answers) -> str:
    """The text of config.toml for the answers; keys are not in it. Raises as `with_answers` does."""
    from engine.settings.config import load_config

    settings = {key: value for key, value in answers.items() if not key.isupper()}
    # A broker on this machine is the sandbox, whose clock is moved by hand: the desk goes by it.
    local = is_loopback(os.environ.get(ADDRESS) or load_config(file).config.broker.trading_url)
    return with_answers(file, settings | {"broker.kind": "alpaca", "broker.clock": "broker" if local else "machine"})
