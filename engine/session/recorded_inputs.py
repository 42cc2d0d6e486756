"""A turn's inputs as they were seen: kept in parts, read again, and the venue that a turn is replayed in.

Each part is kept once: bars by month, filings one by one, macro series by year. A day in a desk's life adds little to
the days before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from math import isnan
from typing import Any, TypeVar

from engine.cycle.recall import YEAR
from engine.cycle.turn import Turn
from engine.domain.json_text import from_json, to_json, typed
from engine.domain.macro import MacroObservation, MacroSeries
from engine.domain.market import CorporateAction, Filing, NewsItem, PriceHistory, Symbol
from engine.domain.portfolio import ZERO, Portfolio, Position
from engine.execution.venue import BuyingPower, OrderTerms, SessionVenue, Settlement
from engine.market.as_of import Market
from engine.ports import Calendar

T = TypeVar("T")
Inputs = Mapping[str, Sequence[bytes]]
"""Parts by name, as JournalWriter.inputs takes them."""

_TURN = "turn"
_COLUMNS = ("sessions", "open", "high", "low", "close", "adj_close")
_MACRO_PERIOD = timedelta(days=800)
"""Period of macro observations that is kept before the last, with room: a year and the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInputs:
    """A turn's inputs, read again.

    symbols, news_after, portfolio, reserved, queued, whole_shares, terms, prices: as in Turn
    shares, crypto: as in BuyingPower
    market: holds nothing that was not known
    now: moment of the decision, UTC; None in a backtest, which decides after the close
    """

    symbols: tuple[Symbol, ...]
    news_after: datetime
    portfolio: Portfolio
    market: Market
    reserved: Decimal = ZERO
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)
    whole_shares: frozenset[Symbol] = frozenset()
    terms: Mapping[Symbol, OrderTerms] = field(default_factory=dict)
    shares: Decimal | None = None
    crypto: Decimal | None = None
    now: datetime | None = None
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)


def input_parts(turn: Turn, market: Market, bars: int) -> Inputs:
    """The inputs of a turn: of every symbol that is decided or held the last `bars` visible bars and those of the month
    in which they begin, its corporate actions since, new news, and a year's filings; macro series."""
    now = turn.market.now
    known = market.cut(now)
    parts: dict[str, Sequence[bytes]] = {_TURN: (_bytes(_books(turn)),)}
    for symbol in dict.fromkeys((*turn.symbols, *turn.portfolio.positions)):
        history = _whole_months(known.histories[symbol], bars)
        parts[f"bars {symbol}"] = _months(history)
        actions = known.actions.get(symbol)
        if actions is not None:
            begin = history.session(0) if len(history) else now.date()
            parts[f"actions {symbol}"] = (_bytes([action for action in actions if action.ex_date > begin]),)
        parts[f"news {symbol}"] = _one(turn.market.news(symbol, turn.news_after))
        parts[f"filings {symbol}"] = tuple(_bytes(one) for one in turn.market.filings(symbol, now - YEAR))
    parts["commentary"] = tuple(_bytes(one) for one in turn.market.commentary(now - YEAR))
    for name, series in known.macro.items():
        parts[f"macro {name}"] = _years(series)
    return parts


def read_inputs(inputs: Inputs, calendar_of: Callable[[Symbol], Calendar]) -> TurnInputs:
    """The inputs that `input_parts` made parts of."""
    books = json.loads(inputs[_TURN][0])
    histories = {symbol: _history(symbol, parts) for symbol, parts in _named(inputs, "bars").items()}
    actions = {symbol: _all(CorporateAction, parts) for symbol, parts in _named(inputs, "actions").items()}
    filings = {
        symbol: [from_json(Filing, part.decode()) for part in parts]
        for symbol, parts in _named(inputs, "filings").items()
    }
    market = Market(
        histories=histories,
        actions={symbol: actions.get(symbol) for symbol in histories},
        news={symbol: _all(NewsItem, parts) for symbol, parts in _named(inputs, "news").items()},
        filings=filings,
        calendars={symbol: calendar_of(symbol) for symbol in histories},
        macro={
            name: MacroSeries(name, tuple(_all(MacroObservation, parts)))
            for name, parts in _named(inputs, "macro").items()
        },
        commentary=[from_json(NewsItem, part.decode()) for part in inputs.get("commentary", ())],
    )
    return TurnInputs(
        symbols=tuple(books["symbols"]),
        news_after=datetime.fromisoformat(books["news_after"]),
        portfolio=Portfolio(
            Decimal(books["cash"]),
            {s: Position(Decimal(quantity), Decimal(cost)) for s, quantity, cost in books["positions"]},
            Decimal(books["money_step"]),
        ),
        reserved=Decimal(books["reserved"]),
        queued={symbol: Decimal(shares) for symbol, shares in books["queued"].items()},
        whole_shares=frozenset(books["whole_shares"]),
        terms={symbol: typed(OrderTerms, one) for symbol, one in books["terms"].items()},
        shares=_decimal_or_none(books["shares"]),
        crypto=_decimal_or_none(books["crypto"]),
        market=market,
        now=moment_of(inputs),
        prices={symbol: Decimal(price) for symbol, price in books["prices"].items()},
    )


def _decimal_or_none(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def moment_of(inputs: Inputs) -> datetime:
    """The moment at which a turn was decided, UTC."""
    return datetime.fromisoformat(json.loads(inputs[_TURN][0])["now"])


def _books(turn: Turn) -> dict[str, Any]:
    portfolio, power = turn.portfolio, turn.power or BuyingPower(ZERO)
    return {
        "symbols": turn.symbols,
        "now": turn.market.now,
        "news_after": turn.news_after,
        "cash": portfolio.cash,
        "money_step": portfolio.money_step,
        "positions": [(s, p.quantity, p.average_cost) for s, p in portfolio.positions.items()],
        "reserved": turn.reserved,
        "queued": turn.queued,
        "whole_shares": sorted(turn.whole_shares),
        "terms": turn.terms,
        "shares": power.shares,
        "crypto": power.crypto,
        "prices": turn.prices,
    }


def _whole_months(history: PriceHistory, bars: int) -> PriceHistory:
    start = max(0, len(history) - bars)
    month = _month(history, start) if len(history) else None
    while start and _month(history, start - 1) == month:
        start -= 1
    return history.slice(start, len(history))


def _month(history: PriceHistory, row: int) -> date:
    return history.session(row).replace(day=1)


def _months(history: PriceHistory) -> tuple[bytes, ...]:
    months = groupby(range(len(history)), key=lambda row: _month(history, row))
    return tuple(_columns(history, [*rows]) for _, rows in months)


def _columns(history: PriceHistory, rows: Sequence[int]) -> bytes:
    some = history.slice(rows[0], rows[-1] + 1)
    columns = {name: [*getattr(some, name)] for name in _COLUMNS}
    return _bytes(columns | {"volume": [None if isnan(volume) else volume for volume in some.volume]})


def _history(symbol: Symbol, parts: Sequence[bytes]) -> PriceHistory:
    whole = PriceHistory.of(symbol, ())
    for part in parts:
        columns = json.loads(part)
        for name in _COLUMNS:
            getattr(whole, name).extend(columns[name])
        whole.volume.extend(float("nan") if volume is None else volume for volume in columns["volume"])
    return whole


def _years(series: MacroSeries) -> tuple[bytes, ...]:
    """The observations that a release can be about, in whole years of their periods: one that is over stays as it
    is."""
    if not series.observations:
        return ()
    first = (max(one.date for one in series.observations) - _MACRO_PERIOD).year
    recent = [one for one in series.observations if one.date.year >= first]
    return tuple(_bytes([*some]) for _, some in groupby(recent, key=lambda one: one.date.year))


def _one(items: Iterable[Any]) -> tuple[bytes, ...]:
    """All of it as one part; none of nothing."""
    some = [*items]
    return (_bytes(some),) if some else ()


def _all(kind: type[T], parts: Sequence[bytes]) -> list[T]:
    return [typed(kind, item) for part in parts for item in json.loads(part)]


def _bytes(value: Any) -> bytes:
    return to_json(value).encode()


def _named(inputs: Inputs, kind: str) -> dict[str, Sequence[bytes]]:
    found = ((name.partition(" "), parts) for name, parts in inputs.items())
    return {name: parts for (prefix, _, name), parts in found if prefix == kind}


@dataclass(frozen=True, slots=True)
class RecordedVenue:
    """The books and the limits that a turn was decided with; where the run goes on, `settling` closes sessions."""

    portfolio: Portfolio
    buying_power: BuyingPower
    whole: frozenset[Symbol] = frozenset()
    taken: Mapping[Symbol, OrderTerms] = field(default_factory=dict)
    settling: SessionVenue | None = None

    @classmethod
    def of(cls, inputs: TurnInputs, settling: SessionVenue | None = None) -> RecordedVenue:
        """The venue of a turn whose inputs were kept."""
        power = BuyingPower(
            inputs.portfolio.cash,
            inputs.reserved,
            queued=inputs.queued,
            shares=inputs.shares,
            crypto=inputs.crypto,
        )
        return cls(inputs.portfolio, power, inputs.whole_shares, inputs.terms, settling)

    async def settle(self, session: date) -> Settlement:
        """Settle where the run goes on."""
        return Settlement() if self.settling is None else await self.settling.settle(session)

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """The symbols that were traded in whole shares."""
        return self.whole

    async def terms(self, symbols: Iterable[Symbol]) -> Mapping[Symbol, OrderTerms]:
        """The orders that were taken."""
        return self.taken
