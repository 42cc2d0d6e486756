"""Tools of the decision: signals of rule strategies with their reasons, and experts' notes.

The strategies that an agent has tried: the best and the worst of them, and the one that a decision followed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from engine.agents.agent import plain
from engine.agents.rendering import signed_percent
from engine.domain.market import PriceHistory, Symbol
from engine.domain.run import ExpertNote
from engine.errors import MalformedData, MissingData

NOTE_LIMIT = 1_500
"""Characters of an expert's note that the decision sees."""
COLUMNS = ("date", "symbol", "text")
LAST_NOTES = 3
"""Newest notes that the decision sees."""


@dataclass(frozen=True, slots=True)
class ToolSignal:
    """The signal of one tool with its reason, and for a rule its parameters and what its signals have been worth; an
    expert's note is `guidance`. Source: FinAgent §4.4 [A7]."""

    name: str
    signal: Literal["buy", "sell", "none", "guidance"]
    explanation: str
    record: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", plain(self.name, 60))
        object.__setattr__(self, "explanation", plain(self.explanation, NOTE_LIMIT))

    @property
    def line(self) -> str:
        """The signal on one line."""
        signal = {"none": "no signal", "guidance": "expert guidance"}.get(self.signal, self.signal)
        return " ".join(part for part in (f"{self.name}, {signal}: {self.explanation}", self.record) if part)


class Rule(Protocol):
    """The part of a rule strategy (engine.strategies) that a tool needs; fields of a dataclass are its parameters."""

    @property
    def name(self) -> str: ...

    def signals(self, history: PriceHistory) -> Any:
        """One number per bar: below zero to sell, zero for nothing, above zero to buy."""

    def explain(self, history: PriceHistory, row: int) -> str: ...


def tool_signals(rules: Iterable[Rule], bars: PriceHistory) -> tuple[ToolSignal, ...]:
    """The signal of each rule after the last bar; none where there are no bars."""
    if not len(bars):
        return ()
    return tuple(_signal(rule, bars) for rule in rules)


def _signal(rule: Rule, bars: PriceHistory) -> ToolSignal:
    sides = [(signal > 0) - (signal < 0) for signal in rule.signals(bars).tolist()]
    record = f"{_parameters(rule)}{track_record(sides, bars)}"
    return ToolSignal(rule.name, _named(sides[-1]), rule.explain(bars, -1), record)


def _parameters(rule: object) -> str:
    """The parameters that a rule ran with, as a sentence; empty for one that has none."""
    if not is_dataclass(rule) or not fields(rule):
        return ""
    return f"Parameters: {', '.join(f'{one.name} {getattr(rule, one.name)}' for one in fields(rule))}. "


def track_record(sides: Sequence[int], bars: PriceHistory) -> str:
    """The worth of a rule's signals on the bars that it saw. A signal lasts until the next opposite one, the latest
    until the last bar, and was right where the close moved its way; one that repeats the side before it is none of its
    own. Costs are left out."""
    signals: list[tuple[int, int]] = []
    for row, side in enumerate(sides[:-1]):
        if side and (not signals or side != signals[-1][1]):
            signals.append((row, side))
    if not signals:
        return f"Record: no signal in the {len(bars) - 1} sessions before."
    right, grown = 0, 1.0
    ends = [*(row for row, _ in signals[1:]), len(bars) - 1]
    for (row, side), end in zip(signals, ends, strict=True):
        move = bars.close[end] / bars.close[row]
        right += side * (move - 1) > 0
        grown *= move if side > 0 else 1.0
    first = signals[0][0]
    held = bars.close[-1] / bars.close[first] - 1
    return (
        f"Record since {bars.session(first)}: {right} of {len(signals)} signals right; invested by them "
        f"{signed_percent(grown - 1)}, always invested {signed_percent(held)}."
    )


def _named(signal: int) -> Literal["buy", "sell", "none"]:
    return "sell" if signal < 0 else "buy" if signal > 0 else "none"


def guidance_signals(notes: Sequence[ExpertNote], symbol: Symbol, session: date) -> tuple[ToolSignal, ...]:
    """The newest notes on a symbol that are dated before a session, oldest first. A note of the session's own day may
    have been written after its close, so it counts from the next session on."""
    known = sorted((n for n in notes if n.symbol == symbol and n.day < session), key=lambda note: note.day)
    return tuple(ToolSignal(f"expert of {note.day}", "guidance", note.text) for note in known[-LAST_NOTES:])


def read_guidance(path: Path) -> tuple[ExpertNote, ...]:
    """The notes of a JSONL file, one object per line with date (YYYY-MM-DD), symbol and text, or of a CSV file with
    these columns. Raises MissingData where there is no such file, MalformedData naming file and line for one that is
    no note."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingData(f"no guidance file {path}; name another or leave the setting out") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedData(f"{path}: cannot be read as UTF-8 text: {error}") from None
    if path.suffix.lower() == ".csv":
        return tuple(_csv_notes(path, text))
    lines = enumerate(text.split("\n"), 1)
    return tuple(_note(f"{path}:{n}", _object(f"{path}:{n}", line)) for n, line in lines if line.strip())


def _csv_notes(path: Path, text: str) -> Iterator[ExpertNote]:
    rows = csv.DictReader(StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            raise MalformedData(f"{path}: no column {missing[0]}; its first line must name {','.join(COLUMNS)}")
        for row in rows:
            yield _note(f"{path}:{rows.line_num}", row)
    except csv.Error as error:
        raise MalformedData(f"{path}:{rows.reader.line_num}: not CSV: {error}") from None


def _object(where: str, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise MalformedData(f"{where}: not JSON: {error.msg}") from None
    if not isinstance(row, dict):
        raise MalformedData(f"{where}: not an object with date, symbol and text")
    return row


def _note(where: str, row: Mapping[str, Any]) -> ExpertNote:
    for field in COLUMNS:
        if not isinstance(row.get(field), str) or not row[field].strip():
            raise MalformedData(f"{where}: {field} is missing or no text")
    try:
        day = date.fromisoformat(row["date"])
    except ValueError:
        raise MalformedData(f"{where}: date {plain(row['date'], 40)!r} is not YYYY-MM-DD") from None
    return ExpertNote(day, row["symbol"].strip(), row["text"])


_MARK = "\nStrategy in force: "


class Scored(Protocol):
    """A strategy with its score; None before it was used."""

    @property
    def score(self) -> float | None:
        """The score."""


S = TypeVar("S", bound=Scored)


def best_and_worst(library: Sequence[S], count: int = 5) -> tuple[Sequence[S], Sequence[S]]:
    """The strategies with the highest scores, the best first, and of the others those with the lowest, the worst first.

    Source: Agent Trading Arena §4.2 [R5].
    """
    tried = sorted((one for one in library if one.score is not None), key=lambda one: -(one.score or 0.0))
    best = tried[:count]
    return best, tuple(reversed(tried[len(best) :][-count:]))


@dataclass(frozen=True, slots=True)
class TriedStrategy:
    """A strategy for real prices. `score`: mean over its sessions of the portfolio's return less the mean return of the
    stocks, in percent; None before the first of them has closed."""

    since: date
    text: str
    score: float | None

    @property
    def line(self) -> str:
        """The strategy for a prompt."""
        return f"since {self.since}, score {0.0 if self.score is None else self.score:+.2f}: {self.text}"


def with_strategy(reason: str, strategy: str) -> str:
    """The reason of a decision with the strategy that it followed, so that the record of decisions is the library."""
    return f"{reason}{_MARK}{' '.join(strategy.split())}"


def without_strategy(reason: str) -> tuple[str, str]:
    """The reason and the strategy apart; the strategy is empty where none was followed."""
    before, mark, strategy = reason.rpartition(_MARK)
    return (before, strategy) if mark else (reason, "")
