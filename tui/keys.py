"""Every key of the app in one table: it feeds dispatch, the hints at the foot of a screen, and the help."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

DESK, DECISIONS, BACKTEST = "desk", "decisions", "backtest"
SCREENS = {DESK: ("1", "Desk"), DECISIONS: ("5", "Decisions"), BACKTEST: ("7", "Backtest")}
"""The screens that exist: the key and the name on the tab, by mode. The numbers leave room for those to come."""

EVERYWHERE = frozenset(SCREENS)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    Key(
        id="screen.desk",
        keys="1",
        action="switch('desk')",
        shown="1",
        meaning="Desk: watchlist, chart, agents, positions, events",
        group="Screens",
    ),
    Key(
        id="screen.decisions",
        keys="5",
        action="switch('decisions')",
        shown="5",
        meaning="Decisions, each with its trail",
        group="Screens",
    ),
    Key(
        id="screen.backtest",
        keys="7",
        action="switch('backtest')",
        shown="7",
        meaning="Backtest: form, progress, results",
        group="Screens",
    ),
    Key(
        id="desk.run",
        keys="r",
        action="run_cycle",
        shown="r",
        meaning="Run the cycle for the last completed session",
        group="Desk",
        hint="run cycle",
    ),
    Key(
        id="desk.pause",
        keys="p",
        action="pause",
        shown="p",
        meaning="Pause the cycle after the answer at hand; again: go on",
        group="Desk",
        hint="pause",
    ),
    Key(
        id="desk.kill-switch",
        keys="K,upper_k",
        action="kill_switch",
        shown="K y",
        meaning="Kill switch: no order is sent any more; again: go on",
        group="Desk",
        hint="kill switch",
    ),
    Key(
        id="desk.approve",
        keys="a",
        action="approve",
        shown="a",
        meaning="Approve the order that waits",
        group="Desk",
        screens=_ONLY_DESK,
    ),
    Key(
        id="desk.veto",
        keys="x",
        action="veto",
        shown="x",
        meaning="Veto the order that waits",
        group="Desk",
        screens=_ONLY_DESK,
    ),
    Key(
        id="desk.why",
        keys="d",
        action="why",
        shown="d",
        meaning="Why: the trail of the latest decision",
        group="Desk",
        screens=_ONLY_DESK,
        hint="why?",
    ),
    Key(
        id="desk.previous",
        keys="left_square_bracket",
        action="symbol(-1)",
        shown="[",
        meaning="Symbol before",
        group="Desk",
        screens=_ONLY_DESK,
    ),
    Key(
        id="desk.next",
        keys="right_square_bracket",
        action="symbol(1)",
        shown="]",
        meaning="Next symbol",
        group="Desk",
        screens=_ONLY_DESK,
        hint="[ ] symbol",
    ),
    Key(
        id="chart.zoom-in",
        keys="plus,equals_sign",
        action="zoom(-1)",
        shown="+",
        meaning="Chart: fewer, wider candles",
        group="Desk",
        screens=_ONLY_DESK,
    ),
    Key(
        id="chart.zoom-out",
        keys="minus",
        action="zoom(1)",
        shown="-",
        meaning="Chart: more candles",
        group="Desk",
        screens=_ONLY_DESK,
    ),
    Key(
        id="chart.usual",
        keys="0",
        action="zoom(0)",
        shown="0",
        meaning="Chart: the usual size",
        group="Desk",
        screens=_ONLY_DESK,
    ),
    Key(
        id="pane.zoom",
        keys="z",
        action="zoom_pane",
        shown="z",
        meaning="The focused pane alone; again: all",
        group="Desk",
        screens=_ONLY_DESK,
        hint="zoom",
    ),
    Key(
        id="source.previous",
        keys="left_square_bracket",
        action="source(-1)",
        shown="[",
        meaning="Decisions of the run before",
        group="Tables",
        screens=_ONLY_DECISIONS,
    ),
    Key(
        id="source.next",
        keys="right_square_bracket",
        action="source(1)",
        shown="]",
        meaning="Decisions of the next run",
        group="Tables",
        screens=_ONLY_DECISIONS,
        hint="[ ] run",
    ),
    Key(
        id="table.open",
        keys="enter",
        action="open",
        shown="enter",
        meaning="Open the row: its trail",
        group="Tables",
        screens=_ONLY_DECISIONS,
        hint="trail",
    ),
    Key(
        id="backtest.start",
        keys="ctrl+r",
        action="start",
        shown="ctrl+r",
        meaning="Start the backtest",
        group="Backtest",
        screens=_ONLY_BACKTEST,
        hint="start",
    ),
    Key(
        id="backtest.stop",
        keys="x",
        action="stop",
        shown="x",
        meaning="Stop the backtest; what was done is kept",
        group="Backtest",
        screens=_ONLY_BACKTEST,
        hint="stop",
    ),
    Key(
        id="backtest.form",
        keys="e",
        action="edit",
        shown="e",
        meaning="To the form",
        group="Backtest",
        screens=_ONLY_BACKTEST,
        hint="form",
    ),
    Key(
        id="table.sort",
        keys="s",
        action="sort",
        shown="s",
        meaning="Sort the table by its next column",
        group="Tables",
        hint="sort",
    ),
    Key(id="go.copy", keys="y", action="copy", shown="y", meaning="Copy what the focused pane shows", group="Anywhere"),
    Key(id="go.next", keys="tab", action="pane(1)", shown="tab", meaning="Next pane or field", group="Anywhere"),
    Key(
        id="go.previous",
        keys="shift+tab",
        action="pane(-1)",
        shown="shift+tab",
        meaning="Pane or field before",
        group="Anywhere",
    ),
    Key(
        id="go.back",
        keys="escape",
        action="back",
        shown="esc",
        meaning="Back; leave a field; dismiss an error",
        group="Anywhere",
    ),
    Key(
        id="go.retry", keys="ctrl+t", action="retry", shown="ctrl+t", meaning="Try again what failed", group="Anywhere"
    ),
    Key(id="go.log", keys="grave_accent", action="log", shown="`", meaning="Log", group="Anywhere"),
    Key(
        id="go.help",
        keys="question_mark,f1",
        action="help",
        shown="? f1",
        meaning="This help",
        group="Anywhere",
        hint="help",
    ),
    Key(
        id="go.palette",
        keys="ctrl+p",
        action="app.command_palette",
        shown="ctrl+p",
        meaning="Commands and themes",
        group="Anywhere",
    ),
    Key(
        id="go.screenshot",
        keys="f8",
        action="screenshot",
        shown="f8",
        meaning="Save a picture of the screen",
        group="Anywhere",
    ),
    Key(id="go.quit", keys="q,ctrl+q", action="app.quit", shown="q", meaning="Quit", group="Anywhere", hint="quit"),
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
