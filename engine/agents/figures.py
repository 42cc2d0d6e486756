"""Figures that an answer quotes, held against its sources by their roles.

*Observed* figures are the View's own: close, RSI, position, cash, tables, the record's results. *Cited* ones stand in a
numbered item of the inputs: news, a filing, a memory of a document. *Derived* ones follow from figures of the same
sentence. *Proposed* ones are targets and stops of a decision: they need no source, and stand on the right side of the
close; those of analysts, of a bank that an item names and of a company are cited. A close, an RSI or an ATR is observed
or made up, whatever an item says of it. What a model wrote is no source.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from engine.domain.decision import DIRECTIONS, PRICE, REFLECTIONS, Action

WRITTEN = frozenset(
    {
        *(
            "absent",
            "analysis",
            "best",
            "case",
            "comments",
            "digest",
            "example",
            "fault",
            "intelligence",
            "judgement",
            "past",
        ),
        *("reading", "reasons", "reflection", "report", "review", "signals", "strategy", "worst", "yours"),
    }
)
"""Fences of prompts around what a model wrote, and around what we made up as an example."""
_TABLES = frozenset({"chart", "closes", "decisions", "record", "table", "tools"})
"""Fences around figures of our own."""
_RECORDED = re.compile(r"(?<=%)\. Named: .*|(?<=\d% of the portfolio): .*")
"""A model's words in a line of the record."""
_ITEM = re.compile(r"- \[[\w-]+\] \d{4}-\d\d-\d\d(?: (?P<kind>[\w-]+))?(?: \([^)]*\))?: ")
"""The beginning of an item or a memory with its number, which is no figure."""

_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_NOT_FIGURES = re.compile(
    rf"\d{{4}}-\d\d-\d\d|\d\d?:\d\d|\b{_MONTH}\s+\d{{1,2}}\b|\b\d{{1,2}}\s+{_MONTH}\b"
    # Periods of indicators: SMA 200, SMA(50), RSI 14, MACD (12, 26, 9), 50-day, 14-period, 60 sessions.
    r"|\b(?:sma|ema|ma)[\s-]?\d{1,3}(?![\d%]|[.,]\d)|\b(?:rsi|atr)[\s-]?14(?![\d%]|[.,]\d)"
    r"|\b(?:rsi|sma|ema|ma|macd|kdj|atr|bollinger(?:\s+bands?)?)\s?\(\s*\d+(?:\s*,\s*\d+)*\s*\)"
    r"|\b\d+[-\s](?:day|session|period|week|month|year|bar|minute|hour)s?\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"(?<![\w.,])(?P<currency>[$€£¥])?\s?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<percent>%|percent\b|per cent\b)|\s?(?P<unit>trillion|billion|million|thousand|[kmbt]n?)\b)?"
    r"(?!\w|-[a-z])",
    re.IGNORECASE,
)
_UNITS = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6}
_UNITS |= {"b": 1e9, "bn": 1e9, "billion": 1e9, "t": 1e12, "tn": 1e12, "trillion": 1e12}
_SIZE_AFTER = re.compile(
    r"\s*(?:of|in)\s+(?:the\s+|our\s+|my\s+|this\s+|total\s+)*(?:portfolio|position|holding)", re.IGNORECASE
)
_SIZE_BEFORE = re.compile(r"\b(?:size|sized|buy|sell|buying|selling|trim|add)\b[^.\d]{0,25}$", re.IGNORECASE)
_GUIDE_BEFORE = re.compile(r"\b(?:rsi|kdj|k|d|j|overbought|oversold|neutral)\b[^.\d]{0,40}$", re.IGNORECASE)
_GUIDES = frozenset({20.0, 30.0, 50.0, 70.0, 80.0})
"""Levels that textbooks compare oscillators with."""
STRUCK = " [?]"
"""The mark in place of a figure that a model made up, where memory keeps its words."""
COUNTS_UP_TO = 20
"""Whole numbers up to this without a currency or percent sign are taken as counts."""
_BETWEEN = (
    r"price|prices|value|level|yesterday|today|last|latest|recent|adjusted|on|the|its|a|day|session|was|is|were|of|at|"
    r"near|around|about|roughly|just|under|over|above|below|up|down|higher|lower|flat|unchanged|to|stood|stands|came|in|now"
)
_MEASURED = re.compile(
    rf"\bclos(?:e[sd]?|ing)\b(?!\s+to\b)(?P<close>(?:[\s,:=()$€£¥]|\b(?:{_BETWEEN})\b)*)$"
    r"|\b(?:rsi|atr)\b(?:(?!\band\b)[^.;,\d$€£¥]){0,40}$",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    # A company's revenue target and a fall that stops are no prices that a decision proposes.
    r"(?P<other>\b(?:revenues?|sales|earnings|eps|ebitda|income|margins?|growth|inflation|production|output|shipments?|"
    r"deliver(?:y|ies)|bookings|subscribers?|savings)(?:[\s-]+\w+)?[\s-]+(?=target|objective)|"
    r"\b(?:fall|rise|decline|drop|slide|rally|climb|advance|move|rebound|pullback|price|it)\s+(?=stops\b))?"
    r"\b(?:(?P<target>target|objective|take[- ]profit)|stop(?:[- ]loss)?)s?\b[^.\d]{0,25}$",
    re.IGNORECASE,
)
_NOT_OWN = r"(?:(?!\b(?:I|we|my|our)\b)[^.;!?\n])*$"
_OTHERS = re.compile(rf"\b(?:analysts?|consensus|brokers?|brokerages?|wall street)\b{_NOT_OWN}", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(?!This\b|That\b)(?P<name>[A-Z]\w{2,}) "
    rf"(?:sets?|sees|raise[sd]|cuts?|lift(?:s|ed)|lower(?:s|ed)|trim(?:s|med)|keeps|kept)\b{_NOT_OWN}"
)
"""Others, whose targets have to stand in an item, whatever is decided."""
_SENTENCE = re.compile(r"[.;!?]\s|\n")
_BEFORE = 60
"""Characters before a figure that tell its role."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The texts that figures of an answer may come from, by role."""

    observed: str
    cited: str = ""

    @classmethod
    def of(cls, question: str, written: Container[str] = ()) -> Facts:
        """The facts of a question without what a model wrote: fences of `WRITTEN`, words in the record, reflections in
        memory, and the lines of answers that other agents gave (`written`)."""
        observed: list[str] = []
        cited: list[str] = []
        fence = ""
        for line in question.split("\n"):
            if line.startswith("<<<"):
                fence = line[3:]
            elif fence and line == f"{fence}>>>":
                fence = ""
            elif fence not in WRITTEN and line not in written:
                item = _ITEM.match(line) if fence else None
                kind = None if item is None else item["kind"]
                if kind in REFLECTIONS:
                    continue
                own = not fence or fence in _TABLES or kind == PRICE
                text = _RECORDED.sub("", line) if fence in _TABLES else line[item.end() :] if item else line
                (observed if own else cited).append(text)
        return cls("\n".join(observed), "\n".join(cited))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    written: str
    value: float
    unit: float
    half: float
    percent: bool
    plain_integer: bool
    price: bool
    start: int
    stop: int
    sentence: int


def unresolved_figures(
    text: str, sources: Sequence[Facts], action: Action | None = None, close: Decimal | None = None
) -> tuple[str, ...]:
    """The figures of a text that no source holds, as written, each once. A decision's text comes with its action and
    the close that targets and stops are held against.

    A figure resolves where some source, rounded to the digits that are quoted, equals it; signs, thousands
    separators and words such as million do not matter, and a percentage may be given as a fraction. Dates,
    years, periods of indicators, levels that oscillators are read against, counts and the size of the
    decision itself are not looked up.
    """
    text = _NOT_FIGURES.sub(_blanked, text)
    quoted = [figure for figure in _figures(text) if not _needs_no_source(figure, text)]
    held: list[_Figure] = []
    open_: list[_Figure] = []
    for figure in quoted:
        before = text[max(0, figure.start - _BEFORE) : figure.start]
        cited = any(_is_in(_stated(facts.cited), figure) for facts in sources)
        proposed = None if action is None else _PROPOSED.search(before)
        if action is not None and proposed and not proposed["other"] and figure.unit < 1e6:
            own = figure.percent or _is_on_its_side(figure, proposed["target"] is not None, action, close)
            if cited if _is_ascribed(before, sources) else own:
                held.append(figure)
        elif any(_is_in(_known(facts.observed), figure) for facts in sources):
            held.append(figure)
        elif _is_measured(figure, before):
            continue
        elif cited:
            held.append(figure)
        else:
            open_.append(figure)
    held += [figure for figure in open_ if _follows(figure, held)]
    return tuple(dict.fromkeys(figure.written for figure in quoted if figure not in held))


def _is_measured(figure: _Figure, before: str) -> bool:
    """True for a close, an RSI or an ATR: no item can say what they are."""
    measured = None if figure.percent or figure.unit != 1 else _MEASURED.search(before)
    return measured is not None and (measured["close"] is None or figure.price)


def _is_ascribed(before: str, sources: Sequence[Facts]) -> bool:
    """True for a target of analysts, or of somebody whom an item names."""
    named = _NAMED.search(before)
    return bool(_OTHERS.search(before) or (named and any(named["name"] in facts.cited for facts in sources)))


def _is_on_its_side(figure: _Figure, target: bool, action: Action, close: Decimal | None) -> bool:
    """True for a target beyond the close in the action's direction, and for a stop before it; a HOLD has none."""
    way = DIRECTIONS.get(action, 0) * (1 if target else -1)
    return close is None or not way or (figure.value * figure.unit - float(close)) * way > 0


def _follows(figure: _Figure, held: Sequence[_Figure]) -> bool:
    """True for the difference, the sum, the product, the ratio or the change of two resolved figures of a sentence."""
    values = [other.value * other.unit for other in held if other.sentence == figure.sentence]
    derived = {
        result
        for n, one in enumerate(values)
        for other in values[n + 1 :]
        for a, b in ((one, other), (other, one))
        for result in (
            abs(a - b),
            a + b,
            a * b,
            a * b / 100,
            *((a / b, a / b * 100, abs(a / b - 1) * 100) if b else ()),
        )
    }
    return _is_in(sorted(derived), figure)


@lru_cache(maxsize=64)
def _known(text: str) -> Sequence[float]:
    """The figures of a source, ascending."""
    known: set[float] = set()
    for _, number, percent, unit in set(_FIGURE.findall(text)):
        value = float(number.replace(",", ""))
        known.add(value)
        if unit:
            known.add(value * _UNITS[unit.lower()])
        if not percent and value <= 1:
            known.add(value * 100)
    return sorted(known)


@lru_cache(maxsize=64)
def _stated(text: str) -> Sequence[float]:
    """The figures of items, ascending, without what they say a close, an RSI or an ATR is."""
    text = _NOT_FIGURES.sub(_blanked, text)
    stated = [
        text[figure.start : figure.stop]
        for figure in _figures(text)
        if not _is_measured(figure, text[max(0, figure.start - _BEFORE) : figure.start])
    ]
    return _known(" ; ".join(stated))


def struck(text: str, figures: Container[str]) -> str:
    """The text with some of its figures, which are named as written, struck out."""
    return _FIGURE.sub(lambda match: STRUCK if match[0].strip() in figures else match[0], text)


def _figures(text: str) -> Iterator[_Figure]:
    ends = [match.start() for match in _SENTENCE.finditer(text)]
    for match in _FIGURE.finditer(text):
        number = match["number"].replace(",", "")
        decimals = len(number.partition(".")[2])
        yield _Figure(
            written=match[0].strip(),
            value=float(number),
            unit=_UNITS.get((match["unit"] or "").lower(), 1.0),
            half=0.5 * 10.0**-decimals,
            percent=match["percent"] is not None,
            plain_integer=decimals == 0 and not (match["currency"] or match["percent"] or match["unit"]),
            price=decimals > 0 or match["currency"] is not None,
            start=match.start(),
            stop=match.end(),
            sentence=bisect_left(ends, match.start()),
        )


def _needs_no_source(figure: _Figure, text: str) -> bool:
    before = text[max(0, figure.start - _BEFORE) : figure.start]
    if figure.plain_integer and (figure.value <= COUNTS_UP_TO or 1900 <= figure.value <= 2100):
        return True
    if figure.value in _GUIDES and not figure.percent and _GUIDE_BEFORE.search(before):
        return True
    is_size = figure.value <= 10 and figure.value == int(figure.value)
    return is_size and bool(_SIZE_AFTER.match(text, figure.stop) or _SIZE_BEFORE.search(before))


def _is_in(order: Sequence[float], figure: _Figure) -> bool:
    """True where a known value rounds to the figure, written with its unit or without."""
    for scale in {1.0, figure.unit}:
        value, half = figure.value * scale, figure.half * scale * (1 + 1e-9) + 1e-12
        row = bisect_left(order, value - half)
        if row < len(order) and order[row] <= value + half:
            return True
    return False


def _blanked(match: re.Match[str]) -> str:
    return " " * len(match[0])
