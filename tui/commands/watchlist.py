"""`paperdesk watchlist` (desk): show and edit the app's watchlist groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tui.commands.options import actions, option_of
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.plain_text import wrapped

LIST, ADD, REMOVE, GROUP, IMPORT, EXPORT = "list", "add", "remove", "group", "import", "export"
ARGUMENTS = {
    LIST: "",
    **dict.fromkeys((ADD, REMOVE), "GROUP SYMBOL..."),
    GROUP: "GROUP",
    **dict.fromkeys((IMPORT, EXPORT), "FILE"),
}


@command("watchlist")
@actions(ARGUMENTS, "[GROUP|FILE] [SYMBOL]...", default=LIST)
@option_of((GROUP,), "--delete", is_flag=True, help="Delete the group.")
def watchlist_command(*, invocation: Invocation, action: str, what: tuple[str, ...], delete: bool) -> None:
    """Manages watchlist groups, shared by all desks: in the app `w` shows the next group and `W` edits one.

    Groups are for viewing only: a desk trades the symbols of its configuration (desk.symbols), shown as the group
    `desk`. add creates the group if needed. import reads a CSV (group,symbol), as written by export, or one symbol per
    line; it only adds.

    \b
    Examples:
      paperdesk watchlist
      paperdesk watchlist add core NVDA AAPL BRK.B
      paperdesk watchlist remove core AAPL
      paperdesk watchlist group core --delete
      paperdesk watchlist export watchlists.csv
    """
    from engine.app.upkeep import watchlists

    if action == LIST:
        loaded = invocation.services()
        document = watchlists.groups_document(watchlists.read_groups(), loaded.desk, loaded.symbols)
        show_document(document, lambda: _groups(document))
        return
    first, *symbols = what
    done = {
        ADD: lambda: watchlists.change_group(first, add=symbols),
        REMOVE: lambda: watchlists.change_group(first, remove=symbols),
        GROUP: lambda: watchlists.delete_group(first) if delete else watchlists.change_group(first),
        IMPORT: lambda: watchlists.import_groups(Path(first).expanduser()),
        EXPORT: lambda: watchlists.export_groups(watchlists.read_groups(), Path(first).expanduser()),
    }[action]()
    show_document(done, lambda: _done(done))


def _groups(document: Mapping[str, Any]) -> Iterator[str]:
    console = standard_output()
    for one in document["groups"]:
        traded = f"   what the desk {document['desk']} trades" if one["traded"] else ""
        yield console.bold(one["group"]) + console.dim(traded)
        yield from (f"  {line}" for line in wrapped(", ".join(one["symbols"]) or "empty", console.width - 2))
    if len(document["groups"]) == 1:
        yield "no other group yet: paperdesk watchlist add core NVDA makes one"


def _done(document: Mapping[str, Any]) -> Iterator[str]:
    width = standard_output().width
    if "file" in document:
        yield f"{document['file']}: groups {document['groups']}, symbols {document['symbols']}"
    elif document.get("deleted"):
        yield f"the watchlist {document['group']} is deleted"
    else:
        yield from wrapped(f"{document['group']}: {', '.join(document['symbols']) or 'empty'}", width)
