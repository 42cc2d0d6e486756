"""Progress of a backtest: the current part and session, a bar, the time left, the decisions so far."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from tui import amounts
from tui.backtest_state import DONE, FAILED, RUNNING, STOPPED, BacktestState

_INKS = {RUNNING: "$primary", DONE: "$success", STOPPED: "$foreground 60%", FAILED: "$error-lighten-1"}


def progress_text(run: BacktestState | None, width: int, plain: bool) -> Content:
    """Describe a run in two lines, or the keys that start one."""
    if run is None:
        keys = (
            ("ctrl+r", "bold $primary"),
            (" starts the backtest   ", ""),
            ("e", "bold $primary"),
            (" to the form", ""),
        )
        return Content.assemble(*keys, ("\nit runs in a process of its own: the desk stays at hand", "$foreground 50%"))
    if run.status == FAILED:
        return Content.assemble((f"{run.name} failed\n", "bold $error-lighten-1"), (run.error, "$warning"))
    cells = max(8, min(40, width - 44))
    full = round(run.fraction * cells)
    blocks = ("#", "-") if plain else ("█", "░")
    counted = f"{run.done}/{run.total}" if run.total else "starting"
    left = run.seconds_left
    time = f"{amounts.minutes(left)} left" if left is not None else run.status if run.status != RUNNING else ""
    first: list[tuple[str, str]] = [
        (f"{run.name}  ", "bold"),
        (blocks[0] * full, _INKS[run.status]),
        (blocks[1] * (cells - full), "$foreground 25%"),
        (f"  {run.fraction:4.0%}  {counted}  ", ""),
        (time, _INKS[run.status]),
    ]
    second = [f"{run.part} {run.session}" if run.session else run.label]
    second += [f"{action} {count}" for action, count in sorted(run.actions.items())]
    second.append(f"trades {run.trades}")
    if run.curve:
        second.append(f"equity {run.curve[-1][1]:,.0f}")
    return Content.assemble(*first, ("\n" + "   ".join(part for part in second if part), "$foreground 60%"))


class RunProgress(Static):
    """Two lines over the curve."""

    DEFAULT_CSS = "RunProgress { height: 2; padding: 0 1; }"

    def __init__(self, *, plain: bool, id: str) -> None:
        super().__init__("", markup=False, id=id)
        self._plain = plain
        self._shown = ""

    def show(self, run: BacktestState | None) -> None:
        """Show the progress of a run."""
        text = progress_text(run, self.size.width, self._plain)
        if text.plain != self._shown:
            self._shown = text.plain
            self.update(text)
