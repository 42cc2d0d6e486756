"""SEC EDGAR on loopback: one invented company with reports of every kind, in the real formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.servers.fake_web import Asked, FakeWeb, Page, fake_web

SYMBOL = "QLMP"
CIK = 1900001
AGENT = "Test Desk desk@example.com"

UNDECLARED = Page(
    body=b"<html><head><title>SEC.gov | Your Request Originates from an Undeclared Automated Tool</title></head>"
    b"</html>",
    status=403,
    content_type="text/html",
)
TOO_MANY = Page(
    body=b"<html><head><title>SEC.gov | Request Rate Threshold Exceeded</title></head></html>",
    status=403,
    content_type="text/html",
)


@dataclass(frozen=True, kw_only=True)
class Made:
    """A filing: `header` is its own word for the acceptance (New York's clock) or None where EDGAR has no header;
    `listed` is the list's, which for this company is sometimes one clock and sometimes the other."""

    accession: str
    form: str
    filed: str
    listed: str
    header: str | None
    document: str
    page: str | None


_FILLER = "The lamps sold well in the north and less so in the south, where summers are long and bright. "


def report(quarter: str, mood: str) -> str:
    """A 10-K as filers make it: inline XBRL, a table of contents, headings in cells, page furniture."""
    return f"""<?xml version='1.0' encoding='ASCII'?>
<html xmlns:ix="http://www.xbrl.org/2013/inlineXBRL"><head><title>qlmp</title><style>p {{ color: red }}</style></head>
<body><div style="display:none"><ix:header><ix:hidden><ix:nonNumeric name="dei:CIK">HIDDEN FACT</ix:nonNumeric>
</ix:hidden><ix:resources><xbrli:context id="c1">HIDDEN CONTEXT</xbrli:context></ix:resources></ix:header></div>
<p>QUILLFEATHER LAMPS INC.</p><p>ANNUAL REPORT</p>
<table><tr><td>Item&#160;1.</td><td>Business</td><td>3</td></tr>
<tr><td>Item 1A.</td><td>Risk Factors</td><td>9</td></tr>
<tr><td>Item 7.</td><td>Management&#8217;s Discussion and Analysis</td><td>20</td></tr></table>
<p>PART I</p><table><tr><td>Item 1.</td><td>Business</td></tr></table>
<p>We make lamps &amp; shades for {quarter}.</p><p>{_FILLER * 4}</p><p>3</p><p>Table of Contents</p>
<p><b>Item 1A. Risk&nbsp;Factors</b></p><p>Glass may
become dear.</p><p>{_FILLER * 6}</p>
<p>Item 1B. Unresolved Staff Comments</p><p>None.</p>
<p>Item 7</p><p>Management&#8217;s Discussion and Analysis of Financial Condition</p>
<p>Demand was {mood} in {quarter}.</p><script>var hidden = "SCRIPT";</script><p>{_FILLER * 8}</p>
<p>- 21 -</p><p>Item 7</p><p>Orders for <ix:nonFraction name="x">1,250</ix:nonFraction> lamps stood open.</p>
<p>Item 8. Financial Statements</p><p>STATEMENTS FOLLOW</p></body></html>"""


QUARTERLY = f"""<html><body><p>Part I. Financial Information</p><p>Item 1. Financial Statements</p><p>NUMBERS</p>
<p>Item 2. Management's Discussion and Analysis</p><p>The spring quarter was quiet.</p><p>{_FILLER * 3}</p>
<p>Item 3. Market Risk</p><p>None.</p><p>Part II</p><p>Item 1A. Risk Factors</p><p>No change.</p>
<p>Item 2. Unregistered Sales</p><p>SALES OF SHARES</p></body></html>"""

FILINGS = (
    Made(
        accession="0001900001-23-000010",
        form="10-K",
        filed="2023-02-16",
        listed="2023-02-16T21:30:15.000Z",
        header="20230216163015",
        document="qlmp-20221231.htm",
        page=report("2022", "strong"),
    ),
    Made(
        accession="0001900001-23-000015",
        form="10-K/A",
        filed="2023-04-03",
        listed="2023-03-31T22:02:00.000Z",
        header="20230331180200",
        document="qlmp-10ka.htm",
        page="<html><body><p>This amendment adds the directors' pay.</p></body></html>",
    ),
    Made(
        accession="0001900001-23-000021",
        form="10-Q",
        filed="2023-05-04",
        listed="2023-05-04T07:05:00.000Z",
        header="20230504070500",
        document="qlmp-20230331.htm",
        page=QUARTERLY,
    ),
    Made(
        accession="0001900001-23-000025",
        form="4",
        filed="2023-05-10",
        listed="2023-05-10T18:00:00.000Z",
        header=None,
        document="xslF345X03/form4.xml",
        page="<x/>",
    ),
    Made(
        accession="0001900001-23-000030",
        form="10-Q",
        filed="2023-08-03",
        listed="2023-08-03T20:00:00.000Z",
        header=None,
        document="",
        page=None,
    ),
    Made(
        accession="0001900001-23-000031",
        form="10-Q",
        filed="2023-08-04",
        listed="2023-08-04T20:00:00.000Z",
        header=None,
        document="gone.htm",
        page=None,
    ),
    Made(
        accession="0001900001-23-000040",
        form="8-K",
        filed="2023-09-01",
        listed="2023-09-01T20:10:00.000Z",
        header="20230901161000",
        document="qlmp-8k.htm",
        page="<html><body><p>Item 2.02 Results of Operations</p><p>We opened a plant.</p></body></html>",
    ),
    Made(
        accession="0001900001-23-000050",
        form="10-Q",
        filed="2023-11-02",
        listed="2023-11-02T20:00:00.000Z",
        header=None,
        document="blank.htm",
        page="<html></html>",
    ),
)
OLDER = (
    Made(
        accession="0001900001-16-000003",
        form="10-K",
        filed="2016-02-12",
        listed="2016-02-12T11:00:00.000Z",
        header=None,
        document="old.txt",
        page="<PAGE>\nQUILLFEATHER LAMPS\n\nItem 7. Management's Discussion and Analysis\n"
        "Candles were the rival then.\n"
        "Item 8. Statements\n",
    ),
)


def _columns(filings: tuple[Made, ...]) -> dict[str, list[Any]]:
    return {
        "accessionNumber": [one.accession for one in reversed(filings)],
        "filingDate": [one.filed for one in reversed(filings)],
        "reportDate": ["" for _ in filings],
        "acceptanceDateTime": [one.listed for one in reversed(filings)],
        "form": [one.form for one in reversed(filings)],
        "items": ["" for _ in filings],
        "size": [1000 for _ in filings],
        "primaryDocument": [one.document for one in reversed(filings)],
    }


def _fact(accession: str, end: str, value: float, start: str | None = None) -> dict[str, Any]:
    span = {"end": end} if start is None else {"start": start, "end": end}
    return {**span, "val": value, "accn": accession, "fy": 2022, "fp": "FY", "form": "10-K", "filed": "2023-02-16"}


def _facts() -> dict[str, Any]:
    annual, quarterly, restated = FILINGS[0].accession, FILINGS[2].accession, "0001900001-24-000010"
    revenue = [
        _fact(annual, "2021-12-31", 110_000_000, "2021-01-01"),
        _fact(annual, "2022-12-31", 125_500_000, "2022-01-01"),
        _fact(annual, "2022-12-31", 40_000_000, "2022-10-01"),
        # The year as a later report restated it: nobody knew this in 2023.
        _fact(restated, "2022-12-31", 999_000_000, "2022-01-01"),
        _fact(quarterly, "2023-03-31", 31_000_000, "2023-01-01"),
        _fact(quarterly, "2022-03-31", 29_000_000, "2022-01-01"),
    ]
    return {
        "cik": CIK,
        "entityName": "Quillfeather Lamps Inc.",
        "facts": {
            "us-gaap": {
                "RevenueFromContractWithCustomerExcludingAssessedTax": {"units": {"USD": revenue}},
                "EarningsPerShareDiluted": {"units": {"USD/shares": [_fact(annual, "2022-12-31", 1.07, "2022-01-01")]}},
                "Assets": {"units": {"USD": [_fact(annual, "2022-12-31", 300_000_000)]}},
            }
        },
    }


def _pages() -> dict[str, bytes]:
    tickers = {
        "0": {"cik_str": 320, "ticker": "OTHR", "title": "Other Corp"},
        "1": {"cik_str": CIK, "ticker": SYMBOL, "title": "Quillfeather Lamps Inc."},
        "2": {"cik_str": CIK, "ticker": "QLMP-B", "title": "Quillfeather Lamps Inc."},
    }
    older = {"name": f"CIK{CIK:010d}-submissions-001.json", "filingCount": 1}
    older |= {"filingFrom": "2009-01-01", "filingTo": "2016-02-12"}
    submissions = {"cik": str(CIK), "tickers": [SYMBOL], "filings": {"recent": _columns(FILINGS), "files": [older]}}
    pages: dict[str, bytes] = {
        "/files/company_tickers.json": json.dumps(tickers).encode(),
        f"/submissions/CIK{CIK:010d}.json": json.dumps(submissions).encode(),
        f"/submissions/{older['name']}": json.dumps(_columns(OLDER)).encode(),
        f"/api/xbrl/companyfacts/CIK{CIK:010d}.json": json.dumps(_facts()).encode(),
    }
    for one in (*FILINGS, *OLDER):
        folder = f"/Archives/edgar/data/{CIK}/{one.accession.replace('-', '')}"
        if one.page is not None:
            pages[f"{folder}/{one.document}"] = one.page.encode("utf-8")
        if one.header is not None:
            text = f"<html><pre>&lt;SEC-HEADER&gt;\n&lt;ACCEPTANCE-DATETIME&gt;{one.header}\n</pre></html>"
            pages[f"{folder}/{one.accession}-index-headers.html"] = text.encode()
    return pages


@contextmanager
def fake_edgar() -> Iterator[FakeWeb]:
    """The service; it refuses who does not say who he is."""
    pages = _pages()

    def answer(asked: Asked) -> Page:
        if "@" not in asked.headers.get("user-agent", ""):
            return UNDECLARED
        body = pages.get(asked.path)
        if body is None:
            return Page(body=b"<html>not found</html>", status=404, content_type="text/html")
        return Page(body=body, status=200)

    with fake_web(answer) as web:
        yield web
