"""macro/NAME.csv: read, merged and written without losing a vintage."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.macro import FilesMacro, read_macro, write_macro
from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage
from engine.errors import MalformedData, MissingData

HEAD = "date,value,known_from\n"


def put(folder: Path, text: str, name: str = "ICSA") -> Path:
    path = folder / "macro" / f"{name}.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


async def test_a_day_counts_from_its_end_and_a_moment_from_itself(tmp_path: Path) -> None:
    put(tmp_path, HEAD + "2023-06-03,262000,2023-06-15\n2023-06-03,261000,2023-06-08T12:30:00Z\n")
    series = await FilesMacro(tmp_path).series("ICSA")
    assert series.observations == (
        MacroObservation(date(2023, 6, 3), Decimal(261000), datetime(2023, 6, 8, 12, 30, tzinfo=UTC)),
        MacroObservation(date(2023, 6, 3), Decimal(262000), end_of_vintage(date(2023, 6, 15))),
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("2023-06-03,many,2023-06-15", "line 2: value 'many' is not a number"),
        ("2023-06-03,1,soon", "line 2: 'soon' is not a date"),
        ("2023-6-3,1,2023-06-15", "line 2: '2023-6-3' is not a date"),
        ("2023-06-03,1", "line 2: 2 cells, expected 3"),
        ("2023-06-03,1,2023-06-15\n2023-06-03,2,2023-06-15", "two values"),
        ("2023-06-03,1,9999-12-31", "line 2: "),
    ],
)
async def test_a_bad_row_is_named(tmp_path: Path, rows: str, said: str) -> None:
    path = put(tmp_path, HEAD + rows)
    with pytest.raises(MalformedData) as caught:
        await FilesMacro(tmp_path).series("ICSA")
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["ICSB", "../prices/ICSA", "", "icsa"])
async def test_an_unknown_series_is_missing_and_none_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    put(tmp_path, HEAD + "2023-06-03,1,2023-06-15\n")
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "ICSA.csv").write_text(HEAD)
    with pytest.raises(MissingData, match="fetch macro"):
        await FilesMacro(tmp_path).series(name)


async def test_without_a_folder_there_are_no_series(tmp_path: Path) -> None:
    assert await FilesMacro(tmp_path / "nowhere").names() == []


vintages = st.one_of(
    st.dates(date(2023, 1, 1), date(2023, 3, 1)).map(end_of_vintage),
    st.integers(0, 5_000_000).map(lambda seconds: datetime(2023, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)),
)
series_of = st.lists(
    st.builds(
        MacroObservation,
        st.dates(date(2023, 1, 1), date(2023, 1, 6)),
        st.decimals("-9999999", "9999999", places=3),
        vintages,
    ),
    min_size=1,
    max_size=15,
    unique_by=lambda one: (one.date, one.known_from),
).map(lambda items: MacroSeries.of("X", items))


@given(series_of)
def test_written_and_read_it_is_the_same(tmp_path_factory: pytest.TempPathFactory, series: MacroSeries) -> None:
    path = tmp_path_factory.mktemp("data") / "macro" / "X.csv"
    assert write_macro(path, series) == len(series.observations)
    assert read_macro(path, "X") == series
    before = path.read_bytes()
    assert write_macro(path, series) == 0
    assert path.read_bytes() == before


def test_a_merge_keeps_what_was_there_and_adds_the_new(tmp_path: Path) -> None:
    path = tmp_path / "macro" / "X.csv"
    week = date(2023, 6, 3)
    old = MacroObservation(week, Decimal(1), end_of_vintage(date(2023, 6, 8)))
    new = MacroObservation(week, Decimal(2), end_of_vintage(date(2023, 6, 15)))
    next_week = MacroObservation(week + timedelta(7), Decimal(3), end_of_vintage(date(2023, 6, 15)))
    write_macro(path, MacroSeries.of("X", [old]))
    assert write_macro(path, MacroSeries.of("X", [new, next_week])) == 2
    assert read_macro(path, "X").observations == (old, new, next_week)
