"""SEC EDGAR as a service of filings: annual and quarterly reports with the time of their acceptance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from connectors.filings.document_text import essence, plain_text
from connectors.filings.key_figures import key_figures
from connectors.filings.submissions import (
    ListedFiling,
    accepted_by_header,
    edgar_ticker,
    read_companies,
    read_list,
    read_older_list,
)
from connectors.rate_limited_http import HttpError, RateLimitedClient, ResponseCache, json_object
from engine.config import FilingsConfig
from engine.domain.market import Filing, Symbol
from engine.errors import ConfigError, NetworkError, TryAgainLater

NO_DOCUMENT = "no main document"
NO_TEXT = "no text in the main document"

READABLE = (".htm", ".html", ".txt")

_Read = TypeVar("_Read")


class EdgarFilings:
    """FilingService over EDGAR's company tickers, submissions, documents and company facts.

    A filing's `summary` is its key figures and its main sections, in plain text of at most `characters`; a shorter
    summary is an agent's work. It is available from the acceptance time in its own header. Amendments (10-K/A) come
    with the form that they amend, under their own name. Raw responses are cached in `cache_folder`. One instance
    belongs to one event loop. Source: InvestorBench [I1, I5], TradingGPT [G2] (10-Q and 10-K as sources of insights).
    """

    name = "EDGAR"

    def __init__(self, settings: FilingsConfig, cache_folder: Path, since: date | None = None) -> None:
        """Check the settings; `since` excludes earlier filings. Raises ConfigError without a User-Agent that names a
        contact."""
        self._since = since
        self._forms = settings.forms
        self._characters = settings.characters
        self._numbers = {symbol.upper(): number for symbol, number in settings.ciks.items()}
        self._www = settings.www.rstrip("/")
        self._data = settings.data.rstrip("/")
        self.http = RateLimitedClient(
            "SEC EDGAR",
            seconds_between=1 / settings.requests_per_second,
            timeout=60.0,
            headers={"user-agent": contact(settings.user_agent), "accept-encoding": "gzip, deflate"},
            cache=ResponseCache(cache_folder),
        )
        self._companies: dict[str, int] | None = None
        self._facts: dict[int, Mapping[str, Any]] = {}

    async def aclose(self) -> None:
        """Close connections."""
        await self.http.aclose()

    async def number(self, symbol: Symbol) -> int | None:
        """The company's CIK, or None for a symbol that EDGAR does not know."""
        if symbol.upper() in self._numbers:
            return self._numbers[symbol.upper()]
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
        page = await self._get(f"{folder}/{listed.document}", _document, immutable=True)
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
        header = await self._get(f"{folder}/{listed.accession}-index-headers.html", _document, immutable=True)
        return (accepted_by_header(header) if header else None) or listed.accepted_by

    async def _company_facts(self, number: int) -> Mapping[str, Any]:
        if number not in self._facts:
            address = f"{self._data}/api/xbrl/companyfacts/CIK{number:010d}.json"
            # One company's facts are some tens of megabytes: those of the last one asked for are kept.
            self._facts = {number: await self._get(address, json_object) or {}}
        return self._facts[number]

    async def _get(self, url: str, read: Callable[[bytes], _Read], *, immutable: bool = False) -> _Read | None:
        try:
            return await self.http.get(url, read, immutable=immutable)
        except HttpError as refusal:
            path = url.removeprefix(self._www).removeprefix(self._data)
            if refusal.status == 403 and "threshold" in refusal.text.lower():
                raise TryAgainLater(
                    "SEC EDGAR holds us off (403, too many requests): wait ten minutes, and lower "
                    "filings.requests_per_second if it comes again"
                ) from None
            if refusal.status in {401, 403}:
                raise ConfigError(
                    f"SEC EDGAR refused {path} (HTTP {refusal.status}): filings.user_agent has to name you and an "
                    "e-mail address at which you can be reached"
                ) from None
            raise NetworkError(f"SEC EDGAR answered {path} with HTTP {refusal.status}; try again later") from None


def contact(user_agent: str | None) -> str:
    """The checked User-Agent. Raises ConfigError where it is missing or names no e-mail address."""
    text = (user_agent or "").strip()
    if not text:
        raise ConfigError(
            "filings.user_agent is not set: the SEC serves only those who say who they are; set it to your name and "
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
