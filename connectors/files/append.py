"""Appending filings and news to their files: stored lines stay unchanged, and nothing is added twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from connectors.files.rows import json_rows, malformed
from connectors.files.texts import filing_dates, form_of, text_of
from connectors.files.write import filing_line, news_line, write_text
from engine.domain.market import Filing, NewsItem


@dataclass(frozen=True, slots=True)
class StoredFilings:
    """Filings of a file: by id, and by form and day for rows without one."""

    ids: frozenset[str]
    days: frozenset[tuple[str, date]]

    def contains(self, id: str, form: str, day: date) -> bool:
        """True where the file has the filing."""
        return id in self.ids or (form, day) in self.days


def stored_filings(path: Path) -> StoredFilings:
    """Filings of a file; none where it is missing. Raises MalformedData naming file and line."""
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
    return StoredFilings(frozenset(ids), frozenset(days))


def append_filings(path: Path, filings: Iterable[Filing]) -> int:
    """Append new filings in a single step; return their number."""
    stored = stored_filings(path)
    new = {one.id: one for one in filings if not stored.contains(one.id, one.form, one.date)}
    _append(path, list(map(filing_line, new.values())))
    return len(new)


def append_news(path: Path, items: Iterable[NewsItem]) -> tuple[int, int]:
    """Append new news in a single step; return the numbers of added and of unchanged items.

    A changed item is a further line with the same id, available from its change; the earlier line stays, since it was
    the known version until then. A change outside headline and summary adds nothing. Raises MalformedData naming file
    and line.
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
