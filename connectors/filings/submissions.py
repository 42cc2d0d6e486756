"""EDGAR's lists: companies with their numbers, and the filings of a company."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from connectors.rate_limited_http import json_object
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


def read_companies(body: bytes) -> dict[str, int]:
    """CIK of every ticker in EDGAR's list. Raises ValueError for a list of another shape."""
    try:
        return {row["ticker"].upper(): int(row["cik_str"]) for row in json_object(body).values()}
    except (TypeError, KeyError, AttributeError):
        raise ValueError("the list of tickers has another shape") from None


def read_list(body: bytes) -> tuple[list[ListedFiling], list[tuple[str, date]]]:
    """A company's newest filings, and the further files of its list by name, each with its last day.

    Raises ValueError for another shape.
    """
    try:
        filings = json_object(body)["filings"]
        older = [(row["name"], date.fromisoformat(row["filingTo"])) for row in filings["files"]]
        for name, _ in older:
            if not re.fullmatch(r"CIK\d{10}-submissions-\d+\.json", name):
                raise ValueError(f"{name[:80]!r} is no list of filings")
        return _filings_in(filings["recent"]), older
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the list of filings has another shape ({error})") from None


def read_older_list(body: bytes) -> list[ListedFiling]:
    """Filings of a further file of a company's list. Raises ValueError for another shape."""
    return _filings_in(json_object(body))


def _filings_in(columns: Mapping[str, Any]) -> list[ListedFiling]:
    try:
        rows = list(zip(*(columns[name] for name in _COLUMNS), strict=True))
        for accession, _, _, _, document in rows:
            # Both become parts of an address.
            if not _ACCESSION.fullmatch(accession) or (document and not _DOCUMENT.fullmatch(document)):
                raise ValueError(f"{accession[:40]!r} with {document[:80]!r} is no filing")
        return [
            ListedFiling(accession, form, date.fromisoformat(day), accepted_by_list(accepted), document)
            for accession, form, day, accepted, document in rows
        ]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the list of filings has another shape ({error})") from None


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
