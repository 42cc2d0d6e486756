"""Alpaca's market data over HTTP, in the form of the data folder: daily bars, corporate actions and news.

Bars are as traded: shares by the exchange's day, crypto by the UTC day, whatever day the service uses.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from html import unescape
from itertools import groupby
from typing import Any, TypeVar

from connectors.alpaca.account import NEW_YORK
from connectors.alpaca.data_pages import AlpacaPages
from connectors.alpaca.json_fields import by_wire, compact, exact, positive, to_wire, utc, utc_text
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.live import LastTrade, Quote
from engine.domain.market import (
    ActionKind,
    Bar,
    CorporateAction,
    NewsItem,
    Symbol,
    SymbolActions,
    is_crypto,
)

Bars = tuple[Symbol, Sequence[Bar]]
"""A symbol with some of its bars, in order; later ones come with a later page."""
Row = Mapping[str, Any]
ValueOf = Callable[[Symbol, Row], Quote | LastTrade | None]
T = TypeVar("T")

BARS_PER_PAGE = 10_000
_ACTIONS_PER_PAGE = 1000
_NEWS_PER_PAGE = 50  # the most that there is; without a limit the service's pages never end
_SYMBOLS_AT_ONCE = 50  # of one request for actions: their names stand in its address
_BEFORE, _AFTER = timedelta(days=10), timedelta(days=370)
"""Margins of a request for actions: the service selects by the day of processing, a dividend's by the day of its
payment, weeks or months after its ex-date."""

FOREIGN_CURRENCY = "dividend in another currency"
_SPLITS = ("forward_splits", "reverse_splits")
_OTHERWISE = {
    "spin_offs": "source_symbol",
    "rights_distributions": "source_symbol",
    "unit_splits": "old_symbol",
}
"""Unsupported actions that change the value of a share, with the field that names the share."""

_MIDNIGHT = time(0)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


class AlpacaData:
    """The MarketDataService port over AlpacaPages. One instance belongs to one event loop.

    All requests raise CredentialsRefused where the keys are refused, ConfigError where the address or the feed is not
    the account's, MissingData for an invalid symbol, NetworkError where the service cannot be reached or answers
    nonsense, TryAgainLater where it limits requests.
    """

    vendor = "Alpaca"

    def __init__(self, settings: AlpacaSettings, *, first_pause: float = 0.5, longest_wait: float = 90.0) -> None:
        """Set the pauses, which are those of a RateLimitedClient."""
        self.feed = settings.feed
        self._pages = AlpacaPages(settings, first_pause=first_pause, longest_wait=longest_wait)

    async def aclose(self) -> None:
        """Close connections."""
        await self._pages.aclose()

    # Bars

    def bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[Bars]:
        """Raw daily bars within a period, both days included, symbol after symbol; not adjusted for splits or
        dividends.

        Shares and crypto need separate requests. A bar of a session that is not over may be among them.
        """
        read = self._crypto_bars if is_crypto(symbols[0]) else self._stock_bars
        return read(symbols, first, last)

    async def _stock_bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[Bars]:
        # Both ends are the stamps of daily bars themselves, midnight in New York: a later end would ask some accounts
        # for more than their subscription gives (the last quarter of an hour).
        params = {
            "timeframe": "1Day",
            "start": utc_text(datetime.combine(first, _MIDNIGHT, NEW_YORK)),
            "end": utc_text(datetime.combine(last, _MIDNIGHT, NEW_YORK)),
            "adjustment": "raw",
            "feed": self.feed,
        }
        async for symbol, rows in self._bar_rows("/v2/stocks/bars", symbols, params):
            yield symbol, [_bar(at.astimezone(NEW_YORK).date(), row) for at, row in rows]

    async def _crypto_bars(self, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[Bars]:
        """Bars of UTC days.

        Until 2025 the service's own days began at midnight in Chicago; where they still do, bars are built from hours.
        """
        path = "/v1beta3/crypto/us/bars"
        params = {
            "timeframe": "1Day",
            "start": utc_text(datetime.combine(first, _MIDNIGHT, UTC)),
            "end": utc_text(datetime.combine(last, _MIDNIGHT, UTC) + timedelta(days=1, seconds=-1)),
        }
        by_the_hour: list[Symbol] = []
        async for symbol, rows in self._bar_rows(path, symbols, params):
            if symbol in by_the_hour or any(at.time() != _MIDNIGHT for at, _ in rows):
                by_the_hour.append(symbol)
            else:
                yield symbol, [_bar(at.date(), row) for at, row in rows]
        for symbol in dict.fromkeys(by_the_hour):
            pages = self._bar_rows(path, [symbol], params | {"timeframe": "1Hour"})
            hours = [one async for _, rows in pages for one in rows]
            days = groupby(hours, key=lambda one: one[0].date())
            yield symbol, [_whole(day, [_bar(day, row) for _, row in group]) for day, group in days]

    async def _bar_rows(
        self, path: str, symbols: Sequence[Symbol], params: Mapping[str, str]
    ) -> AsyncIterator[tuple[Symbol, list[tuple[datetime, Row]]]]:
        names = by_wire(symbols)
        wanted = ",".join(map(to_wire, symbols))
        async for page in self._follow(path, wanted, params, _bar_rows, BARS_PER_PAGE):
            for name, rows in page.items():
                if name in names:
                    yield names[name], rows

    async def latest(self, symbols: Sequence[Symbol]) -> list[Quote | LastTrade]:
        """The latest quote and trade of every symbol, where there are any; shares and crypto need separate requests."""
        crypto = is_crypto(symbols[0])
        path = "/v1beta3/crypto/us/latest/{}" if crypto else "/v2/stocks/{}/latest"
        params = {"symbols": ",".join(map(to_wire, symbols))} | ({} if crypto else {"feed": self.feed})
        names = by_wire(symbols)
        messages: list[Quote | LastTrade] = []
        for kind, value_of in (("quotes", quote_of), ("trades", trade_of)):

            def read(page: dict[str, Any], kind: str = kind, value_of: ValueOf = value_of) -> list[Quote | LastTrade]:
                values = (value_of(names[name], row) for name, row in page[kind].items() if name in names)
                return [value for value in values if value is not None]

            async for page in self._pages.follow(path.format(kind), params, read):
                messages += page
        return messages

    # Corporate actions

    async def actions(self, symbols: Sequence[Symbol], first: date, last: date) -> dict[Symbol, SymbolActions]:
        """All actions with an ex-date within a period, both days included, for every share; crypto has none."""
        shares = [symbol for symbol in symbols if not is_crypto(symbol)]
        actions: dict[Symbol, list[_ActionRow]] = {symbol: [] for symbol in shares}
        params = {"start": (first - _BEFORE).isoformat(), "end": (last + _AFTER).isoformat()}
        names = by_wire(shares)
        for at in range(0, len(shares), _SYMBOLS_AT_ONCE):
            wanted = ",".join(map(to_wire, shares[at : at + _SYMBOLS_AT_ONCE]))
            async for page in self._follow("/v1/corporate-actions", wanted, params, _action_rows, _ACTIONS_PER_PAGE):
                for name, one in page:
                    if name in names and first <= one.ex_date <= last:
                        actions[names[name]].append(one)
        return {symbol: _summary(symbol, rows) for symbol, rows in actions.items()}

    # News

    async def news(self, symbols: Sequence[Symbol], first: datetime, last: datetime) -> AsyncIterator[list[NewsItem]]:
        """News of symbols changed within a period, in order of the last change, a page at a time.

        An article comes once for each of its symbols, in its latest version, and is available from its last change.
        Texts have no markup.
        """
        params = {
            "start": utc_text(first, "microseconds"),
            "end": utc_text(last, "microseconds"),
            "include_content": "false",
        }
        names = by_wire(symbols)

        def read(page: dict[str, Any]) -> list[NewsItem]:
            return [item for row in page["news"] or () for item in _items(row, names)]

        wanted = ",".join(map(compact, symbols))
        async for page in self._follow("/v1beta1/news", wanted, params, read, _NEWS_PER_PAGE):
            yield page

    def _follow(
        self, path: str, symbols: str, params: Mapping[str, str], read: Callable[[dict[str, Any]], T], limit: int
    ) -> AsyncIterator[T]:
        every = {"symbols": symbols, "limit": str(limit), "sort": "asc", **params}
        return self._pages.follow(path, every, read)


def quote_of(symbol: Symbol, row: Row) -> Quote | None:
    """A quote; None with an empty side. Raises KeyError, TypeError, ValueError for another shape."""
    if not row["bp"] or not row["ap"]:
        return None
    return Quote(symbol, positive(row["bp"]), positive(row["ap"]), utc(row["t"]))


def trade_of(symbol: Symbol, row: Row) -> LastTrade:
    """A trade. Raises KeyError, TypeError, ValueError for another shape."""
    return LastTrade(symbol, positive(row["p"]), utc(row["t"]))


def _bar_rows(page: dict[str, Any]) -> dict[str, list[tuple[datetime, Row]]]:
    """Bars with the time (UTC) at which each began, by Alpaca's symbol. Raises ValueError, KeyError, TypeError,
    AttributeError."""
    found = {name: [(utc(row["t"]), row) for row in rows] for name, rows in (page["bars"] or {}).items()}
    for rows in found.values():
        for _, row in rows:
            _bar(date.min, row)
    return found


def _bar(day: date, row: Row) -> Bar:
    opened, high, low, close, volume = (exact(row[key]) for key in "ohlcv")
    return Bar(session=day, open=opened, high=high, low=low, close=close, adj_close=None, volume=volume)


def _whole(day: date, hours: Sequence[Bar]) -> Bar:
    volume = sum((hour.volume or Decimal(0) for hour in hours), Decimal(0))
    high, low = max(hour.high for hour in hours), min(hour.low for hour in hours)
    return Bar(
        session=day, open=hours[0].open, high=high, low=low, close=hours[-1].close, adj_close=None, volume=volume
    )


@dataclass(frozen=True, slots=True)
class _ActionRow:
    """One action of the service; `kind` None for an unsupported one. The service may list one twice, with the same
    id."""

    id: str
    ex_date: date
    kind: ActionKind | None
    value: Decimal
    description: str = ""


def _action_rows(page: dict[str, Any]) -> list[tuple[str, _ActionRow]]:
    groups: Mapping[str, Sequence[Row]] = page["corporate_actions"] or {}
    rows: list[tuple[str, _ActionRow]] = []
    for row in groups.get("cash_dividends") or ():
        if (row.get("currency") or "USD") == "USD":
            rows.append((row["symbol"], _one(row, ActionKind.DIVIDEND, positive(row["rate"]))))
        else:
            rows.append((row["symbol"], _one(row, None, Decimal(0), FOREIGN_CURRENCY)))
    for group in _SPLITS:
        for row in groups.get(group) or ():
            ratio = positive(row["new_rate"]) / positive(row["old_rate"])
            rows.append((row["symbol"], _one(row, ActionKind.SPLIT, ratio)))
    for row in groups.get("stock_dividends") or ():
        rows.append((row["symbol"], _one(row, ActionKind.SPLIT, 1 + positive(row["rate"]))))
    for group, named in _OTHERWISE.items():
        for row in groups.get(group) or ():
            rows.append((row[named], _one(row, None, Decimal(0), group.removesuffix("s").replace("_", "-"))))
    return rows


def _one(row: Row, kind: ActionKind | None, value: Decimal, description: str = "") -> _ActionRow:
    day = row.get("ex_date") or row.get("effective_date") or row["process_date"]
    return _ActionRow(str(row["id"]), date.fromisoformat(day), kind, value, description)


def _summary(symbol: Symbol, rows: Sequence[_ActionRow]) -> SymbolActions:
    """Actions by day: two dividends of a day are added, two splits multiplied."""
    values: dict[tuple[date, ActionKind], Decimal] = {}
    unsupported: set[tuple[date, str]] = set()
    for one in {one.id: one for one in rows}.values():
        if one.kind is None:
            unsupported.add((one.ex_date, one.description))
            continue
        key = one.ex_date, one.kind
        if key not in values:
            values[key] = one.value
        elif one.kind is ActionKind.DIVIDEND:
            values[key] += one.value
        else:
            values[key] *= one.value
    actions = (CorporateAction(symbol, day, kind, value) for (day, kind), value in sorted(values.items()))
    return SymbolActions(tuple(actions), tuple(sorted(unsupported)))


def plain(text: str) -> str:
    """Text without tags, entities and line breaks."""
    return " ".join(unescape(_TAG.sub(" ", _UNSEEN.sub(" ", text))).split())


def _items(row: dict[str, Any], names: dict[str, Symbol]) -> list[NewsItem]:
    created = utc(row["created_at"])
    known = max(created, utc(row.get("updated_at") or row["created_at"]))
    headline, summary = (plain(row.get(key) or "") for key in ("headline", "summary"))
    source, url = (_text(row, key) for key in ("source", "url"))
    about = dict.fromkeys(names[name] for name in row["symbols"] or () if name in names)
    return [
        NewsItem(
            id=str(row["id"]),
            symbol=symbol,
            date=created.date(),
            available_at=known,
            summary=summary,
            headline=headline or None,
            published=created,
            source=source,
            sentiment=None,
            url=url,
        )
        for symbol in about
    ]


def _text(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    return plain(value) or None if isinstance(value, str) else None
