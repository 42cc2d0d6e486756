"""Traders that follow a rule: the controls at every table. None of them asks a model.

Source: Agent Trading Arena §5 [R1]; zero-intelligence traders after Gode and Sunder (1993).

Tables as files state them: personas that ask a model, presets of the cycle, and rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Literal

from pydantic import Field, model_validator

from engine.arena.rules import read_data_file
from engine.arena.view import MarketView, StockView, Wish
from engine.domain.order import Side
from engine.errors import PaperdeskError, UsageError
from engine.preset import load_preset
from engine.settings.values import Frozen
from engine.strategies.catalog import make_strategy, strategy_class
from engine.strategies.strategy import Fitted, Strategy

Rule = Callable[[MarketView, Random], Sequence[Wish]]
"""A rule's orders for a round; whatever it draws comes from the given generator."""

WINDOW = 5
"""Days that momentum and value look back."""
MARGIN = Decimal("0.02")
"""Distance from the price or the value at which momentum, value and market maker trade."""
PART = Decimal("0.2")
"""Part of the cash or the shares of one order."""
RANGE = (Decimal("0.5"), Decimal("1.5"))
"""Limits of zero-intelligence traders, as a part of the price."""
MOST = 10
"""Most shares of an order of a zero-intelligence trader."""


def buy_and_hold(view: MarketView, random: Random) -> Sequence[Wish]:
    """Spend the cash of the first day evenly over all stocks, a little above their price."""
    if view.day > 1 or view.round > 1:
        return ()
    each = view.cash / len(view.stocks)
    return tuple(wish for stock in view.stocks for wish in _buy(view, stock, stock.price * (1 + MARGIN), each))


def momentum(view: MarketView, random: Random) -> Sequence[Wish]:
    """Buy what rose over the window, sell what fell."""
    wishes: list[Wish] = []
    for stock in view.stocks:
        past = stock.closes[-WINDOW:][0]
        if stock.price > past:
            wishes += _buy(view, stock, stock.price * (1 + MARGIN), view.cash * PART)
        elif stock.price < past:
            wishes += _sell(view, stock, stock.price * (1 - MARGIN), PART)
    return wishes


def value(view: MarketView, random: Random) -> Sequence[Wish]:
    """Buy below the value and sell above it: the fundamental value where it is known, else the mean of the closes."""
    wishes: list[Wish] = []
    for stock in view.stocks:
        closes = stock.closes[-WINDOW:]
        worth = sum(closes, Decimal(0)) / len(closes) if stock.fundamental is None else stock.fundamental
        wishes += _buy(view, stock, worth * (1 - MARGIN), view.cash * PART)
        wishes += _sell(view, stock, worth * (1 + MARGIN), PART)
    return wishes


def market_maker(view: MarketView, random: Random) -> Sequence[Wish]:
    """Quote both sides of every stock around its price."""
    return tuple(
        wish
        for stock in view.stocks
        for wish in (
            *_buy(view, stock, stock.price * (1 - MARGIN), view.cash * PART / len(view.stocks)),
            *_sell(view, stock, stock.price * (1 + MARGIN), PART),
        )
    )


def zero_intelligence(view: MarketView, random: Random) -> Sequence[Wish]:
    """A random order at a random price that looks neither at the cash nor at the shares."""
    stock, side = random.choice(view.stocks), random.choice(tuple(Side))
    limit = in_ticks(view, stock.price * _between(random, *RANGE), Side.BUY)
    return (Wish(stock.name, side, random.randint(1, MOST), limit),) if limit > 0 else ()


def constrained_zero_intelligence(view: MarketView, random: Random) -> Sequence[Wish]:
    """A random order that never loses against the value of a share, and that the account covers."""
    stock, side = random.choice(view.stocks), random.choice(tuple(Side))
    worth = stock.price if stock.fundamental is None else stock.fundamental
    least, most = (worth * RANGE[0], worth) if side is Side.BUY else (worth, worth * RANGE[1])
    limit = in_ticks(view, _between(random, least, most), side)
    covered = int(view.cash / limit) if side is Side.BUY and limit > 0 else view.shares[stock.name]
    quantity = min(covered, random.randint(1, MOST))
    return (Wish(stock.name, side, quantity, limit),) if quantity > 0 and limit > 0 else ()


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "buy-and-hold": buy_and_hold,
        "momentum": momentum,
        "value": value,
        "market-maker": market_maker,
        "zero-intelligence": zero_intelligence,
        "constrained-zero-intelligence": constrained_zero_intelligence,
    }
)


def _buy(view: MarketView, stock: StockView, price: Decimal, cash: Decimal) -> Sequence[Wish]:
    limit = in_ticks(view, price, Side.BUY)
    quantity = int(cash / limit) if limit > 0 else 0
    return (Wish(stock.name, Side.BUY, quantity, limit),) if quantity else ()


def _sell(view: MarketView, stock: StockView, price: Decimal, part: Decimal) -> Sequence[Wish]:
    limit = max(view.tick, in_ticks(view, price, Side.SELL))
    quantity = int((view.shares[stock.name] * part).to_integral_value(ROUND_UP))
    return (Wish(stock.name, Side.SELL, quantity, limit),) if quantity else ()


def in_ticks(view: MarketView, price: Decimal, side: Side) -> Decimal:
    """A price in ticks, rounded to the side that costs nothing."""
    return (price / view.tick).to_integral_value(ROUND_DOWN if side is Side.BUY else ROUND_UP) * view.tick


def _between(random: Random, least: Decimal, most: Decimal) -> Decimal:
    return least + (most - least) * random.randint(0, 10_000) / 10_000


TABLES = Path(__file__).parent / "tables"
DEFAULT_TABLE = "nine"


PERSONA = ("profession", "horizon", "input", "window", "reflects", "strategy")
"""The keys of a persona's seat alone."""


class AgentSeat(Frozen):
    """An agent at the table: a rule, a preset, or a persona that asks a model where it is neither.

    rule: a control by its name, or a strategy of backtests by name or FILE.py:CLASS.
    params: of the strategy.
    preset: a preset of the cycle by name or TOML file, which decides every morning as a desk does.
    model: the persona's, or of all agents of the preset; None: the run's.
    baseline: asks the run's baseline model, that the others are measured against.
    profession, horizon, input, window, reflects, strategy: of the persona.
    """

    name: str = Field(min_length=1, max_length=24, pattern=r"^[A-Za-z0-9 ._-]+$")
    rule: str | None = None
    params: dict[str, str | int | Decimal] = {}
    preset: str | None = None
    model: str | None = None
    baseline: bool = False
    profession: str = Field("a trader", max_length=80)
    horizon: int = Field(1, ge=1, le=50)
    input: Literal["text", "charts", "both"] = "text"
    window: int = Field(10, ge=2, le=60)
    reflects: bool = True
    strategy: str = Field("Try to make as much profit as possible.", max_length=1_200)

    @property
    def is_persona(self) -> bool:
        """True for one that is neither a rule nor a preset."""
        return self.rule is None and self.preset is None

    @property
    def is_control(self) -> bool:
        """True for a rule of the arena's own."""
        return self.rule in RULES

    @model_validator(mode="after")
    def _can_sit(self) -> AgentSeat:
        if self.rule is not None and self.preset is not None:
            raise ValueError("a seat has a rule or a preset, not both")
        odd = [] if self.is_persona else sorted(self.model_fields_set.intersection(PERSONA))
        if odd:
            raise ValueError(f"{odd[0]} belongs to a persona, not to a rule or a preset")
        if self.params and (self.rule is None or self.is_control):
            raise ValueError("params belong to a strategy of backtests")
        try:
            if self.preset is not None:
                load_preset(self.preset)
            elif self.rule is not None and not self.is_control:
                seat_strategy(self.rule, self.params)
        except PaperdeskError as error:
            raise ValueError(str(error)) from None
        return self


def seat_strategy(rule: str, params: Mapping[str, object]) -> Strategy:
    """The strategy of a seat's rule. Raises UsageError for one that there is not, for parameters that it has not, and
    for one that has to be fitted: nothing comes before an arena."""
    try:
        strategy_class(rule)
    except UsageError as error:
        raise UsageError(f"no rule {rule} of the arena ({', '.join(RULES)}), and {error}") from None
    strategy = make_strategy(rule, {name: str(value) for name, value in params.items()})
    if isinstance(strategy, Fitted):
        raise UsageError(f"strategy {rule} needs a training part, which an arena does not have")
    return strategy


class Seating(Frozen):
    """The agents of a table, each name once."""

    agents: tuple[AgentSeat, ...] = Field(min_length=2, max_length=500)

    @model_validator(mode="after")
    def _named_once(self) -> Seating:
        names = [agent.name for agent in self.agents]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]} appears twice in the table")
        return self


def load_seating(name: str) -> Seating:
    """A table by name or TOML file. Raises UsageError for an unknown name or a faulty file."""
    return read_data_file(Seating, name, TABLES, "table")
