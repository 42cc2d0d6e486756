"""The running desk: one daily run, where its orders go, and the person's hand on it."""
