"""Upkeep: doctor, backup, watchlists, drill, rehearsal."""
