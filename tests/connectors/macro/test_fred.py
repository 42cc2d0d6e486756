"""FRED over real HTTP: every vintage, in as many requests as it allows, and never the key where it can be read."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.macro.fred import FredMacro
from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage
from engine.errors import ConfigError, CredentialsRefused, MissingData, NetworkError, TryAgainLater
from tests.examples import examples
from tests.servers.fake_fred import CLAIMS, KEY, Release, fake_fred
from tests.servers.fake_web import FakeWeb, Page

Open = Callable[..., FredMacro]
PACE: dict[str, Any] = {"seconds_between": 0.0005, "first_pause": 0.001, "timeout": 60.0}


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    with fake_fred() as running:
        yield running


@pytest.fixture
async def fred(web: FakeWeb) -> AsyncIterator[Open]:
    made: list[FredMacro] = []

    def opened(key: str | None = KEY, **options: Any) -> FredMacro:
        made.append(FredMacro(key, options.pop("address", f"{web.url}/fred")))
        vars(made[-1].http).update(PACE | options)
        return made[-1]

    yield opened
    for one in made:
        await one.aclose()


def noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


async def test_each_moment_sees_its_own_vintage(fred: Open) -> None:
    claims = await fred().series("ICSA")
    seen = {day: claims.known_at(noon(date(2023, 6, day))) for day in (1, 2, 9, 16)}
    assert seen[1] is None  # on the day itself it counts from the day's end
    assert [one and (one.date.day, one.value) for one in (seen[2], seen[9], seen[16])] == [
        (27, Decimal(232000)),
        (3, Decimal(261000)),
        (10, Decimal(262000)),
    ]
    assert [one.value for one in claims.history_at(noon(date(2023, 6, 9)))] == [Decimal(233000), Decimal(261000)]


async def test_a_value_that_is_absent_is_no_observation(fred: Open) -> None:
    hours = await fred().series("AWHMAN")
    assert [(one.date, one.value) for one in hours.observations] == [
        (date(2023, 5, 1), Decimal("40.1")),
        (date(2023, 5, 1), Decimal("40.2")),
    ]


def expected(releases: list[Release]) -> MacroSeries:
    """By FRED's own account of what came out when, one release after the other."""
    known: dict[date, str] = {}
    observations = []
    for one in sorted(releases, key=lambda one: one.day):
        if known.get(one.date) != one.value:
            known[one.date] = one.value
            observations.append(MacroObservation(one.date, Decimal(one.value), end_of_vintage(one.day)))
    return MacroSeries("X", tuple(sorted(observations, key=lambda o: (o.date, o.known_from))))


@st.composite
def archives(draw: st.DrawFn) -> list[Release]:
    first = date(2020, 1, 2)
    releases: dict[tuple[date, date], Release] = {}
    for _ in range(draw(st.integers(1, 12))):
        period = first + timedelta(draw(st.integers(0, 4)))
        day = period + timedelta(draw(st.integers(1, 20)))
        releases[day, period] = Release(day, period, str(draw(st.integers(1, 4))))
    return list(releases.values())


@examples(25)
@given(archives(), st.integers(1, 5))
async def test_no_value_is_known_before_it_came_out_however_many_requests_it_takes(
    releases: list[Release], at_once: int
) -> None:
    with fake_fred({"X": releases}, most_vintages=at_once) as web:
        source = FredMacro(KEY, f"{web.url}/fred")
        source.vintages_per_request = at_once
        vars(source.http).update(PACE)
        try:
            series = await source.series("X")
        finally:
            await source.aclose()
    assert series == expected(releases)
    for at in range(30):
        day = date(2020, 1, 1) + timedelta(at)
        seen = series.known_at(noon(day))
        out = [one for one in releases if one.day < day]
        assert (seen is None) == (not out)
        if seen is not None:
            latest = max(out, key=lambda one: (one.date, one.day))
            assert (seen.date, seen.value) == (latest.date, Decimal(latest.value))


async def test_a_long_answer_comes_in_pages(fred: Open, web: FakeWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = await fred().series("ICSA")
    monkeypatch.setattr("connectors.macro.fred._PAGE", 2)
    assert await fred().series("ICSA") == whole
    assert {"0", "2", "4"} <= {one.query["offset"] for one in web.asked if one.path.endswith("observations")}


@pytest.mark.parametrize(
    ("name", "said"),
    [("NOSUCH", "no series NOSUCH"), ("CURRENT", "keeps no vintages"), ("NMFSDI", "macro/NMFSDI.csv")],
)
async def test_what_fred_does_not_have_is_missing_and_says_where_to_keep_it(fred: Open, name: str, said: str) -> None:
    with pytest.raises(MissingData, match=said):
        await fred().series(name)


@pytest.mark.parametrize(("key", "said"), [(None, "needs a key"), (" ", "needs a key"), ("ab c", "no key has")])
async def test_without_a_key_nothing_is_asked(fred: Open, web: FakeWeb, key: str | None, said: str) -> None:
    with pytest.raises(CredentialsRefused, match=said):
        fred(key)
    assert not web.asked


async def test_a_refused_key_is_named_by_its_variable_alone(fred: Open) -> None:
    wrong = "0" * 32
    with pytest.raises(CredentialsRefused, match="FRED_API_KEY") as caught:
        await fred(wrong).series("ICSA")
    assert wrong not in str(caught.value)


async def test_the_key_is_in_no_log_and_no_error(fred: Open, web: FakeWeb, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await fred().series("ICSA")
    web.fail(Page(body=f'{{"error_message": "odd {KEY}"}}'.encode(), status=400))
    with pytest.raises(NetworkError, match=r"odd \[key\]"):
        await fred().series("ICSA")
    logged = [record.getMessage() for record in caplog.records]
    assert [line for line in logged if "vintagedates" in line]
    assert not [line for line in logged if KEY in line]


@pytest.mark.parametrize(
    "fault",
    [
        Page(body=b"", status=429, headers=(("retry-after", "0"),)),
        Page(body=b"", status=503),
        Page(body=b'{"vintage_dates": ["2023-06-'),
        Page(body=b"<html>maintenance</html>", content_type="text/html"),
        Page(body=b'{"vintage_dates": 5}'),
        Page(body=b'{"vintage_dates": ["soon"]}'),
        Page(body=b'{"vintage_dates": []}' * 9, cut=True),
    ],
    ids=["429", "503", "cut json", "html", "shape", "no date", "cut body"],
)
async def test_a_passing_fault_is_borne(fred: Open, web: FakeWeb, fault: Page) -> None:
    web.fail(fault, at="vintagedates")
    assert (await fred().series("ICSA")).observations


@pytest.mark.parametrize("row", ['{"value": "1"}', '{"realtime_start": "x", "date": "y", "value": "1"}', "7"])
async def test_rows_of_another_shape_are_asked_for_again(fred: Open, web: FakeWeb, row: str) -> None:
    web.fail(Page(body=f'{{"observations": [{row}]}}'.encode()), at="observations")
    assert len((await fred().series("ICSA")).observations) == len(CLAIMS)


async def test_lasting_faults_are_one_clear_line(fred: Open, web: FakeWeb) -> None:
    web.fail(*[Page(body=b"", status=429)] * 4)
    with pytest.raises(TryAgainLater, match="FRED"):
        await fred().series("ICSA")
    web.fail(*[Page(slow=True)] * 4)
    with pytest.raises(NetworkError, match="no answer within"):
        await fred(timeout=0.05).series("ICSA")
    with pytest.raises(ConfigError, match=r"macro\.address"):
        await fred(address=f"{web.url}/other/series/x").series("ICSA")
