"""Account history of the protocol: activities page by page, and equity by session."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from connectors.sandbox.market import latest_session
from connectors.sandbox.protocol import Request, Response, invalid, moment_of
from connectors.sandbox.router import Api, route

_PERIODS = {"D": 1, "W": 7, "M": 31, "A": 366}


class HistoryApi(Api):
    """Requests for the account's history."""

    @route("GET", "/v2/account/activities", "/v2/account/activities/{type}")
    def activities(self, request: Request) -> Response:
        """Fill, splits and dividends; `page_token` is the id of the last entry read."""
        kinds = set(request.values("activity_types"))
        if "type" in request.parts:
            kinds = {request.parts["type"]}
        category = request.query.get("category", "")
        if category not in ("", "trade_activity", "non_trade_activity"):
            raise invalid(f"invalid category: {category[:40]}")
        day, after, until = request.day("date"), request.moment("after"), request.moment("until", end_of_day=True)
        found = [
            one
            for one in self._book.activities
            if (not kinds or one["activity_type"] in kinds)
            and (not category or (one["activity_type"] == "FILL") is (category == "trade_activity"))
            and (day is None or _moment(one).date() == day)
            and (after is None or _moment(one) > after)
            and (until is None or _moment(one) < until)
        ]
        if request.choice("direction", "desc", ("asc", "desc")) == "desc":
            found.reverse()
        start, token = 0, request.query.get("page_token")
        if token:
            places = [n for n, one in enumerate(found) if one["id"] == token]
            if not places:
                raise invalid("invalid page_token")
            start = places[0] + 1
        return Response(200, found[start : start + request.number("page_size", 100, 100)])

    @route("GET", "/v2/account/portfolio/history")
    def portfolio_history(self, request: Request) -> Response:
        """Equity at each close, and now, stamped with its session's open."""
        frame = request.query.get("timeframe") or "1D"
        if frame != "1D":
            raise invalid(f"the sandbox keeps equity by day: timeframe 1D, not {frame[:10]}")
        exchange, calendar = self._exchange, self._exchange.market.exchange
        today = latest_session(calendar, exchange.now)
        values = dict(sorted(self._book.closes.items())) | {today: exchange.matching.figures().equity}
        end = request.day("end") or today
        first = request.day("start") or _begin(request.query.get("period") or "1M", end)
        days = [day for day in values if first <= day <= end]
        earlier = [value for day, value in values.items() if day < first]
        base = earlier[-1] if earlier else self._book.initial_cash
        gains = [values[day] - base for day in days]
        document: dict[str, Any] = {
            "timestamp": [int(calendar.opens_at(day).timestamp()) for day in days],
            "equity": [values[day] for day in days],
            "profit_loss": gains,
            "profit_loss_pct": [gain / base if base else 0 for gain in gains],
            "base_value": base,
            "timeframe": frame,
        }
        if earlier:
            document["base_value_asof"] = max(day for day in values if day < first).isoformat()
        return Response(200, document)


def _moment(activity: dict[str, Any]) -> datetime:
    return moment_of(activity.get("transaction_time") or activity["date"], "transaction_time")


def _begin(period: str, end: date) -> date:
    count, unit = period[:-1], period[-1:].upper()
    if not (count.isascii() and count.isdigit() and unit in _PERIODS and int(count) < 1000):
        raise invalid(f"invalid period: {period[:10]}")
    return end - timedelta(days=int(count) * _PERIODS[unit])
