"""Recorded turns with one input altered, to see whether the decision follows it: news flipped, prices mirrored, tickers
swapped. What an earlier day left behind, memory, books and record, stays as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from engine.domain.market import NewsItem, Symbol, is_crypto
from engine.domain.model_call import ModelRequest, ModelResult, beginning
from engine.lab.recorded_turn import RecordedTurn
from engine.market.as_of import Market
from engine.offline.reading import antonyms, companies
from engine.ports import LanguageModel

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


class Swapped:
    """A model that is told of another company, whose data it is not; its answers are put back. Names are swapped where
    companies.toml has them, else tickers alone."""

    def __init__(self, model: LanguageModel, symbols: tuple[Symbol, ...]) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        ring = symbols if len(symbols) > 1 else (*symbols, _another(symbols[0]))
        self._model, self._there, self._back = model, _renaming(ring), _renaming(ring[::-1])

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer to the question with the names swapped, with the names swapped back."""
        head = beginning(request.system)
        messages = tuple(
            replace(
                message,
                text=self._there(message.text),
                charts=tuple(
                    replace(chart, title=self._there(chart.title), symbol=self._there(chart.symbol))
                    for chart in message.charts
                ),
            )
            for message in request.messages
        )
        asked = replace(request, system=head + self._there(request.system[len(head) :]), messages=messages)
        result = await self._model.answer(asked, on_delta)
        return replace(result, answer=_each_text(result.answer, self._back), text=self._back(result.text))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """A text, or the texts of an answer, changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(one, change) for key, one in value.items()}
    return [_each_text(one, change) for one in value] if isinstance(value, (list, tuple)) else value


def _another(symbol: Symbol) -> Symbol:
    """A known company, or a coin for a coin."""
    return next(one for one in companies() if one != symbol and is_crypto(one) is is_crypto(symbol))


def _renaming(ring: tuple[Symbol, ...]) -> Callable[[str], str]:
    """A change of texts that puts the ticker and the name of the next in a ring in the place of each one's."""
    known, others = companies(), dict[str, str]()
    for symbol, other in zip(ring, (*ring[1:], ring[0]), strict=True):
        others[symbol] = other
        if other in known:
            others |= dict.fromkeys(known.get(symbol, ()), known[other][0])
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(map(re.escape, others), key=len, reverse=True))})(?!\w)")
    return lambda text: pattern.sub(lambda match: others[match[0]], text)
