"""Answers that a fault gives in the place of the right one, or makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from connectors.sandbox.faults import Fault
from connectors.sandbox.http_server import Answer
from connectors.sandbox.protocol import to_json

INTERNAL = {"code": 50010000, "message": "internal server error occurred"}
_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


def json_answer(status: int, document: Any) -> Answer:
    """A document as an answer."""
    return Answer(status=status, body=b"" if document is None else to_json(document))


def too_many(seconds: float) -> Answer:
    """The answer to a client that asks too often, and may ask again after some seconds."""
    answer = json_answer(429, {"code": 42910000, "message": "too many requests."})
    return replace(answer, headers={"Retry-After": f"{seconds:.0f}"})


def broken_answer(fault: Fault) -> Answer:
    """The answer of a fault that leaves nothing of the right one."""
    match fault.kind:
        case "reset" | "hang":
            return Answer(status=0, broken=True, delay=fault.seconds if fault.kind == "hang" else 0.0)
        case "too_many_requests":
            return replace(too_many(fault.seconds), status=fault.status)
        case "html":
            return Answer(status=fault.status, body=_PAGE, content_type="text/html")
        case "gateway_timeout":
            return Answer(status=fault.status, body=b"upstream request timeout", content_type="text/plain")
        case "redirect":
            return Answer(status=fault.status, headers={"Location": fault.then})
        case "body":
            return Answer(status=fault.status, body=fault.message.encode())
    return json_answer(fault.status, INTERNAL)


def changed_answer(fault: Fault, answer: Answer) -> Answer:
    """The right answer, cut off, dripping, with other fields or with another list."""
    match fault.kind:
        case "cut":
            return replace(answer, cut=True)
        case "drip":
            return replace(answer, drip=fault.seconds)
        case "list":
            return replace(answer, body=to_json(_listed(json.loads(answer.body), fault)))
    kind = fault.then if "/" in fault.then else answer.content_type
    return replace(answer, body=to_json(_edited(json.loads(answer.body), fault.change)), content_type=kind)


def _edited(document: Any, change: Mapping[str, Any]) -> Any:
    """A document with some of its fields changed, or left out (`-name`); every object of a list."""
    if isinstance(document, list):
        return [_edited(one, change) for one in document]
    if not isinstance(document, dict):
        return document
    changed = {**document, **{name: value for name, value in change.items() if not name.startswith("-")}}
    return {name: value for name, value in changed.items() if f"-{name}" not in change}


def _listed(document: Any, fault: Fault) -> Any:
    """A list with its entries twice, in reverse order, or without those of a type."""
    how = fault.then
    if not isinstance(document, list) or how == "repeat":
        return document
    if how == "without":
        return [one for one in document if not fnmatchcase(str(one.get("activity_type")), fault.event)]
    return document[::-1] if how == "reverse" else [one for one in document for _ in range(2)]
