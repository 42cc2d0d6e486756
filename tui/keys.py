"""Every key of the app in one table: it feeds dispatch, the hints at the foot of a screen, and the help."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

DESK, DECISIONS, BACKTEST = "desk", "decisions", "backtest"
SCREENS = {DESK: ("1", "Desk"), DECISIONS: ("5", "Decisions"), BACKTEST: ("7", "Backtest")}
"""The screens that exist: the key and the name on the tab, by mode. The numbers leave room for those to come."""

EVERYWHERE = frozenset(SCREENS)


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that a key does. `keys` as Textual names them, comma-separated; `shown` is how the help writes
    them; `hint` is the word at the foot of the screens in `screens` (empty: not hinted)."""

    id: str
    keys: str
    action: str
    shown: str
    meaning: str
    group: str
    screens: frozenset[str] = EVERYWHERE
    hint: str = ""


_ONLY_DESK = frozenset({DESK})
_ONLY_BACKTEST = frozenset({BACKTEST})
_ONLY_DECISIONS = frozenset({DECISIONS})

KEYS: tuple[Key, ...] = (
    Key("screen.desk", "1", "switch('desk')", "1", "Desk: watchlist, chart, agents, positions, events", "Screens"),
    Key("screen.decisions", "5", "switch('decisions')", "5", "Decisions, each with its trail", "Screens"),
    Key("screen.backtest", "7", "switch('backtest')", "7", "Backtest: form, progress, results", "Screens"),
    Key("desk.run", "r", "run_cycle", "r", "Run the cycle for the last completed session", "Desk", hint="run cycle"),
    Key(
        "desk.pause", "p", "pause", "p", "Pause the cycle after the answer at hand; again: go on", "Desk", hint="pause"
    ),
    Key(
        "desk.kill-switch",
        "K,upper_k",
        "kill_switch",
        "K y",
        "Kill switch: no order is sent any more; again: go on",
        "Desk",
        hint="kill switch",
    ),
    Key("desk.approve", "a", "approve", "a", "Approve the order that waits", "Desk", _ONLY_DESK),
    Key("desk.veto", "x", "veto", "x", "Veto the order that waits", "Desk", _ONLY_DESK),
    Key("desk.why", "d", "why", "d", "Why: the trail of the latest decision", "Desk", _ONLY_DESK, "why?"),
    Key("desk.previous", "left_square_bracket", "symbol(-1)", "[", "Symbol before", "Desk", _ONLY_DESK),
    Key("desk.next", "right_square_bracket", "symbol(1)", "]", "Next symbol", "Desk", _ONLY_DESK, "[ ] symbol"),
    Key("chart.zoom-in", "plus,equals_sign", "zoom(-1)", "+", "Chart: fewer, wider candles", "Desk", _ONLY_DESK),
    Key("chart.zoom-out", "minus", "zoom(1)", "-", "Chart: more candles", "Desk", _ONLY_DESK),
    Key("chart.usual", "0", "zoom(0)", "0", "Chart: the usual size", "Desk", _ONLY_DESK),
    Key("pane.zoom", "z", "zoom_pane", "z", "The focused pane alone; again: all", "Desk", _ONLY_DESK, "zoom"),
    Key(
        "source.previous",
        "left_square_bracket",
        "source(-1)",
        "[",
        "Decisions of the run before",
        "Tables",
        _ONLY_DECISIONS,
    ),
    Key(
        "source.next",
        "right_square_bracket",
        "source(1)",
        "]",
        "Decisions of the next run",
        "Tables",
        _ONLY_DECISIONS,
        "[ ] run",
    ),
    Key("table.open", "enter", "open", "enter", "Open the row: its trail", "Tables", _ONLY_DECISIONS, "trail"),
    Key("backtest.start", "ctrl+r", "start", "ctrl+r", "Start the backtest", "Backtest", _ONLY_BACKTEST, "start"),
    Key(
        "backtest.stop",
        "x",
        "stop",
        "x",
        "Stop the backtest; what was done is kept",
        "Backtest",
        _ONLY_BACKTEST,
        "stop",
    ),
    Key("backtest.form", "e", "edit", "e", "To the form", "Backtest", _ONLY_BACKTEST, "form"),
    Key("table.sort", "s", "sort", "s", "Sort the table by its next column", "Tables", hint="sort"),
    Key("go.copy", "y", "copy", "y", "Copy what the focused pane shows", "Anywhere"),
    Key("go.next", "tab", "pane(1)", "tab", "Next pane or field", "Anywhere"),
    Key("go.previous", "shift+tab", "pane(-1)", "shift+tab", "Pane or field before", "Anywhere"),
    Key("go.back", "escape", "back", "esc", "Back; leave a field; dismiss an error", "Anywhere"),
    Key("go.retry", "ctrl+t", "retry", "ctrl+t", "Try again what failed", "Anywhere"),
    Key("go.log", "grave_accent", "log", "`", "Log", "Anywhere"),
    Key("go.help", "question_mark,f1", "help", "? f1", "This help", "Anywhere", hint="help"),
    Key("go.palette", "ctrl+p", "app.command_palette", "ctrl+p", "Commands and themes", "Anywhere"),
    Key("go.screenshot", "f8", "screenshot", "f8", "Save a picture of the screen", "Anywhere"),
    Key("go.quit", "q,ctrl+q", "app.quit", "q", "Quit", "Anywhere", hint="quit"),
)

MOVES: tuple[tuple[str, str], ...] = (
    ("j k, arrows", "Row down, row up"),
    ("g G, home end", "First row, last row"),
    ("pgup pgdn", "A page"),
    ("left right", "On the chart: move the cursor"),
)
"""Keys that the focused pane answers itself, for the help."""


def bindings(screen: str) -> list[Binding]:
    """The bindings of a screen, by its mode."""
    return [
        Binding(key.keys, key.action, key.meaning, show=False, id=key.id)
        for key in KEYS
        if screen in key.screens and not key.action.startswith("app.")
    ]


def hints(screen: str) -> list[tuple[str, str]]:
    """Key and word pairs for the foot of a screen."""
    return [(_shortest(key), key.hint) for key in KEYS if key.hint and screen in key.screens]


def _shortest(key: Key) -> str:
    return "" if key.hint.startswith("[") else key.shown.split(" ", maxsplit=1)[0]


def groups() -> dict[str, list[tuple[str, str]]]:
    """Everything for the help: keys and meanings by group."""
    found: dict[str, list[tuple[str, str]]] = {"Moving": list(MOVES)}
    for key in KEYS:
        found.setdefault(key.group, []).append((key.shown, key.meaning))
    return found
