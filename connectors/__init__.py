"""Paperdesk's adapters of the engine's ports, one folder per vendor or source; the sandbox; and the wiring that chooses
between them."""
