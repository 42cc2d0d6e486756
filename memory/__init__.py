"""Layered memory: a library of its own that knows texts, vectors, numbers and steps, and nothing of Paperdesk."""
