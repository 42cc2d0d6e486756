"""The rule strategies of FinAgent's tables with the parameters that their authors tuned, symbol by symbol.

Source: FinAgent §5.3, Tables 4 and 6 [A13].
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from engine.domain.market import Symbol


def tuned_params(name: str, symbol: Symbol) -> Mapping[str, str]:
    """`--param` texts that make a strategy the paper's for a symbol.

    A symbol that the authors did not tune gets the rule's window with the defaults of the rest; a strategy
    without parameters of its own gets none.
    """
    of_strategy = _tables().get(name, {})
    return {**of_strategy.get("common", {}), **of_strategy.get(symbol, _UNTUNED.get(name, {}))}


_UNTUNED: Mapping[str, Mapping[str, str]] = {"macd": {"fast": "7"}}
"""Defaults of the authors that differ from ours."""


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(resources.files("engine.strategies").joinpath("finagent.toml").read_text("utf-8"))
