"""The data folder: market data in plain files, read, imported, fetched and written."""
