"""docs/extending.md as data: the files and the commands of each of its parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import connectors

PAGE = Path(__file__).resolve().parent.parent / "docs" / "extending.md"


def part(title: str) -> str:
    """The text under a heading of the second level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None, f"{PAGE.name} has no part {title}"
    return found[1]


def write_files(title: str, folder: Path) -> list[Path]:
    """Writes the files of a part: the code blocks that carry a name after their language."""
    written = []
    for name, text in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", part(title), re.M | re.S):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def commands(title: str) -> list[list[str]]:
    """The arguments of the indented `paperdesk` commands of a part."""
    return [line.split() for line in re.findall(r"^    paperdesk (.+?)(?:  #.*)?$", part(title), re.M)]


@contextmanager
def own_broker() -> Iterator[None]:
    """The broker of the page as one of the folders of connectors."""
    with TemporaryDirectory() as folder:
        write_files("A broker", Path(folder))
        connectors.__path__.append(f"{folder}/connectors")
        try:
            yield
        finally:
            connectors.__path__.pop()
            # Whoever asks for them later would get those of a folder that is gone.
            for name in [name for name in sys.modules if name.startswith("connectors.inmemory")]:
                del sys.modules[name]
