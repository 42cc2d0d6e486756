"""DataFrames of daily bars as a data folder: the way of every file of a vendor, checks included.

The folder is named by its contents and kept in the cache, so that a run's certificate, trail and repetition find it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.domain.fetched import FileImport
from engine.domain.market import Symbol, parse_symbol
from engine.errors import DataError, UsageError
from engine.services import Services
from engine.settings import places

if TYPE_CHECKING:
    import pandas as pd

_ACTIONS = {"dividends", "stock splits"}
"""Columns of corporate actions, as yfinance names them."""


def folder_of(services: Services, frames: Mapping[str, pd.DataFrame]) -> str:
    """The data folder of DataFrames by symbol. Raises UsageError for none, MalformedData naming the row for bars that
    cannot be."""
    texts = _texts(frames)
    digest = hashlib.sha256("".join(f"{symbol}\n{text}" for symbol, text in sorted(texts.items())).encode())
    folder = places.frames_dir() / digest.hexdigest()[:16]
    if folder.exists():
        return str(folder)
    places.make_folder(folder.parent)
    with TemporaryDirectory(dir=folder.parent) as made:
        for symbol, text in texts.items():
            file = Path(made) / f"{symbol}.csv"
            file.write_text(text, encoding="utf-8")
            actions = _ACTIONS & {name.lower() for name in text.partition("\n")[0].split(",")}
            kinds = ("prices", "actions") if actions else ("prices",)
            try:
                services.import_file(FileImport(kinds=kinds, file=file, folder=Path(made) / "data", symbols=(symbol,)))
            except DataError as error:
                error.args = (str(error).replace(str(file), f"data['{symbol}'] as CSV"),)
                raise
        try:
            (Path(made) / "data").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was as quick
                raise
    return str(folder)


def _texts(frames: Mapping[str, pd.DataFrame]) -> dict[Symbol, str]:
    """The frames as files of a vendor, by symbol. Raises UsageError."""
    if not frames:
        raise UsageError("data has no DataFrame; give {symbol: DataFrame}")
    for symbol, frame in frames.items():
        if getattr(frame, "ndim", None) != 2 or not hasattr(frame, "to_csv"):
            raise UsageError(f"data[{symbol!r}]: {type(frame).__name__} is no DataFrame of daily bars")
    texts = {parse_symbol(str(symbol)): _csv(frame) for symbol, frame in frames.items()}
    if len(texts) < len(frames):
        raise UsageError("data names a symbol twice: upper and lower case are one")
    return texts


def _csv(frame: pd.DataFrame) -> str:
    """The frame as a file of a vendor; its index are the days, unless a column is."""
    named = {str(name).lower() for name in frame.columns} & {"date", "day", "time", "timestamp", "datetime"}
    text: str = frame.to_csv(index=not named, index_label=None if named else "date")
    return text
