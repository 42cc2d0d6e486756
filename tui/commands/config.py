"""`paperdesk config` (set-up): show and change values of the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tui.commands.options import actions
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.plain_text import table

LIST, GET, SET, UNSET = "list", "get", "set", "unset"


@command("config")
@actions({LIST: "", GET: "KEY", SET: "KEY VALUE", UNSET: "KEY"}, "[KEY] [VALUE]", default=LIST)
def config_command(*, invocation: Invocation, action: str, what: tuple[str, ...]) -> None:
    """Shows the configuration and changes one value of its file, comments kept.

    KEY is SECTION.KEY as config.example.toml has it; get takes a section too. A list is written with commas. Nothing
    is written that the program would refuse, and unset restores the default. Keys of services never stand there.

    \b
    Examples:
      paperdesk config get budget
      paperdesk config set desk.symbols AAPL,MSFT
      paperdesk config set models.agents.chart.model openai:gpt-5.4-mini
      paperdesk config unset desk.risk --json
    """
    from engine.settings.edit import SCHEMA, values_of
    from tui.settings.configuration_file import ConfigurationFile

    if action in (SET, UNSET):
        changed = ConfigurationFile(invocation.file).change(what[0], what[1] if action == SET else None)
        show_document(changed, lambda: _changed(changed))
        return
    loaded = invocation.load()
    found = values_of(loaded, what[0] if what else "")
    values = [{"key": one.key, "value": one.value, "origin": one.origin} for one in found]
    document = {"schema": SCHEMA, "file": str(loaded.file) if loaded.file else None, "values": values}
    show_document(document, lambda: _values(values))


def _values(values: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [(one["key"], _written(one["value"]), one["origin"]) for one in values]
    return table(("KEY", "VALUE", "FROM"), rows, width=standard_output().room)


def _changed(document: Mapping[str, Any]) -> Iterator[str]:
    value = "is not set any more" if document["value"] is None else f"= {_written(document['value'])}"
    before = "" if document["before"] is None else f" (was {_written(document['before'])})"
    yield f"{document['key']} {value}{before} in {document['file']}"
    if document["overridden_by"]:
        yield f"{document['overridden_by']} in the environment goes first: unset it for the file to count"
    yield from (f"note: {note}" for note in document["notes"])


def _written(value: Any) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
