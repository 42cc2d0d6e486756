"""Brings filings from EDGAR and macro series from FRED into a data folder; what is there stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from connectors.files.appending import append_filings, filings_there
from connectors.files.importing import folder_symbol
from connectors.files.macro import write_macro
from connectors.filings.edgar import UNKNOWN_SYMBOL
from connectors.wiring.fetched import Fetched, OnProgress, Stop
from connectors.wiring.reference import edgar_filings, fred_macro
from engine.config import Config
from engine.domain.market import Filing, Symbol, is_crypto

_AT_ONCE = 8  # filings that are written together: what a crash may cost


async def fetch_filings(
    config: Config, folder: Path, symbols: Sequence[Symbol], since: date | None, hear: OnProgress, stop: Stop
) -> list[Fetched]:
    """Adds the filings of some symbols to filings/SYMBOL.jsonl, a few at a time. Raises ConfigError, NetworkError,
    TryAgainLater; what was written by then stays."""
    source = edgar_filings(config, since)
    done: list[Fetched] = []
    try:
        for symbol in [folder_symbol(symbol) for symbol in symbols]:
            path = folder / "filings" / f"{symbol}.jsonl"
            number = await source.number(symbol)
            if number is None:
                reasons = () if is_crypto(symbol) else (source.dropped(symbol, UNKNOWN_SYMBOL),)
                done.append(Fetched(name=symbol, path=path, added=0, unchanged=0, dropped=reasons))
                continue
            listed = await source.listed(number)
            there = filings_there(path)
            wanted = [one for one in listed if not there.hold(one.accession, one.form, one.date)]
            added, reasons_of, waiting = 0, Counter[str](), list[Filing]()
            stopped = False
            try:
                for at, one in enumerate(wanted):
                    hear(f"{symbol} {one.form} {one.date}", at, len(wanted))
                    stopped = stop()
                    if stopped:
                        break
                    read = await source.read(symbol, number, one)
                    if isinstance(read, Filing):
                        waiting.append(read)
                    else:
                        reasons_of[read] += 1
                    if len(waiting) == _AT_ONCE:
                        added += append_filings(path, waiting)
                        waiting.clear()
            finally:
                added += append_filings(path, waiting)
            hear(symbol, len(wanted), len(wanted))
            dropped = tuple(source.dropped(symbol, why, count) for why, count in sorted(reasons_of.items()))
            done.append(
                Fetched(
                    name=symbol,
                    path=path,
                    added=added,
                    unchanged=len(listed) - len(wanted),
                    dropped=dropped,
                    complete=not stopped,
                )
            )
            if stopped:
                break
    finally:
        await source.aclose()
    return done


async def fetch_macro(config: Config, folder: Path, hear: OnProgress, stop: Stop) -> list[Fetched]:
    """Merges the configured series into macro/NAME.csv, every vintage. Raises CredentialsRefused, MissingData,
    NetworkError, TryAgainLater; what was written by then stays."""
    source = fred_macro(config)
    done: list[Fetched] = []
    names = config.macro.series
    try:
        for at, name in enumerate(names):
            if stop():
                break
            hear(name, at, len(names))
            series = await source.series(name)
            path = folder / "macro" / f"{name}.csv"
            added = write_macro(path, series)
            done.append(Fetched(name=name, path=path, added=added, unchanged=len(series.observations) - added))
    finally:
        await source.aclose()
    hear("", len(done), len(names))
    return done
