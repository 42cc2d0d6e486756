"""Reader, writer and fetch of macro/NAME.csv: macro figures with the day or time from which each was known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from connectors.files.rows import csv_items, iso_date, number, parse_stamp
from engine.domain.fetched import Fetched
from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage
from engine.errors import MalformedData, MissingData
from engine.ports import MacroSource
from engine.services import FetchOptions
from engine.settings.places import write_whole

MACRO_COLUMNS = ("date", "value", "known_from")


class FilesMacro:
    """MacroSource over a data folder's macro/NAME.csv with the columns date, value, known_from.

    `known_from` is a day (the value counts from its end) or a time (ISO 8601). Files are read anew each time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "macro"

    async def names(self) -> list[str]:
        """All series with a file, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.csv"))

    async def series(self, name: str) -> MacroSeries:
        """All vintages of a series. Raises MissingData for an unknown one, MalformedData naming file and line."""
        known = await self.names()
        # Only names that are listed are opened, so that none can lead out of the folder.
        if name not in known:
            near = get_close_matches(name.upper(), known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise MissingData(
                f"no series {name!r} in {self._folder}: {hint}fetch it with `paperdesk fetch macro`, or write "
                f"{','.join(MACRO_COLUMNS)} into {self._folder / 'NAME.csv'}"
            )
        return read_macro(self._folder / f"{name}.csv", name)


def read_macro(path: Path, name: str) -> MacroSeries:
    """All vintages of a file; its rows may be in any order. Raises MalformedData at the first bad row."""
    observations = [item for _, item in csv_items(path, MACRO_COLUMNS, macro_row)]
    try:
        return MacroSeries.of(name, observations)
    except ValueError as problem:
        raise MalformedData(f"{path}: {problem}") from None


def merged_macro(path: Path, series: MacroSeries) -> tuple[str, int]:
    """A file with a series merged into it, as text, and the number of new observations.

    Stored values stay, unless `series` has another one known from the same time.
    """
    old = read_macro(path, series.name).observations if path.exists() else ()
    newest = {(item.date, item.known_from): item for item in (*old, *series.observations)}
    merged = MacroSeries.of(series.name, newest.values()).observations
    rows = (f"{item.date},{item.value:f},{_known(item.known_from)}" for item in merged)
    return "\n".join((",".join(MACRO_COLUMNS), *rows)) + "\n", len(set(merged) - set(old))


def write_macro(path: Path, series: MacroSeries) -> int:
    """Merge a series into a file in a single step; return the number of new observations."""
    text, added = merged_macro(path, series)
    if added or not path.exists():
        write_whole(path, text)
    return added


async def fetch_macro(source: MacroSource, options: FetchOptions, names: Sequence[str]) -> list[Fetched]:
    """Merge series of a service into macro/NAME.csv; what was written before an error stays. Raises as the source
    does."""
    done: list[Fetched] = []
    for at, name in enumerate(names):
        if options.stop():
            break
        options.progress(name, at, len(names))
        series = await source.series(name)
        path = options.folder / "macro" / f"{name}.csv"
        added = write_macro(path, series)
        done.append(Fetched(name=name, path=path, added=added, unchanged=len(series.observations) - added))
    options.progress("", len(done), len(names))
    return done


def macro_row(cells: Sequence[str]) -> MacroObservation:
    """A figure from its cells. Raises ValueError with the remedy."""
    if len(cells) != len(MACRO_COLUMNS):
        raise ValueError(f"{len(cells)} cells, expected {len(MACRO_COLUMNS)}")
    day, value, known = cells
    stamp = parse_stamp(known)
    known_from = stamp if isinstance(stamp, datetime) else end_of_vintage(stamp)
    return MacroObservation(iso_date(day), number("value", value), known_from)


def _known(moment: datetime) -> str:
    """A day where the time is a day's end, else the time."""
    utc = moment.astimezone(UTC)
    day = utc.date() - timedelta(days=1)
    return day.isoformat() if end_of_vintage(day) == utc else f"{utc.replace(tzinfo=None).isoformat()}Z"
