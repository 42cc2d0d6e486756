"""Alpaca's market data over HTTP, in the form of the data folder: daily bars, corporate actions, news, latest prices.

Bars are as traded: shares by the exchange's day, crypto by the UTC day, whatever day the service uses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from connectors.alpaca.account import NEW_YORK
from connectors.alpaca.failures import code_and_message
from connectors.alpaca.json_fields import by_wire, compact, exact, positive, to_wire, utc, utc_text
from connectors.alpaca.settings import AlpacaSettings
from connectors.rate_limited_http import HttpError, RateLimitedClient, json_object
from connectors.text import plain
from engine.domain.live import LastTrade, MinuteBar, Quote
from engine.domain.market import (
    CORRECT_SYMBOLS,
    ActionKind,
    Bar,
    CorporateAction,
    NewsItem,
    Symbol,
    SymbolActions,
    is_crypto,
)
from engine.errors import ConfigError, CredentialsRefused, MissingData, NetworkError, PaperdeskError

Bars = tuple[Symbol, Sequence[Bar]]
"""A symbol with some of its bars, in order; later ones come with a later page."""
Row = Mapping[str, Any]
ValueOf = Callable[[Symbol, Row], Quote | LastTrade | None]
T = TypeVar("T")

SECONDS_BETWEEN = 0.02
"""Least time between requests; the limit per minute is the service's own, from its headers."""
MOST_PAGES = 20_000
"""Limit of pages, far above any answer that is requested here: a response that never ends is abandoned."""
BARS_PER_PAGE, _ACTIONS_PER_PAGE = "10000", "1000"
_NEWS_PER_PAGE = "50"  # the most that there is; without a limit the service's pages never end
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


class AlpacaData:
    """The MarketDataService port. One instance belongs to one event loop; close it with `aclose`.

    All requests raise CredentialsRefused where the keys are refused, ConfigError where the address or the feed is not
    the account's, MissingData for an invalid symbol, NetworkError where the service cannot be reached or answers
    nonsense, TryAgainLater where it limits requests.
    """

    vendor = "Alpaca"

    def __init__(self, settings: AlpacaSettings, *, first_pause: float = 0.5, longest_wait: float = 90.0) -> None:
        """Set the pauses, which are those of a RateLimitedClient."""
        self.feed = settings.feed
        self._settings = settings
        self._client = RateLimitedClient(
            "Alpaca's data service",
            seconds_between=SECONDS_BETWEEN,
            timeout=settings.timeout,
            headers=settings.headers,
            direct=settings.is_local and settings.data_url == settings.trading_url,
            first_pause=first_pause,
            longest_wait=longest_wait,
        )

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

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
            yield symbol, [daily_bar(at.astimezone(NEW_YORK).date(), row) for at, row in rows]

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
                yield symbol, [daily_bar(at.date(), row) for at, row in rows]
        for symbol in dict.fromkeys(by_the_hour):
            pages = self._bar_rows(path, [symbol], params | {"timeframe": "1Hour"})
            hours = [one async for _, rows in pages for one in rows]
            days = groupby(hours, key=lambda one: one[0].date())
            yield symbol, [joined_bar(day, [daily_bar(day, row) for _, row in group]) for day, group in days]

    async def closes(self, symbols: Sequence[Symbol], day: date) -> dict[Symbol, Decimal]:
        """The closes of a day by the snapshots of symbols, whose last two daily bars these have; by the bars themselves
        where the account may not read the feed's snapshots. A close of zero is none."""
        crypto, found = is_crypto(symbols[0]), dict[Symbol, Decimal]()
        path = "/v1beta3/crypto/us/snapshots" if crypto else "/v2/stocks/snapshots"
        feed = {} if crypto else {"feed": self.feed}
        read = partial(_snapshot_closes, names=by_wire(symbols), day=day, crypto=crypto)
        try:
            for at in range(0, len(symbols), _SYMBOLS_AT_ONCE):
                wanted = map(to_wire, symbols[at : at + _SYMBOLS_AT_ONCE])
                async for page in self._follow(path, read, wanted, **feed):
                    found |= page
        except ConfigError:
            bars = [(symbol, bar) async for symbol, some in self.bars(symbols, day, day) for bar in some]
            return {symbol: bar.close for symbol, bar in bars if bar.session == day and bar.close > 0}
        return found

    async def minutes(self, symbol: Symbol, first: datetime, last: datetime) -> list[MinuteBar]:
        """Raw bars of the minutes that began within a period, both ends included, in order."""
        path, params = "/v2/stocks/bars", {"adjustment": "raw", "feed": self.feed}
        if is_crypto(symbol):
            path, params = "/v1beta3/crypto/us/bars", {}
        params |= {"timeframe": "1Min", "start": utc_text(first), "end": utc_text(last)}
        pages = self._bar_rows(path, [symbol], params)
        return [minute_bar(at, row) async for _, rows in pages for at, row in rows]

    async def _bar_rows(
        self, path: str, symbols: Sequence[Symbol], params: Mapping[str, str]
    ) -> AsyncIterator[tuple[Symbol, list[tuple[datetime, Row]]]]:
        names = by_wire(symbols)
        async for page in self._follow(
            path, bar_rows, map(to_wire, symbols), limit=BARS_PER_PAGE, sort="asc", **params
        ):
            for name, rows in page.items():
                if name in names:
                    yield names[name], rows

    async def latest(self, symbols: Sequence[Symbol]) -> list[Quote | LastTrade]:
        """The latest quote and trade of every symbol, where there are any; shares and crypto need separate requests."""
        crypto = is_crypto(symbols[0])
        path = "/v1beta3/crypto/us/latest/{}" if crypto else "/v2/stocks/{}/latest"
        feed = {} if crypto else {"feed": self.feed}
        names = by_wire(symbols)
        messages: list[Quote | LastTrade] = []
        for kind, value_of in (("quotes", quote_of), ("trades", trade_of)):
            read = partial(_latest_rows, kind=kind, value_of=value_of, names=names)
            async for page in self._follow(path.format(kind), read, map(to_wire, symbols), **feed):
                messages += page
        return messages

    # Corporate actions

    async def actions(self, symbols: Sequence[Symbol], first: date, last: date) -> dict[Symbol, SymbolActions]:
        """All actions with an ex-date within a period, both days included, for every share; crypto has none."""
        shares = [symbol for symbol in symbols if not is_crypto(symbol)]
        actions: dict[Symbol, list[_ActionRow]] = {symbol: [] for symbol in shares}
        period = {"start": (first - _BEFORE).isoformat(), "end": (last + _AFTER).isoformat()}
        names = by_wire(shares)
        for at in range(0, len(shares), _SYMBOLS_AT_ONCE):
            wanted = map(to_wire, shares[at : at + _SYMBOLS_AT_ONCE])
            async for page in self._follow(
                "/v1/corporate-actions", _action_rows, wanted, limit=_ACTIONS_PER_PAGE, sort="asc", **period
            ):
                for name, one in page:
                    if name in names and first <= one.ex_date <= last:
                        actions[names[name]].append(one)
        return {symbol: _summary(symbol, rows) for symbol, rows in actions.items()}

    # News

    def news(self, symbols: Sequence[Symbol], first: datetime, last: datetime) -> AsyncIterator[list[NewsItem]]:
        """News of symbols changed within a period, in order of the last change, a page at a time.

        An article comes once for each of its symbols, in its latest version, and is available from its last change.
        Texts have no markup.
        """
        return self._follow(
            "/v1beta1/news",
            partial(_news_items, names=by_wire(symbols)),
            map(compact, symbols),
            start=utc_text(first, "microseconds"),
            end=utc_text(last, "microseconds"),
            limit=_NEWS_PER_PAGE,
            sort="asc",
            include_content="false",
        )

    # Pages

    async def _follow(
        self, path: str, read: Callable[[dict[str, Any]], T], symbols: Iterable[str], **params: str
    ) -> AsyncIterator[T]:
        """The result of `read` on every page of a response about symbols in the service's notation.

        `read` raises ValueError, KeyError or TypeError for a page of another shape, which is then requested again.
        Raises CredentialsRefused, ConfigError, MissingData, NetworkError, TryAgainLater.
        """
        address, query = self._settings.data_url, {"symbols": ",".join(symbols), **params}
        seen: set[str] = set()
        while True:
            try:
                result = await self._client.get(f"{address}{path}", partial(_page, read=read), params=query)
            except HttpError as refusal:
                raise _error_of(refusal.status, self._settings.without_keys(_message(refusal.text)), path) from None
            if result is None:
                raise ConfigError(f"{address} has no {path}; correct broker.data_url")
            page, token = result
            yield page
            if not token:
                return
            if token in seen or len(seen) == MOST_PAGES:
                raise NetworkError(f"Alpaca's data service never reaches the last page of {path}; try again later")
            seen.add(token)
            query |= {"page_token": token}


def _page(body: bytes, read: Callable[[dict[str, Any]], T]) -> tuple[T, str | None]:
    """A page and the token of the next one. Raises ValueError for another shape."""
    document = json_object(body)
    token = document.get("next_page_token")
    if token is not None and not isinstance(token, str):
        raise ValueError("next_page_token is no text")
    try:
        return read(document), token
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"unexpected format: {type(error).__name__} {error}") from None


def quote_of(symbol: Symbol, row: Row) -> Quote | None:
    """A quote; None with an empty side. Raises KeyError, TypeError, ValueError for another shape."""
    if not row["bp"] or not row["ap"]:
        return None
    return Quote(symbol, positive(row["bp"]), positive(row["ap"]), utc(row["t"]))


def _snapshot_closes(page: Row, *, names: Mapping[str, Symbol], day: date, crypto: bool) -> dict[Symbol, Decimal]:
    """The closes of a day in snapshots; a UTC day's where crypto bars begin with it."""
    found: dict[Symbol, Decimal] = {}
    for name, snapshot in (page["snapshots"] if crypto else page).items():
        for bar in (snapshot[key] for key in ("prevDailyBar", "dailyBar") if name in names and snapshot.get(key)):
            at = utc(bar["t"]).astimezone(UTC if crypto else NEW_YORK)
            if at.date() == day and at.time() == _MIDNIGHT and bar["c"]:
                found[names[name]] = positive(bar["c"])
    return found


def trade_of(symbol: Symbol, row: Row) -> LastTrade:
    """A trade. Raises KeyError, TypeError, ValueError for another shape."""
    return LastTrade(symbol, positive(row["p"]), utc(row["t"]))


def _latest_rows(page: Row, *, kind: str, value_of: ValueOf, names: Mapping[str, Symbol]) -> list[Quote | LastTrade]:
    values = (value_of(names[name], row) for name, row in page[kind].items() if name in names)
    return [value for value in values if value is not None]


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


def _news_items(page: Row, *, names: Mapping[str, Symbol]) -> list[NewsItem]:
    return [item for row in page["news"] or () for item in _items(row, names)]


def _items(row: Row, names: Mapping[str, Symbol]) -> list[NewsItem]:
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


def _text(row: Row, key: str) -> str | None:
    value = row.get(key)
    return plain(value) or None if isinstance(value, str) else None


def _error_of(status: int, message: str, path: str) -> PaperdeskError:
    if "subscription" in message.lower():
        return ConfigError(
            f'Alpaca does not give this account these prices ({message}): set broker.feed = "iex", or subscribe'
        )
    if status in {401, 403}:
        return CredentialsRefused(
            f"Alpaca's data service refused the keys (HTTP {status}); check APCA_API_KEY_ID and "
            "APCA_API_SECRET_KEY, and that they belong to the paper account"
        )
    if "invalid symbol" in message.lower():
        return MissingData(f"Alpaca knows no such symbol ({message}){CORRECT_SYMBOLS}")
    return NetworkError(f"Alpaca's data service refused {path} (HTTP {status}): {message or 'no reason given'}")


def _message(text: str) -> str:
    """The message of an error, on one line."""
    return (code_and_message(text)[1] or " ".join(text.split()))[:200]


def bar_rows(page: dict[str, Any]) -> dict[str, list[tuple[datetime, Row]]]:
    """Bars with the time (UTC) at which each began, by Alpaca's symbol. Raises ValueError, KeyError, TypeError,
    AttributeError."""
    found = {name: [(utc(row["t"]), row) for row in rows] for name, rows in (page["bars"] or {}).items()}
    for rows in found.values():
        for _, row in rows:
            daily_bar(date.min, row)
    return found


def daily_bar(day: date, row: Row) -> Bar:
    """The bar of a day; a price that is null becomes zero, which no price is. Raises KeyError, TypeError, ValueError
    for another shape."""
    opened, high, low, close = (exact(0 if row[key] is None else row[key]) for key in "ohlc")
    volume = None if row["v"] is None else exact(row["v"])
    return Bar(session=day, open=opened, high=high, low=low, close=close, adj_close=None, volume=volume)


def minute_bar(begins: datetime, row: Row) -> MinuteBar:
    """The bar of a minute (UTC). Raises as `daily_bar` does."""
    opened, high, low, close, volume = (exact(row[key]) for key in "ohlcv")
    return MinuteBar(begins=begins, open=opened, high=high, low=low, close=close, volume=volume)


def joined_bar(day: date, hours: Sequence[Bar]) -> Bar:
    """The bar of a day from those of its hours."""
    volume = sum((hour.volume or Decimal(0) for hour in hours), Decimal(0))
    high, low = max(hour.high for hour in hours), min(hour.low for hour in hours)
    return Bar(
        session=day, open=hours[0].open, high=high, low=low, close=hours[-1].close, adj_close=None, volume=volume
    )
