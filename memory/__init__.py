"""Paperdesk's layered memory: a library of its own that knows texts, vectors, numbers and steps, and no desk."""
