"""EDGAR over real HTTP: which filings, known from when, with what text, and how faults are borne."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pytest

from connectors.filings.edgar import NO_DOCUMENT, NO_TEXT, EdgarFilings
from engine.domain.market import Filing
from engine.errors import ConfigError, MalformedData, NetworkError, TryAgainLater
from engine.settings.config import FilingsConfig
from tests.servers.fake_edgar import AGENT, CIK, SYMBOL, TOO_MANY, UNDECLARED, fake_edgar
from tests.servers.fake_web import FakeWeb, Page

Open = Callable[..., EdgarFilings]


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    with fake_edgar() as running:
        yield running


@pytest.fixture
async def edgar(web: FakeWeb, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    made: list[EdgarFilings] = []

    def opened(agent: str | None = AGENT, **options: Any) -> EdgarFilings:
        since, timeout = options.pop("since", None), options.pop("timeout", 60.0)
        monkeypatch.setattr("connectors.filings.edgar.SECONDS_BETWEEN", options.pop("pace", 0.001))
        parts = {"user_agent": agent, "www": web.url, "data": web.url}
        settings = FilingsConfig.model_construct(**{**parts, **options})
        made.append(EdgarFilings(settings, since))
        vars(made[-1].http).update(first_pause=0.001, timeout=timeout)
        return made[-1]

    yield opened
    for one in made:
        await one.aclose()


@dataclass
class Batch:
    """Filings in order of availability, and the reasons why others cannot be used."""

    items: list[Filing] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


async def filings_of(source: EdgarFilings, symbol: str) -> Batch:
    """Everything that is listed of a company, read."""
    batch = Batch()
    for listed in await source.listed(symbol) or ():
        read = await source.read(symbol, listed)
        if isinstance(read, Filing):
            batch.items.append(read)
        else:
            batch.reasons[read] += 1
    batch.items.sort(key=lambda one: (one.available_at, one.id))
    return batch


async def by_form(source: EdgarFilings, form: str) -> Filing:
    return next(one for one in (await filings_of(source, SYMBOL)).items if one.form == form)


async def test_a_filing_is_known_from_the_acceptance_in_its_own_header(edgar: Open) -> None:
    """The list writes one of these in UTC and the other in New York's time, both with a Z."""
    source = edgar()
    known = {one.id: one.available_at for one in (await filings_of(source, SYMBOL)).items}
    assert known["0001900001-23-000010"] == datetime(2023, 2, 16, 21, 30, 15, tzinfo=UTC)
    assert known["0001900001-23-000021"] == datetime(2023, 5, 4, 11, 5, tzinfo=UTC)


async def test_without_a_header_the_later_reading_of_the_list_counts(edgar: Open) -> None:
    oldest = (await filings_of(edgar(), SYMBOL)).items[0]
    assert oldest.date == date(2016, 2, 12)
    assert oldest.available_at == datetime(2016, 2, 12, 16, tzinfo=UTC)


async def test_amendments_come_under_their_own_name_and_other_forms_only_when_wanted(edgar: Open) -> None:
    forms = [one.form for one in (await filings_of(edgar(), SYMBOL)).items]
    assert forms == ["10-K", "10-K", "10-K/A", "10-Q"]
    amended = await by_form(edgar(), "10-K/A")
    assert (amended.date, amended.available_at.date()) == (date(2023, 4, 3), date(2023, 3, 31))
    only = (await filings_of(edgar(forms=("8-K",)), SYMBOL)).items
    assert [(one.form, one.summary) for one in only] == [("8-K", "Item 2.02 Results of Operations\nWe opened a plant.")]


async def test_what_cannot_be_read_is_counted_with_its_reason(edgar: Open) -> None:
    batch = await filings_of(edgar(), SYMBOL)
    assert batch.reasons == Counter({NO_DOCUMENT: 2, NO_TEXT: 1})


async def test_the_text_is_the_sections_that_matter_and_nothing_hidden(edgar: Open) -> None:
    text = (await by_form(edgar(since=date(2020, 1, 1)), "10-K")).summary
    order = [
        "Management's discussion and analysis",
        "Demand was strong in 2022.",
        "Orders for 1,250 lamps stood open.",
        "Risk factors",
        "Glass may become dear.",
        "Business",
        "We make lamps & shades for 2022.",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    hidden = ("HIDDEN", "SCRIPT", "color", "STATEMENTS", "Table of Contents", "- 21 -", "None.", "<", "&#")
    assert not [part for part in hidden if part in text]
    quarterly = (await by_form(edgar(), "10-Q")).summary
    assert "The spring quarter was quiet." in quarterly
    assert "No change." in quarterly
    assert "SALES OF SHARES" not in quarterly


async def test_key_figures_are_those_that_the_filing_itself_reported(edgar: Open) -> None:
    source = edgar(since=date(2020, 1, 1))
    annual, quarterly = (await by_form(source, "10-K")).summary, (await by_form(source, "10-Q")).summary
    first = "Revenue: 125.5 million USD in the 365 days to 2022-12-31; 110.0 million USD a year earlier"
    assert annual.splitlines()[0] == first
    assert "Diluted earnings per share: 1.07 USD a share" in annual
    assert "Total assets: 300.0 million USD on 2022-12-31" in annual
    assert quarterly.startswith("Revenue: 31.0 million USD in the 90 days to 2023-03-31; 29.0 million USD a year")
    assert "999" not in annual


@pytest.mark.parametrize("characters", [500, 1200, 2500])
async def test_the_text_is_cut_to_the_configured_length(edgar: Open, characters: int) -> None:
    for one in (await filings_of(edgar(characters=characters), SYMBOL)).items:
        assert 0 < len(one.summary) <= characters


async def test_since_leaves_out_older_filings_and_does_not_ask_for_them(edgar: Open, web: FakeWeb) -> None:
    items = (await filings_of(edgar(since=date(2023, 4, 1)), SYMBOL)).items
    assert [one.form for one in items] == ["10-K/A", "10-Q"]
    assert not [path for path in web.paths() if "submissions-001" in path or "qlmp-20221231" in path]


async def test_an_unknown_symbol_has_no_list(edgar: Open) -> None:
    assert await edgar().listed("NOSUCH") is None


async def test_share_classes_are_found(edgar: Open) -> None:
    assert await edgar().number("QLMP.B") == CIK


@pytest.mark.parametrize(
    "fault",
    [
        Page(body=b"", status=429, headers=(("retry-after", "0"),)),
        Page(body=b"busy", status=503),
        Page(body=b'{"filings": {"recent": {"accessionNumber": [', status=200),
        Page(body=b'{"filings": {"recent": {}}}', status=200),
        Page(body=b"<html>We are down for maintenance</html>", status=200, content_type="text/html"),
        Page(body=b'{"0": {"cik_str": 1900001}}' * 100, status=200, cut=True),
    ],
    ids=["429", "503", "cut json", "other shape", "html", "cut body"],
)
async def test_a_passing_fault_is_borne(edgar: Open, web: FakeWeb, fault: Page) -> None:
    web.fail(fault, fault, at=f"/submissions/CIK{CIK:010d}.json")
    assert len((await filings_of(edgar(), SYMBOL)).items) == 4
    assert web.paths().count(f"/submissions/CIK{CIK:010d}.json") == 3


async def test_a_page_of_the_site_in_place_of_a_document_is_not_kept(edgar: Open, web: FakeWeb) -> None:
    page = Page(body=b"<html><head><title>SEC.gov | File Unavailable</title></head></html>", content_type="text/html")
    web.fail(page, at="qlmp-20230331.htm")
    assert "spring quarter" in (await by_form(edgar(), "10-Q")).summary


async def test_retry_after_is_waited_out_and_a_long_one_is_left_to_the_user(edgar: Open, web: FakeWeb) -> None:
    web.fail(Page(body=b"", status=429, headers=(("retry-after", "1"),)))
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connectors.rate_limited_http.asyncio.sleep", sleep)
        await edgar().number(SYMBOL)
    assert 1 in waited
    web.fail(Page(body=b"", status=429, headers=(("retry-after", "600"),)), at="tickers.json")
    with pytest.raises(TryAgainLater, match="600 s"):
        await edgar().number(SYMBOL)


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Page(body=b"", status=429), TryAgainLater, "too many requests"),
        (Page(body=b"", status=500), NetworkError, "HTTP 500"),
        (Page(body=b"", status=410), NetworkError, "HTTP 410"),
        (Page(body=b"x" * 100, cut=True), NetworkError, "4 times"),
        (Page(body=b"[1, 2]"), NetworkError, "no JSON object"),
        (Page(slow=True), NetworkError, "no answer within"),
        (TOO_MANY, TryAgainLater, "wait ten minutes"),
        (UNDECLARED, ConfigError, "filings.user_agent"),
    ],
    ids=["429", "500", "410", "cut", "list", "slow", "threshold", "undeclared"],
)
async def test_a_lasting_fault_is_one_clear_line(
    edgar: Open, web: FakeWeb, fault: Page, error: type[Exception], said: str
) -> None:
    web.fail(*[fault] * 8)
    source = edgar(timeout=0.05 if fault.slow else 60.0)
    with pytest.raises(error, match=said) as caught:
        await filings_of(source, SYMBOL)
    assert "\n" not in str(caught.value)
    assert "EDGAR" in str(caught.value)


async def test_facts_of_another_shape_are_malformed(edgar: Open, web: FakeWeb) -> None:
    facts = b'{"facts": {"us-gaap": {"Revenues": {"units": {"USD": [{"accn": "0001900001-23-000010"}]}}}}}'
    web.fail(Page(body=facts), at=f"companyfacts/CIK{CIK:010d}.json")
    with pytest.raises(MalformedData, match="Revenues"):
        await filings_of(edgar(since=date(2020, 1, 1)), SYMBOL)


async def test_nobody_at_the_address_is_a_network_error(edgar: Open) -> None:
    with pytest.raises(NetworkError, match=r"no connection \([^\[]+\), 4 times over"):
        await filings_of(edgar(www="http://127.0.0.1:9"), SYMBOL)
    with pytest.raises(ConfigError, match="no http"):
        await filings_of(edgar(www="sec.gov"), SYMBOL)


@pytest.mark.parametrize("agent", [None, "", "  ", "curl/8.0", "jane@example.com", "Jane\nDoe jane@example.com"])
def test_without_a_contact_nothing_is_asked(edgar: Open, web: FakeWeb, agent: str | None) -> None:
    with pytest.raises(ConfigError, match=r"filings\.user_agent"):
        edgar(agent)
    assert not web.asked


async def test_every_request_says_who_asks_and_keeps_the_pace(edgar: Open, web: FakeWeb) -> None:
    started = time.monotonic()
    await filings_of(edgar(pace=0.02), SYMBOL)
    assert time.monotonic() - started >= (len(web.asked) - 1) / 50 * 0.9
    assert {one.headers["user-agent"] for one in web.asked} == {AGENT}


async def test_an_address_out_of_a_list_cannot_lead_elsewhere(edgar: Open, web: FakeWeb) -> None:
    columns = {"accessionNumber": ["0001900001-23-000010"], "form": ["10-K"], "filingDate": ["2023-02-16"]}
    columns |= {"acceptanceDateTime": ["2023-02-16T21:30:15.000Z"], "primaryDocument": ["../../evil.htm"]}
    body = json.dumps({"filings": {"recent": columns, "files": []}}).encode()
    web.fail(*[Page(body=body)] * 4, at=f"/submissions/CIK{CIK:010d}.json")
    with pytest.raises(NetworkError, match="is no filing"):
        await filings_of(edgar(), SYMBOL)
    assert not [path for path in web.paths() if "evil" in path]
