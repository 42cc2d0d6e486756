"""Market data as of a moment, and the values computed from it: indicators, charts, moves, sessions."""
