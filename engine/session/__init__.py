"""One session of a desk, live or replayed: settle, learn, decide, submit."""
