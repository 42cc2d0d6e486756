"""Masks of a run: a model is not told which market it reads, so that it cannot recall what came of it.

Levels, each with those before it: 1 tickers; 2 names of companies, people and products; 3 dates; 4 the price level.
What leaves for a model is masked here and nowhere else, its charts included; what comes back is unmasked with the words
of that question, so that records and replays hold the market as it is.

A name is a word with a capital letter that stands in a text of others (in a fence, or in a profile) and is in none of:
our prompts, the rules' lexicon and common words, and the same question in lower case. Words that are both, such as
Target, are hidden where companies.toml or the news ("Target Corporation (NYSE: TGT)") names them, or after a company's
name (Microsoft Teams); names without a capital letter, descriptions ("the maker of the iPad's chips") and events that
tell a year are not found.

Dates move by 28 years and 13 weeks: whole weeks keep the weekdays, a quarter keeps the rhythm of reports, and a model
knows of no market then. A price level is changed as by a split: prices by a factor, shares and volume by its inverse,
so that returns and amounts of money stay. Numbers in prose have no type: one counts as a price by its size, its digits
and the words around it; after another company's name it takes a factor of that name's own.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from calendar import day_name, month_name
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, cached_property, partial
from math import log
from pathlib import Path
from typing import Any

from engine.agents.agent import PROMPTS
from engine.domain.chart import ChartSpec
from engine.domain.market import NANO, Symbol, is_crypto
from engine.domain.model_call import PREFLIGHT, Message, ModelRequest, ModelResult, beginning
from engine.domain.run import Briefing, RunSpec
from engine.errors import MissingData
from engine.lab.window import desk_calendar_of
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session
from engine.offline.model import OfflineModel
from engine.offline.reading import common_words, companies, company_names, lexicon
from engine.ports import Calendar, LanguageModel
from engine.program_files import program_text

NAMES, DATES, PRICES = 2, 3, 4
YEARS, SHIFT = 28, timedelta(weeks=28 * 52 + 5 + 13)
"""28 years are 1,461 weeks; 13 more are a quarter."""
_SESSIONS = 260
"""Sessions whose prices tell of what size a price is."""
_AROUND = 60
"""Characters before and after a number that tell what it is."""
_LEVEL = Decimal(100)
"""The price that every symbol begins near."""
_DIGITS = ("1", "1.25", "1.6", "2", "2.5", "3.2", "4", "5", "6.4", "8")
_FACTORS = [Decimal(f"{digits}e{power}") for power in range(-7, 8) for digits in _DIGITS]
"""Factors whose inverse is a decimal number too."""
_FACTORS_OF_OTHERS = [factor for factor in _FACTORS if Decimal("0.1") < factor < Decimal("0.7") or 1.5 < factor < 10]
_TABLE = tomllib.loads(program_text(Path(__file__).with_name("mask.toml")))
_TELLS = {name: re.compile("|".join(every), re.IGNORECASE) for name, every in _TABLE["tells"].items()}
_MONTHS = month_name[1:]
_LONG = "|".join(f"{name}|{name.upper()}|{name.lower() if len(name) > 5 else name}" for name in _MONTHS)
_SHORT = "|".join(f"{name[:3]}|{name[:3].upper()}" for name in _MONTHS)
_MONTH = rf"(?:(?:{_LONG})\b|(?:{_SHORT}|Sept)\b\.?)"
_DAY = r"\d\d?(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d(?=[AaEeFfPps]?\b|[a-z]{2}|YTD|[QH]\d)"
_SHORT_YEAR = r"(?:-| ?['’])\d\d\b"
_PERIOD = r"(?:[1-4][QH]|[QH][1-4]|[FC]YE?)"
_NUMBERS = r"\b(?:(?:19|20)\d\d[-/.]\d\d[-/.]\d\d|\d\d?[-/.]\d\d?[-/.](?:19|20)\d\d|\d\d?/\d\d?/\d\d)\b"
_DATES = (
    rf"(?P<numbers>{_NUMBERS})",
    rf"(?P<spelled>(?:\b{_DAY}[ -])?\b{_MONTH}(?: {_DAY}(?![\d:]|\.\d))?(?:(?:,? |-){_YEAR}|{_SHORT_YEAR})?)",
    rf"(?P<year>\b(?:(?:{_PERIOD} ?)*{_YEAR}(?:[-–/](?:1[3-9]|[2-9]\d)\b)?(?![.,]?\d|%)"
    rf"|{_PERIOD}+(?:-| ?['’])?\d\d(?=[AaEeFfPp]?\b)|(?<=\s['’])\d\d\b))",
)
_NUMBER = r"(?P<number>(?<![\w.,/])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d/]|[.,]\d))"
_CAPITAL = f"[{''.join(filter(str.isupper, map(chr, range(0x250))))}]"
"""A capital letter of the Latin alphabets, as in Ørsted."""
_WORD = rf"(?P<word>(?<![\w$])(?:[a-z]|(?<![.,])\d){{0,5}}{_CAPITAL}[\w&]*)"
_HANDLE = re.compile(r"(?:[DIRS]\d+|Q[1-4]|\d+[A-Z]{1,3})$")
"""The number of a memory, by its layer, a quarter, or a number with its unit."""
_FENCE = re.compile(r"^<<<(\w+)\n(.*?)\n\1>>>$", re.DOTALL | re.MULTILINE)
_MOST = 10_000
"""An amount of money above it is no price, unless those of the symbol are as high or it is called one."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The mask of a run of a market.

    level: from 1 to 4; 0 for one that swaps names.
    tickers: the code in place of each ticker, of those of the run first.
    factors: by symbol of the run, in its order, the factor of its prices.
    names: of companies, in lower case, each with its place in the run, of two symbols the first; None for one that the
        run does not trade.
    own_texts: the user's texts, which may stand in no fence.
    market, calendar: as decisions read them.
    sent: keeps the questions that went to a model, where an audit searches them.
    heads: the constant parts of prompts, masked.
    ranges: the lowest and the highest price of a symbol's sessions up to one, 0 where none is known.
    """

    level: int
    tickers: Mapping[str, str]
    factors: Mapping[Symbol, Decimal]
    market: Market
    calendar: Calendar
    names: Mapping[str, int | None] = field(default_factory=dict)
    own_texts: str = ""
    sent: list[ModelRequest] | None = None
    heads: dict[str, str] = field(default_factory=dict)
    ranges: dict[tuple[Symbol, date], tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def coded(self) -> Mapping[str, Symbol]:
        """The symbols of the run by the codes of their tickers and names."""
        kinds = ("ASSET", "COIN", "Company")
        return {f"{kind}{number}": symbol for number, symbol in enumerate(self.factors, 1) for kind in kinds}

    def factor(self, bearer: str) -> Decimal:
        """The factor of the prices of a symbol; of the bearer of another code one of the usual, always the same."""
        return self.factors.get(bearer) or _FACTORS_OF_OTHERS[_digest(bearer) % len(_FACTORS_OF_OTHERS)]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A pattern of all that may have to be hidden."""
        parts = [_any_of("ticker", self.tickers)]
        if self.level:
            parts.insert(0, r"(?P<listed>(?:NASDAQ|NYSE|AMEX|OTC): ?|\$)(?P<other>[A-Z]{1,5})\b")
        if self.level >= NAMES:
            parts.append(rf"(?i:{_any_of('name', self.names)})")
        parts += _DATES if self.level >= DATES else ()
        parts += [_WORD] if self.level >= NAMES else []
        parts += [_NUMBER] if self.level >= PRICES else []
        return re.compile(rf"(?<!\w)(?=[\w$])(?:{'|'.join(parts)})")  # looks at the beginnings of words alone

    @cached_property
    def back(self) -> re.Pattern[str]:
        """A pattern of all that may have to be unmasked."""
        if not self.level:
            return re.compile(_any_of("code", self.tickers.values()))
        code = r"(?P<code>\b(?:(?:ASSET|COIN|Company)\d+|(?:Ticker|Name)[a-z]{5})\b)"
        return re.compile("|".join((code, *_DATES, _NUMBER)))

    @cached_property
    def products(self) -> re.Pattern[str]:
        """A word with a capital letter after the name of a company."""
        spelled = "|".join(map(re.escape, self.names))
        return re.compile(rf"(?<!\w)(?i:{spelled})(?:['’]s)? (?:[A-Z]\w* )?([A-Z]\w*)")

    def price_range(self, symbol: Symbol, session: date) -> tuple[float, float]:
        """One of `ranges`."""
        if (symbol, session) not in self.ranges:
            with suppress(MissingData):
                bars = self.market.at(decision_time(self.calendar, session)).bars(symbol, _SESSIONS)
                self.ranges[symbol, session] = min(bars.low) / NANO, max(bars.high) / NANO
        return self.ranges.setdefault((symbol, session), (0.0, 0.0))

    def named(self) -> list[str]:
        """Words that the level hides and the questions that went out name: tickers, known names, sessions, and prices
        that are called so."""
        asked = self.sent or []
        text = "\n".join(part for one in asked for part in _texts(one))
        found = set(re.findall(_any_of("ticker", self.factors), text))
        if self.level >= NAMES and (names := [name for name, place in self.names.items() if place]):
            found |= set(re.findall(rf"(?i:{_any_of('name', names)})", text))
        days, prices = set[str](), set[str]()
        for history in self.market.histories.values():
            stop = history.rows_through(max((one.session for one in asked), default=date.min))
            bars = history.slice(max(0, stop - _SESSIONS), stop)
            days |= {f"{date.fromordinal(day):{form}}" for day in bars.sessions for form in _TABLE["date_forms"]}
            prices |= {f"{price / NANO:.2f}" for price in (*bars.open, *bars.high, *bars.low, *bars.close)}
        if self.level >= DATES:
            found |= days.intersection(re.findall(_NUMBERS, text))
        if self.level >= PRICES:
            found |= prices.intersection(re.findall(r"(?:clos|price|cost|open|high|low)[^.;\d\n]*(\d+\.\d\d)\b", text))
        return sorted(found)

    def request(self, request: ModelRequest) -> ModelRequest:
        """A question as a model gets it."""
        return request if request.purpose == PREFLIGHT else _Masking(self, request).masked


def mask_of(spec: RunSpec, market: Market) -> Mask | None:
    """The mask of a run of a market on the run's price basis; None where nothing is hidden."""
    if not spec.options.mask:
        return None
    calendar = desk_calendar_of(market, spec.symbols)
    begin = decision_time(calendar, previous_session(calendar, spec.warm_up_from or spec.first))
    known, factors = market.at(begin), dict[Symbol, Decimal]()
    names: dict[str, int | None] = {name.lower(): None for every in companies().values() for name in every}
    for place, symbol in enumerate(spec.symbols, 1):
        history = market.histories[symbol]
        level = known.close(symbol) if known.count(symbol) else Decimal(history.close[0]) / NANO
        factors[symbol] = _factor(level)
        news = known.news(symbol, datetime.min.replace(tzinfo=UTC))
        own = company_names(symbol, (f"{n.headline} {n.summary}" for n in news))
        names |= {name.lower(): names.get(name.lower()) or place for name in own}
    briefing = spec.briefing or Briefing()
    return Mask(
        level=spec.options.mask,
        tickers=_tickers(spec.symbols),
        factors=factors,
        names=names,
        own_texts="\n".join((briefing.instruction, *(text for _, text in briefing.profiles))),
        market=market,
        calendar=calendar,
    )


def _tickers(symbols: Sequence[Symbol]) -> Mapping[str, str]:
    own = {symbol: f"ASSET{number}" for number, symbol in enumerate(symbols, 1)}
    coins = {symbol.partition("-")[0]: f"COIN{own[symbol][5:]}" for symbol in symbols if is_crypto(symbol)}
    return {symbol: _code("Ticker", symbol) for symbol in companies() if len(symbol) > 1} | coins | own


def swap_of(symbols: Sequence[Symbol], market: Market) -> Mask:
    """A mask of another kind: each symbol takes ticker and known name of the next one, a single one those of a company
    or coin whose data it is not."""
    known, others = companies(), dict[str, str]()
    another = next(one for one in known if one != symbols[0] and is_crypto(one) is is_crypto(symbols[0]))
    ring = symbols if len(symbols) > 1 else (*symbols, another)
    for symbol, other in zip(ring, (*ring[1:], ring[0]), strict=True):
        others[symbol] = other
        if other in known:
            others |= dict.fromkeys(known.get(symbol, ()), known[other][0])
    calendar, factors = desk_calendar_of(market, symbols), dict.fromkeys(symbols, Decimal(1))
    return Mask(level=0, tickers=others, factors=factors, market=market, calendar=calendar)


def masked(model: LanguageModel, mask: Mask | None) -> LanguageModel:
    """The model behind a mask; the rules need none, which recall nothing."""
    return model if mask is None or model.spec == OfflineModel.spec else _Masked(model, mask)


class _Masked:
    """A model that is asked masked questions."""

    def __init__(self, model: LanguageModel, mask: Mask) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model, self._mask = model, mask

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's answer, unmasked; its text comes whole, as parts of a word cannot be unmasked."""
        if request.purpose == PREFLIGHT:
            return await self._model.answer(request, on_delta)
        masking = _Masking(self._mask, request)
        if self._mask.sent is not None:
            self._mask.sent.append(masking.masked)
        result = await self._model.answer(masking.masked, None if on_delta is None else lambda text: None)
        answer = None if result.answer is None else masking.unmasked(result.answer)
        failure = result.failure and replace(result.failure, detail=masking.unmasked(result.failure.detail))
        result = replace(result, answer=answer, failure=failure, text=masking.unmasked(result.text))
        if on_delta is not None and result.text:
            on_delta(result.text)
        return result


class _Masking:
    """A question on its way to a model, and its answer on the way back."""

    def __init__(self, mask: Mask, request: ModelRequest) -> None:
        self._mask, self._request, self._level = mask, request, mask.level
        self._hidden: dict[str, str] = {}
        question = request.symbol if request.symbol in mask.factors else next(iter(mask.factors))
        # Whose a number is: that of the symbol, or of another company that was named since.
        self._question = self._about = question, ""
        self._prices: dict[tuple[str, str], str] = {}
        texts = [message.text for message in request.messages]
        foreign = " ".join([mask.own_texts, *(found[2] for text in texts for found in _FENCE.finditer(text))])
        lower = frozenset(re.findall(r"(?<!\w)[a-z][a-z&]*(?!\w)", " ".join((request.system, *texts))))
        words = set(re.findall(_WORD, foreign)) if mask.level >= NAMES else set[str]()
        products = {found[1] for found in mask.products.finditer(foreign)} if words else words
        self._names = {
            word
            for word in words
            if not _HANDLE.match(word) and not _is_common(word.lower(), frozenset() if word in products else lower)
        }
        head = beginning(request.system)
        if head not in mask.heads:
            mask.heads[head] = self._text(head, self._known)
        self.masked = replace(
            request,
            system=mask.heads[head] + self._text(request.system[len(head) :]),
            messages=tuple(self._message(message) for message in request.messages),
        )

    def unmasked(self, value: Any) -> Any:
        """The answer about the market as it is: texts, prices and shares in JSON."""
        if isinstance(value, str):
            return self._text(value, self._revealed)
        if isinstance(value, Mapping):
            return {key: self._number_of(key, one) for key, one in value.items()}
        return [self.unmasked(one) for one in value] if isinstance(value, (list, tuple)) else value

    def _number_of(self, key: str, value: Any) -> Any:
        """A field; a number is what it were in a text after its name."""
        if self._level < PRICES or isinstance(value, bool) or not isinstance(value, (int, float)):
            return self.unmasked(value)
        priced = partial(self._priced, column=key if _TELLS["counted"].search(key) else None, back=True)
        number = float(re.sub(_NUMBER, priced, f"{key.replace('_', ' ')}: {value}").rpartition(" ")[2])
        return int(number) if isinstance(value, int) and number.is_integer() else number

    def _message(self, message: Message) -> Message:
        return replace(message, text=self._text(message.text), charts=tuple(map(self._chart, message.charts)))

    def _chart(self, chart: ChartSpec) -> ChartSpec:
        factor = self._mask.factors.get(chart.symbol) if self._level >= PRICES else None
        sessions = chart.sessions if self._level < DATES else tuple(map(self._text, chart.sessions))
        chart = replace(chart, title=self._text(chart.title), symbol=self._text(chart.symbol), sessions=sessions)
        if factor is None:
            return chart
        by = float(factor)
        priced = {name: _times(getattr(chart, name), by) for name in ("candles", "lines", "markers")}
        scales = {"MACD": by, "Volume": 1 / by}
        panels = (_times(panel, scales[panel.name]) if panel.name in scales else panel for panel in chart.panels)
        return replace(chart, **priced, panels=tuple(panels))

    def _text(self, text: str, change: Callable[..., str] | None = None) -> str:
        """A text line by line; those of a table know what stands in their columns."""
        change, columns, lines = change or self._concealed, list[str](), []
        pattern = self._mask.back if change == self._revealed else self._mask.pattern
        for line in text.split("\n"):
            self._about = self._question
            cells = line.split(" | ")
            columns = cells if cells[0].endswith("session") else columns if len(cells) == len(columns) else []
            named = columns if len(columns) == len(cells) > 2 and columns != cells else [None] * len(cells)
            known = zip(cells, named, strict=True)
            lines.append(" | ".join(pattern.sub(partial(change, column=name), cell) for cell, name in known))
        return "\n".join(lines)

    def _known(self, match: re.Match[str], column: str | None = None) -> str:
        """Tickers and known names alone: of a prompt's constant part, whose examples are invented."""
        return self._concealed(match, column) if match.lastgroup in ("other", "ticker", "name") else match[0]

    def _concealed(self, match: re.Match[str], column: str | None = None) -> str:
        kind, found = match.lastgroup, match[0]
        if kind == "number":
            return self._priced(match, column)
        if kind == "other":
            return match["listed"] + self._hide(match["other"], self._mask.tickers.get(match["other"]))
        if kind == "ticker":
            return self._hide(found, self._mask.tickers[found])
        if kind == "name":
            place = self._mask.names[found.lower()]
            return self._hide(found, None if place is None else f"Company{place}")
        if kind == "word":
            return self._hide(found) if found in self._names else found
        return self._dated(match, 1)

    def _hide(self, name: str, code: str | None = None) -> str:
        """The code of a name, which stands for its first spelling in the question."""
        code = code or _code("Name", name)
        self._hidden.setdefault(code, name)
        self._tell_of(code)
        return code

    def _tell_of(self, code: str) -> None:
        """A text names the bearer of a code: numbers after it may be its prices."""
        symbol = self._mask.coded.get(code)
        self._about = (self._about[0], code) if symbol is None else (symbol, "")

    def _revealed(self, match: re.Match[str], column: str | None = None) -> str:
        if match.lastgroup == "code":
            self._tell_of(match[0])
            return self._hidden.get(match[0], match[0])
        if match.lastgroup != "number":
            return self._dated(match, -1) if self._level >= DATES else match[0]
        return self._priced(match, column, back=True) if self._level >= PRICES else match[0]

    def _dated(self, match: re.Match[str], way: int) -> str:
        """A date that is moved; on its way back one of the time of the mask alone."""
        found, session = match[0], self._request.session
        if way < 0:
            session = session + SHIFT
        year = _year_of(found, session)
        if way < 0 and year is not None and abs(year - session.year) > YEARS / 2:
            return found
        shift = SHIFT * way
        if match.lastgroup == "year":
            if len(found) == 2 and not _TELLS["surely_a_date"].search(match.string[: match.start() - 1]):
                return found  # '15 stores
            return re.sub(r"\d\d+", lambda one: _later(one[0], YEARS * way), found)
        if match.lastgroup == "numbers":
            if way > 0:
                self._hidden.setdefault(_moved(found, shift), found)
                return _moved(found, shift)
            return self._hidden.get(found) or _moved(found, shift)  # 01/04 may be read in two ways
        try:
            return self._spelled(match, session, year, shift)
        except ValueError:  # 31 June
            return found

    def _spelled(self, match: re.Match[str], session: date, year: int | None, shift: timedelta) -> str:
        """A date with the name of its month; without a year that of the session, without a day the middle of it."""
        found, before = match[0], match.string[: match.start()]
        name, day = re.findall("[A-Za-z]{3,}", found)[0], re.search(r"\b\d\d?(?!\d)", found)
        if found.title() in ("Mar", "March", "May") and not _TELLS["surely_a_date"].search(before):
            return found
        month = next(n for n, known in enumerate(_MONTHS, 1) if known.startswith(name[:3].title()))
        moved = date(year or session.year, month, 15 if day is None else int(day[0])) + shift
        words = [f"{moved:%B}" if name.title() in _MONTHS else f"{moved:%b}"]
        if day is not None:
            words.insert(0 if found[0].isdigit() else 1, str(moved.day))
        return " ".join([*words, str(moved.year)] if year else words)

    def _priced(self, match: re.Match[str], column: str | None, *, back: bool = False) -> str:
        """A number: times the factor of its symbol where it is a price, by its inverse where it counts shares."""
        text, after = match[0], match.string[match.end() : match.end() + _AROUND]
        before = match.string[max(0, match.start() - _AROUND) : match.start()]
        value = float(text.replace(",", "")) * (1000 if after[:1] in ("k", "K") else 1)

        def as_traded(bearer: str) -> float:
            return value / float(self._mask.factor(bearer)) if back else value

        bearer, other = self._about
        low, high = span = self._mask.price_range(bearer, self._request.session)
        if other and column is None and not low / 2 <= as_traded(bearer) <= high * 2:
            bearer, span = other, (0.0, 0.0)
        times, places = self._mask.factor(bearer), len(text.partition(".")[2])
        counted = _TELLS["counted"].search(column or "") or _TELLS["counted_before"].search(before)
        priced = column is None and _is_price(as_traded(bearer), places, before, after, span)
        if counted or after.startswith(" shares"):
            times = 1 / times
        elif not (priced or (column and _TELLS["priced"].search(column))):
            return text
        if back:
            sent = (self._prices.get((one, text)) for one in (bearer, other))
            return next(filter(None, sent), None) or _scaled(text, 1 / times, exact=False)
        changed = _scaled(text, times, exact=True)
        self._prices[bearer, changed] = text
        return changed


def _texts(request: ModelRequest) -> Iterator[str]:
    """All that a question tells about the market, in its pictures too."""
    yield request.system[len(beginning(request.system)) :]
    for message in request.messages:
        yield message.text
        for chart in message.charts:
            yield " ".join((chart.title, chart.symbol, *chart.sessions))
            closes = () if chart.candles is None else chart.candles.close
            yield "\n".join(f"close {close:.2f}" for close in closes)


def _is_common(word: str, others: frozenset[str]) -> bool:
    """True for a word that is no name, or an ending away from one that is none."""
    stems = {word, *(word.removesuffix(ending) for ending in ("ed", "ing", "ly"))}
    return len(word) < 2 or word in others or not stems.isdisjoint(_vocabulary())


def _is_price(value: float, places: int, before: str, after: str, span: tuple[float, float]) -> bool:
    """True for a number of so many decimal places that is a price, or a difference of prices, by its size and the words
    around it; `span` is from the symbol's lowest to its highest, both 0 where they are not known."""
    low, high = span
    if _TELLS["per_share"].match(after):
        return True
    if _TELLS["no_price"].search(before):
        return False
    if places and _TELLS["in_prices"].search(before):
        return value < high
    near, named = low / 2 <= value <= high * 2, _TELLS["named_price"].search(before)
    money = _TELLS["money_before"].search(before) or _TELLS["money_after"].match(after)
    if after[:1] in ("k", "K"):
        return near and bool(money or named)
    if _TELLS["unit"].match(after):
        return False
    surely = named is not None and not named["near"]
    if money:
        return near or value < max(_MOST, high * 10) or surely or (named is not None and not high)
    if places:  # before a later split it is higher; another company's may be any
        return near or (surely and value > high) or (not high and places > 1)
    return named is not None and low * 0.8 <= value <= high * 1.25 if high else surely


def _scaled(text: str, times: Decimal, *, exact: bool) -> str:
    """A number as it is written, times a factor: with all digits, or with as many as it has."""
    value, places = Decimal(text.replace(",", "")) * times, len(text.partition(".")[2])
    if exact:
        places = max(places, -int(value.normalize().as_tuple().exponent))
    return f"{value:{',' if ',' in text else ''}.{places}f}"


def _year_of(found: str, session: date) -> int | None:
    """The year in a date; one of two digits is the nearest to the session."""
    if year := re.search(_YEAR, found):
        return int(year[0])
    if (short := re.search(_SHORT_YEAR, found)) is None:
        return None
    years = (session.year // 100 * 100 + century + int(short[0][-2:]) for century in (-100, 0, 100))
    return min(years, key=lambda year: abs(year - session.year))


def _later(year: str, years: int) -> str:
    """A year of two or four digits, moved."""
    places = len(year)
    return f"{(int(year) + years) % 10**places:0{places}}"


def _times(part: Any, by: float) -> Any:
    """A part of a chart with every number that is none of a place times a factor."""
    if isinstance(part, tuple):
        return tuple(_times(one, by) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{one.name: _times(getattr(part, one.name), by) for one in fields(part)})
    return part * by if isinstance(part, float) else part


def _factor(price: Decimal) -> Decimal:
    """The factor that brings a price near the level of all, and away from itself."""
    other = [factor for factor in _FACTORS if not Decimal("0.7") < factor < Decimal("1.5")]
    return min(other, key=lambda factor: abs(log(price * factor / _LEVEL)))


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.lower().encode()).digest()[:4])


@cache
def _moved(found: str, shift: timedelta) -> str:
    """A date in numbers, moved; as it is where it is none."""
    for form in _TABLE["date_forms"]:
        with suppress(ValueError):
            return f"{datetime.strptime(found, form).replace(tzinfo=UTC) + shift:{form}}"
    return found


def _code(kind: str, name: str) -> str:
    """A word that stands for a name in every question, however it is spelled, and tells nothing of it."""
    return kind + "".join(chr(ord("a") + _digest(name) // 26**place % 26) for place in range(5))


def _any_of(group: str, names: Iterable[str]) -> str:
    spelled = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return rf"(?P<{group}>(?<!\w)(?:{spelled})(?!\w))"


@cache
def _vocabulary() -> frozenset[str]:
    """Words that are no names, in lower case: of our prompts, of the rules, of the calendar."""
    words, prompts = lexicon(), (program_text(file) for file in PROMPTS.glob("*.md"))
    written = re.findall(r"[a-z][a-z&]*", " ".join((*prompts, *month_name, *day_name, _TABLE["acronyms"])).lower())
    known = (words.weights, words.moves, words.things, words.negators, words.failing, words.modals, common_words())
    return frozenset(written).union(*known)
