"""docs/papers.md: every command of its tables that needs no data of the user's prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run

PAGE = Path(__file__).parents[3] / "docs" / "papers.md"
ROW = re.compile(r"\| (?P<ids>[VAIGRD][\d, D]*) \| [^|]+ \| `paperdesk (?P<command>[^`]+)` \| (?P<shows>.+) \|")
LEFT_OUT = {"D1", "D7"}
"""Rows that the page says are not in its tables."""


@pytest.mark.slow
@pytest.mark.parametrize("of", ["--run finvision", pytest.param("", marks=pytest.mark.slow)])
def test_every_row_is_shown_by_its_command(run: Run, fresh: Path, of: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for line in text.partition("```console\n")[2].partition("```")[0].splitlines():
        if of in line:
            assert run(*shlex.split(line)[1:]).code == 0
    printed: dict[str, str] = {}
    missing = []
    for row in ROW.finditer(text):
        command, shows = row["command"], row["shows"]
        if shows.startswith("*") or of not in command:
            continue
        if command not in printed:
            done = run(*shlex.split(command))
            assert done.code == 0, f"{command}: {done.err}"
            # Lines of prompts begin with a mark; what is printed is wrapped.
            printed[command] = " ".join(done.out.replace("\n    |", "\n").split())
        literals = re.findall(r"`([^`]+)`", shows)
        assert literals, row["ids"]
        missing += [f"{row['ids']}: {one}" for one in literals if one not in printed[command]]
    assert printed and not missing, "\n".join(missing)


def test_every_row_of_the_papers_is_there() -> None:
    ids = {one for row in ROW.finditer(PAGE.read_text(encoding="utf-8")) for one in row["ids"].split(", ")}
    wanted = {
        f"{letter}{n}" for letter, last in zip("VAIGRD", (11, 14, 10, 8, 9, 7), strict=True) for n in range(1, last + 1)
    }
    assert ids == wanted - LEFT_OUT
