"""Market data of the protocol: bars, quotes, trades and snapshots, up to the sandbox's clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import islice
from typing import Any

from connectors.sandbox.adjustment import ADJUSTMENTS
from connectors.sandbox.market import Listing
from connectors.sandbox.page_tokens import page_token, read_page_token
from connectors.sandbox.protocol import NEW_YORK, Request, Response, invalid, moment_of, not_found
from connectors.sandbox.router import Api, Router, route
from connectors.sandbox.timeframes import Timeframe, bars

_STEP = timedelta(microseconds=1)
_LONG_AGO = datetime(2000, 1, 3, tzinfo=UTC)
_SIZE = 100

Item = Callable[[Listing], Any]


class DataApi(Api):
    """Requests for market data. An unlisted symbol is left out, as the service does."""

    def add_latest(self, router: Router) -> None:
        """Register the latest bars, quotes and trades, each for several symbols and for one."""
        for name, one, item in (
            ("bars", "bar", self.minute_bar),
            ("quotes", "quote", self.quote),
            ("trades", "trade", self.trade),
        ):
            router.add("GET", f"/v2/stocks/{name}/latest", self._latest(name, item))
            router.add("GET", f"/v1beta3/crypto/{{loc}}/latest/{name}", self._latest(name, item))
            router.add("GET", f"/v2/stocks/{{symbol}}/{name}/latest", self._latest_one(one, item))

    # Bars

    @route("GET", "/v2/stocks/bars", "/v1beta3/crypto/{loc}/bars")
    def many_bars(self, request: Request) -> Response:
        """Bars of several symbols, symbol by symbol."""
        found, token = self._bars(request, self._requested(request))
        return Response(200, {"bars": found, "next_page_token": token})

    @route("GET", "/v2/stocks/{symbol}/bars")
    def one_symbols_bars(self, request: Request) -> Response:
        """Bars of one symbol."""
        name = request.parts["symbol"]
        found, token = self._bars(request, self._listed([name], crypto=False))
        return Response(200, {"symbol": name, "bars": found.get(name, []), "next_page_token": token})

    def _bars(self, request: Request, listings: Sequence[Listing]) -> tuple[dict[str, list[Any]], str | None]:
        now = self._matching.now
        frame = Timeframe.of(request.query.get("timeframe") or "")
        adjustment = request.choice("adjustment", "raw", ADJUSTMENTS)
        start = request.moment("start") or datetime.combine(now.astimezone(NEW_YORK).date(), time(0), NEW_YORK)
        end = request.moment("end", end_of_day=True) or now
        newest_first = request.choice("sort", "asc", ("asc", "desc")) == "desc"
        left, token = request.number("limit", 1000, 10_000), read_page_token(request)
        found: dict[str, list[Any]] = {}
        for listing in sorted(listings, key=lambda one: one.wire):
            if token is not None and listing.wire < token[0]:
                continue
            first, last = start, end
            if token is not None and listing.wire == token[0]:
                passed = moment_of(token[1], "page_token")
                first, last = (first, min(last, passed - _STEP)) if newest_first else (max(first, passed + _STEP), last)
            moment = self._matching.horizon(listing.symbol)
            made = bars(
                self._market, listing.symbol, frame, start=first, end=last, moment=moment, adjustment=adjustment
            )
            page = list(made)[::-1][: left + 1] if newest_first else list(islice(made, left + 1))
            if page[:left]:
                found[listing.wire] = [one.json(listing.crypto) for one in page[:left]]
            if len(page) > left:
                return found, page_token(listing.wire, page[left - 1].at.isoformat()) if left else None
            left -= len(page)
            if not left and listing is not max(listings, key=lambda one: one.wire):
                last_bar = page[-1].at if page else first
                return found, page_token(listing.wire, last_bar.isoformat())
        return found, None

    # The latest

    def _latest(self, name: str, item: Item) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            made = {listing.wire: item(listing) for listing in self._requested(request)}
            return Response(200, {name: {wire: one for wire, one in made.items() if one is not None}})

        return answer

    def _latest_one(self, name: str, item: Item) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            listing = self._only(request)
            return Response(200, {"symbol": listing.wire, name: item(listing)})

        return answer

    def quote(self, listing: Listing) -> dict[str, Any] | None:
        """Present bid and ask."""
        bid, ask = self._matching.quote(listing.symbol)
        if not bid:
            return None
        figures: dict[str, Any] = {"t": self._at(listing), "bp": bid, "bs": _SIZE, "ap": ask, "as": _SIZE}
        return figures if listing.crypto else figures | {"bx": "V", "ax": "V", "c": ["R"], "z": "C"}

    def trade(self, listing: Listing) -> dict[str, Any] | None:
        """The last trade."""
        price, at = self._matching.price(listing.symbol), self._at(listing)
        if not price:
            return None
        figures: dict[str, Any] = {"t": at, "p": price, "s": _SIZE, "i": int(at.timestamp())}
        return figures | ({"tks": "B"} if listing.crypto else {"x": "V", "c": ["@"], "z": "C"})

    def minute_bar(self, listing: Listing) -> dict[str, Any] | None:
        """The last minute that had begun; after the close the session's last one."""
        at = self._at(listing) - _STEP
        begun = at.replace(second=0, microsecond=0)
        moment = self._matching.horizon(listing.symbol)
        made = bars(self._market, listing.symbol, Timeframe(1, "m"), start=begun, end=at, moment=moment)
        return next((one.json(listing.crypto) for one in made), None)

    def daily_bars(self, listing: Listing) -> list[dict[str, Any]]:
        """The last two daily bars, the younger one first."""
        moment = self._matching.horizon(listing.symbol)
        since = moment - timedelta(days=14)
        made = list(bars(self._market, listing.symbol, Timeframe(1, "D"), start=since, end=moment, moment=moment))
        return [one.json(listing.crypto) for one in made[:-3:-1]]

    def _at(self, listing: Listing) -> datetime:
        """Time of the symbol's last trade: now, or its last close."""
        moment = self._matching.horizon(listing.symbol)
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
    def snapshots(self, request: Request) -> Response:
        """Latest data of several shares."""
        return Response(200, {listing.wire: self._snapshot(listing) for listing in self._requested(request)})

    @route("GET", "/v1beta3/crypto/{loc}/snapshots")
    def crypto_snapshots(self, request: Request) -> Response:
        """Latest data of several crypto pairs."""
        return Response(200, {"snapshots": {one.wire: self._snapshot(one) for one in self._requested(request)}})

    @route("GET", "/v2/stocks/{symbol}/snapshot")
    def snapshot(self, request: Request) -> Response:
        """Latest data of one share."""
        listing = self._only(request)
        return Response(200, {"symbol": listing.wire} | self._snapshot(listing))

    # Symbols

    def _requested(self, request: Request) -> list[Listing]:
        names = request.values("symbols")
        if not names:
            raise invalid("symbols is required")
        return self._listed(names, crypto="/crypto/" in request.path)

    def _listed(self, names: Sequence[str], *, crypto: bool) -> list[Listing]:
        listings = {name: self._market.find(name) for name in names}
        return [one for name, one in listings.items() if one and one.wire == name and one.crypto is crypto]

    def _only(self, request: Request) -> Listing:
        found = self._listed([request.parts["symbol"]], crypto=False)
        if not found or self.quote(found[0]) is None:
            raise not_found(f"no data for {request.parts['symbol'][:40]}")
        return found[0]
