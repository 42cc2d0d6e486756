"""The program beside distributions whose packages have the names of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paperdesk.installation import NAMES
from tests.tui.real_terminal import REPO


def called(*arguments: str, first: Path, second: Path = REPO) -> subprocess.CompletedProcess[str]:
    """Python with two folders before all others."""
    environ = {**os.environ, "PYTHONPATH": f"{first}{os.pathsep}{second}", "PAPERDESK_HOME": str(first / "home")}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=first, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py"])
@pytest.mark.parametrize("name", NAMES)
def test_another_package_of_the_name_is_refused_by_one_line(name: str, form: str, tmp_path: Path) -> None:
    foreign = tmp_path / form.format(name)
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("raise SystemExit('it was imported')\n", encoding="utf-8")

    command = called("-m", "paperdesk", "backtest", "--json", first=tmp_path)
    document = json.loads(command.stdout)
    assert (command.returncode, document["exit_code"]) == (78, 78)
    assert str(foreign) in document["error"]
    assert command.stderr == f"paperdesk: {document['error']}\n"

    library = called("-c", "import paperdesk", first=tmp_path)
    assert library.returncode == 1
    assert library.stderr.splitlines()[-1] == f"ImportError: {document['error']}"


def test_a_package_that_was_installed_over_ours_is_found(tmp_path: Path) -> None:
    for name in ("paperdesk", *NAMES):
        shutil.copytree(REPO / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "memory" / "__init__.py").write_text('"""Another memory."""\n', encoding="utf-8")
    done = called("-m", "paperdesk", "--version", first=tmp_path, second=tmp_path)
    assert done.returncode == 78 and str(tmp_path / "memory") in done.stderr


def test_nothing_heavy_is_imported_with_the_package() -> None:
    heavy = ["pandas", "numpy", "pydantic", "textual", "click", "matplotlib", "lancedb", "engine.app.research.backtest"]
    code = f"import sys, paperdesk; print([name for name in {heavy} if name in sys.modules])"
    assert called("-c", code, first=REPO).stdout == "[]\n"
