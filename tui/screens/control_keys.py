"""The keys by which every screen runs, pauses and halts the desk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.domain.text import counted
from tui.desk.twins import report_action
from tui.screens.snapshot_screen import SnapshotScreen
from tui.view.snapshot import Snapshot, circumstances
from tui.widgets.agent_panes import OFFLINE

if TYPE_CHECKING:
    from engine.messages.commands import Command

STOP_REASON = "from the app"


class ControlKeys(SnapshotScreen):
    """A screen that passes commands on to the desk, and says why one is refused."""

    _view: Snapshot
    """The snapshot that is shown."""

    def action_run_cycle(self) -> None:
        """Decide for the last completed session."""
        from engine.messages.commands import RunCycle

        opened = self.desk_app.bridge.present().opened
        if not self._send(RunCycle()):
            return
        self.show_view(self.desk_app.snapshot())
        asked = "a cycle is asked for"
        if opened is not None and opened.label != OFFLINE:
            from tui.screens.confirm import cost_limit

            about = f"{opened.label} is asked about {counted(len(opened.symbols), 'symbol')}"
            asked = f"{about}. {cost_limit(opened.usd_per_day)}"
        report_action(self.app, asked, "--daily")

    def action_next_session(self) -> None:
        """Have the desk decide what is due, else go on to its next session and decide for it."""

        def answered(key: str | None) -> None:
            if key and (refused := self.desk_app.bridge.next_session()):
                self.notify(refused, markup=False, timeout=6)
            elif key:
                self.show_view(self.desk_app.snapshot())
                report_action(self.app, "the next session is run", "next")

        present = self.desk_app.bridge.present()
        if not present.controls.waiting or "demo" not in circumstances(present):
            answered("y")
            return
        from tui.screens.confirm import ConfirmScreen, next_session_confirmation

        self.app.push_screen(ConfirmScreen(next_session_confirmation(present.controls)), answered)

    def action_pause(self) -> None:
        """Pause the desk, or end its pause."""
        from engine.messages.commands import Pause, Unpause

        pauses = self._view.controls.paused is None
        if self._send(Pause(STOP_REASON) if pauses else Unpause()):
            twin = ("pause", "--reason", STOP_REASON) if pauses else ("resume", "--only", "pause")
            report_action(self.app, "the desk is paused" if pauses else "the pause is over", *twin)

    def action_kill_switch(self) -> None:
        """Halt the desk, or resume it, once that is confirmed."""
        from engine.messages.commands import Halt, Resume
        from tui.screens.confirm import ConfirmScreen, halt_confirmation

        controls = self.desk_app.bridge.present().controls
        halts = controls.halted is None

        def answered(key: str | None) -> None:
            if key and self._send(Halt(STOP_REASON) if halts else Resume()):
                twin = ("halt", "--reason", STOP_REASON) if halts else ("resume", "--only", "halt")
                report_action(self.app, "the desk is halted" if halts else "the desk goes on", *twin)

        self.app.push_screen(ConfirmScreen(halt_confirmation(controls)), answered)

    def _send(self, command: Command) -> bool:
        """Pass a command on; False where it is refused, which is said."""
        refused = self.desk_app.bridge.send(command)
        if refused:
            self.notify(refused, markup=False, timeout=3)
        return not refused
