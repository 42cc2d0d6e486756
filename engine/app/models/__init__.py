"""Models of a run: chosen, checked, paid for, recorded, replayed."""
