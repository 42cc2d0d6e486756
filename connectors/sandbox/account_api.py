"""The account in the protocol: figures, configurations, clock, calendar, assets, activities, and equity by session."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from connectors.sandbox.exchange import Exchange
from connectors.sandbox.market import Listing, latest_session, next_session, session_open
from connectors.sandbox.protocol import (
    FIXED_FIELDS,
    NEW_YORK,
    Request,
    invalid,
    moment_of,
    new_york_time,
    route,
    texts,
)

_PERIODS = {"D": 1, "W": 7, "M": 31, "A": 366}
_FIRST, _LAST = date(2000, 1, 1), date(2035, 12, 31)
"""First and last day of the calendar."""


class AccountApi:
    """Requests about the account, its history and its exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._market = exchange.market
        self._book = exchange.book

    @route("GET", "/v2/account")
    def account(self, request: Request) -> dict[str, Any]:
        """Cash, equity, margin, and the account's permissions."""
        exchange, book = self._exchange, self._book
        figures = exchange.figures()
        blocked = exchange.faults.active("account_blocked") is not None
        document = {
            "id": book.facts["account"],
            "account_number": f"PA{int(UUID(book.facts['account'])) % 10**9:09d}",
            "portfolio_value": figures.equity,
            "last_equity": book.closes[max(book.closes)] if book.closes else book.initial_cash,
            "last_maintenance_margin": figures.maintenance_margin,
            "regt_buying_power": figures.buying_power,
            "balance_asof": max(book.closes, default=exchange.now.date()).isoformat(),
            "created_at": book.facts["created"],
            "account_blocked": blocked,
            "trading_blocked": blocked or exchange.faults.active("trading_blocked") is not None,
            "trade_suspended_by_user": book.configurations["suspend_trade"],
            "shorting_enabled": not book.configurations["no_shorting"],
        }
        return FIXED_FIELDS["account"] | texts(asdict(figures) | document) | exchange.faults.changed("account")

    @route("GET", "/v2/account/configurations")
    def configurations(self, request: Request) -> dict[str, Any]:
        """The account's configurations."""
        return self._book.configurations

    @route("PATCH", "/v2/account/configurations")
    def configure(self, request: Request) -> dict[str, Any]:
        """Change known configurations."""
        wanted = request.json()
        for name, value in wanted.items():
            if name not in self._book.configurations:
                raise invalid(f"unknown setting {name[:40]}")
            if type(value) is not type(self._book.configurations[name]):
                raise invalid(f"invalid {name}: {str(value)[:40]!r}")
        self._book.configurations |= wanted
        self._book.commit()
        return self._book.configurations

    @route("GET", "/v2/clock")
    def clock(self, request: Request) -> dict[str, Any]:
        """The market clock, in New York time."""
        now, calendar = self._exchange.now, self._market.exchange
        today = session_open(calendar, now)
        opens = next_session(calendar, now)
        return {
            "timestamp": new_york_time(now),
            "is_open": today is not None,
            "next_open": new_york_time(calendar.opens_at(opens)),
            "next_close": new_york_time(calendar.closes_at(today or opens)),
        }

    @route("GET", "/v2/calendar")
    def calendar(self, request: Request) -> list[dict[str, Any]]:
        """Sessions with their hours in New York time."""
        calendar = self._market.exchange
        first, last = request.day("start") or _FIRST, request.day("end") or _LAST
        days = calendar.sessions(max(first, _FIRST), min(last, _LAST)) if first <= last else []
        return [self._session(day) for day in days]

    def _session(self, day: date) -> dict[str, Any]:
        calendar = self._market.exchange
        opens, closes = calendar.opens_at(day).astimezone(NEW_YORK), calendar.closes_at(day).astimezone(NEW_YORK)
        settled = next_session(calendar, calendar.closes_at(day)) if day < date(2035, 12, 20) else day
        return {
            "date": day.isoformat(),
            "open": f"{opens:%H:%M}",
            "close": f"{closes:%H:%M}",
            "session_open": "0400",
            "session_close": "2000",
            "settlement_date": settled.isoformat(),
        }

    @route("GET", "/v2/assets")
    def assets(self, request: Request) -> list[dict[str, Any]]:
        """All listings."""
        every = [self._asset(self._market.listing(symbol)) for symbol in self._market.symbols]
        for name, key in (("status", "status"), ("asset_class", "class"), ("exchange", "exchange")):
            wanted = request.query.get(name)
            if wanted and wanted != "all":
                every = [one for one in every if one[key] == wanted]
        return every

    @route("GET", "/v2/assets/{asset}")
    def asset(self, request: Request) -> dict[str, Any]:
        """One listing, by name or id."""
        return self._asset(self._market.require(request.parts["asset"], "asset"))

    def _asset(self, listing: Listing) -> dict[str, Any]:
        stopped = self._market.has_stopped(listing.symbol, self._exchange.now)
        shares = not listing.crypto
        document: dict[str, Any] = {
            "id": listing.asset_id,
            "class": listing.asset_class,
            "exchange": listing.exchange,
            "symbol": listing.wire,
            "name": f"{listing.wire} {'Common Stock' if shares else 'pair'}",
            "status": "inactive" if stopped else "active",
            "tradable": self._exchange.is_tradable(listing.symbol),
            "marginable": shares,
            "shortable": shares,
            "easy_to_borrow": shares,
            "fractionable": True,
            "attributes": [],
        }
        fixed = {} if shares else FIXED_FIELDS["crypto asset"]
        return document | fixed | self._exchange.faults.changed("asset", listing.symbol)

    @route("GET", "/v2/account/activities")
    def activities(self, request: Request) -> list[dict[str, Any]]:
        """Fills, splits and dividends; `page_token` is the id of the last entry read."""
        kinds = set(request.values("activity_types"))
        after, until = request.moment("after"), request.moment("until", end_of_day=True)
        found = [
            one
            for one in self._book.activities
            if (not kinds or one["activity_type"] in kinds)
            and (after is None or _moment(one) > after)
            and (until is None or _moment(one) < until)
        ]
        if request.newest_first("direction", "desc"):
            found.reverse()
        start, token = 0, request.query.get("page_token")
        if token:
            places = [n for n, one in enumerate(found) if one["id"] == token]
            if not places:
                raise invalid("invalid page_token")
            start = places[0] + 1
        return found[start : start + request.number("page_size", 100, 100)]

    @route("GET", "/v2/account/portfolio/history")
    def portfolio_history(self, request: Request) -> dict[str, Any]:
        """Equity at each close, and now, stamped with its session's open."""
        frame = request.query.get("timeframe") or "1D"
        if frame != "1D":
            raise invalid(f"the sandbox keeps equity by day: timeframe 1D, not {frame[:10]}")
        exchange, calendar = self._exchange, self._market.exchange
        today = latest_session(calendar, exchange.now)
        values = dict(sorted(self._book.closes.items())) | {today: exchange.figures().equity}
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
        return document


def _moment(activity: dict[str, Any]) -> datetime:
    return moment_of(activity.get("transaction_time") or activity["date"], "transaction_time")


def _begin(period: str, end: date) -> date:
    count, unit = period[:-1], period[-1:].upper()
    if not (count.isascii() and count.isdigit() and unit in _PERIODS and int(count) < 1000):
        raise invalid(f"invalid period: {period[:10]}")
    return end - timedelta(days=int(count) * _PERIODS[unit])
