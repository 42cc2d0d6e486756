"""News in the service's present version, page by page, in order of the last change."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from html import unescape
from typing import Any

from connectors.alpaca.data.names import by_wire, compact
from connectors.alpaca.data.pages import AlpacaPages
from engine.domain.market import NewsItem, Symbol

_PAGE = "50"  # the most that there is; without a limit the service's pages never end
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


async def news(
    pages: AlpacaPages, symbols: Sequence[Symbol], first: datetime, last: datetime
) -> AsyncIterator[list[NewsItem]]:
    """News of symbols changed within a period, a page at a time.

    An article comes once for each of its symbols, in its latest version, and is available from its last change. Texts
    have no markup.
    """
    params = {
        "symbols": ",".join(map(compact, symbols)),
        "start": _stamp(first),
        "end": _stamp(last),
        "limit": _PAGE,
        "sort": "asc",
        "include_content": "false",
    }
    names = by_wire(symbols)

    def read(page: dict[str, Any]) -> list[NewsItem]:
        return [item for row in page["news"] or () for item in _items(row, names)]

    async for page in pages.follow("/v1beta1/news", params, read):
        yield page


def plain(text: str) -> str:
    """Text without tags, entities and line breaks."""
    return " ".join(unescape(_TAG.sub(" ", _UNSEEN.sub(" ", text))).split())


def _items(row: dict[str, Any], names: dict[str, Symbol]) -> list[NewsItem]:
    created = _moment(row["created_at"])
    known = max(created, _moment(row.get("updated_at") or row["created_at"]))
    headline, summary = (plain(row.get(key) or "") for key in ("headline", "summary"))
    source, url = (_text(row, key) for key in ("source", "url"))
    about = dict.fromkeys(names[name] for name in row["symbols"] or () if name in names)
    return [
        NewsItem(
            id=str(row["id"]),
            symbol=symbol,
            date=created.date(),
            available_at=known,
            summary=summary,
            headline=headline or None,
            published=created,
            source=source,
            sentiment=None,
            url=url,
        )
        for symbol in about
    ]


def _text(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    return plain(value) or None if isinstance(value, str) else None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text[:40]} has no time zone")
    return moment.astimezone(UTC)


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
