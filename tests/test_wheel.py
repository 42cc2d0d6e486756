"""The program as others get it: built, installed where no checkout is, and used from another folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.metadata import Metadata

from tests.conftest import MadeOnce
from tests.long_cases import first_of
from tests.tui.real_terminal import REPO, TMUX, Terminal

PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
DIST = os.environ.get("RELEASE_DIST")
"""The folder of a release's wheel and sdist, which `make release-check` has built; else they are built here."""
WINDOW = ("--symbols", "ORVL,HLXM", "--from", "2025-03-11", "--to", "2025-03-13")
PACKAGES = ("paperdesk", "tui", "engine", "connectors", "memory")
BUILD = """
import sys
from setuptools import build_meta

folder = sys.argv[1]
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""


@dataclass(frozen=True)
class Installed:
    """A wheel in a new environment.

    wheel, sdist: what was built.
    program: the command.
    packages: the folder that the packages were installed into.
    elsewhere: a folder outside of the checkout.
    """

    wheel: Path
    sdist: Path
    python: Path
    program: Path
    packages: Path
    elsewhere: Path

    def run(self, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PAPERDESK_HOME": str(home)}
        return subprocess.run(
            [self.program, *arguments], cwd=self.elsewhere, env=environ, capture_output=True, text=True, check=False
        )

    def document(self, *arguments: str, home: Path) -> Any:
        """The JSON document of a command that ended well."""
        done = self.run(*arguments, "--json", home=home)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def sources() -> set[str]:
    """The files of the packages in the checkout, as they are there; not what Python compiled."""
    found = (path for package in PACKAGES for path in (REPO / package).rglob("*") if path.is_file())
    return {path.relative_to(REPO).as_posix() for path in found if "__pycache__" not in path.parts}


def _build(folder: Path) -> None:
    """Built from a copy, since a build leaves folders behind that the next one would take files from."""
    copy, built = folder / "copy", folder / "built"
    for package in PACKAGES:
        shutil.copytree(REPO / package, copy / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / name, copy / name)
    built.mkdir()
    subprocess.run([sys.executable, "-W", "ignore", "-c", BUILD, built], cwd=copy, capture_output=True, check=True)
    shutil.rmtree(copy)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, made_once: MadeOnce) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    environment, elsewhere = folder / "environment", folder / "elsewhere"
    elsewhere.mkdir()
    built = made_once("wheel", _build) / "built" if DIST is None else REPO / DIST
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet")
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", wheel], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    # What the program depends on is that of this environment; a folder named so brings in no editable installation.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return Installed(wheel, sdist, python, environment / "bin" / "paperdesk", packages, elsewhere)


def test_wheel_and_sdist_hold_every_file_of_the_packages(installed: Installed) -> None:
    tree = sources()
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert names == tree
        assert all(wheel.read(name) == (REPO / name).read_bytes() for name in tree if not name.endswith(".py"))
    with tarfile.open(installed.sdist) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert tree <= inside and "pyproject.toml" in inside
    assert {f"{package}/py.typed" for package in PACKAGES} <= tree


def test_an_index_takes_the_metadata_and_the_changelog_has_the_version(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        text = wheel.read(name).decode()
    metadata = Metadata.from_email(text, validate=True)
    assert (metadata.name, str(metadata.version)) == ("paperdesk", VERSION)
    assert set(metadata.provides_extra or ()) == set(PROJECT["optional-dependencies"])
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == (REPO / "README.md").read_text(encoding="utf-8")
    changelog = (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


def test_an_installed_program_runs_outside_of_the_checkout(installed: Installed, tmp_path: Path) -> None:
    names = ", ".join(PACKAGES)
    where = f"import {names}; print(*(package.__path__[0] for package in ({names})))"
    told = subprocess.run(
        [installed.python, "-c", where], cwd=installed.elsewhere, capture_output=True, text=True, check=True
    )
    assert [Path(path) for path in told.stdout.split()] == [installed.packages / name for name in PACKAGES]
    home = tmp_path / "home"
    version = installed.run("--version", home=home)
    assert (version.returncode, version.stdout) == (0, f"paperdesk {VERSION}\n"), version.stderr
    tested = installed.document("backtest", *WINDOW, home=home)
    assert tested["sessions"] == 3 and tested["decisions"]


@pytest.mark.slow
def test_an_installed_desk_and_its_arena_run_outside_of_the_checkout(installed: Installed, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, again = (installed.document("--daily", home=home) for _ in range(2))
    assert (first["outcome"], again["outcome"]) == ("done", "nothing to do") and first["decisions"]
    status = installed.document("status", home=home)
    assert (status["session"], status["last_run"]["outcome"]) == (first["session"], "done")
    arena = installed.document("arena", "--days", "3", home=home)
    assert arena["days"] == 3 and len(arena["agents"]) == 9


COMPLETED = """
eval "$(_PAPERDESK_COMPLETE=bash_source paperdesk)"
for words in "paperdesk ba" "paperdesk --da" "paperdesk backtest --pre" "paperdesk runs ex"; do
  COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _paperdesk_completion paperdesk
  echo "${COMPREPLY[@]}"
done
"""


def test_a_shell_completes_commands_and_options(installed: Installed, tmp_path: Path) -> None:
    path = f"{installed.program.parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PAPERDESK_HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", COMPLETED], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["backtest backup", "--daily", "--preset", "export"], done.stderr


@contextmanager
def terminal(installed: Installed, home: Path) -> Iterator[Terminal]:
    if TMUX is None:
        pytest.skip("no tmux")
    opened = Terminal(home, 120, 40, program=str(installed.program), folder=installed.elsewhere)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.slow
def test_the_installed_app_paints(installed: Installed, tmp_path: Path) -> None:
    with terminal(installed, tmp_path / "home") as shown:
        shown.until(lambda text: "PAPER" in text and "ORVL" in text)
        shown.keys("q")
        shown.until(lambda text: "ENDED 0" in text)


READ = [
    ("engine/journal/schema.sql", ("backtest", *WINDOW)),
    ("engine/agents/prompts/evidence-decision.md", ("--daily",)),
    ("engine/agents/prompts/answer.md", ("backtest", *WINDOW)),
    ("engine/offline/lexicon.toml", ("backtest", *WINDOW)),
    ("engine/domain/exchanges.toml", ("backtest", *WINDOW)),
    ("connectors/demo/listings.toml", ("--daily",)),
    ("connectors/llm/prices.toml", ("models",)),
    ("memory/presets.toml", ("--daily",)),
    ("tui/set_up/config.example.toml", ("init", "--yes")),
    ("tui/settings/keys.toml", ()),
]
"""Files that the program reads by their names, and a command that needs each."""
LISTED = [
    ("engine/presets/desk.toml", ("backtest", *WINDOW)),
    ("engine/presets/finvision.toml", ("backtest", "--preset", "finvision", *WINDOW)),
    ("engine/arena/presets/paper.toml", ("arena", "--days", "1")),
    ("tui/app/app.tcss", ()),
]
"""Files whose names a person may choose from, or that a library reads: the record of the installation knows that one
is missing."""


@contextmanager
def without(file: Path, away: Path) -> Iterator[None]:
    shutil.move(file, away)
    try:
        yield
    finally:
        shutil.move(away, file)


@pytest.mark.parametrize(("file", "arguments"), first_of(1, READ))
def test_a_file_that_was_not_packaged_is_a_bug(
    installed: Installed, file: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (record,) = installed.packages.glob("paperdesk-*.dist-info/RECORD")
    with without(record, tmp_path / "record"), without(installed.packages / file, tmp_path / "away"):
        _is_broken(installed, arguments, tmp_path / "home")


@pytest.mark.slow
def test_a_report_without_its_template_is_a_bug(installed: Installed, tmp_path: Path) -> None:
    installed.document("backtest", "--strategy", "buy-and-hold", *WINDOW, home=tmp_path / "home")
    (record,) = installed.packages.glob("paperdesk-*.dist-info/RECORD")
    template = installed.packages / "engine/reports/templates/report.html.j2"
    with without(record, tmp_path / "record"), without(template, tmp_path / "away"):
        _is_broken(installed, ("report", "--format", "html", "--out", "report.html"), tmp_path / "home")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "arguments"), LISTED)
def test_a_file_that_was_removed_is_a_bug(
    installed: Installed, file: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    with without(installed.packages / file, tmp_path / "away"):
        _is_broken(installed, arguments, tmp_path / "home")


def _is_broken(installed: Installed, arguments: tuple[str, ...], home: Path) -> None:
    if arguments:
        done = installed.run(*arguments, home=home)
        code, said = done.returncode, done.stderr
    else:
        with terminal(installed, home) as shown:
            said = shown.until(lambda text: "ENDED" in text)
            code = int(said.rpartition("ENDED ")[2].split()[0])
    assert code == 70, said
    assert "installation is broken" in said and "writable" not in said
