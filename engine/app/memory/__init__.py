"""The memory of a desk or run: bound, changed, stored."""
