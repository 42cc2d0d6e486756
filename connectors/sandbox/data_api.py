"""Market data in the protocol: bars, quotes, trades, news and corporate actions, up to the sandbox's clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from hashlib import blake2b
from itertools import groupby, islice
from typing import Any

from connectors.sandbox.bars import ADJUSTMENTS, Timeframe, bars
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.market import Listing
from connectors.sandbox.protocol import (
    INSTANT,
    NEW_YORK,
    Request,
    invalid,
    moment_of,
    page_token,
    route,
    stable_id,
)
from engine.domain.market import ActionKind, CorporateAction, NewsItem

_LONG_AGO = datetime(2000, 1, 3, tzinfo=UTC)
_UNTIL_PAID = timedelta(days=14)
_SIZE = 100
_LATEST = ("bars", "quotes", "trades")
"""Kinds of latest data."""


class DataApi:
    """Requests for market data and news. An unlisted symbol is left out, as the service does."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._market = exchange.market

    # Bars

    @route("GET", "/v2/stocks/bars", "/v1beta3/crypto/{loc}/bars")
    def many_bars(self, request: Request) -> dict[str, Any]:
        """Bars of several symbols, symbol by symbol."""
        found, token = self._bars(request, self._requested(request))
        return {"bars": found, "next_page_token": token}

    def _bars(self, request: Request, listings: Sequence[Listing]) -> tuple[dict[str, list[Any]], str | None]:
        """A page of bars by symbol, and the token of the next one."""
        now = self._exchange.now
        frame = Timeframe.of(request.query.get("timeframe") or "")
        adjustment = request.choice("adjustment", "raw", ADJUSTMENTS)
        start = request.moment("start") or datetime.combine(now.astimezone(NEW_YORK).date(), time(0), NEW_YORK)
        end = request.moment("end", end_of_day=True) or now
        newest_first = request.newest_first("sort", "asc")
        limit, token = request.number("limit", 1000, 10_000), request.page_token()

        def following() -> Iterator[tuple[str, dict[str, Any]]]:
            for listing in sorted(listings, key=lambda one: one.wire):
                if token is not None and listing.wire < token[0]:
                    continue
                first, last = start, end
                if token is not None and listing.wire == token[0]:
                    passed = moment_of(token[1], "page_token")
                    if newest_first:
                        last = min(last, passed - INSTANT)
                    else:
                        first = max(first, passed + INSTANT)
                symbol, moment = listing.symbol, self._exchange.horizon(listing.symbol)
                found = bars(self._market, symbol, frame, start=first, end=last, moment=moment, adjustment=adjustment)
                if frame.length is None:
                    found = map(partial(self._as_faulted, symbol), found)
                yield from ((listing.wire, one) for one in (reversed(list(found)) if newest_first else found))

        page = list(islice(following(), limit + 1))
        by_symbol = groupby(page[:limit], key=lambda row: row[0])
        found = {wire: [one for _, one in rows] for wire, rows in by_symbol}
        if len(page) <= limit:
            return found, None
        wire, last_bar = page[limit - 1]
        return found, page_token(wire, last_bar["t"].isoformat())

    def _as_faulted(self, symbol: str, bar: dict[str, Any]) -> dict[str, Any]:
        """A daily bar as the market's fault has it."""
        rule = self._exchange.faults.active("bar", symbol)
        if rule is None or bar["t"] + timedelta(days=1) <= datetime.fromisoformat(rule.since):
            return bar
        prices = {name: round(bar[name] * float(rule.fraction), 4) for name in ("o", "h", "l", "c")}
        return bar | prices | rule.change

    # The latest

    @route(
        "GET",
        *(f"/v2/stocks/{kind}/latest" for kind in _LATEST),
        *(f"/v1beta3/crypto/{{loc}}/latest/{kind}" for kind in _LATEST),
    )
    def latest(self, request: Request) -> dict[str, Any]:
        """Latest bars, quotes or trades of several symbols."""
        kind = next(part for part in reversed(request.path.split("/")) if part in _LATEST)
        read = {"bars": self.minute_bar, "quotes": self.quote, "trades": self.trade}[kind]
        return {kind: {one.wire: made for one in self._requested(request) if (made := read(one)) is not None}}

    def quote(self, listing: Listing) -> dict[str, Any] | None:
        """Present bid and ask."""
        bid, ask = self._exchange.quote(listing.symbol)
        if not bid:
            return None
        figures: dict[str, Any] = {"t": self._at(listing), "bp": bid, "bs": _SIZE, "ap": ask, "as": _SIZE}
        return figures if listing.crypto else figures | {"bx": "V", "ax": "V", "c": ["R"], "z": "C"}

    def trade(self, listing: Listing) -> dict[str, Any] | None:
        """The last trade."""
        price, at = self._exchange.price(listing.symbol), self._at(listing)
        if not price:
            return None
        figures: dict[str, Any] = {"t": at, "p": price, "s": _SIZE, "i": int(at.timestamp())}
        return figures | ({"tks": "B"} if listing.crypto else {"x": "V", "c": ["@"], "z": "C"})

    def minute_bar(self, listing: Listing) -> dict[str, Any] | None:
        """The last minute that had begun; after the close the session's last one."""
        at = self._at(listing) - INSTANT
        begun = at.replace(second=0, microsecond=0)
        moment = self._exchange.horizon(listing.symbol)
        return next(bars(self._market, listing.symbol, Timeframe(1, "m"), start=begun, end=at, moment=moment), None)

    def daily_bars(self, listing: Listing) -> list[dict[str, Any]]:
        """The last two daily bars, the younger one first."""
        moment = self._exchange.horizon(listing.symbol)
        since = moment - timedelta(days=14)
        made = list(bars(self._market, listing.symbol, Timeframe(1, "D"), start=since, end=moment, moment=moment))
        return made[:-3:-1]

    def _at(self, listing: Listing) -> datetime:
        """Time of the symbol's last trade: now, or its last close."""
        moment = self._exchange.horizon(listing.symbol)
        rows = self._market.rows(listing.symbol, moment)
        if not rows:
            return moment
        session = self._market.history(listing.symbol).session(rows - 1)
        return min(moment, self._market.calendar(listing.symbol).closes_at(session))

    def _snapshot(self, listing: Listing) -> dict[str, Any]:
        days = self.daily_bars(listing)
        parts = {
            "latestTrade": self.trade(listing),
            "latestQuote": self.quote(listing),
            "minuteBar": self.minute_bar(listing),
            "dailyBar": days[0] if days else None,
            "prevDailyBar": days[1] if len(days) > 1 else None,
        }
        return {name: part for name, part in parts.items() if part is not None}

    @route("GET", "/v2/stocks/snapshots")
    def snapshots(self, request: Request) -> dict[str, Any]:
        """Latest data of several shares."""
        return {listing.wire: self._snapshot(listing) for listing in self._requested(request)}

    @route("GET", "/v1beta3/crypto/{loc}/snapshots")
    def crypto_snapshots(self, request: Request) -> dict[str, Any]:
        """Latest data of several crypto pairs."""
        return {"snapshots": {one.wire: self._snapshot(one) for one in self._requested(request)}}

    # News and corporate actions

    @route("GET", "/v1beta1/news")
    def news(self, request: Request) -> dict[str, Any]:
        """News by the time of the last change, page by page."""
        limit = request.number("limit", 10, 50)
        start, end = request.moment("start"), request.moment("end", end_of_day=True)
        symbols = [listing.symbol for listing in self._requested_or_all(request)]
        until = min(end, self._exchange.now) if end is not None else self._exchange.now
        items = self._market.news(symbols, (start or _LONG_AGO) - INSTANT, until)
        if request.newest_first("sort", "desc"):
            items.reverse()
        token = request.page_token()
        begin = 0
        if token is not None:
            begin = next((n + 1 for n, item in enumerate(items) if [item.symbol, item.id] == token[:2]), None) or 0
            if not begin:
                raise invalid("invalid page_token")
        page = items[begin : begin + limit]
        rest = begin + limit < len(items)
        following = page_token(page[-1].symbol, page[-1].id) if rest else None
        return {"news": [self.news_item(item) for item in page], "next_page_token": following}

    def news_item(self, item: NewsItem) -> dict[str, Any]:
        """An item on the wire; fields that Alpaca always has are filled from those of the data."""
        headline = item.headline or item.summary[:120]
        text = item.summary or headline
        return {
            "id": int.from_bytes(blake2b(f"{item.symbol}/{item.id}".encode(), digest_size=6).digest(), "big"),
            "headline": headline,
            "author": item.source or "unknown",
            "created_at": item.published or item.available_at,
            "updated_at": item.available_at,
            "summary": text,
            "content": text,
            "url": None,
            "images": [],
            "symbols": [self._market.listing(item.symbol).compact],
            "source": item.source or "unknown",
        }

    @route("GET", "/v1/corporate-actions")
    def corporate_actions(self, request: Request) -> dict[str, Any]:
        """Splits and cash dividends in effect, by the day of processing: a dividend is paid weeks after its ex-date."""
        limit = request.number("limit", 100, 1000)
        types = set(request.values("types"))
        today = self._exchange.now.astimezone(NEW_YORK).date()
        first, last = request.day("start") or today, request.day("end") or today
        found = [
            (body["process_date"], listing.wire, kind, body)
            for listing in self._requested_or_all(request)
            for action in self._market.actions(listing.symbol, today)
            for kind, body in (self._action(listing, action),)
            if first <= date.fromisoformat(body["process_date"]) <= last
            and (not types or kind.removesuffix("s") in types)
        ]
        found.sort(key=lambda one: one[:3], reverse=request.newest_first("sort", "asc"))
        token = request.page_token()
        begin = int(token[0]) if token is not None and token[0].isdigit() else 0
        grouped: dict[str, list[Any]] = {}
        for _, _, kind, body in found[begin : begin + limit]:
            grouped.setdefault(kind, []).append(body)
        following = page_token(str(begin + limit), "") if begin + limit < len(found) else None
        return {"corporate_actions": grouped, "next_page_token": following}

    def _action(self, listing: Listing, action: CorporateAction) -> tuple[str, dict[str, Any]]:
        day = action.ex_date.isoformat()
        paid = (action.ex_date + _UNTIL_PAID).isoformat() if action.kind is ActionKind.DIVIDEND else day
        number = stable_id("action", listing.symbol, action.kind, day)
        cusip = f"{int(number[:8], 16) % 10**9:09d}"
        head = {"id": number, "symbol": listing.wire, "process_date": paid, "ex_date": day, "payable_date": paid}
        if action.kind is ActionKind.DIVIDEND:
            return "cash_dividends", head | {"cusip": cusip, "rate": action.value, "special": False, "foreign": False}
        above, below = action.value.as_integer_ratio()
        rates = {"new_rate": above, "old_rate": below}
        if action.value > 1:
            return "forward_splits", head | rates | {"cusip": cusip}
        return "reverse_splits", head | rates | {"old_cusip": cusip, "new_cusip": cusip}

    def _requested_or_all(self, request: Request) -> Sequence[Listing]:
        if not request.query.get("symbols"):
            return [self._market.listing(symbol) for symbol in self._market.symbols]
        listings = map(self._market.find, request.values("symbols"))
        return [listing for listing in listings if listing is not None]

    # Symbols

    def _requested(self, request: Request) -> list[Listing]:
        names = request.values("symbols")
        if not names:
            raise invalid("symbols is required")
        crypto = "/crypto/" in request.path
        listings = {name: self._market.find(name) for name in names}
        return [one for name, one in listings.items() if one and one.wire == name and one.crypto is crypto]
