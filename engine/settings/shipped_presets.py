"""The files of the presets that ship, by name. The module loads none of them, nor their classes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable

SUFFIX = ".toml"


def shipped_presets() -> Mapping[str, Traversable]:
    """Every preset that ships, the hidden ones too, in no order."""
    files = (resources.files("engine") / "presets").iterdir()
    return {file.name.removesuffix(SUFFIX): file for file in files if file.name.endswith(SUFFIX)}
