"""How long memories live by a preset's constants when nobody cites them, as text or as a JSON document."""

from __future__ import annotations

import json
import math
import textwrap

from tui.console import show, standard_output
from tui.invocation import Invocation


def show_preview(invocation: Invocation, name: str | None, as_json: bool) -> None:
    """Shows the lives that a preset's constants allow; a preset of memory's own name goes before a preset of agents."""
    from engine.preset import load_preset
    from memory.presets import PRESETS
    from memory.preview import lives, preview

    named = name or invocation.load().config.desk.preset
    constants = PRESETS[named if named in PRESETS else load_preset(named).memory]
    if not as_json:
        width = min(standard_output().width, 120)
        show("\n".join(line for text in preview(constants).split("\n") for line in _wrapped(text, width)))
        return
    rows = [
        {
            "layer": life.layer.value,
            "kind": life.kind or None,
            "importance": life.importance,
            "probability": life.probability,
            "ends": _finite(life.ends),
            "moves": [{"step": step, "layer": layer.value} for step, layer in life.moves],
        }
        for life in lives(constants)
    ]
    show(json.dumps({"schema": 1, "preset": constants.name, "lives": rows}, indent=2, allow_nan=False))


def _wrapped(line: str, width: int) -> list[str]:
    """The line's own indentation, and two more where it goes on."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
