"""The closed market of agents, and arenas on real prices."""
