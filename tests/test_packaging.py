"""Set-up is part of the product: locks, Makefile, contracts and decisions agree with each other."""

from __future__ import annotations

import os
import re
import socket
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock")
PYPROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """Every requirement of a lock file, with its options (hashes)."""
    text = (REPO / name).read_text(encoding="utf-8")
    text = re.sub(r"^\s*#.*$\n?", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    entries = []
    for line in filter(None, map(str.strip, text.splitlines())):
        requirement, *options = re.split(r"\s+--", line)
        entries.append((Requirement(requirement), options))
    return entries


def pins(name: str) -> dict[str, str]:
    return {canonicalize_name(r.name): next(iter(r.specifier)).version for r, _ in locked(name)}


def wanted(lock: str) -> list[Requirement]:
    """What pyproject.toml asks that lock to hold."""
    extras = PYPROJECT["project"]["optional-dependencies"]
    texts = [*PYPROJECT["project"]["dependencies"], *extras["build"]]
    if lock == "requirements-dev.lock":
        texts += [text for name in ("cluster", "dev", "docs", "images", "ml", "serve", "tune") for text in extras[name]]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    text = (REPO / lock).read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"^\s*-[-\w]*(index|find-links|host|i|f)\b", text, re.MULTILINE)
    assert not any(requirement.url for requirement, _ in locked(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_one_version_with_hashes(lock: str) -> None:
    entries = locked(lock)

    assert entries
    for requirement, options in entries:
        assert [s.operator for s in requirement.specifier] == ["=="], requirement
        assert options, f"{requirement} has no hash"
        assert all(re.fullmatch(r"hash=sha256:[0-9a-f]{64}", option) for option in options), requirement
    names = [canonicalize_name(requirement.name) for requirement, _ in entries]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_pyproject_asks(lock: str) -> None:
    versions = pins(lock)

    for requirement in wanted(lock):
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name} is not in {lock}: run `make lock`"
        assert requirement.specifier.contains(versions[name]), f"{requirement} is {versions[name]} in {lock}"


def test_the_dev_lock_is_a_superset_of_the_runtime_lock() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


def test_what_the_build_requires_is_locked() -> None:
    build = [Requirement(text) for text in PYPROJECT["build-system"]["requires"]]
    versions = pins("requirements.lock")

    assert all(r.specifier.contains(versions[canonicalize_name(r.name)]) for r in build)


@pytest.mark.parametrize(
    "target",
    ["help", "desk", "paper-demo", "test", "test-long", "check", "bench", "docs", "release-check", "lock", "clean"],
)
def test_the_makefile_has_the_target_and_says_what_it_does(target: str) -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")

    assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE)


def test_the_gate_is_executable() -> None:
    assert os.access(REPO / ".ci" / "run", os.X_OK)


PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
CHECKS = yaml.safe_load((REPO / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8"))


def test_the_workflow_tests_every_python_that_is_promised_on_both_systems() -> None:
    promised = [one.rpartition(" ")[2] for one in PYPROJECT["project"]["classifiers"] if "Python :: 3." in one]
    for job in ("tests", "clean-machine"):
        matrix = CHECKS["jobs"][job]["strategy"]["matrix"]
        assert matrix["python"] == promised and len(matrix["system"]) == 2, job


def test_the_workflow_uses_no_checkout_where_the_wheel_is_tried() -> None:
    uses = [step.get("uses", "") for step in CHECKS["jobs"]["clean-machine"]["steps"]]
    assert not any("checkout" in one for one in uses) and any("download-artifact" in one for one in uses)


def test_pre_commit_runs_what_make_check_runs() -> None:
    hooks = yaml.safe_load((REPO / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"], "nothing is downloaded"
    entries = [hook["entry"].replace(".venv/bin/", "$(BIN)/") for hook in hooks[0]["hooks"]]
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    recipe = makefile[makefile.index("\ncheck:") :].partition("\n\n")[0]
    assert entries == re.findall(r"^\t(\$\(BIN\)/.+?) \|\|", recipe, re.MULTILINE)


@pytest.mark.parametrize("page", [*PAGES, *sorted(REPO.glob(".github/**/*.*"))], ids=str)
def test_pages_for_contributors_name_no_address(page: str | Path) -> None:
    assert not re.search("://(?!localhost)", (REPO / page).read_text(encoding="utf-8"))


def test_pages_link_to_files_that_there_are() -> None:
    """`make docs` follows links to headings, too."""
    pages = [*map(REPO.joinpath, PAGES), *REPO.glob("docs/**/*.md")]
    links = {page: re.findall(r"\]\(([^)#:]+)[)#]", page.read_text(encoding="utf-8")) for page in pages}
    assert [(page, link) for page in pages for link in links[page] if not page.parent.joinpath(link).exists()] == []


def test_decisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (REPO / "docs" / "decisions").iterdir())

    assert all(re.fullmatch(r"\d{4}-[a-z0-9]+(-[a-z0-9]+)*\.md", name) for name in names), names
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


@pytest.mark.parametrize("room", ["engine", "connectors"])
def test_every_room_has_its_place_in_the_layers(room: str) -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    placed = {name.strip(" ()") for layer in layers for name in re.split(r"[|:]", layer)}

    there = {
        f"{room}.{path.stem}"
        for path in (REPO / room).iterdir()
        if (path.suffix == ".py" and path.stem != "__init__")
        or (path.is_dir() and any(path.rglob("*.py")))  # a folder of data is no room
    }

    assert there <= placed, "say in pyproject.toml where these stand"


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_tests_cannot_leave_this_machine(method: str) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as outside,
        pytest.raises(OSError, match="loopback only"),
    ):
        getattr(outside, method)(("192.0.2.1", 9))


def test_tests_cannot_look_up_a_name_outside() -> None:
    with pytest.raises(OSError, match="loopback only"):
        socket.create_connection(("broker.example", 443), timeout=5)


def test_loopback_is_open() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        with socket.create_connection(server.getsockname(), timeout=5) as client:
            assert client.getpeername() == server.getsockname()


def test_the_home_is_the_tests_own(paperdesk_home: Path, tmp_path: Path) -> None:
    assert Path(os.environ["PAPERDESK_HOME"]) == paperdesk_home
    assert paperdesk_home.is_relative_to(tmp_path)
