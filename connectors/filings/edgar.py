"""SEC EDGAR as a service of filings: annual and quarterly reports with the time of their acceptance."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from connectors.filings.document_text import essence, plain_text
from connectors.rate_limited_http import HttpError, RateLimitedClient, json_object
from engine.domain.market import Filing, Symbol
from engine.domain.text import plain
from engine.errors import ConfigError, MalformedData, NetworkError, TryAgainLater
from engine.program_files import program_text
from engine.settings.config import FilingsConfig

NO_DOCUMENT = "no main document"
NO_TEXT = "no text in the main document"

SECONDS_BETWEEN = 0.2
"""Time between two requests; the SEC allows ten a second."""
READABLE = (".htm", ".html", ".txt")

_Read = TypeVar("_Read")


class EdgarFilings:
    """FilingService over EDGAR's company tickers, submissions, documents and company facts.

    A filing's `summary` is its key figures and its main sections, in plain text of at most `characters`; a shorter
    summary is an agent's work. It is available from the acceptance time in its own header. Amendments (10-K/A) come
    with the form that they amend, under their own name. One instance
    belongs to one event loop. Source: InvestorBench [I1, I5], TradingGPT [G2] (10-Q and 10-K as sources of insights).
    """

    name = "EDGAR"

    def __init__(self, settings: FilingsConfig, since: date | None = None) -> None:
        """Check the settings; `since` excludes earlier filings. Raises ConfigError without a User-Agent that names a
        contact."""
        self._since = since
        self._forms = settings.forms
        self._characters = settings.characters
        self._www = settings.www.rstrip("/")
        self._data = settings.data.rstrip("/")
        self.http = RateLimitedClient(
            "SEC EDGAR",
            seconds_between=SECONDS_BETWEEN,
            timeout=60.0,
            headers={"user-agent": contact(settings.user_agent), "accept-encoding": "gzip, deflate"},
        )
        self._companies: dict[str, int] | None = None
        self._facts: dict[int, Mapping[str, Any]] = {}

    async def aclose(self) -> None:
        """Close connections."""
        await self.http.aclose()

    async def number(self, symbol: Symbol) -> int | None:
        """The company's CIK, or None for a symbol that EDGAR does not know."""
        if self._companies is None:
            self._companies = await self._get(f"{self._www}/files/company_tickers.json", read_companies) or {}
        return self._companies.get(edgar_ticker(symbol))

    async def listed(self, symbol: Symbol) -> Sequence[ListedFiling] | None:
        """The company's filings of the configured forms, oldest first; None for a symbol that EDGAR does not know."""
        number = await self.number(symbol)
        if number is None:
            return None
        first = await self._get(f"{self._data}/submissions/CIK{number:010d}.json", read_list)
        filings, further = first or ([], [])
        for name, last in further:
            if self._since is None or last >= self._since:
                filings += await self._get(f"{self._data}/submissions/{name}", read_older_list) or ()
        # A filing may stand in two lists while EDGAR moves it from one to the other.
        wanted = {f.accession: f for f in filings if self._wants(f)}
        return sorted(wanted.values(), key=lambda f: (f.date, f.accession))

    async def read(self, symbol: Symbol, listed: ListedFiling) -> Filing | str:
        """One filing with its text, or the reason why it cannot be used."""
        if not listed.document.lower().endswith(READABLE):
            return NO_DOCUMENT
        number = await self.number(symbol)
        assert number is not None
        folder = f"{self._www}/Archives/edgar/data/{number}/{listed.accession.replace('-', '')}"
        page = await self._get(f"{folder}/{listed.document}", _document)
        if page is None:
            return NO_DOCUMENT
        facts = await self._company_facts(number)
        figures = "\n".join(key_figures(facts, listed.accession, annual=listed.form.startswith("10-K")))
        room = self._characters - len(figures) - 2
        text = await asyncio.to_thread(lambda: essence(plain_text(page), room))
        if not text:
            return NO_TEXT
        whole = f"{figures}\n\n{text}" if figures else text
        accepted = await self._accepted(folder, listed)
        return Filing(
            id=listed.accession, symbol=symbol, form=listed.form, date=listed.date, available_at=accepted, summary=whole
        )

    def _wants(self, listed: ListedFiling) -> bool:
        recent = self._since is None or listed.date >= self._since
        return recent and (listed.form in self._forms or listed.form.removesuffix("/A") in self._forms)

    async def _accepted(self, folder: str, listed: ListedFiling) -> datetime:
        header = await self._get(f"{folder}/{listed.accession}-index-headers.html", _document)
        return (accepted_by_header(header) if header else None) or listed.accepted_by

    async def _company_facts(self, number: int) -> Mapping[str, Any]:
        if number not in self._facts:
            address = f"{self._data}/api/xbrl/companyfacts/CIK{number:010d}.json"
            # One company's facts are some tens of megabytes: those of the last one asked for are kept.
            self._facts = {number: await self._get(address, json_object) or {}}
        return self._facts[number]

    async def _get(self, url: str, read: Callable[[bytes], _Read]) -> _Read | None:
        try:
            return await self.http.get(url, read)
        except HttpError as refusal:
            path = url.removeprefix(self._www).removeprefix(self._data)
            if refusal.status == 403 and "threshold" in refusal.text.lower():
                raise TryAgainLater("SEC EDGAR is rate-limiting this address (403): wait ten minutes") from None
            if refusal.status in {401, 403}:
                raise ConfigError(
                    f"SEC EDGAR refused {path} (HTTP {refusal.status}): filings.user_agent must contain your name and "
                    "an e-mail address"
                ) from None
            raise NetworkError(f"SEC EDGAR answered {path} with HTTP {refusal.status}; try again later") from None


def contact(user_agent: str | None) -> str:
    """The checked User-Agent. Raises ConfigError where it is missing or names no e-mail address."""
    text = (user_agent or "").strip()
    if not text:
        raise ConfigError(
            "filings.user_agent is not set: the SEC requires a contact; set it to your name and "
            'e-mail address, such as "Jane Doe jane@example.com"'
        )
    if "@" not in text or " " not in text or not (text.isascii() and text.isprintable()):
        raise ConfigError(f"filings.user_agent is {text!r}: write a name and an e-mail address, in ASCII")
    return text


def _document(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        # Older filings are in Windows' Western alphabet.
        text = body.decode("cp1252", "replace")
    if "<title>SEC.gov |" in text[:4000]:
        # A page of the site's own in place of a filing; it must not be kept.
        raise ValueError("a page of sec.gov, not a filing")
    return text


@dataclass(frozen=True, slots=True)
class _Fact:
    end: date
    days: int  # 0 for a balance at a day
    value: Decimal


def key_figures(facts: Mapping[str, Any], accession: str, *, annual: bool) -> Sequence[str]:
    """One line per figure that the filing itself reported, with that of the year before where it has one.

    Only facts under the filing's own accession number are read: a later restatement has another one. Raises
    MalformedData for facts of another shape.
    """
    lines = []
    for figure in _figures():
        for concept in figure["concepts"]:
            if reported := list(_reported(facts, concept, figure["unit"], accession)):
                lines.append(f"{figure['label']}: {_summary(reported, figure['unit'], annual)}")
                break
    return lines


@cache
def _figures() -> list[dict[str, Any]]:
    text = program_text(Path(__file__).with_name("key_figures.toml"))
    figures: list[dict[str, Any]] = tomllib.loads(text)["figure"]
    return figures


def _reported(facts: Mapping[str, Any], concept: str, unit: str, accession: str) -> Iterator[_Fact]:
    try:
        rows = facts.get("facts", {}).get("us-gaap", {}).get(concept, {}).get("units", {}).get(unit, ())
        for row in rows:
            if row["accn"] == accession:
                end = date.fromisoformat(row["end"])
                start = date.fromisoformat(row["start"]) if "start" in row else end
                yield _Fact(end, (end - start).days, Decimal(row["val"]))
    except (AttributeError, TypeError, KeyError, ValueError, ArithmeticError) as error:
        raise MalformedData(
            f"SEC EDGAR's company facts have an unexpected format at {concept} ({type(error).__name__}); report this"
        ) from None


def _summary(facts: list[_Fact], unit: str, annual: bool) -> str:
    last = max(fact.end for fact in facts)
    # A 10-Q reports the quarter beside the year so far, a 10-K the year, sometimes beside its last quarter.
    choose = max if annual else min
    now = choose((fact for fact in facts if fact.end == last), key=lambda fact: fact.days)
    text = f"{_amount(now.value, unit)} {_period(now)}"
    before = [f for f in facts if abs((now.end - f.end).days - 365) <= 10 and abs(f.days - now.days) <= 10]
    if before and now.days:
        text += f"; {_amount(before[0].value, unit)} a year earlier"
    return text


def _period(fact: _Fact) -> str:
    return f"in the {fact.days + 1} days to {fact.end}" if fact.days else f"on {fact.end}"


def _amount(value: Decimal, unit: str) -> str:
    if unit == "USD/shares":
        return f"{plain(value)} USD a share"
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:,.1f} million USD"
    return f"{value:,.0f} USD"


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
        raise ValueError("the list of tickers has an unexpected format") from None


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
        raise ValueError(f"the list of filings has an unexpected format ({error})") from None


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
        raise ValueError(f"the list of filings has an unexpected format ({error})") from None


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
