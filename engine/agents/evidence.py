"""Evidence of an answer: the memories that it cites and the figures that it quotes, held against its inputs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.agents.text import plain
from engine.domain.recollection import LAYERS, Recollection
from engine.domain.text import cut_between_sentences

SHOWN = 8_000
"""Characters of a memory's text that an agent sees: those of a filing's summary."""


def shown_text(memory: Recollection) -> str:
    """A memory's text as an agent sees it: whole, or its first sentences and a note of how much is left out."""
    return cut_between_sentences(plain(memory.text), SHOWN)


def cut_note(memories: Iterable[Recollection]) -> str:
    """The end of a view's few words: how many memories are too long to be shown whole; empty where none is."""
    cut = len({memory.id for memory in memories if len(plain(memory.text)) > SHOWN})
    return f", {cut} cut to {SHOWN:,} characters" if cut else ""


def recollection_line(memory: Recollection) -> str:
    """A memory on one line: its handle in brackets, the session it was written in, its kind, its text."""
    return f"[{plain(memory.handle, 20)}] {memory.session} {plain(memory.kind, 40)}: {shown_text(memory)}"


def by_layer(memories: Iterable[Recollection]) -> Mapping[str, Sequence[Recollection]]:
    """Memories by layer: the known layers first and in their order, empty ones left out."""
    found: dict[str, list[Recollection]] = {layer: [] for layer in LAYERS}
    for memory in memories:
        found.setdefault(memory.layer, []).append(memory)
    return {layer: rows for layer, rows in found.items() if rows}


def cited_ids(handles: Iterable[str], memories: Iterable[Recollection]) -> tuple[str, ...]:
    """The ids of the memories that an agent cited by their handles."""
    known = {memory.handle: memory.id for memory in memories}
    return tuple(known[handle] for handle in handles)


def check_cited(cited: Iterable[str], given: Iterable[str], what: str) -> None:
    """Raise ValueError, naming them, for ids that were not given or that are named twice."""
    counted = Counter(cited)
    strangers = [plain(name, 40) for name in counted.keys() - frozenset(given)]
    if strangers:
        raise ValueError(f"{what} names ids that were not given: {', '.join(sorted(strangers)[:5])}")
    repeated = [plain(name, 40) for name, times in counted.items() if times > 1]
    if repeated:
        raise ValueError(f"{what} names ids more than once: {', '.join(sorted(repeated)[:5])}")


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
COUNTS_UP_TO = 20
"""Whole numbers up to this without a currency or percent sign are taken as counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    written: str
    value: float
    unit: float
    half: float
    percent: bool
    plain_integer: bool
    start: int
    stop: int


def unresolved_figures(explanation: str, inputs_text: str) -> tuple[str, ...]:
    """The figures of an explanation that its inputs do not hold, as written, each once.

    A figure resolves where some input, rounded to the digits that are quoted, equals it; signs, thousands
    separators and words such as million do not matter, and a percentage may be given as a fraction. Dates,
    years, periods of indicators, levels that oscillators are read against, counts and the size of the
    decision itself are not looked up.
    """
    text = _NOT_FIGURES.sub(_blanked, explanation)
    quoted = [figure for figure in _figures(text) if not _needs_no_source(figure, text)]
    if not quoted:
        return ()
    known: set[float] = set()
    # Inputs hold hundreds of figures to one that is quoted, so of them no more is read than is needed.
    for _, number, percent, unit in set(_FIGURE.findall(inputs_text)):
        value = float(number.replace(",", ""))
        known.add(value)
        if unit:
            known.add(value * _UNITS[unit.lower()])
        if not percent and value <= 1:
            known.add(value * 100)
    order = sorted(known)
    return tuple(dict.fromkeys(f.written for f in quoted if not _is_in(order, f)))


def without_figures(text: str, figures: Container[str]) -> str:
    """The text without some of its figures, which are named as written."""
    return _FIGURE.sub(lambda match: " " if match[0].strip() in figures else match[0], text)


def _figures(text: str) -> Iterator[_Figure]:
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
            start=match.start(),
            stop=match.end(),
        )


def _needs_no_source(figure: _Figure, text: str) -> bool:
    before = text[max(0, figure.start - 45) : figure.start]
    if figure.plain_integer and (figure.value <= COUNTS_UP_TO or 1900 <= figure.value <= 2100):
        return True
    if figure.value in _GUIDES and not figure.percent and _GUIDE_BEFORE.search(before):
        return True
    is_size = figure.value <= 10 and figure.value == int(figure.value)
    return is_size and bool(_SIZE_AFTER.match(text, figure.stop) or _SIZE_BEFORE.search(before))


def _is_in(order: list[float], figure: _Figure) -> bool:
    """True where a known value rounds to the figure, written with its unit or without."""
    for scale in {1.0, figure.unit}:
        value, half = figure.value * scale, figure.half * scale * (1 + 1e-9) + 1e-12
        row = bisect_left(order, value - half)
        if row < len(order) and order[row] <= value + half:
            return True
    return False


def _blanked(match: re.Match[str]) -> str:
    return " " * len(match[0])
