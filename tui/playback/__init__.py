"""Sessions of the past, played again."""
