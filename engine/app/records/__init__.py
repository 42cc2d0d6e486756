"""Journals and locks of the desk and its processes."""
