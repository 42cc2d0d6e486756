"""Every bench can be run: its module is there with all that it imports, and every part that it measures works."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.bench.bench_parts import GROUPS, Part

BENCHES = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
PARTS = {part.name: part for group in GROUPS for part in group()}


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_can_be_imported(name: str) -> None:
    assert callable(import_module(f"tests.bench.{name}").main)


@pytest.mark.parametrize("part", [pytest.param(part, id=name) for name, part in PARTS.items()])
def test_a_part_works(part: Part) -> None:
    part.made(1)()
