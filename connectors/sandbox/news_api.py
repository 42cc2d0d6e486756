"""News and corporate actions of the protocol, as known at the sandbox's time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any

from connectors.sandbox.market import Listing
from connectors.sandbox.page_tokens import page_token, read_page_token
from connectors.sandbox.protocol import NEW_YORK, Request, Response, invalid, stable_id
from connectors.sandbox.router import Api, route
from engine.domain.market import ActionKind, CorporateAction, NewsItem

_STEP = timedelta(microseconds=1)
_LONG_AGO = datetime(2000, 1, 3, tzinfo=UTC)
_UNTIL_PAID = timedelta(days=14)


class NewsApi(Api):
    """Requests for news and corporate actions. An unlisted symbol is left out, as the service does."""

    @route("GET", "/v1beta1/news")
    def news(self, request: Request) -> Response:
        """News by the time of the last change, page by page."""
        limit = request.number("limit", 10, 50)
        start, end = request.moment("start"), request.moment("end", end_of_day=True)
        symbols = [listing.symbol for listing in self._requested(request)]
        until = min(end, self._matching.now) if end is not None else self._matching.now
        items = self._market.news(symbols, (start or _LONG_AGO) - _STEP, until)
        if request.choice("sort", "desc", ("asc", "desc")) == "desc":
            items.reverse()
        token = read_page_token(request)
        begin = 0
        if token is not None:
            begin = next((n + 1 for n, item in enumerate(items) if [item.symbol, item.id] == token[:2]), None) or 0
            if not begin:
                raise invalid("invalid page_token")
        page = items[begin : begin + limit]
        rest = begin + limit < len(items)
        return Response(
            200,
            {
                "news": [self.news_item(item) for item in page],
                "next_page_token": page_token(page[-1].symbol, page[-1].id) if rest else None,
            },
        )

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
    def corporate_actions(self, request: Request) -> Response:
        """Split and cash dividends in effect, by the day of processing: a dividend is paid weeks after its ex-date."""
        limit = request.number("limit", 100, 1000)
        types = set(request.values("types"))
        today = self._matching.now.astimezone(NEW_YORK).date()
        first, last = request.day("start") or today, request.day("end") or today
        found = [
            (body["process_date"], listing.wire, kind, body)
            for listing in self._requested(request)
            for action in self._market.actions(listing.symbol, today)
            for kind, body in (self._action(listing, action),)
            if first <= date.fromisoformat(body["process_date"]) <= last
            and (not types or kind.removesuffix("s") in types)
        ]
        found.sort(key=lambda one: one[:3], reverse=request.choice("sort", "asc", ("asc", "desc")) == "desc")
        token = read_page_token(request)
        begin = int(token[0]) if token is not None and token[0].isdigit() else 0
        grouped: dict[str, list[Any]] = {}
        for _, _, kind, body in found[begin : begin + limit]:
            grouped.setdefault(kind, []).append(body)
        following = page_token(str(begin + limit), "") if begin + limit < len(found) else None
        return Response(200, {"corporate_actions": grouped, "next_page_token": following})

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

    def _requested(self, request: Request) -> Sequence[Listing]:
        if not request.query.get("symbols"):
            return [self._market.listing(symbol) for symbol in self._market.symbols]
        found = [self._market.find(word) for word in request.values("symbols")]
        return [listing for listing in found if listing is not None]
