"""The rules of an arena as a preset file states them, and how a trade moves the reference price.

Data files of the arena: presets of markets and tables of agents, that ship by name or are files of the user's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from engine.errors import UsageError
from engine.settings.values import Frozen, complaint

PRESETS = Path(__file__).parent / "presets"
REFERENCE_TICK = Decimal("0.000001")
"""Reference prices are kept to a millionth: an impact of few shares moves them by less than a cent."""

Amount = Annotated[Decimal, Field(ge=0)]
Share = Annotated[Decimal, Field(ge=0, lt=1)]


class StockRules(Frozen):
    """A stock of the arena.

    shares: in circulation, dealt evenly; None where the seats name what each has.
    first_price: the close before the first day.
    dividends: per share and day, drawn evenly; one value is paid every day.
    """

    name: str = Field(min_length=1, max_length=12)
    shares: int | None = Field(None, gt=0)
    first_price: Decimal = Field(gt=0)
    dividends: tuple[Amount, ...] = (Decimal(0),)

    @property
    def mean_dividend(self) -> Decimal:
        """The expected dividend per share and day."""
        return sum(self.dividends, Decimal(0)) / len(self.dividends)


class Seat(Frozen):
    """The starting position of an agent.

    cash: at the first day.
    shares: whole shares by stock, for stocks that do not say how many there are.
    """

    cash: Amount
    shares: dict[str, Annotated[int, Field(ge=0)]] = {}


class Shock(Frozen):
    """A disturbance at the begin of a day.

    dividend: the stock's dividends are multiplied by `factor` from that day on, and the news is told to all.
    liquidity: every agent's cash is multiplied by `factor`, at least 0.
    """

    day: int = Field(ge=1)
    kind: Literal["dividend", "liquidity"]
    factor: Amount
    stock: str | None = None


class ArenaRules(Frozen):
    """The rules of a market.

    rounds: of decisions a day.
    past_days: closes before the first day, made up by the seed.
    tick: smallest step of a limit, money.
    fluctuation: F of the paper's price rule; None makes the last deal the reference price.
    daily_cap: greatest move of the reference price within a day, a fraction of the last close.
    fee_rate: of every agent's wealth, charged each day after dividends, as far as its cash goes.
    cost_rate: of a trade's value, paid by each side.
    interest: on cash, a day.
    income: paid to every agent each day before the open, the job that the paper's personas have.
    buy_back: price at which all shares are bought back after the last day; None: shares keep the last price.
    auction: orders trade as they come, or once a round at one price.
    settle: at the deal's price, or at the reference price after the deal's impact.
    checks: `first`: an order without cash or shares is refused before anything moves. `printed`: Algorithm 1 as
      printed, where the price moves first and an order for all cash or all shares is refused.
    fundamental: how a share's value is known: `none`; `dividends left`: the mean dividend times the days left;
      `buy back`: the price of the buy-back, which dividends and interest hold constant.
    seats: starting positions, dealt in turn.
    shocks: disturbances.

    Source: Agent Trading Arena §3.3, Algorithm 1, eq. 2 [R1, R2].
    """

    days: int = Field(gt=0)
    rounds: int = Field(3, gt=0)
    past_days: int = Field(20, gt=0, le=250)
    tick: Decimal = Field(Decimal("0.01"), gt=0)
    fluctuation: Decimal | None = Field(None, gt=0)
    daily_cap: Decimal | None = Field(None, gt=0)
    fee_rate: Share = Decimal(0)
    cost_rate: Share = Decimal(0)
    interest: Share = Decimal(0)
    income: Amount = Decimal(0)
    buy_back: Amount | None = None
    auction: Literal["continuous", "call"] = "continuous"
    settle: Literal["deal", "impact"] = "deal"
    checks: Literal["first", "printed"] = "first"
    fundamental: Literal["none", "dividends left", "buy back"] = "none"
    stocks: tuple[StockRules, ...] = Field(min_length=1)
    seats: tuple[Seat, ...] = Field(min_length=1)
    shocks: tuple[Shock, ...] = ()

    @model_validator(mode="after")
    def _every_share_is_dealt_once(self) -> Self:
        for stock in self.stocks:
            named = any(stock.name in seat.shares for seat in self.seats)
            if named == (stock.shares is not None):
                raise ValueError(f"stock {stock.name}: either `shares` or the seats set the number")
        strangers = {name for seat in self.seats for name in seat.shares} - {one.name for one in self.stocks}
        if strangers:
            raise ValueError(f"seats name shares of unknown stocks: {', '.join(sorted(strangers))}")
        shaken = {shock.stock for shock in self.shocks if shock.stock} - {one.name for one in self.stocks}
        if shaken:
            raise ValueError(f"shocks name unknown stocks: {', '.join(sorted(shaken))}")
        if self.fundamental == "buy back" and any(one.kind == "dividend" for one in self.shocks):
            raise ValueError("a shock to dividends changes the value that the buy-back is to hold: leave one out")
        return self

    def fundamental_value(self, stock: StockRules, day: int) -> Decimal | None:
        """Expected value of a share on a day before its dividend; None where it has none that is known."""
        if self.fundamental == "dividends left":
            return stock.mean_dividend * self.dividend_factor(stock.name, day) * (self.days - day + 1)
        return self.buy_back if self.fundamental == "buy back" else None

    def dividend_factor(self, stock: str, day: int) -> Decimal:
        """Product of the shocks to a stock's dividends up to a day."""
        known = (one for one in self.shocks if one.kind == "dividend" and one.day <= day)
        return prod((one.factor for one in known if one.stock in {None, stock}), start=Decimal(1))

    def news(self, day: int) -> Sequence[str]:
        """Shocks of a day as every agent is told of them."""
        return tuple(
            f"All cash was multiplied by {one.factor}."
            if one.kind == "liquidity"
            else f"Dividends of {one.stock or 'all stocks'} are multiplied by {one.factor} from today on."
            for one in self.shocks
            if one.day == day
        )

    def moved(self, reference: Decimal, deal: Decimal, quantity: int, shares: int) -> Decimal:
        """The reference price after a deal of `quantity` of `shares` in circulation, without the daily cap.

        Source: Agent Trading Arena eq. 2 [R1].
        """
        if self.fluctuation is None:
            return deal
        weight = quantity * self.fluctuation
        return ((deal * weight + reference * shares) / (weight + shares)).quantize(REFERENCE_TICK)

    def capped(self, price: Decimal, last_close: Decimal) -> Decimal:
        """The price within the daily cap around the last close."""
        if self.daily_cap is None:
            return price
        most = (last_close * (1 + self.daily_cap)).quantize(REFERENCE_TICK)
        least = (last_close * (1 - self.daily_cap)).quantize(REFERENCE_TICK)
        return min(max(price, least), most)


def preset_names() -> Sequence[str]:
    """Names of the arena's own presets, a namespace apart from the cycle's."""
    return data_file_names(PRESETS)


def load_rules(name: str) -> ArenaRules:
    """The rules of a preset, by name or TOML file. Raises UsageError for an unknown name or a faulty file."""
    return read_data_file(ArenaRules, name, PRESETS, "arena preset")


S = TypeVar("S", bound=Frozen)


def data_file_names(folder: Path) -> Sequence[str]:
    """Names of the files that ship in a folder."""
    return sorted(file.stem for file in folder.glob("*.toml"))


def read_data_file(kind: type[S], name: str, folder: Path, called: str) -> S:
    """The settings of a file by name or as a TOML file; `called` names it in errors. Raises UsageError for an unknown
    name or a faulty file."""
    file = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    try:
        return kind.model_validate(tomllib.loads(file.read_text("utf-8"), parse_float=Decimal))
    except OSError:
        choice = ", ".join(data_file_names(folder))
        raise UsageError(f"no {called} {name}: choose {choice} or a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}") from None
    except ValidationError as error:
        raise UsageError(f"{file}: {complaint(kind, error)}") from None
