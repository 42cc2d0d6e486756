"""Recorded turns with one input altered, to see whether the decision follows it: news flipped, prices mirrored, tickers
swapped. What an earlier day left behind, memory, books and record, stays as it was."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from engine.domain.market import NewsItem, Symbol
from engine.lab.recorded_turn import RecordedTurn
from engine.market.as_of import Market
from engine.offline.reading import antonyms

NEWS, PRICES, TICKERS = "news", "prices", "tickers"
ALTERED = (NEWS, PRICES, TICKERS)


def altered(recorded: RecordedTurn, what: str) -> RecordedTurn:
    """The turn with its new news flipped, or its prices mirrored; tickers are swapped on the way to the model."""
    inputs = recorded.inputs
    market = inputs.market
    if what == NEWS:
        after = inputs.news_after
        news = {
            symbol: [_flipped(item) if item.available_at > after else item for item in items]
            for symbol, items in market.news.items()
        }
        market = replace(market, news=news)
    elif what == PRICES:
        market = _mirrored(market, recorded)
    return replace(recorded, inputs=replace(inputs, market=market))


def has_altered_news(recorded: RecordedTurn, symbol: Symbol) -> bool:
    """True where the new items about a symbol have words that can be flipped."""
    new = recorded.inputs.market.at(recorded.now).news(symbol, recorded.inputs.news_after)
    return any(_flipped(item) != item for item in new)


def flipped(text: str) -> str:
    """A text in which every word with an opposite is replaced by it, and signs of percentages are turned."""
    return _opposites().sub(_opposite, text)


def _flipped(item: NewsItem) -> NewsItem:
    sentiment = item.sentiment and flipped(item.sentiment)
    headline = item.headline and flipped(item.headline)
    return replace(item, summary=flipped(item.summary), headline=headline, sentiment=sentiment)


@cache
def _opposites() -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, antonyms()), key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)|(?<![\w.])[+-](?=\d[\d.]*\s?%)", re.IGNORECASE)


def _opposite(match: re.Match[str]) -> str:
    found = match[0]
    if found in "+-":
        return "-" if found == "+" else "+"
    other = antonyms()[found.lower()]
    return other.upper() if found.isupper() else other[0].upper() + other[1:] if found[0].isupper() else other


def _mirrored(market: Market, recorded: RecordedTurn) -> Market:
    """The market with every bar up to the decision mirrored at the last close: what rose by 10 % has fallen by 10 %, in
    logarithms. The last close, and with it every size, is as it was."""
    known, histories = market.at(recorded.now), dict(market.histories)
    for symbol in market.histories:
        if count := known.count(symbol):
            bars = known.bars(symbol, count)
            last = bars.close[-1]
            turned = bars.repriced(lambda price, row, last=last: last * last // price)  # type: ignore[misc]
            histories[symbol] = replace(turned, high=turned.low, low=turned.high, adj_close=turned.close)
    return replace(market, histories=histories, actions=dict.fromkeys(histories, ()))
