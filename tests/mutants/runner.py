"""One rule of the program broken in a copy beside it, and what the tests that hold the rule say to that."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

REPO = Path(__file__).resolve().parents[2]
PATIENCE = 900.0
"""Seconds for the tests of one mutant."""
_NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Unusable(Exception):
    """A mutant that cannot be applied, or whose tests give no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A rule broken: in `file` the text `old`, which stands there exactly once, becomes `new`; `tests` are the files
    that hold the rule."""

    name: str
    file: str
    old: str
    new: str
    tests: Sequence[str]

    def broken(self, repo: Path = REPO) -> str:
        """The whole file with the rule broken. Raises Unusable where the old text is not found exactly once."""
        path = repo / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if (found := text.count(self.old)) != 1:
            raise Unusable(f"the old text stands {found} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def known_mutants() -> list[Mutant]:
    """All mutants, in the order of mutants.toml."""
    table = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))
    return [Mutant(name=name, **fields) for name, fields in table.items()]


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
            raise Unusable(f"its tests did not end within {PATIENCE:.0f} seconds") from None
    if done.returncode not in (0, 1):
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise Unusable(f"pytest ended with {done.returncode}: {''.join(last)}")
    return _FAILED.findall(done.stdout)


@contextmanager
def _copied(repo: Path, mutant: Mutant | None) -> Iterator[Path]:
    """The tree by hard links, on whose own file system they have to be, with the mutant's file in the place of the
    real one."""
    broken = "" if mutant is None else mutant.broken(repo)
    cache = repo / ".cache"
    cache.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="mutant-", dir=cache) as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(repo, copy, copy_function=os.link, ignore=_NOT_COPIED)
        if mutant is not None:
            path = copy / mutant.file
            path.unlink()
            path.write_text(broken, encoding="utf-8")
        yield copy
