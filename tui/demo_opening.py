"""The opening of a demo desk: its history is made where it is not there yet, and its last sessions are played.

The history is made in a process of low priority. It is played where nobody has pressed a key and the desk never ran; a
key of the desk ends that. Who has begun to work meanwhile reads that it is ready, and where it is.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from tui.backtest_run import DONE, BacktestProcess, Target
from tui.keys import KEYS
from tui.snapshot import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.app.demo_history import DemoHistory
    from tui.bridge import Bridge

NAME = "demo history"
PLAYED = 10
"""Sessions that are played, the last ones."""
SPEED = 2
"""Sessions in a second."""
READY = "the demo's history of sixty sessions is ready: ^p, Demo history, plays its end"
AFTER = "the desk begins here, with cash alone: n runs the next session"
FAILED = "the demo's history could not be made: "

_PRESENT = frozenset(key for one in KEYS if one.when in ("present", "orders", "demo") for key in one.keys.split(","))
"""Keys of the desk: they end the playing."""
_PAST = frozenset(key for one in KEYS if one.group == "Past" for key in one.keys.split(","))
"""Keys of a playback: who presses one goes on alone."""


class _Stage(Enum):
    OPENING = auto()
    MAKING = auto()
    PLAYING = auto()
    OVER = auto()


class DemoOpening:
    """The state of the opening; `refresh` is called a few times a second, from the app's thread.

    source: the history, once it is there.
    """

    def __init__(self, bridge: Bridge, target: Target, notify: Callable[[str], None], *, plays: bool) -> None:
        """`target` runs a backtest, `notify` shows a line for a while; `plays` is False where nothing is to move by
        itself."""
        self._bridge = bridge
        self._target = target
        self._notify = notify
        self._plays = plays
        self._stage = _Stage.OPENING
        self._process: BacktestProcess | None = None
        self.source: Source | None = None

    @property
    def note(self) -> str:
        """The progress of a history that is being made; empty where none is."""
        if self._process is None or self._stage is not _Stage.MAKING:
            return ""
        return f"making the demo's history {self._process.state.done}/{self._process.state.total or '...'}"

    def refresh(self) -> None:
        """Go on to the next stage where that is due."""
        if self._stage is _Stage.OPENING:
            self._open()
        elif self._stage is _Stage.MAKING:
            self._wait()
        elif self._stage is _Stage.PLAYING:
            self._watch()

    def pressed(self, key: str) -> None:
        """Note that somebody is there: nothing begins to play by itself any more, and what plays ends as the key
        says. Keys that only show something else leave it playing."""
        self._plays = False
        if self._stage is not _Stage.PLAYING:
            return
        if key in _PRESENT:
            self._bridge.to_present()
        if key in _PRESENT | _PAST:
            self._stage = _Stage.OVER

    def play(self) -> None:
        """Play the end of the history."""
        if self.source is None or self._bridge.to_past(self.source):
            return
        playback = self._bridge.playback
        assert playback is not None
        playback.step_session(-PLAYED)
        playback.play(SPEED)
        self._stage = _Stage.PLAYING

    def leave(self) -> None:
        """Show nothing by itself any more: somebody looks at something else."""
        self._plays = False
        if self._stage is _Stage.PLAYING:
            self._stage = _Stage.OVER

    def _open(self) -> None:
        services = self._bridge.snapshot().services
        if services is None:
            return
        history = services.history
        if history is None:
            self._stage = _Stage.OVER
        elif history.made:
            self._finish(history)
        else:
            self._process = self._bridge.beside = BacktestProcess(NAME, history.spec, self._target)
            self._process.start()
            self._stage = _Stage.MAKING

    def _wait(self) -> None:
        assert self._process is not None
        if self._process.running:
            return
        self._stage = _Stage.OVER
        state = self._process.state
        services = self._bridge.snapshot().services
        if state.status == DONE and services is not None and services.history is not None:
            self._finish(services.history)
        else:
            self._notify(FAILED + (state.error or state.status))

    def _finish(self, history: DemoHistory) -> None:
        from engine import places

        self._stage = _Stage.OVER
        self.source = Source(NAME, places.run_journal(history.spec.run), history.spec.run)
        self._bridge.history = self.source
        view = self._bridge.snapshot()
        if self._plays and view.place is None and not (view.desk.run or view.busy):
            self.play()
        elif self._process is not None:
            self._notify(READY)

    def _watch(self) -> None:
        playback = self._bridge.playback
        if playback is None or playback.source != self.source:
            self._stage = _Stage.OVER
        elif playback.arrived and playback.at_end and not playback.place.speed:
            self._stage = _Stage.OVER
            self._bridge.to_present()
            self._notify(AFTER)
