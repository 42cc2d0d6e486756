"""The page docs/presets.md, made of the schema of presets. `python -m tests.presets_page` writes it anew."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from engine.agents.agent import DECIDING
from engine.agents.registry import registered
from engine.cycle import combine
from engine.domain.decision import TradeValues
from engine.domain.run import ExpertNote
from engine.preset import (
    ArenaRehearsal,
    BacktestRehearsal,
    Memory,
    MemoryBirth,
    MemoryLayer,
    Preset,
    Rehearsal,
    Windows,
    load_preset,
    preset_names,
)
from engine.settings.owners import Character, DebateSettings, Owner
from engine.settings.values import AgentSettings, Band, Portfolio, Sizing
from tests.attribute_docs import attribute_docs

PAGE = Path(__file__).parents[1] / "docs" / "presets.md"

HEAD = """# Presets

A preset is a TOML file that says which steps of the one cycle run, and with which numbers. `--preset NAME` takes one
that ships (`engine/presets`), `--preset FILE.toml` one of your own; `desk.preset` in the
configuration is the desk's. `python -m tests.presets_page` writes this page from the schema, and a test keeps it
equal.

Two keys are for the file alone. `extends = "NAME"` takes everything of another preset that the file does not set,
table by table; `without = ["STEP"]` leaves steps out, as `--without` does. So an ablation is a preset of three lines:

```toml
extends = "finvision"
name = "finvision-without-chart"
without = ["chart"]
```

A preset can ask less of its models than its paper does:

```toml
extends = "finvision"
name = "finvision-thrifty"
performance_questions = 1  # one question about short and medium term in place of two
without = ["vision"]       # tables of figures in place of pictures
```

An unknown key is refused with the nearest one that there is.
"""

FEATURES = """Besides, `memory` recalls and remembers, `diversified` searches memory once per retrieval type,
`analyses` remembers what intelligence said of every item and of the day, `macro` gives macro series and
`commentary` what funds say to intelligence and to memory, `vision` shows charts to models that see, and `tools` asks
rule strategies and experts.
"""

OWNERS = """## Several owners

An owner has agents, opinions, a past and a memory of its own, and learns from its own opinions, also where others
overruled it: the reward of an opinion that was combined with others is its direction times the size that it asked for
times the move of the close. `owners = ["bull", "bear"]` names owners that have the
preset's settings; a table `[owners.NAME]` names one with settings of its own. One file does one or the other; a file
that extends another adds to its owners by tables, and chooses among them by a list.

```toml
extends = "desk"
name = "three"
title = "Three owners who vote"
combine = "vote"
quorum = 2

[owners.bull]
risk = "risk-seeking"
preference = "aggressive"
weight = 2

[owners.bear]
risk = "risk-averse"
preference = "conservative"
horizon = 20

[owners.quant]
character = "You trust figures more than stories."
sectors = ["semiconductors", "software"]

[owners.odd]
character = "contrarian"
```

A character is a data file: one that ships (`engine/agents/characters`), or `FILE.toml`,
relative to the preset's. It has a temperament, fields, a risk appetite, a horizon, and the evidence that it prefers;
the rules without a model go by its numbers, models by its words. More than one word in place of a name is the
character itself. A `sector_focus` has an owner decide on the symbols of its sectors alone, by the preset's
`symbol_sectors`.

"""

DEBATE = """## Debate

The step `debate` has owners who share a symbol debate it. Each shows the others its advice with the trade value, the
stated confidence, the reason, its position and last result, and the first memories of each layer. Each comments on
each of the others: agrees, wants more, or wants less, with the memories that it means. Then each reconsiders, with
the comments received, the dissent that there is, and a week of its reflections and of earlier comments for reference.
Comments go into the receiver's memory (kind `debate`), so that later days recall them. In training, by the paper, the
comments follow the trade and nobody reconsiders. An owner without valid advice takes no further part, and its opinion
is an abstention.

`paperdesk why ORVL 2025-03-12 --full` shows who said what and who changed its mind, `paperdesk decisions --owners` who
was right.

"""

TABLES: dict[type, str] = {
    Sizing: "[sizing]",
    Band: "[sizing.buy.RULE], [sizing.sell.RULE], [sizing.unruled]",
    Rehearsal: "[rehearsal]",
    BacktestRehearsal: "[rehearsal.backtest]",
    ArenaRehearsal: "[rehearsal.arena]",
    Windows: "[windows]",
    Portfolio: "[portfolio]",
    Memory: "[memory]",
    MemoryLayer: "[memory.layers.LAYER]",
    MemoryBirth: "[memory.births.KIND]",
    AgentSettings: "[agents.NAME]",
    Owner: "[owners.NAME]",
    Character: "a character's file",
    DebateSettings: "[debate]",
    TradeValues: "[advice]",
    ExpertNote: "[[guidance]]",
}
"""The tables of a preset by the class of their values."""

_BOUNDS = {"ge": "from {}", "gt": "above {}", "le": "up to {}", "lt": "below {}", "min_length": "{} or more"}
_BOUNDS |= {"max_length": "{} at most", "pattern": "`{}`"}
_KINDS = {int: "whole number", float: "number", Decimal: "number", str: "text", bool: "true or false", date: "date"}


def page() -> str:
    """The whole page."""
    shipped = [load_preset(name) for name in preset_names()]
    return "\n".join(
        [
            HEAD,
            "## Presets that ship\n",
            *_table(("preset", "what it is", "papers"), ((f"`{p.name}`", p.title, p.source) for p in shipped)),
            "## Keys\n",
            *_fields(Preset),
            "## Steps\n",
            "Each of these steps asks agents:\n",
            *_table(("step", "agents"), _steps()),
            FEATURES,
            OWNERS + _combining(),
            DEBATE.rstrip() + "\n",
            *(
                line
                for kind, title in TABLES.items()
                for line in (f"## {title}\n", f"{_opening(kind)}\n", *_fields(kind))
            ),
        ]
    )


def _combining() -> str:
    """The ways to combine opinions, as their module says them."""
    _, _, text = (combine.__doc__ or "").partition("\n\n")
    return f"{text.strip()}\n"


def described(kind: type) -> dict[str, str]:
    """What is said of each key of a table; nothing of the keys of a plain dataclass, whose docstring says it."""
    if issubclass(kind, BaseModel):
        return attribute_docs(kind)
    return {}


def _fields(kind: type) -> Iterator[str]:
    if issubclass(kind, BaseModel):
        docs = attribute_docs(kind)
        rows = [
            (f"`{name}`", _type(field.annotation, field), _default(field), docs[name])
            for name, field in kind.model_fields.items()
        ]
        return _table(("key", "value", "default", "meaning"), rows)
    missing = dataclasses.MISSING
    plain = [
        (f"`{f.name}`", _KINDS.get(_named(f.type), "text"), "" if f.default is missing else f"`{f.default}`")
        for f in dataclasses.fields(kind)
    ]
    return _table(("key", "value", "default"), plain)


def _named(annotation: Any) -> type:
    return {"int": int, "float": float}.get(str(annotation), str)


def _table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', ' or ') for cell in row)} |"
    yield ""


def _steps() -> Iterator[tuple[str, str]]:
    by_step: dict[str, list[str]] = {}
    for agent in registered().values():
        if agent.step != DECIDING:
            by_step.setdefault(agent.step, []).append(agent.name)
    for step, names in by_step.items():
        yield f"`{step}`", ", ".join(f"`{name}`" for name in names)


def _opening(kind: type) -> str:
    """The opening of a class's docstring, which says what raises only to callers."""
    return " ".join((kind.__doc__ or "").split("Raises")[0].split())


def _type(annotation: Any, field: FieldInfo | None = None) -> str:
    """A type in words, with its bounds."""
    return _bounded(_kind(annotation), () if field is None else field.metadata)


def _bounded(kind: str, constraints: Sequence[Any]) -> str:
    bounds = ((text, getattr(one, name, None)) for one in constraints for name, text in _BOUNDS.items())
    said = " ".join(text.format(bound) for text, bound in bounds if bound is not None)
    return f"{kind}, {said}" if said else kind


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bounded(_kind(inner[0]), inner[1:])
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(one) for one in inner if one is not type(None))
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        names = _kind(inner[0])
        kind = "table" if get_origin(inner[1]) is dict else _kind(inner[1])
        return f"{kind} by {'name' if names.startswith('text') else names}"
    if annotation in TABLES:
        return f"`{TABLES[annotation].split(', ')[0]}`"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in annotation)
    return _KINDS[annotation]


def _default(field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined:
        return "required"
    if default is None or default in ((), {}):
        return "none"
    if isinstance(default, BaseModel) or dataclasses.is_dataclass(default) or isinstance(default, dict):
        return "its own"
    if isinstance(default, tuple):
        return ", ".join(f"`{one}`" for one in default)
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f'`"{default}"`' if isinstance(default, str) else f"`{default}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
