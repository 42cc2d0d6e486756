"""The drill: every fault of a table is tried on a desk of its own at a local broker, and checked."""
