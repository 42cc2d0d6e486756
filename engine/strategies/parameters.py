"""Parameters of strategies: typed fields with default, meaning and bounds; read from text and checked."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from engine.errors import UsageError

Value = int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a strategy.

    name: the field, and the key of `--param`.
    type: what a text is read as.
    default: the value where none is given.
    doc: the meaning in a few words.
    low, high: inclusive bounds of a number; None where it has none.
    choices: the texts that are allowed; empty where all are.
    tuned: True where `paperdesk tune` searches it, between its bounds.
    """

    name: str
    type: type[int] | type[float] | type[str]
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    tuned: bool = True


def number(default: float, doc: str, low: float, high: float, *, tuned: bool = True) -> Any:
    """A dataclass field for a numeric parameter."""
    about = {"doc": doc, "low": low, "high": high, "tuned": tuned}
    return dataclasses.field(default=default, metadata=about)


def choice(default: str, doc: str, choices: tuple[str, ...]) -> Any:
    """A dataclass field for a parameter that is one of a few texts; never tuned."""
    return dataclasses.field(default=default, metadata={"doc": doc, "choices": choices, "tuned": False})


def parameters(strategy: type) -> tuple[Parameter, ...]:
    """The parameters of a strategy class, in the order of its fields; a class that is no dataclass has none. A field
    with `init=False` is state. Raises UsageError for a parameter that is no number or text, or has no default."""
    if not dataclasses.is_dataclass(strategy):
        return ()
    hints = get_type_hints(strategy)
    return tuple(_parameter(strategy, field, hints[field.name]) for field in dataclasses.fields(strategy) if field.init)


def _parameter(strategy: type, field: dataclasses.Field[Any], hint: Any) -> Parameter:
    if hint not in (int, float, str) or field.default is dataclasses.MISSING:
        raise UsageError(
            f"strategy {strategy.__name__}: the field {field.name} is neither int, float nor str with a default; state "
            "is a field(init=False)"
        )
    return Parameter(name=field.name, type=hint, default=field.default, **{"doc": "", "tuned": False, **field.metadata})


def check(strategy: Any) -> None:
    """Raise UsageError for the first parameter of a strategy that is of the wrong type or out of bounds."""
    for parameter in parameters(type(strategy)):
        _check(type(strategy).name, parameter, getattr(strategy, parameter.name))


def parsed(strategy: type, name: str, texts: Mapping[str, str]) -> dict[str, Value]:
    """Typed values from `--param key=value` texts. Raises UsageError naming the nearest known parameter."""
    known = {parameter.name: parameter for parameter in parameters(strategy)}
    values: dict[str, Value] = {}
    for key, text in texts.items():
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            raise UsageError(_unknown(name, key, known))
        values[parameter.name] = _parse(name, parameter, text)
    return values


def nearest(name: str, names: Iterable[str]) -> str:
    """` (did you mean X?)` where one of `names` is close, else nothing."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _unknown(name: str, key: str, known: Mapping[str, Parameter]) -> str:
    if not known:
        return f"strategy {name} takes no parameters, so not {key} either"
    return f"strategy {name} has no parameter {key}{nearest(key, known)}; it takes {', '.join(known)}"


def _parse(name: str, parameter: Parameter, text: str) -> Value:
    try:
        value = parameter.type(text.strip())
    except ValueError:
        kind = "a whole number" if parameter.type is int else "a number"
        raise UsageError(f"strategy {name}: {parameter.name} must be {kind}, not {text!r}") from None
    _check(name, parameter, value)
    return value


def _check(name: str, parameter: Parameter, value: Any) -> None:
    where = f"strategy {name}: {parameter.name}"
    if parameter.choices:
        if value not in parameter.choices:
            raise UsageError(f"{where} must be one of {', '.join(parameter.choices)}, not {value!r}")
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole if parameter.type is int else whole or isinstance(value, float)):
        kind = "a whole number" if parameter.type is int else "a number"
        raise UsageError(f"{where} must be {kind}, not {value!r}")
    low, high = parameter.low, parameter.high
    if low is None or high is None:
        return
    if not (math.isfinite(value) and low <= value <= high):
        raise UsageError(f"{where} must lie between {low:g} and {high:g}, not {value}")
