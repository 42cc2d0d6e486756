"""Macro series from a service into a data folder, every vintage; what is there stays."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.files.macro import write_macro
from engine.domain.fetched import Fetched
from engine.ports import MacroSource
from engine.services import FetchOptions


async def fetch_macro(source: MacroSource, options: FetchOptions, names: Sequence[str]) -> list[Fetched]:
    """Merge series into macro/NAME.csv; what was written before an error stays. Raises as the source does."""
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
