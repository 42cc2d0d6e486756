"""EDGAR's lists: companies with their numbers, and the filings of a company."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from engine.domain.market import Symbol

_EASTERN = ZoneInfo("America/New_York")
_ACCEPTED = re.compile(r"<ACCEPTANCE-DATETIME>\s*(\d{14})")
_ACCESSION = re.compile(r"\d{10}-\d{2}-\d{6}")
_COLUMNS = ("accessionNumber", "form", "filingDate", "acceptanceDateTime", "primaryDocument")
_DOCUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]*(/[A-Za-z0-9_][A-Za-z0-9._ -]*)*")


@dataclass(frozen=True, slots=True)
class ListedFiling:
    """One entry of a company's list.

    `accepted_by` (UTC) is a time at which it had been accepted for sure: the list is not exact (see
    `accepted_by_list`), the filing's own header is.
    """

    accession: str
    form: str
    date: date
    accepted_by: datetime
    document: str


def edgar_ticker(symbol: Symbol) -> str:
    """A symbol in EDGAR's notation: share classes with a dash (BRK-B)."""
    return symbol.upper().replace(".", "-").replace("/", "-")


def companies(tickers: Mapping[str, Any]) -> dict[str, int]:
    """CIK of every ticker in EDGAR's list. Raises ValueError for a list of another shape."""
    try:
        return {row["ticker"].upper(): int(row["cik_str"]) for row in tickers.values()}
    except (TypeError, KeyError, AttributeError):
        raise ValueError("the list of tickers has another shape") from None


def filings_in(columns: Mapping[str, Any]) -> Iterator[ListedFiling]:
    """Filings of one list, which is in columns. Raises ValueError for another shape."""
    try:
        rows = list(zip(*(columns[name] for name in _COLUMNS), strict=True))
        for accession, form, day, accepted, document in rows:
            # Both become parts of an address.
            if not _ACCESSION.fullmatch(accession) or (document and not _DOCUMENT.fullmatch(document)):
                raise ValueError(f"{accession[:40]!r} with {document[:80]!r} is no filing")
            yield ListedFiling(accession, form, date.fromisoformat(day), accepted_by_list(accepted), document)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the list of filings has another shape ({error})") from None


def older_files(submissions: Mapping[str, Any]) -> Iterator[tuple[str, date]]:
    """The further files of a list by name, each with its last day. Raises ValueError for another shape."""
    try:
        for row in submissions["filings"]["files"]:
            if not re.fullmatch(r"CIK\d{10}-submissions-\d+\.json", row["name"]):
                raise ValueError(f"{row['name'][:80]!r} is no list of filings")
            yield row["name"], date.fromisoformat(row["filingTo"])
    except (TypeError, KeyError) as error:
        raise ValueError(f"the list of older filings has another shape ({error})") from None


def accepted_by_header(header: str) -> datetime | None:
    """Acceptance time (UTC) of a filing's own header, which is in New York time for every company; None where it has
    none."""
    found = _ACCEPTED.search(header.replace("&lt;", "<").replace("&gt;", ">"))
    if found is None:
        return None
    try:
        return _from_eastern(datetime.strptime(found[1], "%Y%m%d%H%M%S"))  # noqa: DTZ007 - the zone is added next
    except ValueError:
        return None


def accepted_by_list(text: str) -> datetime:
    """Acceptance time (UTC) by the list alone.

    The list's times are UTC for some companies and New York's for others, undistinguished: they are read as New York's,
    the later of both, so never too early. Raises ValueError for an invalid time.
    """
    return _from_eastern(datetime.fromisoformat(text).replace(tzinfo=None))


def _from_eastern(clock: datetime) -> datetime:
    # Of an hour that comes twice, when summer time ends, the later one is meant.
    return clock.replace(tzinfo=_EASTERN, fold=1).astimezone(UTC)
