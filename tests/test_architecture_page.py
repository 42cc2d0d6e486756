"""Every module, class and function that docs/architecture.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([\w/.]+)\]\(\.\./([\w/.]+)\)(?: `(\w+)`)?")


def test_the_architecture_page_names_what_there_is() -> None:
    links = LINK.findall((ROOT / "docs/architecture.md").read_text())
    assert len(links) > 20
    for text, target, name in links:
        module = ROOT / target
        assert text == target and module.is_file(), target
        if name:
            assert re.search(rf"^(async def|def|class) {name}\b", module.read_text(), re.M), f"{target} has no {name}"
