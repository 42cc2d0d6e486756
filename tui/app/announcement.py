"""Orders that wait for an answer, announced outside of the screen: the terminal's bell and a desktop notification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.domain.text import counted
from engine.reports.documents import row_json
from tui.text.plain_text import one_line
from tui.text.run_text import terms

if TYPE_CHECKING:
    from tui.view.snapshot import Snapshot

BELL = "\a"


class Announcer:
    """The orders that were announced; those that waited when the desk was opened are on the screen and need no bell."""

    def __init__(self) -> None:
        self._known: frozenset[str] | None = None

    def notification(self, view: Snapshot) -> str:
        """The announcement as it is sent to a terminal: the bell, and a desktop notification (OSC 9 and OSC 777); empty
        without one."""
        text = one_line(self.text(view)).replace(";", ",")  # neither control characters, nor their separators
        return text and f"{BELL}\x1b]9;{text}{BELL}\x1b]777;notify;Paperdesk;{text}{BELL}"

    def text(self, view: Snapshot) -> str:
        """The announcement of orders that wait since the last snapshot, each once; empty without any, and in the
        past."""
        if view.place is not None or view.opened is None:
            return ""
        waiting = {one.order.id: one.order for one in view.controls.waiting}
        known, self._known = self._known, (self._known or frozenset()) | waiting.keys()
        new = [order for name, order in waiting.items() if known is not None and name not in known]
        if not new or not view.opened.notify:
            return ""
        return f"{counted(len(new), 'order')} to approve: {', '.join(terms(row_json.order(order)) for order in new)}"
