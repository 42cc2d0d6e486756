"""Account, configurations, clock, calendar and assets of the protocol."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from connectors.sandbox.market import Listing, next_session, session_open
from connectors.sandbox.protocol import NEW_YORK, Request, Response, invalid, new_york_time
from connectors.sandbox.router import Api, route
from engine.domain.decimal_text import plain


class AccountApi(Api):
    """Requests about the account and its exchange."""

    @route("GET", "/v2/account")
    def account(self, request: Request) -> Response:
        """Cash, equity, margin, and the account's permissions."""
        matching, facts = self._matching, self._book.facts
        figures = matching.figures()
        last = self._book.closes[max(self._book.closes)] if self._book.closes else self._book.initial_cash
        blocked = matching.faults.active("account_blocked") is not None
        document = {
            "id": facts["account"],
            "account_number": f"PA{int(UUID(facts['account'])) % 10**9:09d}",
            "status": "ACTIVE",
            "crypto_status": "ACTIVE",
            "currency": "USD",
            "cash": plain(figures.cash),
            "equity": plain(figures.equity),
            "portfolio_value": plain(figures.equity),
            "last_equity": plain(last),
            "long_market_value": plain(figures.long),
            "short_market_value": plain(figures.short),
            "initial_margin": plain(figures.initial_margin),
            "maintenance_margin": plain(figures.maintenance_margin),
            "last_maintenance_margin": plain(figures.maintenance_margin),
            "buying_power": plain(figures.buying_power),
            "regt_buying_power": plain(figures.buying_power),
            "non_marginable_buying_power": plain(figures.cash_power),
            "options_buying_power": "0",
            "options_approved_level": 0,
            "options_trading_level": 0,
            "multiplier": "2",
            "sma": "0",
            "accrued_fees": "0",
            "intraday_adjustments": "0",
            "pending_reg_taf_fees": "0",
            "balance_asof": max(self._book.closes, default=matching.now.date()).isoformat(),
            "created_at": facts["created"],
            "account_blocked": blocked,
            "trading_blocked": blocked or matching.faults.active("trading_blocked") is not None,
            "transfers_blocked": False,
            "trade_suspended_by_user": self._book.configurations["suspend_trade"],
            "shorting_enabled": not self._book.configurations["no_shorting"],
        }
        return Response(200, document)

    @route("GET", "/v2/account/configurations")
    def configurations(self, request: Request) -> Response:
        """The account's configurations."""
        return Response(200, self._book.configurations)

    @route("PATCH", "/v2/account/configurations")
    def configure(self, request: Request) -> Response:
        """Change known configurations."""
        wanted = request.json()
        for name, value in wanted.items():
            if name not in self._book.configurations:
                raise invalid(f"unknown setting {name[:40]}")
            if type(value) is not type(self._book.configurations[name]):
                raise invalid(f"invalid {name}: {str(value)[:40]!r}")
        self._book.configurations |= wanted
        self._book.commit()
        return Response(200, self._book.configurations)

    @route("GET", "/v2/clock")
    def clock(self, request: Request) -> Response:
        """The market clock, in New York time."""
        now, calendar = self._exchange.now, self._market.exchange
        today = session_open(calendar, now)
        opens = next_session(calendar, now)
        return Response(
            200,
            {
                "timestamp": new_york_time(now),
                "is_open": today is not None,
                "next_open": new_york_time(calendar.opens_at(opens)),
                "next_close": new_york_time(calendar.closes_at(today or opens)),
            },
        )

    @route("GET", "/v2/calendar")
    def calendar(self, request: Request) -> Response:
        """Sessions with their hours in New York time."""
        calendar = self._market.exchange
        first, last = request.day("start") or date(2000, 1, 1), request.day("end") or date(2035, 12, 31)
        days = calendar.sessions(max(first, date(2000, 1, 1)), min(last, date(2035, 12, 31))) if first <= last else []
        return Response(200, [self._session(day) for day in days])

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
    def assets(self, request: Request) -> Response:
        """All listings."""
        found = [self._asset(self._market.listing(symbol)) for symbol in self._market.symbols]
        for name, key in (("status", "status"), ("asset_class", "class"), ("exchange", "exchange")):
            wanted = request.query.get(name)
            if wanted and wanted != "all":
                found = [one for one in found if one[key] == wanted]
        return Response(200, found)

    @route("GET", "/v2/assets/{asset}")
    def asset(self, request: Request) -> Response:
        """One listing, by name or id."""
        return Response(200, self._asset(self._market.require(request.parts["asset"], "asset")))

    def _asset(self, listing: Listing) -> dict[str, Any]:
        stopped = self._market.has_stopped(listing.symbol, self._exchange.now)
        shares = not listing.crypto
        document: dict[str, Any] = {
            "id": listing.asset_id,
            "class": "us_equity" if shares else "crypto",
            "exchange": "NASDAQ" if shares else "CRYPTO",
            "symbol": listing.wire,
            "name": f"{listing.wire} {'Common Stock' if shares else 'pair'}",
            "status": "inactive" if stopped else "active",
            "tradable": self._matching.is_tradable(listing.symbol),
            "marginable": shares,
            "shortable": shares,
            "easy_to_borrow": shares,
            "fractionable": True,
            "attributes": [],
        }
        if not shares:
            document |= {
                "min_order_size": "0.000000001",
                "min_trade_increment": "0.000000001",
                "price_increment": "0.01",
            }
        return document
