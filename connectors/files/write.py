"""Writer of the data folder: files in the one format that is read back, each replaced in a single step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, date, datetime
from math import isnan
from pathlib import Path
from tempfile import NamedTemporaryFile

from connectors.files.actions import ACTION_COLUMNS, in_order
from connectors.files.prices import PRICE_COLUMNS, BarRow
from engine.domain.market import UNKNOWN, CorporateAction, Filing, NewsItem, from_nano


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically: a reader, or a crash, sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = None
    try:
        with NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", newline="", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is the owner's alone; the data folder's files are as readable as any.
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def prices_text(bars: Iterable[BarRow]) -> str:
    """Text of a price file; the rows have to be in order of session."""
    lines = [",".join(PRICE_COLUMNS)]
    for session, open_, high, low, close, adjusted, volume in bars:
        cells = [date.fromordinal(session).isoformat(), *map(_price, (open_, high, low, close, adjusted))]
        lines.append(",".join((*cells, _volume(volume))))
    return "\n".join(lines) + "\n"


def actions_text(actions: Iterable[CorporateAction]) -> str:
    """Text of an action file, in order of ex-date."""
    rows = (f"{action.ex_date},{action.kind},{action.value:f}" for action in in_order(actions))
    return "\n".join((",".join(ACTION_COLUMNS), *rows)) + "\n"


def news_line(item: NewsItem) -> str:
    """One line of a news file: the time of publication, and `updated` where the item became available later."""
    record: dict[str, str | None] = {
        "date": item.date.isoformat(),
        "time": None,
        "headline": item.headline,
        "summary": item.summary,
        "source": item.source,
        "sentiment": item.sentiment,
        "id": item.id,
    }
    if item.published is not None:
        on_its_date = item.published.astimezone(UTC).date() == item.date
        record["time" if on_its_date else "created"] = _moment(item.published, only_time=on_its_date)
        if item.available_at > item.published:
            record["updated"] = _moment(item.available_at)
    if item.url:
        record["url"] = item.url
    return json_line(record)


def filing_line(filing: Filing) -> str:
    """One line of a filing file, with the time of acceptance."""
    return json_line(
        {
            "date": filing.date.isoformat(),
            "accepted": _moment(filing.available_at),
            "symbol": filing.symbol,
            "form": filing.form,
            "summary": filing.summary,
            "id": filing.id,
        }
    )


def json_line(record: dict[str, str | None]) -> str:
    """One object on one line."""
    return json.dumps(record, ensure_ascii=False) + "\n"


def _moment(moment: datetime, *, only_time: bool = False) -> str:
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.time().isoformat() if only_time else utc.isoformat()}Z"


def _price(nano: int) -> str:
    return "" if nano == UNKNOWN else f"{from_nano(nano):f}"


def _volume(volume: float) -> str:
    if isnan(volume):
        return ""
    return str(int(volume)) if volume.is_integer() else repr(volume)


def _sync_folder(folder: Path) -> None:
    # The rename itself has to survive a power cut; where a folder cannot be opened (Windows) it may not.
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
