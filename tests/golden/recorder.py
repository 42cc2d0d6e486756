"""Runs of a program in a home of their own: what they print, as it is kept, and against what was kept."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.results import differences, dumped, normalized, unfolded, without_places
from tests.golden.runs import Run, words_of

REPO = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).resolve().parent / "records"

_UNSET = ("APCA_", "PAPERDESK_", "OPENAI_", "ANTHROPIC_")


def default_program() -> Path:
    """The paperdesk beside this Python."""
    return Path(sys.executable).with_name("paperdesk")


def data_folder() -> Path | None:
    """The folder of real data where there is one: PAPERDESK_TEST_DATA, else ../shared/data."""
    named = os.environ.get("PAPERDESK_TEST_DATA")
    folder = Path(named) if named else REPO.parent / "shared" / "data"
    return folder.resolve() if folder.is_dir() else None


@dataclass(frozen=True)
class Done:
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Execute = Callable[[Sequence[str], Path, Mapping[str, str]], Done]
"""Carries out a command's words in a home with settings in the environment."""


def carried_out(run: Run, execute: Execute) -> Iterator[tuple[str, Any]]:
    """Carries out a run's commands in a new home, and gives for each its name and what came of it."""
    with tempfile.TemporaryDirectory(prefix="paperdesk-golden-") as folder:
        home = Path(folder).resolve() / "home"
        home.mkdir()
        places = {str(home): "HOME"}
        values = {"memory": ""}
        if run.needs_data:
            data = data_folder()
            assert data is not None, f"{run.name} needs real data"
            places[str(data)] = "DATA"
            values["data"] = str(data)
        for command, line in run.commands.items():
            done = execute(words_of(line, values), home, run.environment)
            document = _document(without_places(done.stdout, places))
            if command == "memory-list" and isinstance(document, Mapping):
                values["memory"] = _memory(document)
            yield (
                command,
                {
                    "command": line,
                    "exit": done.returncode,
                    "said": without_places(done.stderr, places).splitlines(),
                    "printed": normalized(document, run.brief),
                },
            )


def executed_by(program: Path) -> Execute:
    """Carries out every command in a process of its own."""

    def execute(words: Sequence[str], home: Path, settings: Mapping[str, str]) -> Done:
        done = subprocess.run(
            [str(program), *words],
            env=_environment(home, settings),
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return execute


def executed_here(words: Sequence[str], home: Path, settings: Mapping[str, str]) -> Done:
    """Carries out a command of this program in this process."""
    from tui.cli import main

    printed, said, before, place = io.StringIO(), io.StringIO(), dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(_environment(home, settings))
    os.chdir(home)
    try:
        with redirect_stdout(printed), redirect_stderr(said):
            main(words)
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return Done(ended.code, printed.getvalue(), said.getvalue())
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)
    raise AssertionError("a command ends with its code")


def _environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_UNSET)}
    return environ | {"PAPERDESK_HOME": str(home), "PAPERDESK_MODELS__DEFAULT": "offline", **settings}


def _document(printed: str) -> Any:
    """The JSON that was printed, or the lines of anything else."""
    try:
        return json.loads(printed)
    except ValueError:
        return printed.splitlines()


def _memory(listed: Mapping[str, Any]) -> str:
    """The id of one memory that anybody would choose: rewarded, and the first by text."""
    memories = listed["memories"]
    return str(min(memories, key=lambda memory: (-memory["rewards"], memory["text"], memory["symbol"]))["id"])


def record(run: Run, program: Path, folder: Path = RECORDS) -> int:
    """Writes what a run's commands print, and gives the size of it in bytes."""
    size = 0
    for command, result in carried_out(run, executed_by(program)):
        file = folder / run.file_of(command)
        file.parent.mkdir(parents=True, exist_ok=True)
        size += file.write_text(dumped(result) + "\n", encoding="utf-8")
    return size


def compare(run: Run, execute: Execute, folder: Path = RECORDS) -> Iterator[str]:
    """Carries a run out again and tells every difference from what was recorded."""
    for command, result in carried_out(run, execute):
        file = folder / run.file_of(command)
        place = file.relative_to(folder).with_suffix("")
        if not file.is_file():
            yield f"{place}: nothing is recorded"
            continue
        was = unfolded(json.loads(file.read_text(encoding="utf-8")))
        for difference in differences(was, json.loads(json.dumps(result))):
            yield f"{place}: {difference}"
