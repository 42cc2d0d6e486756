"""Options that several commands share: dates, amounts, lists, `--limit`, and those that describe a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.domain.model_call import MASKS
from engine.domain.order import OrderSize
from tui.settings.invocation import OptionOf
from tui.text.console import as_json

if TYPE_CHECKING:
    from engine.domain.run import RunSpec
    from engine.services import Services


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""


class Parsed(click.ParamType[T]):
    """An option whose text is parsed; one that cannot be is a usage error that quotes it, followed by `complaint`."""

    def __init__(self, name: str, parse: Callable[[str], T], complaint: str) -> None:
        self.name = name
        self._parse, self._complaint = parse, complaint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """The parsed value."""
        try:
            return self._parse(str(value))
        except (ValueError, ArithmeticError):
            self.fail(f"{value!r} {self._complaint}", param, ctx)


def _finite(text: str) -> Decimal:
    amount = Decimal(text)
    if not amount.is_finite():
        raise ValueError(text)
    return amount


def _dollars(text: str) -> Decimal:
    amount = _finite(text)
    if amount < 0:
        raise ValueError(text)
    return amount


def _point(text: str) -> int | date:
    return int(text) if text.isdecimal() and int(text) else date.fromisoformat(text)


def _masks(text: str) -> tuple[int, ...]:
    levels = tuple(dict.fromkeys(map(int, text.split(","))))
    if not set(levels) <= set(MASKS):
        raise ValueError(text)
    return levels


def _cuts(text: str) -> int:
    if text != "all" and not (text.isdecimal() and int(text)):
        raise ValueError(text)
    return 0 if text == "all" else int(text)


DAY = Parsed("date", date.fromisoformat, "is not a date; write it as YYYY-MM-DD")
AMOUNT = Parsed("number", _finite, "is not a number")
DOLLARS = Parsed("USD", _dollars, "is not a non-negative amount")
CUTS = Parsed("cuts", _cuts, "is neither a positive number nor `all`")
"""A number of cuts; `all` is 0."""
LEVELS = Parsed("masks", _masks, "is no level of a mask (0 to 4), nor several such as 0,4")
COUNT, PORT = click.IntRange(min=0), click.IntRange(0, 65535)
POINT = Parsed("point", _point, "is neither a session (YYYY-MM-DD) nor an event number")

at_option = click.option(
    "--at",
    type=POINT,
    metavar="SESSION|EVENT",
    help="State after that session's decisions, or after that event number (JSON: event).",
)
ABSTAIN_LIMIT = 2
"""Sessions in a row without a usable decision that stop a run where no limit is given."""
ABSTAINING: Mapping[str, Any] = {
    "type": COUNT,
    "default": ABSTAIN_LIMIT,
    "show_default": True,
    "metavar": "N",
    "help": "Stop after N sessions in a row without a usable model decision; 0: never.",
}
abstain_option = click.option("--abstain-limit", **ABSTAINING)

BUDGET = "Maximum model cost, including the part before a resume."
REPEATS: Mapping[str, Any] = {"type": click.IntRange(1, 99), "default": 1, "show_default": True, "metavar": "N"}
PROCESSES: Mapping[str, Any] = {"type": click.IntRange(1, 64), "default": 1, "show_default": True, "metavar": "N"}
JOBS: Mapping[str, Any] = {
    **PROCESSES,
    "help": "Parallel runs, one process each; runs that ask a model's service stay one after the other.",
}
MASK = "Hide from models: 1 tickers, 2 also names, 3 also dates, 4 also the price level; 0: nothing."
SCHEDULER: Mapping[str, Any] = {
    "metavar": "ADDRESS|local",
    "help": "Dask scheduler whose workers play the runs that ask no model's service; local starts --jobs of them here.",
}


def size_options(function: F) -> F:
    """Add the size of an order."""
    quantity = click.option("--quantity", type=AMOUNT, metavar="N", help="Number of shares, at the last price.")
    return quantity(
        click.option("--amount", type=AMOUNT, metavar="USD", help="Amount to trade, costs included.")(function)
    )


def size_of(quantity: Decimal | None, amount: Decimal | None) -> OrderSize | None:
    """The size that is given, if any. Raises a usage error for two."""
    if quantity is not None and amount is not None:
        raise click.UsageError("give --quantity or --amount, not both")
    number = amount if quantity is None else quantity
    return None if number is None else OrderSize(number, money=quantity is None)


folder_option = click.option(
    "--data", "folder", metavar="DIR", help="Data folder (default: the configured one, or the demo)."
)


def option_of(of: Sequence[str], name: str, *names: str, help: str, **attributes: Any) -> Callable[[F], F]:
    """Add an option that belongs to some actions of a command, or goes with some of its options."""
    return click.option(name, *names, cls=OptionOf, of=of, help=f"With {', '.join(of)}: {help}", **attributes)


def actions(arguments: Mapping[str, str], metavar: str, default: str | None = None) -> Callable[[F], F]:
    """Add the argument `action`, one of the keys of `arguments`, and `what`, the ones that follow it: as many as
    the value has, [FILE] being one that may be left out and SYMBOL... one or more."""

    def checked(ctx: click.Context, param: click.Parameter, what: tuple[str, ...]) -> tuple[str, ...]:
        action = ctx.params["action"]
        wanted = arguments[action].split()
        least = sum(not word.startswith("[") for word in wanted)
        if len(what) < least or (len(what) > len(wanted) and "..." not in arguments[action]):
            usage = f"{ctx.command_path} {action} {arguments[action]}".rstrip()
            raise click.UsageError(f"write it as `{usage}`", ctx)
        return what

    def add(function: F) -> F:
        kind = click.Choice([*arguments])
        otherwise: dict[str, Any] = {} if default is None else {"default": default}  # a None would be taken for one
        what = click.argument("what", nargs=-1, metavar=metavar, callback=checked)(function)
        return click.argument("action", metavar="|".join(arguments), type=kind, is_eager=True, **otherwise)(what)

    return add


def limit_option(which: str) -> Callable[[F], F]:
    """Add `--limit N` to a command that lists: the first or the last N (`which`)."""
    help_text = f"The {which} N (default: {LIMIT}; 0 and --json: all)."
    return click.option("--limit", type=COUNT, metavar="N", help=help_text)


def lines_shown(limit: int | None) -> int:
    """The number of lines that a limit means, 0 for all."""
    if limit is not None:
        return limit
    return 0 if as_json() else LIMIT


def check_order(first: date | None, last: date | None) -> None:
    """Raise a usage error for a window that ends before it begins."""
    if first and last and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")


def both_ends(first: date | None, last: date | None, flags: str = "--from and --to") -> tuple[date, date] | None:
    """A window, or none. Raises a usage error for one end alone."""
    if (first is None) != (last is None):
        raise click.UsageError(f"a window needs two ends: give both {flags}, or neither")
    return None if first is None or last is None else (first, last)


def symbol_list(text: str) -> tuple[str, ...]:
    """Symbols from `A,B`, in capitals, each once. Raises a usage error where there is none."""
    symbols = tuple(dict.fromkeys(map(str.upper, listed(text))))
    if not symbols:
        raise click.UsageError("--symbols names no symbol; write them as A,B")
    return symbols


def listed(text: str | None) -> tuple[str, ...]:
    """The parts of `A,B`, each once, none where nothing is given."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, (text or "").split(",")))))


def key_values(texts: Sequence[str], option: str = "--param") -> tuple[tuple[str, str], ...]:
    """Pairs from `key=value` texts. Raises a usage error for a text without a key or an equals sign."""
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise click.UsageError(f"{option} {text!r}: write it as KEY=VALUE")
        pairs.append((key.strip(), value.strip()))
    return tuple(pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """The flags of one call; None (or empty) where not given."""

    symbols: str | None = None
    first: date | None = None
    last: date | None = None
    warm_up_from: date | None = None
    preset: str | None = None
    strategy: str | None = None
    params: Sequence[str] = ()
    model: str | None = None
    tier: str | None = None
    without: str | None = None
    masks: Sequence[int] | None = None
    folder: str | None = None
    cash: Decimal | None = None
    commission: Decimal | None = None
    slippage_bp: Decimal | None = None
    convention: str | None = None
    seed: int | None = None

    def spec(self, services: Services) -> RunSpec:
        """The run that they describe, the configuration's values for the rest. A window that is given in part is a
        usage error; one that is not given at all is the desk's own. Raises what `default_spec` raises."""
        from engine.app.research.run_spec import default_spec
        from engine.domain.model_call import AnswerOptions
        from engine.domain.run import RunSpec

        window = both_ends(self.first, self.last)
        if self.warm_up_from is not None and window is None:
            raise click.UsageError("--warm-up-from needs a window: give --from and --to with it")
        config = services.config
        if self.folder is not None:
            data = replace(services.data, folder=self.folder)
            services = replace(services, data=data, symbols=config.desk.symbols)
        if self.symbols is not None:
            services = replace(services, symbols=symbol_list(self.symbols))
        if window is None:
            spec = default_spec(services)
        else:
            spec = RunSpec(symbols=services.symbols, first=window[0], last=window[1], preset=config.desk.preset)
        return replace(
            spec,
            preset=self.preset if self.preset is not None or self.strategy is not None else spec.preset,
            warm_up_from=self.warm_up_from if window else spec.warm_up_from,
            strategy=self.strategy,
            params=key_values(self.params),
            data=services.data,
            model=self.model,
            options=AnswerOptions(tier=self.tier, mask=(self.masks[0] if self.masks else 0) or None),
            without=listed(self.without),
            convention=self.convention or config.metrics.convention,
            cash=self.cash,
            commission=self.commission,
            slippage_bp=self.slippage_bp,
            seed=config.desk.seed if self.seed is None else self.seed,
        )


def run_options(function: F, left_out: Collection[str] = ()) -> F:
    """Add the flags of a run to a command, which gets a RunFlags as `flags`; those of the fields `left_out` are none of
    its own."""

    @click.option("--symbols", metavar="A,B", help="Symbols to trade (default: the desk's).")
    @click.option("--from", "first", type=DAY, metavar="DATE", help="First session of the test.")
    @click.option("--to", "last", type=DAY, metavar="DATE", help="Last session of the test.")
    @click.option(
        "--warm-up-from", type=DAY, metavar="DATE", help="Start of the warm-up: simulated trading, not measured."
    )
    @click.option("--preset", metavar="NAME", help="Agents: a preset by name or TOML file (default: the desk's).")
    @click.option("--strategy", metavar="NAME", help="Rule strategy instead of agents: a name or FILE:CLASS.")
    @click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="Strategy parameter (repeatable).")
    @click.option("--model", metavar="SPEC", help="Model of every agent: offline, openai:MODEL, replay[:RUN], ...")
    @click.option(
        "--tier", type=click.Choice(["default", "flex"]), help="Vendor's service tier; flex is slow and half price."
    )
    @click.option("--without", metavar="STEP,STEP", help="Steps of the preset to leave out.")
    @click.option("--mask", "masks", type=LEVELS, metavar="0..4", help=MASK)
    @folder_option
    @click.option("--cash", type=AMOUNT, metavar="N", help="Starting cash.")
    @click.option("--commission", type=AMOUNT, metavar="FRACTION", help="Commission per trade (0.001 is 0.1 %).")
    @click.option("--slippage", "slippage_bp", type=AMOUNT, metavar="BP", help="Slippage in basis points.")
    @click.option("--convention", metavar="NAME", help="Trading and metrics convention: desk, finvision, finagent, ...")
    @click.option("--seed", type=click.IntRange(0), metavar="N", help="Random seed.")
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        flags = RunFlags(**{one.name: kwargs.pop(one.name) for one in fields(RunFlags) if one.name not in left_out})
        return function(*args, flags=flags, **kwargs)

    given: list[click.Parameter] = wrapped.__click_params__  # type: ignore[attr-defined]
    given[:] = [one for one in given if one.name not in left_out]
    return wrapped  # type: ignore[return-value]
