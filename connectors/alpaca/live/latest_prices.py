"""Latest quotes and trades by request, in place of a broken stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectors.alpaca.data.names import by_wire
from connectors.alpaca.data.pages import AlpacaPages
from connectors.alpaca.live.protocols import moment, price
from connectors.alpaca.symbols import to_wire
from engine.domain.live import FeedMessage, LastTrade, Quote
from engine.domain.market import Symbol


async def latest(pages: AlpacaPages, feed: str, symbols: Sequence[Symbol], stock_feed: str) -> list[FeedMessage]:
    """The latest quote and trade of every symbol, where there are any; `feed` is `shares` or `coins`.

    Raises PaperdeskError where the service cannot be reached.
    """
    names = by_wire(symbols)
    params = {"symbols": ",".join(map(to_wire, symbols))}
    if feed == "shares":
        params["feed"] = stock_feed
    found: list[FeedMessage] = []

    def read_quotes(page: dict[str, Any]) -> list[FeedMessage]:
        rows = [(names[name], row) for name, row in page["quotes"].items() if name in names]
        return [Quote(s, price(r["bp"]), price(r["ap"]), moment(r["t"])) for s, r in rows if r["bp"] and r["ap"]]

    def read_trades(page: dict[str, Any]) -> list[FeedMessage]:
        rows = [(names[name], row) for name, row in page["trades"].items() if name in names]
        return [LastTrade(s, price(r["p"]), moment(r["t"])) for s, r in rows]

    path = "/v2/stocks/{}/latest" if feed == "shares" else "/v1beta3/crypto/us/latest/{}"
    for kind, read in (("quotes", read_quotes), ("trades", read_trades)):
        async for page in pages.follow(path.format(kind), params, read):
            found += page
    return found
