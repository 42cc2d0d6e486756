"""Decisions made again with something changed."""
