"""The Dockerfile keeps the rules that matter and copies what there is; hadolint, where there is one, has no word."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tui.test_documents import check

REPO = Path(__file__).resolve().parent.parent
LINES = [
    (line.partition(" ")[0], line.partition(" ")[2])
    for line in (REPO / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]


def of(instruction: str) -> list[str]:
    return [rest for name, rest in LINES if name == instruction]


def test_it_stands_on_a_named_release_and_installs_by_hashes() -> None:
    images = [line.split()[0] for line in of("FROM")]
    assert all(re.fullmatch(r"python:3\.\d+-slim-[a-z]+", image) for image in images) and len(set(images)) == 1
    assert all("--require-hashes" in line or "--no-index" in line for line in of("RUN") if "pip install" in line)
    assert of("ADD") == []


def test_it_runs_a_command_that_there_is_as_a_user_without_rights_on_a_volume() -> None:
    assert [int(user) for user in of("USER")][-1] > 0
    (volume,) = of("VOLUME")
    assert f"PAPERDESK_HOME={volume}" in " ".join(of("ENV"))
    (program,), arguments = (json.loads(of(name)[-1]) for name in ("ENTRYPOINT", "CMD"))
    assert arguments == ["--daily"]
    for words in (arguments, ["--watch"]):
        check(" ".join([program, *words]))


def test_it_copies_what_the_context_holds_and_nothing_else() -> None:
    copied = {name for line in of("COPY") if not line.startswith("--from") for name in line.split()[:-1]}
    ignored = (REPO / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored and {line[1:] for line in ignored if line.startswith("!")} == copied
    assert all((REPO / name).exists() for name in copied)


def test_hadolint_has_no_word() -> None:
    if (hadolint := shutil.which("hadolint")) is None:
        pytest.skip("no hadolint")
    done = subprocess.run([hadolint, "Dockerfile"], cwd=REPO, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
