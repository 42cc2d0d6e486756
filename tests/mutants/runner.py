"""One rule of the program broken in a copy beside it, and what the tests that hold the rule say to that."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("connectors", "engine", "memory", "tui", "paperdesk")
PATIENCE = 900.0
"""Seconds for the tests of one mutant."""
_NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Unusable(Exception):
    """A mutant that cannot be applied, or whose tests give no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A rule broken: the text `old`, which stands exactly once in the program, becomes `new`. `tests` are the files
    that hold the rule."""

    name: str
    old: str
    new: str
    tests: Sequence[str]

    def broken(self, program: Mapping[Path, str]) -> tuple[Path, str]:
        """The file of the rule and its text with the rule broken. Raises Unusable where the old text is not found
        exactly once."""
        files = [path for path, text in program.items() for _ in range(text.count(self.old))]
        if len(files) != 1:
            raise Unusable(f"{self.name}: the old text stands {len(files)} times in the program, not once")
        return files[0], program[files[0]].replace(self.old, self.new)


def known_mutants() -> list[Mutant]:
    """All mutants, in the order of mutants.toml."""
    table = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))
    return [Mutant(name=name, **fields) for name, fields in table.items()]


def program_of(repo: Path = REPO) -> dict[Path, str]:
    """The text of every module of the program, by its path."""
    paths = (path for package in PACKAGES for path in sorted((repo / package).rglob("*.py")))
    return {path: path.read_text(encoding="utf-8") for path in paths}


def failing(tests: Sequence[str], mutant: Mutant | None = None, repo: Path = REPO) -> list[str]:
    """The first test that fails with a mutant, or in the program as it is; none where all of the files pass. Raises
    Unusable."""
    with _copied(repo, mutant) as copy:
        options = ["-q", "-x", "-n", "0", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=copy,
                env={**os.environ, "PYTHONPATH": str(copy)},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unusable(f"the tests did not end within {PATIENCE:.0f} seconds") from None
    if done.returncode not in (0, 1):
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise Unusable(f"pytest ended with {done.returncode}: {''.join(last)}")
    return _FAILED.findall(done.stdout)


@contextmanager
def _copied(repo: Path, mutant: Mutant | None) -> Iterator[Path]:
    """The tree by hard links, on whose own file system they have to be, with the mutant's file in the place of the
    real one."""
    cache = repo / ".cache"
    cache.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="mutant-", dir=cache) as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(repo, copy, copy_function=os.link, ignore=_NOT_COPIED)
        if mutant is not None:
            path, text = mutant.broken(program_of(copy))
            path.unlink()  # the link, not the file that it shares with the tree
            path.write_text(text, encoding="utf-8")
        yield copy
