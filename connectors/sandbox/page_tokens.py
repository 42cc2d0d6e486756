"""Tokens of pages: what the last page ended with, written so that nobody takes it for more."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode

from connectors.sandbox.wire import Request, invalid


def page_token(*parts: str) -> str:
    """A token of some texts."""
    return urlsafe_b64encode("\x1f".join(parts).encode()).decode()


def read_page_token(request: Request) -> list[str] | None:
    """The texts of a request's token, None where it has none. Raises Refusal."""
    text = request.query.get("page_token")
    if not text:
        return None
    try:
        parts = b64decode(text, altchars=b"-_", validate=True).decode().split("\x1f")
    except ValueError:
        raise invalid("invalid page_token") from None
    return [*parts, ""]
