"""The data folder: market data in plain files, read, imported, fetched and written."""

from __future__ import annotations

from connectors.files.market import FilesMarket

__all__ = ["FilesMarket"]
