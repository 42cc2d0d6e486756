"""Stored runs: listed, compared, exported, pruned."""
