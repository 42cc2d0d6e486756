"""Fetches into the data folder: from whatever service is given, only what is new."""
