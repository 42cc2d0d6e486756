"""Adds filings and news to their files: what stands there stays to the letter, and nothing is added twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from connectors.files.rows import json_rows, malformed
from connectors.files.texts import filing_dates, form_of, text_of
from connectors.files.writing import filing_line, news_line, write_text
from engine.domain.market import Filing, NewsItem


@dataclass(frozen=True, slots=True)
class FilingsThere:
    """Which filings a file holds: by id, and where a row has none by form and day."""

    ids: frozenset[str]
    days: frozenset[tuple[str, date]]

    def hold(self, id: str, form: str, day: date) -> bool:
        """Whether a filing is there."""
        return id in self.ids or (form, day) in self.days


def filings_there(path: Path) -> FilingsThere:
    """What a file holds; a missing one holds nothing. Raises MalformedData naming file and line."""
    ids: set[str] = set()
    days: set[tuple[str, date]] = set()
    for line, record in json_rows(path) if path.exists() else ():
        try:
            if id := text_of(record, "id"):
                ids.add(id)
            elif text_of(record, "date"):
                days.add((form_of(record), filing_dates(record).day))
        except ValueError as problem:
            raise malformed(path, line, str(problem)) from None
    return FilingsThere(frozenset(ids), frozenset(days))


def append_filings(path: Path, filings: Iterable[Filing]) -> int:
    """Adds those that are not there, in a single step, and says how many they were."""
    there = filings_there(path)
    new = {one.id: one for one in filings if not there.hold(one.id, one.form, one.date)}
    _append(path, list(map(filing_line, new.values())))
    return len(new)


def append_news(path: Path, items: Iterable[NewsItem]) -> tuple[int, int]:
    """Adds news that is not there, in a single step, and says how many were added and how many were there.

    An item that was changed since comes as a further line with the same id, known from its change; what it said
    before stays, since that is what was known until then. A change that leaves headline and summary alone adds
    nothing. Raises MalformedData naming file and line.
    """
    last: dict[str, tuple[str, str]] = {}
    for line, record in json_rows(path) if path.exists() else ():
        try:
            if id := text_of(record, "id"):
                last[id] = text_of(record, "headline") or "", text_of(record, "summary") or ""
        except ValueError as problem:
            raise malformed(path, line, str(problem)) from None
    lines: list[str] = []
    unchanged = 0
    for item in items:
        texts = item.headline or "", item.summary
        if last.get(item.id) == texts:
            unchanged += 1
        else:
            last[item.id] = texts
            lines.append(news_line(item))
    _append(path, lines)
    return len(lines), unchanged


def _append(path: Path, lines: list[str]) -> None:
    if lines:
        old = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        write_text(path, old + ("\n" if old and not old.endswith("\n") else "") + "".join(lines))
