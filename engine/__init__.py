"""Paperdesk itself: what it knows, decides and records; no screen, no network, no vendor."""
