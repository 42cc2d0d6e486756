"""Orders that wait for an answer, announced outside of the screen: the terminal's bell and a desktop notification."""

from __future__ import annotations

from engine.domain.text import counted
from engine.reports.documents import row_json
from tui.plain_text import one_line
from tui.run_text import terms
from tui.snapshot import Snapshot

BELL = "\a"


class Announcer:
    """The orders that were announced; those that waited when the desk was opened are on the screen and need no bell."""

    def __init__(self) -> None:
        self._known: frozenset[str] | None = None

    def text(self, view: Snapshot) -> str:
        """The announcement of orders that wait since the last snapshot, each once; empty without any, and in the
        past."""
        if view.place is not None or view.services is None:
            return ""
        waiting = {one.order.id: one.order for one in view.controls.waiting}
        known, self._known = self._known, (self._known or frozenset()) | waiting.keys()
        new = [order for name, order in waiting.items() if known is not None and name not in known]
        if not new or not view.services.notify:
            return ""
        return f"{counted(len(new), 'order')} to approve: {', '.join(terms(row_json.order(order)) for order in new)}"


def terminal_notification(text: str) -> str:
    """The bell, and a desktop notification as terminals take it (OSC 9 and OSC 777); the text has no control
    characters, and no separators of theirs."""
    plain = one_line(text).replace(";", ",")
    return f"{BELL}\x1b]9;{plain}{BELL}\x1b]777;notify;Paperdesk;{plain}{BELL}"
