"""Cases of a rule of which a few run with every `make test`, and all with `make test-long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(number: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrized test, all but the first `number` of them marked as slow."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*row, marks=[pytest.mark.slow] * (place >= number)) for place, row in enumerate(rows)]
