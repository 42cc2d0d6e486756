"""Page tokens: the end of the last page, encoded so that nobody relies on its content."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode

from connectors.sandbox.protocol import Request, invalid


def page_token(*parts: str) -> str:
    """A token of texts."""
    return urlsafe_b64encode("\x1f".join(parts).encode()).decode()


def read_page_token(request: Request) -> list[str] | None:
    """The texts of a request's token, None where it has none. Raises ApiError."""
    text = request.query.get("page_token")
    if not text:
        return None
    try:
        parts = b64decode(text, altchars=b"-_", validate=True).decode().split("\x1f")
    except ValueError:
        raise invalid("invalid page_token") from None
    return [*parts, ""]
