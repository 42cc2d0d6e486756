"""Request hash: a question's name by its content, under which its answer is recorded."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from engine.domain.model_call import ModelRequest

_FORMAT = 1
"""Format of the hash; it is raised when recorded answers must no longer match."""


def request_hash(provider: str, model: str, request: ModelRequest, painter_version: str | None) -> str:
    """SHA-256 (hex) over canonical JSON of everything that can change an answer, and nothing else.

    Charts count by their data and the version of the painter; `painter_version` is None for a model without vision,
    whose charts do not count at all. Purpose, symbol, session, owner and view are not part of it: their text is in the
    messages. Neither are the deadline and the treatment of a refused setting.
    """
    settings = request.settings
    temperature = None if settings.temperature is None else float(settings.temperature)
    content: dict[str, Any] = {
        "format": _FORMAT,
        "provider": provider,
        "model": model,
        "system": request.system,
        "messages": [
            {
                "role": message.role,
                "text": message.text,
                "charts": []
                if painter_version is None
                else [[chart.fingerprint(), painter_version] for chart in message.charts],
            }
            for message in request.messages
        ],
        "schema": request.schema,
        "settings": {"temperature": temperature, "max_output_tokens": settings.max_output_tokens},
        "sample": request.sample,
    }
    chosen = {name: value for name, value in asdict(request.options).items() if value is not None}
    if chosen:  # without any, answers that were recorded before there were options still match
        content["options"] = chosen
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
